"""How each method's settings on the digits were chosen: the same number of trials for all, none of them on test images.

    python benchmarks/tuning.py

1,000 of the 1,400 training images are trained on, the other 400 with their true labels choose; seed 100, eight trials a
method, at 50 and 80 % symmetric noise: four of the learning rate (JoCoR: the weight of agreement), then four of other
settings at the best of those. The best mean of both columns is the recipe's value (`recipes.py`).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from cells import RESULTS, Cell, markdown, run_missing

from plremix import recipes
from plremix.data.sources import digits

RATES = {"high": ("0.1", "0.05", "0.02", "0.005"), "usual": ("0.05", "0.02", "0.005", "0.002")}
RATES["Adam"] = ("0.005", "0.002", "0.001", "0.0005")
TRIALS: dict[str, list[str]] = {
    "cross-entropy": [
        *(f"--lr {value}" for value in RATES["usual"]),
        *("--weight-decay 0.005", "--weight-decay 0.00005", "--batch-size 32", "--batch-size 128"),
    ],
    "mixup": [
        *(f"--lr {value}" for value in RATES["usual"]),
        *("--mixup-alpha 1", "--mixup-alpha 4", "--mixup-alpha 8", "--weight-decay 0.005"),
    ],
    "co-teaching": [
        *(f"--lr {value}" for value in RATES["Adam"]),
        *("--forget-epochs 4", "--forget-epochs 16", "--weight-decay 0.0005", "--batch-size 32"),
    ],
    "co-teaching-plus": [
        *(f"--lr {value}" for value in RATES["Adam"]),
        *("--forget-epochs 4", "--forget-epochs 16", "--plus-epoch 8", "--plus-epoch 24"),
    ],
    "jocor": [
        *(f"--agreement {value}" for value in ("0.9", "0.65", "0.5", "0.3")),
        *("--lr 0.002", "--lr 0.0005", "--forget-epochs 4", "--forget-epochs 16"),
    ],
    "dividemix": [
        *(f"--lr {value}" for value in RATES["high"]),
        *("--lambda-u 50", "--beta 0.5", "--warmup-epochs 5", "--clean-threshold 0.6"),
    ],
    "elr": [
        *(f"--lr {value}" for value in RATES["usual"]),
        *("--elr-weight 1", "--elr-weight 7", "--elr-momentum 0.5", "--elr-momentum 0.9"),
    ],
    "elr-plus": [
        *(f"--lr {value}" for value in RATES["usual"]),
        *("--elr-weight 1", "--elr-weight 7", "--elr-momentum 0.9", "--mixup-alpha 0.3"),
    ],
    "unicon": [
        *(f"--lr {value}" for value in RATES["high"]),
        *("--lambda-u 10", "--lambda-u 100", "--contrast-weight 0.1", "--warmup-epochs 5"),
    ],
    "plremix": [
        *(f"--lr {value}" for value in RATES["high"]),
        *("--no-flat", "--no-flat --temperature 0.5", "--no-flat --cluster-vote 0", "--no-flat --warmup-epochs 5"),
    ],
}
START = {  # what the trials began with, where the recipe now has what they found
    "cross-entropy": {"batch_size": 64},
    "mixup": {"mixup_alpha": 32.0},
    "co-teaching": {"batch_size": 64},
    "jocor": {"lr": 0.001},
    "dividemix": {"beta": 4.0},
    "elr-plus": {"mixup_alpha": 1.0},
    "plremix": {"flat": True, "neighbour_votes": 0.0},
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
                f"{method} {trial}",
                noise,
                100,
                (
                    str(file),
                    "--method",
                    method,
                    "--truth-key",
                    "y_train",
                    *flags,
                    *as_on_digits(method),
                    *trial.split(),
                ),
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


def as_on_digits(method: str) -> list[str]:
    """Flags that give arrays the digits' settings as they were before the trials, but for the learning rate."""
    wanted, usual = (recipes.build(name, method).as_dict() for name in ("digits-sym-80", "digits.npz"))
    words = []
    for name, value in {**wanted, **START.get(method, {})}.items():
        if value == usual[name] or name in ("recipe", "data", "noise", "noise_ratio"):
            continue
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            words += [flag, ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    return words


def write_validation(file: Path) -> None:
    """The training images alone: 1,000 to train on, 400 to choose by."""
    data = digits.load()
    images, labels = data.images[:].permute(0, 2, 3, 1).numpy(), data.given_labels.numpy()
    np.savez(file, x_train=images[:1000], y_train=labels[:1000], x_test=images[1000:], y_test=labels[1000:])


if __name__ == "__main__":
    main()
