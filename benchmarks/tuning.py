"""How each method's settings on the digits were chosen: the same number of trials for all, none of them on test images.

    python benchmarks/tuning.py

1,000 of the 1,400 training images are trained on, the other 400 with their true labels choose; seed 100, four trials a
method, at 50 and 80 % symmetric noise. The best mean of both columns is the recipe's value (`recipes.py`).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from cells import RESULTS, Cell, markdown, run_missing

from plremix.data.sources import digits

TRIALS: dict[str, list[list[str]]] = {
    "cross-entropy": [["--lr", value] for value in ("0.05", "0.02", "0.005", "0.002")],
    "mixup": [["--lr", value] for value in ("0.05", "0.02", "0.005", "0.002")],
    "co-teaching": [["--lr", value] for value in ("0.005", "0.002", "0.001", "0.0005")],
    "co-teaching-plus": [["--lr", value] for value in ("0.005", "0.002", "0.001", "0.0005")],
    "jocor": [["--agreement", value] for value in ("0.9", "0.65", "0.5", "0.3")],
    "dividemix": [["--lr", value] for value in ("0.1", "0.05", "0.02", "0.005")],
    "elr": [["--lr", value] for value in ("0.05", "0.02", "0.005", "0.002")],
    "elr-plus": [["--lr", value] for value in ("0.05", "0.02", "0.005", "0.002")],
    "unicon": [["--lr", value] for value in ("0.1", "0.05", "0.02", "0.005")],
    "plremix": [["--lr", value] for value in ("0.1", "0.05", "0.02", "0.005")],
}
NOISES = {
    "sym-50": ["--noise", "symmetric", "--noise-ratio", "0.5"],
    "sym-80": ["--noise", "symmetric", "--noise-ratio", "0.8"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(TRIALS), help="which methods, with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only print the table")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "digits-validation.npz"
        write_validation(file)
        cells = [
            Cell(
                "tuning",
                f"{method} {' '.join(trial)}",
                noise,
                100,
                (str(file), "--method", method, "--truth-key", "y_train", *flags, *trial),
            )
            for method in chosen.methods.split(",")
            for trial in TRIALS[method]
            for noise, flags in NOISES.items()
        ]
        if not chosen.table:
            run_missing(cells, chosen.jobs)
        table = markdown(cells, ["last"])
        (RESULTS / "tuning.md").write_text(table + "\n")
        print(table)


def write_validation(file: Path) -> None:
    """The training images alone: 1,000 to train on, 400 to choose by."""
    data = digits.load()
    images, labels = data.images[:].permute(0, 2, 3, 1).numpy(), data.given_labels.numpy()
    np.savez(file, x_train=images[:1000], y_train=labels[:1000], x_test=images[1000:], y_test=labels[1000:])


if __name__ == "__main__":
    main()
