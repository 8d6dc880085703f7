"""`plremix analyze` on real runs: every figure with its data, and a sentence for each that cannot be made."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import blobs, small_config, small_cross_entropy
from PIL import Image

from plremix.analysis import analyze, compare, curves, embeddings
from plremix.cli import main
from plremix.training import run as run_module
from plremix.training import train

FIGURES = ("curves", "negatives", "mixture", "gradients", "embeddings")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    np.savez(folder / "data.npz", **blobs())
    train(small_config(data=str(folder / "data.npz"), kappa=(1,)), folder / "run")
    return folder / "run"


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_figure_is_there_as_svg_png_and_csv_and_in_the_report(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    analyze(finished, batches=1, embedding="pca")  # what comes later is put in its place
    assert main(["analyze", str(finished), "--batches", "2", "--per-layer", "--mixture-epochs", "2,3"]) == 0
    said = capsys.readouterr().out
    assert "median entanglement" in said
    assert "no " not in said
    for name in (*FIGURES, "gradients-by-layer"):
        assert str(finished / "analysis" / f"{name}.png") in said
        assert (finished / "analysis" / f"{name}.svg").read_text().startswith("<svg")
        with Image.open(finished / "analysis" / f"{name}.png") as image:
            assert min(image.size) > 300
        assert len(rows(finished / "analysis" / f"{name}.csv")) > 1
    numbers = json.loads((finished / "analysis" / "gradients.json").read_text())
    assert numbers["epoch"] == 3
    assert numbers["batches"] == 4
    for name in ("simclr", "plr"):
        measured = [one for one in rows(finished / "analysis" / "gradients.csv") if one["contrast"] == name]
        whole = [float(one["ratio"]) for one in measured if one["layer"] == "backbone"]
        assert numbers[name]["median_ratio"] == pytest.approx(np.median(whole), rel=1e-4)
    shown = (finished / "report.html").read_text(encoding="utf-8")
    assert shown.count("<svg") == page.count("<svg") + 5
    assert "Negative pairs" in shown
    lines = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    drawn = rows(finished / "analysis" / "negatives.csv")
    assert [float(one["selected"]) for one in drawn] == pytest.approx([line["negative_selected"] for line in lines])


def test_another_folder_leaves_the_run_as_it_is(finished: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    done = analyze(finished, tmp_path / "out", batches=1, flat=False, temperature=0.7, embedding="pca")
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before
    assert done.left == []
    numbers = json.loads((tmp_path / "out" / "gradients.json").read_text())
    assert (numbers["flat"], numbers["temperature"]) == (False, 0.7)


def test_what_a_run_cannot_show_is_left_out_with_a_sentence(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {name: blobs()[name] for name in ("x_train", "y_train")}  # neither a truth nor a test set
    np.savez(tmp_path / "own.npz", **values)
    train(small_cross_entropy(data=str(tmp_path / "own.npz"), epochs=1), tmp_path / "plain")
    assert main(["analyze", str(tmp_path / "plain")]) == 0
    said = capsys.readouterr().out
    assert "no gradients: cross-entropy has no semi-supervised loss" in said
    assert "no mixture: cross-entropy does not split" in said
    assert "no negatives: the run has no contrastive loss" in said
    assert "no curves: the run has no test set" in said
    assert "network_disagrees" in (tmp_path / "plain" / "analysis" / "embeddings.csv").read_text()
    (tmp_path / "plain" / "checkpoint" / "last.pt").unlink()
    left = {one.name: one.why for one in analyze(tmp_path / "plain").left}
    assert "no checkpoint" in left["embeddings"]


def test_a_run_without_a_truth_shows_what_it_took_as_clean(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", **{name: value for name, value in blobs().items() if name != "y_true"})
    train(small_config(data=str(tmp_path / "own.npz"), kappa=(1,)), tmp_path / "run")
    done = analyze(tmp_path / "run", batches=1, embedding="pca")
    assert done.left == []
    assert {one["label_right"] for one in rows(tmp_path / "run" / "analysis" / "mixture.csv")} == {""}
    assert {one["correct"] for one in rows(tmp_path / "run" / "analysis" / "negatives.csv")} == {""}


def test_an_interrupted_run_is_analysed_where_it_stopped(
    tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = run_module._Run._epoch

    def stops(self: Any, epoch: int) -> None:
        if epoch == limit:
            raise KeyboardInterrupt
        real(self, epoch)

    monkeypatch.setattr(run_module._Run, "_epoch", stops)
    for limit, there in ((1, False), (2, True)):
        config = small_config(data=str(tiny_file), kappa=(1,), warmup_epochs=2 - there)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / f"run{limit}")
        with open(tmp_path / f"run{limit}" / "metrics.jsonl", "a") as file:
            file.write('{"epoch": 2, "half a li')  # a run that is still going writes just now
        done = analyze(tmp_path / f"run{limit}", batches=1, embedding="pca")
        assert ((tmp_path / f"run{limit}" / "analysis" / "gradients.json") in done.written) == there
        if not there:
            assert {one.name: one.why for one in done.left}["gradients"] == "the run is in epoch 1 of 2 of its warm-up"


def test_several_runs_are_grouped_with_their_spread_over_seeds(tmp_path: Path, tiny_file: Path) -> None:
    runs = []
    for name, changes in {"a0": {}, "a1": {"seed": 1}, "b": {"lr": 0.5}}.items():
        train(small_cross_entropy(data=str(tiny_file), epochs=2, **changes), tmp_path / name)
        runs.append(tmp_path / name)
    assert main(["analyze", *map(str, runs)]) == 0
    drawn = rows(tmp_path / "analysis" / "curves.csv")
    assert {one["run"] for one in drawn} == {"own, cross-entropy, lr 0.02", "own, cross-entropy, lr 0.5"}
    histories = [[json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] for run in runs]
    first = [float(one["mean_test_accuracy"]) for one in drawn if one["run"].endswith("0.02")]
    pairs = [[line["test_accuracy"] for line in history] for history in histories[:2]]
    assert first == pytest.approx(np.mean(pairs, axis=0), rel=1e-4)
    spread = [float(one["standard_deviation"]) for one in drawn if one["run"].endswith("0.02")]
    assert spread == pytest.approx(np.std(pairs, axis=0, ddof=1), rel=1e-4, abs=1e-9)
    assert {one["runs"] for one in drawn if one["run"].endswith("0.5")} == {"1"}
    assert compare(runs, tmp_path / "elsewhere").written[0].exists()


def test_runs_of_different_length_are_averaged_as_far_as_they_go() -> None:
    config = small_cross_entropy()
    histories = [[{"test_accuracy": 0.5}] * 3, [{"test_accuracy": 0.7}] * 2]
    group = curves.grouped([(config, history) for history in histories])[0]
    drawn = curves.draw([group])
    assert [row[2] for row in drawn.rows] == pytest.approx([0.6, 0.6, 0.5])
    assert [row[4] for row in drawn.rows] == [2, 2, 1]


@pytest.mark.parametrize("how", ["tsne", "pca"])
def test_two_dimensions_are_the_same_each_time_and_keep_clusters_apart(how: Any) -> None:
    draws = np.random.default_rng(0)
    vectors = np.concatenate([draws.normal(size=(30, 8)) * 0.05 + centre for centre in np.eye(8)[:3] * 3])
    flat = embeddings.flatten(vectors, how)
    assert np.array_equal(flat, embeddings.flatten(vectors, how))
    centres = flat.reshape(3, 30, 2).mean(1)
    nearest = np.linalg.norm(flat[:, None] - centres[None], axis=2).argmin(1)
    assert nearest.tolist() == [0] * 30 + [1] * 30 + [2] * 30
    assert np.isfinite(embeddings.flatten(np.zeros((20, 4)), how)).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs a run folder first"),
        (["nowhere"], "nowhere does not exist"),
        (["."], "is not a run folder"),
        (["RUN", "--batches", "0"], "--batches must be at least 1"),
        (["RUN", "--temperature", "0"], "--temperature must be above 0"),
        (["RUN", "--mixture-epochs", "9"], "nothing was kept of that; there is 2, 3"),
        (["RUN", "--bogus"], "--bogus"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], message: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", *[str(finished) if word == "RUN" else word for word in words]]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert message in said


def test_a_run_that_diverged_still_shows_what_it_can(
    tmp_path: Path, tiny_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(small_config(data=str(tiny_file), lr=1e8), tmp_path / "run")
    assert main(["analyze", str(tmp_path / "run"), "--embedding", "pca"]) == 0
    shown = capsys.readouterr()
    assert "no gradients: no batch has finite gradients" in shown.out
    assert (tmp_path / "run" / "analysis" / "curves.svg").exists()


def test_damaged_files_of_a_run_are_told_or_left_out(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    np.savez(run / "snapshots" / "epoch001.npz", other=np.zeros(3))
    with open(run / "metrics.jsonl", "a") as file:
        file.write("[1]\n")
    monkeypatch.chdir(tmp_path)
    assert main(["analyze", "run", str(finished), "--out", str(tmp_path / "both")]) == 0
    assert main(["analyze", "run", str(finished)]) == 0  # one relative, one absolute
    assert main(["analyze", "run", "--out", str(tmp_path / "one"), "--embedding", "pca"]) == 0
    (run / "noise.json").write_text("[1, 2")
    capsys.readouterr()
    assert main(["analyze", "run", "--out", str(tmp_path / "two")]) == 2
    assert "noise.json is damaged" in capsys.readouterr().err
