"""PLReMix on the bundled digits, as published and as we have it, against plain cross-entropy, by noise.

    python benchmarks/digits.py                      # what is missing of the whole table, then the table
    python benchmarks/digits.py --noise sym-80 --seeds 10,11,12 --rows cross-entropy,plremix
    python benchmarks/digits.py --table              # the table of what is there, without running anything

A cell is 40 epochs in one thread, two cells at a time on two cores: 50 to 100 seconds a cell of PLReMix. Finished cells
are in benchmarks/results/digits with their command, date and versions.
"""

from __future__ import annotations

import argparse
import os

from cells import Cell, markdown, run_missing

NOISES = ("sym-20", "sym-50", "sym-80", "sym-90", "asym-40")
ROWS = {  # name: flags
    "cross-entropy": ["--method", "cross-entropy"],
    "plremix as published": [
        *("--split", "mixture2d", "--temperature", "1.0", "--epoch-length", "clean", "--lr", "0.02"),
        *("--lambda-u", "25", "--flat"),
    ],
    "plremix": [],
}
MEASURES = ("best", "last", "corrected_accuracy", "average_precision", "auroc", "precision", "recall")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", default=",".join(NOISES), help="which noises, with commas")
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows, with commas")
    parser.add_argument("--seeds", default="10,11,12", help="which seeds, with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only print the table")
    chosen = parser.parse_args()
    cells = [
        Cell("digits", row, noise, int(seed), (f"digits-{noise}", *ROWS[row]))
        for row in chosen.rows.split(",")
        for seed in chosen.seeds.split(",")
        for noise in chosen.noise.split(",")
    ]
    if not chosen.table:
        run_missing(cells, chosen.jobs)
    print(markdown(cells, MEASURES))


if __name__ == "__main__":
    main()
