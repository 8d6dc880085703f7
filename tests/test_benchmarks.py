"""Benchmarks go on after an interruption without repeating a cell, their tables are what the cells say, and settings
are chosen on images that nothing is reported on."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SMALL = ("--epochs", "2", "--width", "4", "--embedding-size", "8", "--method", "cross-entropy")
OTHERS = ("asym-40", "sym-50")


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "cells", raising=False)
    import cells

    monkeypatch.setattr(cells, "RESULTS", tmp_path)
    return cells


@pytest.fixture
def tuning(cells: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delitem(sys.modules, "tuning", raising=False)
    import tuning

    return tuning


def test_a_finished_cell_is_not_run_again(cells: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = [cells.Cell("grid", "a row", "sym-80", seed, ("digits-sym-80", *SMALL)) for seed in (0, 1)]
    cells.run_missing(grid[:1], jobs=1)
    kept = json.loads(grid[0].path.read_text())
    assert kept["command"] == f"plremix train digits-sym-80 {' '.join(SMALL)} --seed 0"
    assert kept.keys() >= {"date", "source", "versions", "seconds", "last", "detection"}

    def interrupted(path: Path, text: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cells, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cells.run_missing(grid, jobs=1)
    assert json.loads(grid[0].path.read_text()) == kept, "not run again"
    assert not grid[1].path.exists()


def test_a_cell_of_another_table_serves_only_if_the_same_code_made_it(
    cells: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    monkeypatch.setattr(cells, "_run", ran.append)
    grid = [
        cells.Cell("grid", row, "sym-80", 0, ("digits-sym-80", "--method", row)) for row in ("elr", "mixup", "jocor")
    ]
    for cell, source in zip(grid, (cells.source(), "older"), strict=False):
        other = cells.Cell("other", cell.row, "sym-80", 0, cell.words)
        cells.keep(other.path, json.dumps({"command": other.command, "source": source, "last": 0.9}))
    cells.run_missing(grid, jobs=1)
    assert grid[0].result()["last"] == 0.9
    assert ran == grid[1:]


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


def test_further_trials_narrow_down_to_the_best(
    cells: Any, tuning: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All on two seeds, the best three and the recipe on four, and the best of all with other noise."""
    promise = {"a": 0.7, "b": 0.9, "c": 0.6, "d": 0.8, tuning.AS_IT_WAS: 0.85}
    monkeypatch.setitem(tuning.FURTHER, "unicon", tuple("abcd"))
    ran = []

    def run(missing: Any, jobs: int) -> None:
        for cell in missing:
            if not cell.path.exists():
                trial = cell.row.removeprefix("unicon ")
                ran.append((trial, cell.column, cell.seed))
                cells.keep(cell.path, json.dumps({"command": cell.command, "last": promise[trial]}))

    monkeypatch.setattr(tuning, "run_missing", run)
    shown = tuning.further(tmp_path / "digits.npz", "unicon", 1)
    on = {trial: sorted((noise, seed) for which, noise, seed in ran if which == trial) for trial in promise}
    assert len(ran) == len(set(ran)) == len(shown)
    assert on["c"] == [("sym-80", 100), ("sym-80", 101)]
    assert on["a"] == on["d"] == [("sym-80", seed) for seed in (100, 101, 102, 103)]
    assert on["b"] == on[tuning.AS_IT_WAS] == sorted([*on["a"], *((n, s) for n in OTHERS for s in (100, 101))])
    assert "| unicon b | last | 90.0 ± 0.0 (4) |" in cells.markdown(shown, ["last"])


def test_every_method_has_the_same_number_of_trials(tuning: Any) -> None:
    assert {len(set(trials)) for trials in tuning.TRIALS.values()} == {8}
    assert {len(set(trials)) for trials in tuning.FURTHER.values()} == {13}
    rows = (BENCHMARKS / "results" / "tuning_plremix.md").read_text().splitlines()
    own = [row for row in rows if row.startswith("| sym-80 | `--")]
    assert len(own) == 13
    assert tuning.FURTHER.keys() | {"plremix"} == tuning.TRIALS.keys()


@pytest.fixture
def tuning_images(cells: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("comparison", "tuning_images"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import tuning_images

    return tuning_images


def test_images_have_sixteen_trials_a_method_and_the_best_are_looked_at_again(
    cells: Any, tuning_images: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trials = {method: {*rates, *tuning_images.FURTHER[method]} for method, rates in tuning_images.TRIALS.items()}
    assert {len(each) for each in trials.values()} == {16}

    best = {"mixup": "--mixup-alpha 4", "dividemix": "--lambda-u 10"}

    def run(missing: Any, jobs: int) -> None:
        for cell in missing:
            method, _, trial = cell.row.partition(" ")
            last = (
                0.9 if trial == best[method] else 0.8 if trial in ("--lr-schedule cosine", "--averaging 0.99") else 0.7
            )
            if trial == tuning_images.AS_IT_WAS:
                last = {"mixup": 0.85, "dividemix": 0.95}[method]
            cells.keep(cell.path, json.dumps({"command": cell.command, "last": last}))

    monkeypatch.setattr(tuning_images, "run_missing", run)
    shown = tuning_images.further(tmp_path, list(best), 1)
    on = {
        name: {cell.row.partition(" ")[::2] for cell in shown if cell.column == name}
        for name in (tuning_images.FEWER, *tuning_images.NOISES)
    }
    usual, other = tuning_images.NOISES
    assert [len(on[name]) for name in on] == [26, 8, 2]
    for method in best:
        looked = {trial for which, trial in on[usual] if which == method}
        assert looked == {tuning_images.AS_IT_WAS, best[method], "--lr-schedule cosine", "--averaging 0.99"}
    assert on[other] == {("mixup", tuning_images.AS_IT_WAS), ("mixup", best["mixup"])}, (
        "nothing beats DivideMix as it was"
    )
    assert {cell.words[-1] for cell in shown if cell.row == "mixup as it was"} == {"0.02"}


def test_images_to_choose_by_are_not_those_reported_on(tuning_images: Any, tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    images = draws.integers(0, 256, (3300, 4, 4), dtype=np.uint8)
    labels = np.arange(3300) % 10
    reported = {"x_train": images[100:200], "x_test": images[1000:1100]}
    np.savez(tmp_path / "reported.npz", **reported)
    tuning_images.write_others(tmp_path / "others.npz", tmp_path / "reported.npz", images, labels)
    with np.load(tmp_path / "others.npz") as arrays:
        assert (len(arrays["x_train"]), len(arrays["x_test"])) == (2000, 1000)
        kept = [*arrays["x_train"], *arrays["x_test"]]
        kept_labels = [*arrays["y_train"], *arrays["y_test"]]
    assert not {image.tobytes() for image in kept} & {image.tobytes() for part in reported.values() for image in part}
    assert len({image.tobytes() for image in kept}) == 3000, "and nothing is learned from that chooses"
    tuning_images.write_others(tmp_path / "fewer.npz", tmp_path / "reported.npz", images, labels, count=1000)
    with np.load(tmp_path / "fewer.npz") as fewer:
        assert [image.tobytes() for image in fewer["x_train"]] == [image.tobytes() for image in kept[:1000]]
        assert [image.tobytes() for image in fewer["x_test"]] == [image.tobytes() for image in kept[2000:]]
    number = {image.tobytes(): label for image, label in zip(images, labels, strict=True)}
    assert [number[image.tobytes()] for image in kept] == kept_labels
