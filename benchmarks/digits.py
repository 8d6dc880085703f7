"""PLReMix on the bundled digits against plain cross-entropy, by noise; a cell is one `plremix train`, kept as JSON.

    python benchmarks/digits.py                      # what is missing of the whole table, then the table
    python benchmarks/digits.py --noise sym-80 --seeds 0,1,2 --rows cross-entropy,plremix
    python benchmarks/digits.py --table              # the table of what is there, without running anything

Finished cells are in benchmarks/results/digits; an interrupted benchmark goes on with those that are missing. Each cell
runs in one thread, two cells at a time: 40 epochs of PLReMix take about two minutes a cell that way.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "digits"
NOISES = ("sym-20", "sym-50", "sym-80", "sym-90", "asym-40")
ROWS = {  # name: flags
    "cross-entropy": ["--method", "cross-entropy"],
    "plremix as published": ["--split", "mixture2d", "--temperature", "1.0", "--epoch-length", "clean", "--lr", "0.02"],
    "plremix": [],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", default=",".join(NOISES), help="which noises, with commas")
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows, with commas")
    parser.add_argument("--seeds", default="0,1,2,3,4", help="which seeds, with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only print the table")
    chosen = parser.parse_args()
    cells = [
        (row, noise, int(seed))
        for seed in chosen.seeds.split(",")
        for noise in chosen.noise.split(",")
        for row in chosen.rows.split(",")
    ]
    if not chosen.table:
        with ThreadPoolExecutor(chosen.jobs) as pool:
            list(pool.map(lambda cell: run(*cell), [cell for cell in cells if not path_of(*cell).exists()]))
    print(table(cells))


def path_of(row: str, noise: str, seed: int) -> Path:
    return RESULTS / f"{noise}_{row.replace(' ', '-')}_seed{seed}.json"


def run(row: str, noise: str, seed: int) -> None:
    """One cell: train in a scratch folder, keep the summary and the command."""
    flags = ["train", f"digits-{noise}", *ROWS[row], "--seed", str(seed)]
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "run"
        subprocess.run(
            [sys.executable, "-m", "plremix", *flags, "--out", str(out), "--quiet"],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        summary = json.loads((out / "summary.json").read_text())
        versions = json.loads((out / "config.json").read_text())["versions"]
    path = path_of(row, noise, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"command": "plremix " + " ".join(flags), "versions": versions, **summary}
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(f"{noise} {row} seed {seed}: last {summary['last']:.1%}", file=sys.stderr, flush=True)


def table(cells: list[tuple[str, str, int]]) -> str:
    """Markdown: mean ± deviation over seeds, per cent; and how well wrong labels were found."""
    noises = list(dict.fromkeys(noise for _, noise, _ in cells))
    lines = [f"| | | {' | '.join(noises)} |", "|---|---|" + "---|" * len(noises)]
    for row in dict.fromkeys(row for row, _, _ in cells):
        for measure in ("best", "last", "corrected_accuracy", "auroc", "precision", "recall"):
            shown = []
            for noise in noises:
                paths = [path_of(*cell) for cell in cells if cell[:2] == (row, noise)]
                done = [json.loads(path.read_text()) for path in paths if path.exists()]
                shown.append(_mean([100 * cell.get(measure, cell["detection"].get(measure)) for cell in done]))
            lines.append(f"| {row} | {measure} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _mean(values: list[float]) -> str:
    if not values:
        return ""
    places = 2 if min(values) > 99 else 1
    return f"{statistics.mean(values):.{places}f} ± {statistics.pstdev(values):.{places}f} ({len(values)})"


if __name__ == "__main__":
    main()
