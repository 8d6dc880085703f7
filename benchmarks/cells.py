"""Cells of a benchmark: one `plremix train` each, kept as JSON, so that an interrupted benchmark goes on."""

from __future__ import annotations

import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
MEASURES = ("best", "last", "corrected_accuracy", "average_precision", "auroc", "precision", "recall", "seconds")


@dataclass(frozen=True)
class Cell:
    """Where it stands in a table, and the words after `plremix train`."""

    benchmark: str
    row: str
    column: str
    seed: int
    words: tuple[str, ...]

    @property
    def path(self) -> Path:
        name = f"{self.column}_{self.row}_seed{self.seed}".replace(" ", "-").replace("/", "-")
        return RESULTS / self.benchmark / f"{name}.json"

    @property
    def command(self) -> str:
        """What to type; of a file, its name alone."""
        words = [Path(word).name if word.endswith(".npz") else word for word in self.words]
        return f"plremix train {' '.join([*words, '--seed', str(self.seed)])}"

    def result(self) -> dict[str, Any] | None:
        return json.loads(self.path.read_text()) if self.path.exists() else None


def run_missing(cells: Sequence[Cell], jobs: int) -> None:
    """Run what has no file yet; each in one thread of its own, `jobs` at a time. What the same code has done already,
    for another table, is not done again."""
    done = {}
    for path in RESULTS.glob("*/*.json"):
        kept = json.loads(path.read_text())
        done[kept.get("command"), kept.get("source")] = path  # `noise_rate.py` has no command a file
    missing = [cell for cell in cells if not cell.path.exists()]
    for cell in missing:
        if (cell.command, source()) in done:
            keep(cell.path, done[cell.command, source()].read_text())
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(_run, [cell for cell in missing if not cell.path.exists()]))


@cache
def source() -> str:
    """The last commit of the library, which a cell was made by, with a + where there is more than that."""
    asked = (["git", "log", "-1", "--format=%h", "--", "src"], ["git", "status", "--porcelain", "--", "src"])
    commit, changed = (
        subprocess.run(words, cwd=RESULTS.parents[1], capture_output=True, text=True).stdout.strip() for words in asked
    )
    return commit + "+" * bool(changed)


def _run(cell: Cell) -> None:
    words = [*cell.words, "--seed", str(cell.seed)]
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "run"
        subprocess.run(
            [sys.executable, "-m", "plremix", "train", *words, "--out", str(out), "--quiet"],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        summary = json.loads((out / "summary.json").read_text())
        versions = json.loads((out / "config.json").read_text())["versions"]
    content = {
        "command": cell.command,
        "date": date.today().isoformat(),
        "source": source(),
        "versions": versions,
        **summary,
    }
    keep(cell.path, json.dumps(content, indent=2) + "\n")
    print(f"{cell.column} {cell.row} seed {cell.seed}: last {summary['last']:.1%}", file=sys.stderr, flush=True)


def keep(path: Path, text: str) -> None:
    """In one step, so that an interruption leaves no half of a cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".writing")
    beside.write_text(text)
    beside.replace(path)


def markdown(cells: Sequence[Cell], measures: Iterable[str]) -> str:
    """Rows by measure, columns by noise: mean ± sample deviation (how many seeds), per cent; seconds as they are."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    lines = [f"| | | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns)]
    for row in dict.fromkeys(cell.row for cell in cells):
        for measure in measures:
            shown = [_mean(_values(cells, row, column, measure), measure) for column in columns]
            lines.append(f"| {row} | {measure} | {' | '.join(shown)} |")
    return "\n".join(lines)


def commands(cells: Sequence[Cell]) -> str:
    """A line a place in the table: the command behind its cells, and their seeds."""
    seeds: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells:
        if (result := cell.result()) is not None:
            words = result["command"].removesuffix(f" --seed {cell.seed}")
            seeds.setdefault((cell.row, cell.column, words), []).append(str(cell.seed))
    return "\n".join(
        f"- {row}, {column}: `{words} --seed S`, S = {', '.join(each)}" for (row, column, words), each in seeds.items()
    )


def as_csv(cells: Sequence[Cell]) -> str:
    """A line a finished cell, with the command behind it."""
    text = io.StringIO()
    sheet = csv.writer(text, lineterminator="\n")
    sheet.writerow(["row", "column", "seed", *MEASURES, "command"])
    for cell in cells:
        if (result := cell.result()) is not None:
            values = [_value(result, measure) for measure in MEASURES]
            shown = ["" if value is None else f"{value:.6g}" for value in values]
            sheet.writerow([cell.row, cell.column, cell.seed, *shown, result["command"]])
    return text.getvalue()


def mean_last(cells: Sequence[Cell], row: str) -> float:
    """Last of a row, over its columns and seeds; 0 of one that has not been run."""
    values = [result["last"] for cell in cells if cell.row == row and (result := cell.result()) is not None]
    return statistics.mean(values) if values else 0.0


def _values(cells: Sequence[Cell], row: str, column: str, measure: str) -> list[float]:
    done = [cell.result() for cell in cells if (cell.row, cell.column) == (row, column)]
    values = [_value(result, measure) for result in done if result is not None]
    return [value for value in values if value is not None]


def _value(result: dict[str, Any], measure: str) -> float | None:
    value = result.get(measure, result.get("detection", {}).get(measure))
    return None if value is None else float(value)


def _mean(values: list[float], measure: str) -> str:
    if not values:
        return ""
    if measure == "seconds":
        return f"{statistics.mean(values):.0f}"
    values = [100 * value for value in values]
    places = 2 if min(values) > 99 else 1
    mean = f"{statistics.mean(values):.{places}f}"
    return f"{mean} ± {statistics.stdev(values):.{places}f} ({len(values)})" if len(values) > 1 else mean
