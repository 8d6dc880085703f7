"""How each method's settings on the digits were chosen: the same number of trials for all, none of them on test images.

    python benchmarks/tuning.py              # eight trials a method
    python benchmarks/tuning.py --further    # thirteen more
    python benchmarks/tuning.py --last       # six more

1,000 of the 1,400 training images are trained on, the other 400 with their true labels choose; seed 100, eight trials a
method, at 50 and 80 % symmetric noise: four of the learning rate (JoCoR: the weight of agreement), then four of other
settings at the best of those. The best mean of both columns is the recipe's value (`recipes.py`).

Then thirteen more at 80 %, each with one thing changed: all on seeds 100 and 101, the best three of them and the recipe
as it was on 102 and 103 too. What has the best mean of the four seeds is looked at with 50 % and asymmetric noise
(seeds 100 and 101), and taken over if the mean of the three noises is the better for it. Then six more in the same way,
from what the thirteen had found. PLReMix's are in `results/tuning_plremix.md`: of the thirteen ten on all four seeds,
three on two; five of the six on six seeds, one on four.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

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
# What the trials began with, where the recipe now has what they found: the last ones, the further ones, then the eight
# before them. What `comparison.py` gives a method beside its recipe counts as found.
START_LAST: dict[str, recipes.Settings] = {
    "cross-entropy": {"weak_view": "distort"},
    "co-teaching-plus": {"lr_schedule": "linear"},
    "jocor": {"averaging": 0.0},
    "dividemix": {"lambda_u": 10.0, "batch_size": 64},
    "mixup": {"lr_schedule": "steps"},
    "elr": {"elr_weight": 3.0},
    "elr-plus": {"elr_weight": 3.0},
    "unicon": {"lambda_u": 30.0},
}
START_FURTHER: dict[str, recipes.Settings] = {
    "cross-entropy": {"weak_view": "crop"},
    "mixup": {"weak_view": "crop"},
    "co-teaching": {"lr": 0.001},
    "co-teaching-plus": {"batch_size": 64},
    "jocor": {"forget_epochs": 8},
    "dividemix": {"lambda_u": "auto", "strong_view": "crop", "learned_view": "strong"},
    "elr": {"weak_view": "crop"},
    "elr-plus": {"weak_view": "crop"},
    "unicon": {"beta": 4.0},
}
START: dict[str, recipes.Settings] = {
    "cross-entropy": {"batch_size": 64},
    "mixup": {"mixup_alpha": 32.0},
    "co-teaching": {"batch_size": 64},
    "jocor": {"lr": 0.001},
    "dividemix": {"beta": 4.0},
    "elr-plus": {"mixup_alpha": 1.0},
    "plremix": {"flat": True, "neighbour_votes": 0.0},
}
AS_IT_WAS = "as it was"
_VIEWS = ("--weak-view distort", "--weak-view plain")
_AVERAGED = ("--averaging 0.98", "--averaging 0.995")
_SMALL_LOSS = (
    *(*_AVERAGED, *_VIEWS, "--lr-schedule cosine", "--lr-schedule steps", "--lr-epochs 24", "--forget-epochs 12"),
    *("--weight-decay 0.0005", "--late-beta1 0.1", "--batch-size 16", "--batch-size 128"),
)
_ONE_NETWORK = (
    *(*_AVERAGED, *_VIEWS, "--lr-schedule cosine", "--lr-schedule linear", "--lr-epochs 10", "--lr-epochs 15"),
    "--optimizer adam --lr 0.001",
)
FURTHER: dict[str, tuple[str, ...]] = {
    "unicon": (
        *("--averaging 0.98", "--beta 0.5", "--beta 0.5 --averaging 0.98", "--lambda-u auto", "--lr 0.2"),
        *("--batch-size 32", "--warmup-epochs 16", "--lr-schedule steps", "--temperature 0.2", "--sharpen 0.25"),
        *("--contrast-weight 0.3", "--contrast-side all", "--warmup-contrast"),
    ),
    "dividemix": (
        *("--averaging 0.98", "--lr 0.2", "--lr-schedule cosine", "--batch-size 32", "--warmup-epochs 16"),
        *("--learned-view guessed", "--strong-view distort", "--loss-history 5", "--sharpen 0.25", "--lambda-u 10"),
        *("--ramp-epochs 16", "--warmup-entropy", "--weight-decay 0.002"),
    ),
    "elr-plus": (
        *("--averaging 0.98", *_VIEWS, "--lr-schedule cosine", "--batch-size 32", "--lr 0.1", "--elr-weight 2"),
        *("--elr-weight 5", "--ema 0.99", "--ema-epochs 0", "--reweight-labels", "--mixup-alpha 0.1"),
        "--weight-decay 0.002",
    ),
    "jocor": (*_SMALL_LOSS, "--batch-size 32"),
    "co-teaching-plus": (*_SMALL_LOSS, "--batch-size 32"),
    "co-teaching": (*_SMALL_LOSS, "--lr 0.0015"),
    "elr": (
        *(*_AVERAGED, *_VIEWS, "--lr-schedule linear", "--lr-schedule steps", "--lr-schedule restarts --lr-period 10"),
        *("--batch-size 16", "--batch-size 32", "--elr-weight 2", "--elr-weight 5", "--lr 0.03"),
        "--weight-decay 0.002",
    ),
    "mixup": (*_ONE_NETWORK, "--batch-size 32", "--lr 0.1", "--mixup-alpha 0.3", "--mixup-alpha 2"),
    "cross-entropy": (*_ONE_NETWORK, "--batch-size 16", "--lr 0.01", "--lr 0.003", "--weight-decay 0.02"),
}
LAST: dict[str, tuple[str, ...]] = {
    "unicon": (
        *("--lambda-u 10", "--contrast-weight 0.1", "--warmup-epochs 5", "--lr 0.2", "--lr-schedule steps"),
        "--batch-size 32",
    ),
    "dividemix": (
        *("--lambda-u 5", "--averaging 0.98", "--lr-schedule cosine", "--ramp-epochs 16", "--batch-size 32"),
        "--learned-view strong --strong-view distort",
    ),
    "elr-plus": (
        *("--averaging 0.98", "--batch-size 32", "--lr 0.1", "--elr-weight 2", "--elr-momentum 0.9"),
        "--mixup-alpha 0.1",
    ),
    "jocor": (
        *("--averaging 0.98", "--weak-view distort", "--lr-schedule cosine", "--lr 0.003", "--agreement 0.5"),
        "--forget-epochs 16",
    ),
    "co-teaching-plus": (
        *("--averaging 0.98", "--weak-view distort", "--lr-schedule cosine", "--lr-schedule steps", "--lr 0.003"),
        "--plus-epoch 20",
    ),
    "co-teaching": (
        *("--averaging 0.98", "--weak-view distort", "--lr-schedule cosine", "--lr-epochs 24", "--batch-size 16"),
        "--forget-epochs 12",
    ),
    "elr": (
        *("--averaging 0.98", "--batch-size 32", "--lr 0.03", "--lr 0.05", "--elr-weight 2", "--elr-momentum 0.9"),
    ),
    "mixup": (
        *("--averaging 0.98", "--lr-schedule cosine", "--batch-size 32", "--lr 0.02", "--mixup-alpha 2"),
        "--mixup-alpha 4",
    ),
    "cross-entropy": (
        *("--averaging 0.995", "--lr-schedule cosine", "--batch-size 16", "--lr 0.01", "--lr 0.003"),
        "--weight-decay 0.002",
    ),
}


class Round(NamedTuple):
    """Trials after the eight."""

    folder: str  # of its cells, in results
    trials: dict[str, tuple[str, ...]]
    starts: tuple[dict[str, recipes.Settings], ...]  # what the recipe had then; the later ones count


ROUNDS = {
    "further": Round("tuning_further", FURTHER, (START_LAST, START_FURTHER)),
    "last": Round("tuning_last", LAST, (START_LAST,)),
}
NOISES = {
    "sym-50": ["--noise", "symmetric", "--noise-ratio", "0.5"],
    "sym-80": ["--noise", "symmetric", "--noise-ratio", "0.8"],
    "asym-40": ["--noise", "asymmetric", "--noise-ratio", "0.4"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="", help="which methods, with commas; nothing: all")
    parser.add_argument("--further", dest="after", action="store_const", const="further", help="the thirteen after")
    parser.add_argument("--last", dest="after", action="store_const", const="last", help="the six after those")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only print the table")
    chosen = parser.parse_args()
    after = ROUNDS.get(chosen.after)
    methods = chosen.methods.split(",") if chosen.methods else list(after.trials if after else TRIALS)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "digits-validation.npz"
        write_validation(file)
        jobs = 0 if chosen.table else chosen.jobs
        cells = [
            cell
            for method in methods
            for cell in (narrow(after, file, method, jobs) if after else eight(file, method, jobs))
        ]
    table = markdown(cells, ["last", "average_precision"])
    (RESULTS / f"{after.folder if after else 'tuning'}.md").write_text(table + "\n")
    print(table)


def eight(file: Path, method: str, jobs: int) -> list[Cell]:
    """The trials on seed 100; with no jobs none is run."""
    starts = (START_LAST, START_FURTHER, START)
    cells = [
        Cell("tuning", f"{method} {trial}", noise, 100, _words(file, method, noise, trial, starts))
        for trial in TRIALS[method]
        for noise in ("sym-50", "sym-80")
    ]
    if jobs:
        run_missing(cells, jobs)
    return cells


def narrow(after: Round, file: Path, method: str, jobs: int) -> list[Cell]:
    """A round's trials at 80 %, more seeds for the best of them, other noise for the best of those."""
    seen: dict[str, list[Cell]] = {}

    def look(trials: Sequence[str], noise: str, seeds: Sequence[int]) -> list[str]:
        """The trials by their mean, the best first."""
        cells = {
            trial: [
                Cell(after.folder, f"{method} {trial}", noise, seed, _words(file, method, noise, trial, after.starts))
                for seed in seeds
            ]
            for trial in trials
        }
        for trial in trials:
            seen[trial] = list(dict.fromkeys([*seen.get(trial, []), *cells[trial]]))
        if jobs:
            run_missing(list(chain.from_iterable(cells.values())), jobs)
        return sorted(trials, key=lambda trial: sum(_last(cell) for cell in cells[trial]), reverse=True)

    best = look(after.trials[method], "sym-80", (100, 101))[:3]
    first = look([AS_IT_WAS, *best], "sym-80", (100, 101, 102, 103))[0]
    if first != AS_IT_WAS:
        for noise in ("sym-50", "asym-40"):
            look([AS_IT_WAS, first], noise, (100, 101))
    return list(chain.from_iterable(seen.values()))


def _last(cell: Cell) -> float:
    result = cell.result()
    return result["last"] if result else 0.0


def _words(
    file: Path, method: str, noise: str, trial: str, starts: Sequence[dict[str, recipes.Settings]]
) -> tuple[str, ...]:
    start = {name: value for each in starts for name, value in each.get(method, {}).items()}
    changed = [] if trial == AS_IT_WAS else trial.split()
    return (
        str(file),
        "--method",
        method,
        "--truth-key",
        "y_train",
        *NOISES[noise],
        *as_on_digits(method, start),
        *changed,
    )


def as_on_digits(method: str, start: recipes.Settings) -> list[str]:
    """Flags that give arrays the digits' settings, but for those to start with instead."""
    wanted, usual = (recipes.build(name, method).as_dict() for name in ("digits-sym-80", "digits.npz"))
    words = []
    for name, value in {**wanted, **start}.items():
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
