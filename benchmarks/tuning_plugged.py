"""How contrast plugged into other methods was set on the digits: as many trials for SimCLR as for PLR.

    python benchmarks/tuning_plugged.py

Data and rules as in `tuning.py`: 1,000 of the training images, judged by the other 400, 80 % symmetric noise. Eight
trials a method and kind of contrast: the form of the loss, its temperature, and PLR's kappa. All on seeds 100 and 101,
the best two of each kind on 102 and 103, too; the best mean of the four seeds is taken over. PLR's settings are the
recipes' then; SimCLR's, where they are others, stand in `comparison.py`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cells import RESULTS, Cell, markdown, mean_last, run_missing
from comparison import FOUND, PLUGGED
from tuning import NOISES, as_on_digits, write_validation

from plremix.recipes import Settings

_BOTH = ("--flat", "--no-flat", "--flat --temperature 0.5", "--no-flat --temperature 0.5")
TRIALS = {
    "simclr": (
        *(*_BOTH, "--flat --temperature 0.1", "--no-flat --temperature 0.1"),
        *("--flat --temperature 1", "--no-flat --temperature 1"),
    ),
    "plr": (
        *(*_BOTH, "--flat --kappa 1", "--no-flat --kappa 1"),
        *("--flat --temperature 0.5 --kappa 1", "--no-flat --temperature 0.5 --kappa 1"),
    ),
}
START: Settings = {"flat": True, "temperature": 0.2, "kappa": (3, 2, 1)}  # what the recipes had then
SEEDS, MORE_SEEDS = (100, 101), (102, 103)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only print the table")
    chosen = parser.parse_args()
    jobs = 0 if chosen.table else chosen.jobs
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "digits-validation.npz"
        write_validation(file)
        cells = [cell for method in PLUGGED for kind in TRIALS for cell in narrow(file, method, kind, jobs)]
    table = markdown(cells, ["last", "average_precision"])
    (RESULTS / "tuning_plugged.md").write_text(table + "\n")
    print(table)


def narrow(file: Path, method: str, kind: str, jobs: int) -> list[Cell]:
    """The cells of one kind of contrast in one method; with no jobs none is run."""
    usual = [str(file), "--method", method, "--truth-key", "y_train", *NOISES["sym-80"], *as_on_digits(method, START)]
    usual += [*FOUND.get(method, ()), "--contrast", kind]
    rows = {f"{method} {kind} {trial}": (*usual, *trial.split()) for trial in TRIALS[kind]}

    def look(chosen: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
        cells = [Cell("tuning_plugged", row, "sym-80", seed, rows[row]) for seed in seeds for row in chosen]
        if jobs:
            run_missing(cells, jobs)
        return cells

    cells = look(list(rows), SEEDS)
    best = sorted(rows, key=lambda row: mean_last(cells, row), reverse=True)[:2]
    return [*cells, *look(best, MORE_SEEDS)]


if __name__ == "__main__":
    main()
