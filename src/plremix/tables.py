"""Finished runs set against the paper's tables: paper, ours, difference, and the command for what is missing."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plremix import paper, recipes
from plremix.config import Config, read_config
from plremix.errors import InputError

FORMATS = ("text", "md", "csv")
# A run with other values here is still a run of its recipe.
FREE = {"seed", "data_dir", "cache_dir", "download", "noise_file", "device", "devices", "nodes", "log", "compile"}


@dataclass(frozen=True)
class Run:
    """A finished run, and how its settings differ from its recipe's."""

    path: Path
    recipe: str
    method: str
    seed: int
    changed: tuple[str, ...]
    summary: dict[str, Any]
    history: tuple[dict[str, Any], ...]

    def measure(self, name: str) -> float | None:
        """Per cent: Best or Last; Clothing1M's after the last epoch, WebVision's at the best one."""
        if name in ("best", "last"):
            value = self.summary.get(name)
        else:
            values = [line[name] for line in self.history if isinstance(line.get(name), float)]
            last = self.recipe.startswith("clothing1m")
            value = (values[-1] if last else max(values)) if values else None
        return 100 * value if isinstance(value, float | int) else None


@dataclass(frozen=True)
class Cell:
    """One number of the paper and what we have for it."""

    row: str
    column: str
    measure: str
    paper: str  # as it stands there; `-`: none
    command: str  # empty: we do not have the method
    ours: tuple[float, ...] = ()
    changed: tuple[str, ...] = ()  # how the runs behind `ours` differ from the recipe

    @property
    def mean(self) -> float | None:
        return statistics.mean(self.ours) if self.ours else None

    @property
    def difference(self) -> float | None:
        return None if self.mean is None or self.paper == "-" else self.mean - float(self.paper)

    def shown(self) -> str:
        """`95.71`, or with runs `95.71 > 95.40 ± 0.12 (5) -0.31`; a star where their settings are not the recipe's."""
        if self.mean is None:
            return self.paper
        text = f"{self.paper} > {self.mean:.2f} ± {statistics.pstdev(self.ours):.2f} ({len(self.ours)})"
        if self.difference is not None:
            text += f" {self.difference:+.2f}"
        return text + ("*" if self.changed else "")


def finished_runs(folder: Path) -> Iterator[Run]:
    """Every finished run below a folder; what is no run of ours is passed over."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; --runs says where the runs are")
    for file in sorted(folder.rglob("summary.json")):
        try:
            summary = json.loads(file.read_text(encoding="utf-8"))
            config = read_config(file.with_name("config.json"))
            lines = file.with_name("metrics.jsonl").read_text(encoding="utf-8").splitlines()
            history = tuple(line for text in lines if isinstance(line := json.loads(text), dict))
        except (OSError, ValueError, InputError):
            continue
        if isinstance(summary, dict) and summary.get("status") == "done" and config.recipe in recipes.RECIPES:
            changed = tuple(_changes(config))
            yield Run(file.parent, config.recipe, config.method, config.seed, changed, summary, history)


def _changes(config: Config) -> Iterator[str]:
    """`epochs 3 instead of 400`, for every setting that is not the recipe's."""
    usual = recipes.build(config.recipe, config.method).as_dict()
    for name, value in config.as_dict().items():
        if name not in FREE and value != usual[name]:
            yield f"{name} {value} instead of {usual[name]}"


def fill(table: paper.Table, runs: Sequence[Run]) -> list[Cell]:
    """The table's cells in its order. Runs with the recipe's settings count; where there are none, any others do."""
    cells = []
    for row in table.rows:
        for column, value in zip(table.columns, row.values(), strict=True):
            recipe, measure = column.recipe + row.suffix, row.measure or column.measure
            mine = [run for run in runs if row.method and (run.recipe, run.method) == (recipe, row.method)]
            mine = [run for run in mine if not run.changed] or mine
            measured = {run.seed: (run.measure(measure), run) for run in mine}
            known = [(number, run) for number, run in measured.values() if number is not None]
            cells.append(
                Cell(
                    row.label,
                    column.label,
                    measure,
                    value,
                    _command(recipe, row.method) if row.method else "",
                    tuple(number for number, _ in known),
                    tuple(dict.fromkeys(change for _, run in known for change in run.changed)),
                )
            )
    return cells


def _command(recipe: str, method: str) -> str:
    flag = "" if recipes.RECIPES[recipe].method == method else f" --method {method}"
    return f"plremix train {recipe}{flag} --data-dir DIR"


# --- shown ---


def render(names: Sequence[str], runs: Sequence[Run], form: str) -> str:
    """The named tables as text, Markdown or CSV."""
    filled = {name: fill(paper.TABLES[name], runs) for name in names}
    if form == "csv":
        return _csv(filled)
    parts = []
    for name, cells in filled.items():
        title = f"{paper.TABLES[name].title} (test accuracy, per cent)"
        heading = f"## {title}" if form == "md" else title
        parts.append("\n".join([heading, "", *_grid(cells, form), "", *_notes(cells)]))
    return "\n\n".join(parts) + "\n"


def _grid(cells: list[Cell], form: str) -> list[str]:
    """A line a row and measure, a column each of the table's."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        rows.setdefault((cell.row, cell.measure if cell.measure in ("best", "last") else ""), []).append(cell.shown())
    lines = [["", "", *columns], *([row, measure, *shown] for (row, measure), shown in rows.items())]
    if not any(line[1] for line in lines):
        lines = [[line[0], *line[2:]] for line in lines]
    if form == "md":
        body = [f"| {' | '.join(line)} |" for line in lines]
        return [body[0], "|---" * len(lines[0]) + "|", *body[1:]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _notes(cells: list[Cell]) -> list[str]:
    """How to read it, what was run otherwise, and what would fill the rest."""
    notes = ["`paper > ours, mean ± deviation (seeds), difference`"]
    notes += [f"* {cell.row}, {cell.column}: {', '.join(cell.changed)}" for cell in cells if cell.changed]
    missing = list(dict.fromkeys(cell.command for cell in cells if cell.command and not cell.ours))
    without = list(dict.fromkeys(cell.row for cell in cells if not cell.command))
    if without:
        notes.append(f"numbers from the literature, no method here: {', '.join(without)}")
    if missing:
        notes += [f"missing, {len(missing)} commands (--seed 0, 1, ... for the spread):", *(f"  {c}" for c in missing)]
    return notes


def _csv(filled: dict[str, list[Cell]]) -> str:
    """A line a number."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    header = ("table", "row", "column", "measure", "paper", "ours", "deviation", "seeds", "difference", "changed")
    writer.writerow([*header, "command"])
    for name, cells in filled.items():
        for cell in cells:
            deviation = statistics.pstdev(cell.ours) if cell.ours else None
            numbers = ["" if number is None else f"{number:.4g}" for number in (cell.mean, deviation)]
            difference = "" if cell.difference is None else f"{cell.difference:+.4g}"
            where = [name, cell.row, cell.column, cell.measure]
            writer.writerow(
                [*where, cell.paper, *numbers, len(cell.ours), difference, "; ".join(cell.changed), cell.command]
            )
    return buffer.getvalue()
