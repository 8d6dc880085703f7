"""A run from start to end: its folder, going on after a stop, Ctrl-C, two processes, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import blobs, contents, same_state, small_config, small_cross_entropy
from torch.multiprocessing.spawn import ProcessRaisedException

import plremix
from plremix.analysis.opened import OpenedRun
from plremix.config import Config, read_config
from plremix.data.sources import arrays
from plremix.errors import InputError
from plremix.training import run as run_module
from plremix.training import train
from plremix.training.checkpoint import PARTS, load_checkpoint, save_checkpoint
from plremix.training.run import _launch

EXACT = ("metrics.jsonl", "labels.csv", "labels_corrected.csv", "noise.json", "model.safetensors")


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def history_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def stop_after(monkeypatch: pytest.MonkeyPatch, epochs: int, error: type[BaseException] = KeyboardInterrupt) -> None:
    """The run is stopped in the middle of the epoch after `epochs` finished ones."""
    real = run_module._Run._epoch

    def epoch(self: Any, number: int) -> None:
        if number == epochs:
            self.method.train_epoch(number)
            raise error
        real(self, number)

    monkeypatch.setattr(run_module._Run, "_epoch", epoch)


@pytest.mark.parametrize("contrast", ["none", "plr"])
def test_the_summary_says_whether_anything_was_contrasted(contrast: str, tmp_path: Path, tiny_file: Path) -> None:
    summary = train(small_config(data=str(tiny_file), contrast=contrast), tmp_path / "run")
    assert summary["contrasted"] == (contrast == "plr")


@pytest.mark.parametrize("make", [small_config, small_cross_entropy])
def test_a_finished_run_leaves_every_file_it_promises(tmp_path: Path, tiny_file: Path, make: Any) -> None:
    config, out = make(data=str(tiny_file)), tmp_path / "run"
    summary = train(config, str(out))
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    promised = {"config.json", "timing.jsonl", "summary.json", "report.html", "checkpoint/last.pt", *EXACT}
    assert promised <= names
    assert not [name for name in names if "writing" in name]

    assert summary == json.loads((out / "summary.json").read_text())
    assert summary["status"] == "done"
    assert summary["method"] == config.method
    assert 0 <= summary["last"] <= summary["best"] <= 1
    wrong = blobs()["y_train"] != blobs()["y_true"]
    assert summary["noise_rate"] == pytest.approx(wrong.mean())
    assert set(summary["detection"]) == {"auroc", "average_precision", "precision", "recall"}

    history = history_of(out)
    assert [line["epoch"] for line in history] == [0, 1, 2]
    assert all("seconds" not in line for line in history)
    assert len((out / "timing.jsonl").read_text().splitlines()) == 3
    assert json.loads((out / "noise.json").read_text()) == blobs()["y_train"].tolist()
    assert read_config(out / "config.json") == config
    stored = json.loads((out / "config.json").read_text())
    assert stored["schema_version"] == 1
    assert {"plremix", "torch"} <= stored["versions"].keys()

    labels = rows(out / "labels.csv")
    assert list(labels[0]) == ["id", "given_label", "predicted_label", "is_label_issue", "label_score", "confidence"]
    assert [row["given_label"] for row in labels] == [str(label) for label in blobs()["y_train"]]
    assert {row["is_label_issue"] for row in labels} <= {"True", "False"}
    assert all(0 <= float(row["label_score"]) <= 1 for row in labels)
    corrected = rows(out / "labels_corrected.csv")
    assert list(corrected[0]) == ["id", "given_label", "corrected_label", "action"]
    for row, label in zip(corrected, labels, strict=True):
        assert row["action"] == "keep" if label["is_label_issue"] == "False" else row["action"] in ("relabel", "review")
        expected = row["given_label"] if row["action"] == "keep" else label["predicted_label"]
        assert row["corrected_label"] == expected
        if row["action"] == "relabel":
            assert float(label["confidence"]) >= 0.5
            assert row["corrected_label"] != row["given_label"]
    truth = [str(label) for label in blobs()["y_true"]]
    correct = [row["corrected_label"] == label for row, label in zip(corrected, truth, strict=True)]
    assert summary["corrected_accuracy"] == pytest.approx(np.mean(correct))


def test_the_model_predicts_what_the_labels_say(tmp_path: Path, tiny_file: Path) -> None:
    train(small_config(data=str(tiny_file)), tmp_path / "run")
    model = plremix.load(tmp_path / "run")
    probabilities = model(arrays.load(tiny_file).images)
    labels = rows(tmp_path / "run" / "labels.csv")
    assert [model.classes[k] for k in probabilities.argmax(1)] == [row["predicted_label"] for row in labels]
    assert probabilities.max(1).values.tolist() == pytest.approx([float(r["confidence"]) for r in labels], abs=1e-4)


@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(
    tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    config = small_config(data=str(tiny_file))
    train(config, tmp_path / "straight")
    with monkeypatch.context() as patch:
        stop_after(patch, epochs)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "broken")
    stopped = json.loads((tmp_path / "broken" / "summary.json").read_text())
    assert stopped["status"] == "interrupted"
    assert stopped["epochs_done"] == epochs
    done = json.loads((tmp_path / "straight" / "summary.json").read_text())
    assert 0 < stopped["noise_rate"] == done["noise_rate"], "known from the start"
    train(config, tmp_path / "broken", resume=True)
    assert contents(tmp_path / "straight", *EXACT) == contents(tmp_path / "broken", *EXACT)


def test_a_log_that_ran_ahead_of_the_checkpoint_is_cut_back(tmp_path: Path, tiny_file: Path) -> None:
    config, out = small_config(data=str(tiny_file)), tmp_path / "run"
    train(config, out)
    before = contents(out, *EXACT)
    (out / "summary.json").unlink()
    with open(out / "metrics.jsonl", "a") as file:
        file.write('{"epoch": 3, "half a li')
    train(config, out, resume=True)
    assert contents(out, *EXACT) == before


def test_a_failed_run_says_so_and_can_go_on(tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config(data=str(tiny_file))
    with monkeypatch.context() as patch:
        stop_after(patch, 1, RuntimeError)
        with pytest.raises(RuntimeError):
            train(config, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["status"] == "failed"
    assert train(config, tmp_path / "run", resume=True)["status"] == "done"


def test_a_folder_that_holds_a_run_is_refused_without_resume(tmp_path: Path, tiny_file: Path) -> None:
    config = small_cross_entropy(data=str(tiny_file), epochs=1)
    train(config, tmp_path / "run")
    with pytest.raises(InputError, match="holds a run already"):
        train(config, tmp_path / "run")
    again = train(config, tmp_path / "run", resume=True)
    assert again["status"] == "done"


def test_files_of_somebody_else_are_not_overwritten(tmp_path: Path, tiny_file: Path) -> None:
    (tmp_path / "labels.csv").write_text("mine")
    with pytest.raises(InputError, match=r"files that a run would overwrite \(labels\.csv\)"):
        train(small_cross_entropy(data=str(tiny_file), epochs=1), tmp_path)
    assert (tmp_path / "labels.csv").read_text() == "mine"


def test_a_run_that_diverged_leaves_files_that_are_json(tmp_path: Path, tiny_file: Path) -> None:
    train(small_cross_entropy(data=str(tiny_file), epochs=3, lr=1e30), tmp_path / "run")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    history = [json.loads(line, parse_constant=refuse) for line in lines]
    assert history[-1]["loss"] is None
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(), parse_constant=refuse)
    assert summary["findings"], "and it is told"


def test_a_folder_of_another_config_is_refused_with_the_differences(tmp_path: Path, tiny_file: Path) -> None:
    train(small_cross_entropy(data=str(tiny_file), epochs=1), tmp_path / "run")
    with pytest.raises(InputError, match=r"epochs was 1 and is 2; lr was 0\.02 and is 0\.1"):
        train(small_cross_entropy(data=str(tiny_file), epochs=2, lr=0.1), tmp_path / "run", resume=True)


DAMAGES: dict[str, dict[str, Any]] = {  # parts of a checkpoint that cannot be theirs
    "no settings": {"config": 5},
    "a history that is none": {"history": ["x"]},
    "a history that is text": {"history": "x"},
    "times of nothing": {"seconds": []},
    "no time": {"pretrain_seconds": "x"},
    "no method": {"method": None},
}


@pytest.mark.parametrize("damage", ["truncated", "junk", "foreign", "some bytes", *DAMAGES])
def test_a_checkpoint_that_cannot_be_used_is_told_and_kept(tmp_path: Path, tiny_file: Path, damage: str) -> None:
    config, out = small_config(data=str(tiny_file)), tmp_path / "run"
    train(config, out)
    (out / "summary.json").unlink()
    path = out / "checkpoint" / "last.pt"
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:1000])
    elif damage == "junk":
        path.write_bytes(b"junk")
    elif damage == "some bytes":
        content = bytearray(path.read_bytes())
        with zipfile.ZipFile(path) as archive:
            largest = max(archive.infolist(), key=lambda part: part.file_size)
        middle = largest.header_offset + 200 + largest.file_size // 2
        content[middle : middle + 8] = bytes(byte ^ 0xFF for byte in content[middle : middle + 8])
        path.write_bytes(content)
    elif damage in DAMAGES:
        torch.save({**torch.load(path, weights_only=True), **DAMAGES[damage]}, path)
    else:
        torch.save({"weights": torch.zeros(3)}, path)
    before = contents(out, "checkpoint/last.pt", *EXACT)
    with pytest.raises(InputError, match="checkpoint"):
        train(config, out, resume=True)
    assert contents(out, "checkpoint/last.pt", *EXACT) == before


def test_a_checkpoint_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "last.pt"
    parts = {name: kind() if isinstance(kind, type) else 0 for name, kind in PARTS.items()}
    save_checkpoint(path, {**parts, "value": 1})

    def break_off(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", break_off)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(path, {**parts, "value": 2})
    assert load_checkpoint(path)["value"] == 1
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


def test_an_output_folder_that_cannot_be_made_is_told(tmp_path: Path, tiny_file: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"):
        train(small_cross_entropy(data=str(tiny_file)), tmp_path / "file" / "run")


@pytest.mark.parametrize(
    "parts",
    [
        {"contrast": "plr"},
        pytest.param({"contrast": "none"}, marks=pytest.mark.slow),
        {"contrast": "simclr", "contrast_side": "noisy", "warmup_contrast": False},  # no gradient for the projector
        {"contrast": "none", "pretrain": "simclr", "pretrain_epochs": 1},  # nor, there, for the classifier
        {"averaging": 0.9, "guess": "epoch", "learned_view": "guessed", "contrast_above": 0.99},  # own images
        pytest.param(
            {"averaging": 0.9, "guess": "epoch", "learned_view": "guessed", "contrast_above": 1e-4},
            marks=pytest.mark.slow,
        ),
        {"split": "neighbours", "benefit_of_doubt": True, "finish_epochs": 1},
    ],
)
def test_two_processes_finish_a_small_run(tmp_path: Path, tiny_file: Path, parts: dict[str, Any]) -> None:
    summary = train(small_config(data=str(tiny_file), devices=2, epochs=2, **parts), tmp_path / "run")
    assert summary["status"] == "done"
    assert summary["epochs_done"] == 2
    assert (tmp_path / "run" / "report.html").exists()


def test_an_error_in_one_of_two_processes_is_told_like_any_other(tmp_path: Path, tiny_file: Path) -> None:
    config = small_config(data=str(tiny_file), devices=2, epochs=2)
    train(config, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    path = tmp_path / "run" / "checkpoint" / "last.pt"
    saved = load_checkpoint(path)
    saved["method"]["learners"] = []
    save_checkpoint(path, saved)
    with pytest.raises(InputError, match="does not fit this run"):
        train(config, tmp_path / "run", resume=True)


def test_a_run_of_an_earlier_version_does_not_go_on_in_another_network(tmp_path: Path, tiny_file: Path) -> None:
    """Its checkpoint does not say which shortcuts it had; those of the published network were others then."""
    for network, same in (("preact-resnet-small", True), ("preact-resnet18", False)):
        config = small_config(data=str(tiny_file), epochs=2, network=network, width=4, blocks=(1, 1, 1))
        folder = tmp_path / network
        train(config, folder)
        (folder / "summary.json").unlink()
        path = folder / "checkpoint" / "last.pt"
        saved = load_checkpoint(path)
        del saved["active_shortcuts"]
        save_checkpoint(path, saved)
        if same:
            assert train(config, folder, resume=True)["status"] == "done"
            continue
        with pytest.raises(InputError, match="written by an earlier version"):
            train(config, folder, resume=True)
        assert not OpenedRun(folder).method().networks[0].architecture.active_shortcuts  # but can be looked at


@pytest.mark.parametrize(
    ("last_line", "kind"),
    [
        ("plremix.errors.InputError: no such thing", InputError),
        ("PermissionError: [Errno 13] not yours", InputError),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory", RuntimeError),
        ("KeyError: 'a defect of ours'", ProcessRaisedException),
    ],
)
def test_what_a_person_can_correct_comes_back_from_a_process_as_such(last_line: str, kind: type[Exception]) -> None:
    class Broken:
        def launch(self, run: Any) -> None:
            raise ProcessRaisedException(f"-- Process 1 terminated:\nTraceback:\n{last_line}\n", 1, 1)

    with pytest.raises(kind) as told:
        _launch(Broken(), lambda fabric: None)  # type: ignore[arg-type]
    assert type(told.value) is kind
    assert last_line.partition(": ")[2] in str(told.value)


def test_a_checkpoint_of_another_run_is_refused_with_the_differences(tmp_path: Path, tiny_file: Path) -> None:
    for seed in (0, 1):
        train(small_config(data=str(tiny_file), seed=seed), tmp_path / f"run{seed}")
    shutil.copy(tmp_path / "run1" / "checkpoint" / "last.pt", tmp_path / "run0" / "checkpoint" / "last.pt")
    (tmp_path / "run0" / "summary.json").write_text("{ damaged")
    with pytest.raises(InputError, match="seed was 1 and is 0"):
        train(small_config(data=str(tiny_file), seed=0), tmp_path / "run0", resume=True)


def test_a_run_of_a_version_with_fewer_settings_goes_on(tmp_path: Path, tiny_file: Path) -> None:
    config, folder = small_config(data=str(tiny_file)), tmp_path / "run"
    train(config, folder)
    (folder / "summary.json").unlink()
    saved = load_checkpoint(folder / "checkpoint" / "last.pt")
    written = json.loads((folder / "config.json").read_text())
    for settings in (saved["config"], written):
        del settings["averaging"], settings["guess"]
    save_checkpoint(folder / "checkpoint" / "last.pt", saved)
    (folder / "config.json").write_text(json.dumps(written))
    assert train(config, folder, resume=True)["status"] == "done"


def test_the_model_file_holds_the_averaged_weights(tmp_path: Path, tiny_file: Path) -> None:
    config = small_config(data=str(tiny_file), averaging=0.9)
    train(config, tmp_path / "run")
    saved = load_checkpoint(tmp_path / "run" / "checkpoint" / "last.pt")["method"]["learners"]
    for network, learner in zip(plremix.load(tmp_path / "run").networks, saved, strict=True):
        assert same_state(dict(network.state_dict()), dict(learner["shown"]))


def test_a_damaged_list_of_labels_is_told(tmp_path: Path, tiny_file: Path) -> None:
    config = small_cross_entropy(data=str(tiny_file), epochs=1)
    train(config, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "run" / "noise.json").write_bytes(b"\xff\xfe[0")
    with pytest.raises(InputError, match="the labels have changed"):
        train(config, tmp_path / "run", resume=True)


def test_labels_that_changed_since_the_run_began_are_told(tmp_path: Path, tiny_file: Path) -> None:
    config = small_cross_entropy(data=str(tiny_file), epochs=1)
    train(config, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    before = contents(tmp_path / "run", *EXACT)
    np.savez(tiny_file, **blobs(seed=1))
    with pytest.raises(InputError, match="labels have changed"):
        train(config, tmp_path / "run", resume=True)
    assert contents(tmp_path / "run", *EXACT) == before


def test_noise_on_labels_of_unknown_truth_is_measured_against_those_labels(tmp_path: Path) -> None:
    values = {name: value for name, value in blobs(wrong=0.0).items() if name != "y_true"}
    np.savez(tmp_path / "own.npz", **values)
    config = small_cross_entropy(data=str(tmp_path / "own.npz"), epochs=1, noise="symmetric", noise_ratio=0.6)
    assert train(config, tmp_path / "run")["noise_rate"] == pytest.approx(0.4, abs=0.12)


def test_a_run_without_test_set_or_truth_has_neither_in_its_files(tmp_path: Path) -> None:
    values = blobs()
    np.savez(tmp_path / "bare.npz", x_train=values["x_train"], y_train=values["y_train"])
    summary = train(small_config(data=str(tmp_path / "bare.npz")), tmp_path / "run")
    assert summary["last"] is None
    assert summary["best"] is None
    assert "detection" not in summary
    assert "noise_rate" not in summary
    assert summary["noise_rate_estimate"] is not None
    history = history_of(tmp_path / "run")
    assert not any("accuracy" in name or name.startswith("clean_auroc") for line in history for name in line)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"device": "cuda"}, "no GPU was found"), ({"precision": "bf16-mixed", "device": "cpu"}, "needs a GPU")],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_what_this_machine_cannot_do_is_refused_before_anything_is_written(
    tmp_path: Path, tiny_file: Path, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        train(small_config(data=str(tiny_file), **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_noise_file_is_what_is_trained_on(tmp_path: Path, tiny_file: Path) -> None:
    given = [(label + 1) % 3 for label in blobs()["y_true"].tolist()]
    (tmp_path / "noise.json").write_text(json.dumps(given))
    config: Config = small_cross_entropy(data=str(tiny_file), epochs=1, noise_file=tmp_path / "noise.json")
    summary = train(config, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "noise.json").read_text()) == given
    assert summary["noise_rate"] == 1.0


def test_tensorboard_gets_every_epoch(tmp_path: Path, tiny_file: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(small_config(data=str(tiny_file), log="tensorboard"), tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    history = history_of(tmp_path / "run")
    written = [(event.step, event.value) for event in events.Scalars("test_accuracy")]
    assert written == [(line["epoch"], pytest.approx(line["test_accuracy"])) for line in history]


def test_a_logger_that_is_not_installed_is_told_before_anything_is_written(
    tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match=r"pip install 'plremix\[wandb\]'"):
        train(small_config(data=str(tiny_file), log="wandb"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
