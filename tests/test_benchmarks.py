"""Benchmarks go on after an interruption without repeating a cell, and their tables are what the cells say."""

from __future__ import annotations

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
    grid = [cells.Cell("grid", "row", "sym-80", seed, ("digits-sym-80",)) for seed in (0, 1, 2)]
    for cell, last in zip(grid, (0.90, 0.94), strict=False):
        content = {"command": cell.command, "last": last, "seconds": 3, "detection": {"auroc": last / 2}}
        cells.keep(cell.path, json.dumps(content))
    table = cells.markdown(grid, ["last", "auroc", "seconds"])
    assert "| row | last | 92.0 ± 2.0 (2) |" in table
    assert "| row | auroc | 46.0 ± 1.0 (2) |" in table
    assert "| row | seconds | 3 |" in table
    lines = cells.as_csv(grid).splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("row,sym-80,0,,0.9,")
    assert lines[1].endswith('"plremix train digits-sym-80 --seed 0"')
