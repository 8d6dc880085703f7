"""Benchmarks go on after an interruption without repeating a cell, their tables are what the cells say, and settings
are chosen on images that nothing is reported on."""

from __future__ import annotations

import csv
import gzip
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
    further = tuning.ROUNDS["further"]
    monkeypatch.setitem(further.trials, "unicon", tuple("abcd"))
    ran = []

    def run(missing: Any, jobs: int) -> None:
        for cell in missing:
            if not cell.path.exists():
                trial = cell.row.removeprefix("unicon ")
                ran.append((trial, cell.column, cell.seed))
                cells.keep(cell.path, json.dumps({"command": cell.command, "last": promise[trial]}))

    monkeypatch.setattr(tuning, "run_missing", run)
    shown = tuning.narrow(further, tmp_path / "digits.npz", "unicon", 1)
    on = {trial: sorted((noise, seed) for which, noise, seed in ran if which == trial) for trial in promise}
    assert len(ran) == len(set(ran)) == len(shown)
    assert on["c"] == [("sym-80", 100), ("sym-80", 101)]
    assert on["a"] == on["d"] == [("sym-80", seed) for seed in (100, 101, 102, 103)]
    assert on["b"] == on[tuning.AS_IT_WAS] == sorted([*on["a"], *((n, s) for n in OTHERS for s in (100, 101))])
    assert "| unicon b | last | 90.0 ± 0.0 (4) |" in cells.markdown(shown, ["last"])


def test_every_method_has_the_same_number_of_trials(tuning: Any) -> None:
    assert {len(set(trials)) for trials in tuning.TRIALS.values()} == {8}
    for after, count in (("further", 13), ("last", 6)):
        trials = tuning.ROUNDS[after].trials
        assert {len(set(each)) for each in trials.values()} == {count}
        assert trials.keys() | {"plremix"} == tuning.TRIALS.keys()
    rows = (BENCHMARKS / "results" / "tuning_plremix.md").read_text().splitlines()
    assert len([row for row in rows if row.startswith("| sym-80 | `--")]) == 13
    last = rows[rows.index("| nothing | 97.5 | 96.3 | 96.5 | 98.4 | 98.3 | 97.0 | 98.1 |") + 1 :]
    assert len([row for row in last if row.startswith("| ")]) == 6


def test_the_last_trials_begin_where_the_further_ones_ended(tuning: Any, tmp_path: Path) -> None:
    def settings(after: str, method: str) -> list[str]:
        cells = tuning.narrow(tuning.ROUNDS[after], tmp_path / "digits.npz", method, 0)
        return next(" ".join(cell.words) for cell in cells if cell.row == f"{method} {tuning.AS_IT_WAS}")

    assert "--beta 4.0" in settings("further", "unicon")
    assert "--beta" not in settings("last", "unicon"), "0.5, which was found then, is the usual by now"
    assert "--weak-view distort" in settings("last", "cross-entropy")
    assert "--weak-view" not in settings("further", "cross-entropy"), "crop is the usual"


def test_plugged_contrasts_have_as_many_trials_and_the_best_two_are_looked_at_again(
    cells: Any, tuning: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("comparison", "tuning_plugged"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import tuning_plugged

    assert {len(set(trials)) for trials in tuning_plugged.TRIALS.values()} == {8}
    best = ("--no-flat", "--flat --kappa 1")
    ran = []

    def run(missing: Any, jobs: int) -> None:
        for cell in missing:
            trial = cell.row.removeprefix("jocor plr ")
            ran.append((trial, cell.seed))
            assert " ".join(cell.words).endswith(f"--contrast plr {trial}")
            cells.keep(cell.path, json.dumps({"command": cell.command, "last": 0.9 if trial in best else 0.7}))

    monkeypatch.setattr(tuning_plugged, "run_missing", run)
    shown = tuning_plugged.narrow(tmp_path / "digits.npz", "jocor", "plr", 1)
    assert sorted(trial for trial, seed in ran if seed == 103) == sorted(best)
    assert len(ran) == len(set(ran)) == len(shown) == 8 * 2 + 2 * 2
    assert "--kappa 1" not in " ".join(shown[0].words), "they begin with the falling kappa"


@pytest.fixture
def tuning_images(cells: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("comparison", "tuning_images"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import tuning_images

    return tuning_images


@pytest.fixture
def tuning_own(tuning_images: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delitem(sys.modules, "tuning_own", raising=False)
    import tuning_own

    return tuning_own


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


def test_own_images_have_as_many_trials_as_other_methods_and_the_best_are_looked_at_again(
    cells: Any, tuning_images: Any, tuning_own: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert len(set(tuning_own.TRIALS)) == len(tuning_images.TRIALS["mixup"]) + len(tuning_images.FURTHER["mixup"])
    # the mean of both sets decides: a trial that is the best on one alone is not among the best
    promise = {
        "--beta 4": (0.7, 0.9),
        "--lr 0.1": (0.8, 0.7),
        "--guess step": (0.6, 0.8),
        "--contrast none": (0.9, 0.2),
    }
    ran = []

    def run(missing: Any, jobs: int) -> None:
        for cell in missing:
            ran.append(cell)
            last = promise.get(cell.row, (0.5, 0.5))["mnist" in cell.column]
            cells.keep(cell.path, json.dumps({"command": cell.command, "last": last}))

    monkeypatch.setattr(tuning_own, "run_missing", run)
    shown = tuning_own.trials(tmp_path, 1)
    assert shown == ran
    assert len({cell.path for cell in shown}) == len(shown) == 16 * 2 + 4 * 2 + 3 * 2
    again = {seed: {cell.row for cell in shown if "2,000" in cell.column and cell.seed == seed} for seed in (100, 101)}
    assert again[100] == {tuning_own.AS_IT_WAS, "--beta 4", "--lr 0.1", "--guess step"}
    assert again[101] == {tuning_own.AS_IT_WAS, "--beta 4", "--lr 0.1"}
    assert {cell.seed for cell in shown if "1,000" in cell.column} == {100}


def test_contrast_always_differs_from_today_in_that_alone(tuning_own: Any, tmp_path: Path) -> None:
    cells = tuning_own.contrasts(tmp_path, 0)
    assert len({cell.path for cell in cells}) == len(cells) == 3 * 2 * 2
    words = {(cell.row, cell.column, cell.seed): cell.words for cell in cells}
    for cell in cells:
        today = words["as it is", cell.column, cell.seed]
        assert cell.words in (today, (*today, "--contrast-above", "0"))


def test_emoji_to_choose_by_are_not_other_drawings_of_those_to_learn_from(tuning_own: Any, tmp_path: Path) -> None:
    groups = np.arange(1600).repeat(4)
    images = np.arange(6400, dtype=np.uint16).view(np.uint8).reshape(-1, 2, 1)
    tuning_own.write_set(tmp_path, "emoji sym-45", images, groups % 9, groups)

    def numbers(pixels: np.ndarray) -> list[int]:
        return pixels.reshape(-1, 2).copy().view(np.uint16).ravel().tolist()

    with np.load(tmp_path / "emoji-2000.npz") as more, np.load(tmp_path / "emoji-1000.npz") as fewer:
        train, test = numbers(more["x_train"]), numbers(more["x_test"])
        assert (len(set(train)), len(set(test))) == (2000, 1000)
        assert not {number // 4 for number in train} & {number // 4 for number in test}
        assert more["y_train"].tolist() == [number // 4 % 9 for number in train]
        assert numbers(fewer["x_train"]) == train[:1000]
        assert numbers(fewer["x_test"]) == test


def test_images_in_the_format_of_mnist_are_read(tuning_images: Any, tmp_path: Path) -> None:
    pixels = np.arange(24, dtype=np.uint8)
    content = bytes([0, 0, 8, 3, *(0, 0, 0, 2), *(0, 0, 0, 3), *(0, 0, 0, 4)]) + pixels.tobytes()
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
    assert tuning_images.idx(tmp_path / "plain").tolist() == pixels.tolist()
    assert tuning_images.idx(tmp_path / "packed.gz").tolist() == pixels.tolist()
