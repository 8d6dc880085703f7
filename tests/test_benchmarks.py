"""Benchmarks go on after an interruption without repeating a cell, and their tables are what the cells say."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SMALL = ("--epochs", "2", "--width", "4", "--embedding-size", "8", "--method", "cross-entropy")


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "cells", raising=False)
    import cells

    monkeypatch.setattr(cells, "RESULTS", tmp_path)
    return cells


def test_a_finished_cell_is_not_run_again(cells: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = [cells.Cell("grid", "a row", "sym-80", seed, ("digits-sym-80", *SMALL)) for seed in (0, 1)]
    cells.run_missing(grid[:1], jobs=1)
    kept = json.loads(grid[0].path.read_text())
    assert kept["command"] == f"plremix train digits-sym-80 {' '.join(SMALL)} --seed 0"
    assert kept.keys() >= {"date", "versions", "seconds", "last", "detection"}

    def interrupted(path: Path, text: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cells, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cells.run_missing(grid, jobs=1)
    assert json.loads(grid[0].path.read_text()) == kept, "not run again"
    assert not grid[1].path.exists()


def test_tables_are_means_of_the_cells(cells: Any) -> None:
    grid = [cells.Cell("grid", "a, b", "sym-80", seed, ("digits-sym-80",)) for seed in (0, 1, 2)]
    for cell, last in zip(grid, (0.90, 0.94), strict=False):
        content = {"command": cell.command, "last": last, "seconds": 3, "detection": {"auroc": last / 2}}
        cells.keep(cell.path, json.dumps(content))
    table = cells.markdown(grid, ["last", "auroc", "seconds"])
    assert "| a, b | last | 92.0 ± 2.8 (2) |" in table
    assert "| a, b | auroc | 46.0 ± 1.4 (2) |" in table
    assert "| a, b | seconds | 3 |" in table
    assert "| a, b | last | 90.0 |" in cells.markdown(grid[:1], ["last"]), "one seed has no spread"
    first, second = csv.DictReader(io.StringIO(cells.as_csv(grid)))
    assert (first["row"], first["seed"], first["best"], first["last"]) == ("a, b", "0", "", "0.9")
    assert second["command"] == "plremix train digits-sym-80 --seed 1"
    assert cells.commands(grid) == "- a, b, sym-80: `plremix train digits-sym-80 --seed S`, S = 0, 1"
