"""Left alone overnight: killed at any moment, odd data, full disks and hostile files. Each trains or loads for real."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import blobs, contents, small_config
from safetensors.torch import save_file

import plremix
from plremix import recipes
from plremix.cli import main
from plremix.errors import InputError
from plremix.training import train
from plremix.training.checkpoint import load_checkpoint

EXACT = ("metrics.jsonl", "labels.csv", "labels_corrected.csv", "model.safetensors")
SMALL = ["--width", "4", "--batch-size", "8", "--embedding-size", "8", "--epochs", "6", "--device", "cpu", "--quiet"]


def finite_run(folder: Path, values: dict[str, np.ndarray], **changes: Any) -> dict[str, Any]:
    """Train through all phases; every figure and weight that comes out is finite."""
    np.savez(folder / "data.npz", **values)
    summary = train(small_config(data=str(folder / "data.npz"), **changes), folder / "run")
    saved = load_checkpoint(folder / "run" / "checkpoint" / "last.pt")["method"]
    assert all(torch.isfinite(value).all() for value in saved["prototypes"])
    assert all(torch.isfinite(value).all() for pair in saved["thresholds"] for value in pair)
    for line in (folder / "run" / "metrics.jsonl").read_text().splitlines():
        numbers = [value for value in json.loads(line).values() if not isinstance(value, str)]
        assert np.isfinite(numbers).all(), line
    assert all(torch.isfinite(value).all() for value in plremix.load(folder / "run").state_dict().values())
    assert summary["status"] == "done"
    return summary


def only(values: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {k: v[rows] if k in ("x_train", "y_train", "y_true") else v for k, v in values.items()}


PARTS: dict[str, dict[str, Any]] = {
    "neighbours": {"split": "neighbours"},
    "mixture2d": {"split": "mixture2d"},
    "own images": {**recipes.OWN_BY_METHOD["plremix"], "split": "neighbours", "epochs": 4, "finish_epochs": 1},
}


@pytest.mark.parametrize("parts", list(PARTS))
@pytest.mark.parametrize(
    "case",
    [
        "2 classes",
        "3 classes",
        "4 classes",
        "5 classes",
        "all right",
        "all wrong",
        "a class that is never given",
        "a class with one sample",
        "every label the same, so no negatives",
        "fewer than a batch",
        "three images",
        "imbalance 1:50",
        "colour",
        "blank images",
        "one image over and over",
    ],
)
def test_odd_data_trains_through(tmp_path: Path, parts: str, case: str) -> None:
    values, changes = blobs(), {**PARTS[parts], "kappa": (3,)}
    if case.endswith("classes"):
        values = blobs(classes=int(case[0]))
    elif case == "all right":
        values = blobs(wrong=0.0)
    elif case == "all wrong":
        values["y_train"] = (values["y_true"] + 1) % 3
    elif case == "a class that is never given":
        values["y_train"] = np.where(values["y_train"] == 2, 0, values["y_train"])
    elif case == "a class with one sample":
        values["y_train"] = np.where(np.arange(60) == 5, 2, values["y_train"] % 2)
    elif case == "every label the same, so no negatives":
        values["y_train"], changes["kappa"] = np.zeros(60, dtype=int), (0,)
    elif case == "fewer than a batch":
        values = only(values, np.arange(6))
    elif case == "three images":
        values = only(values, np.arange(3))
    elif case == "imbalance 1:50":
        values = blobs(count=306, classes=3, wrong=0.0)
        values = only(values, (values["y_true"] != 2) | (np.arange(306) < 6))
        assert np.bincount(values["y_train"]).tolist() == [102, 102, 2]
    elif case == "colour":
        values = blobs(channels=3, side=12)
    elif case == "blank images":
        values["x_train"] = np.zeros_like(values["x_train"])
    else:
        values["x_train"] = np.repeat(values["x_train"][:1], 60, axis=0)
    finite_run(tmp_path, values, **changes)


@pytest.mark.parametrize("parts", ["mixture1d", *PARTS])
def test_a_scored_loss_that_is_not_finite_does_not_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    from plremix.methods.learner import Learner

    real = Learner.predict

    def broken(self: Any, *given: Any) -> Any:
        out = real(self, *given)
        out.logits[::7] = torch.nan
        out.logits[1::7, 0] = torch.inf
        return out

    monkeypatch.setattr(Learner, "predict", broken)
    finite_run(tmp_path, blobs(), **PARTS.get(parts, {"split": parts}))


@pytest.mark.parametrize("parts", ["mixture1d", *PARTS])
def test_losses_that_are_all_the_same_train_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    from plremix.methods.learner import Learner, Predictions

    real = Learner.predict

    def constant(self: Any, *given: Any) -> Any:
        out = real(self, *given)
        return Predictions(torch.zeros_like(out.logits), torch.ones_like(out.embeddings))

    monkeypatch.setattr(Learner, "predict", constant)
    finite_run(tmp_path, blobs(), **PARTS.get(parts, {"split": parts}))


@pytest.mark.parametrize("parts", list(PARTS))
@pytest.mark.parametrize("clean", ["nobody", "one", "all but one", "everybody"])
def test_a_side_that_is_empty_or_has_one_sample_trains_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: str, clean: str
) -> None:
    from plremix.methods import codivide

    def lopsided(name: str) -> Any:
        real = codivide.SPLITS[name]

        def divide(*given: Any) -> Any:
            splits = real(*given)
            count = len(splits[0].is_clean)
            first = {"nobody": 0, "one": 1, "all but one": count - 1, "everybody": count}[clean]
            return [split._replace(is_clean=torch.arange(count) < first) for split in splits]

        return divide

    name = PARTS[parts]["split"]
    monkeypatch.setitem(codivide.SPLITS, name, lopsided(name))
    finite_run(tmp_path, blobs(), **PARTS[parts])


KILLED_WHILE_WRITING = """
import os, signal, sys
from plremix.cli import main

real, left = os.fsync, [int(sys.argv[1])]

def fsync(descriptor):
    if os.readlink(f"/proc/self/fd/{descriptor}").endswith("last.pt.writing"):
        left[0] -= 1
        if left[0] == 0:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)  # only half of it had reached the disk
            os.kill(os.getpid(), signal.SIGKILL)
    real(descriptor)

os.fsync = fsync
main(sys.argv[2:])
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see which file is written")
def test_a_kill_while_the_checkpoint_is_written_loses_nothing(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", **blobs())
    words = ["train", str(tmp_path / "own.npz"), *SMALL, "--epochs", "3"]
    assert main([*words, "--out", str(tmp_path / "straight")]) == 0
    killed = [*words, "--out", str(tmp_path / "killed"), "--resume"]
    for write in ("2", "1"):  # of the checkpoint, in this process
        done = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, write, *killed])
        assert done.returncode == -signal.SIGKILL
        assert (tmp_path / "killed" / "checkpoint" / "last.pt.writing").exists()
    assert main(killed) == 0
    assert contents(tmp_path / "straight", *EXACT) == contents(tmp_path / "killed", *EXACT)


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_run_that_is_killed_again_and_again_ends_as_if_it_never_was(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", **blobs(count=120))
    words = [sys.executable, "-m", "plremix", "train", str(tmp_path / "own.npz"), *SMALL]
    subprocess.run([*words, "--out", str(tmp_path / "straight")], check=True)
    out, draws, kills = tmp_path / "killed", random.Random(0), 0
    for _ in range(12):
        done = len((out / "metrics.jsonl").read_text().splitlines()) if (out / "metrics.jsonl").exists() else 0
        process = subprocess.Popen([*words, "--out", str(out), "--resume"])
        while process.poll() is None:  # wait until it has gone on by an epoch, then kill it somewhere in the next
            seen = (out / "metrics.jsonl").read_text().count("\n") if (out / "metrics.jsonl").exists() else 0
            if kills < 3 and seen > done:
                time.sleep(draws.uniform(0, 0.25))
                process.kill()
                kills += 1
                break
            time.sleep(0.005)
        if process.wait() == 0:
            break
    assert kills == 3
    assert contents(tmp_path / "straight", *EXACT) == contents(out, *EXACT)


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A disk of half a megabyte, where one may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)], capture_output=True)
    if not made or made.returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_told_and_nothing_is_lost(
    tmp_path: Path, tiny_file: Path, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(tiny_file), *SMALL, "--width", "16", "--out", str(small_disk / "run")]
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 250_000)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "space" in said
    assert said.count("\n") == 1
    assert filler.read_bytes() == b"x" * 250_000
    assert json.loads((small_disk / "run" / "config.json").read_text())["epochs"] == 6


class Payload:
    """Would leave a file behind if it were unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("executed",))


def test_files_from_strangers_never_run_code(
    tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    config = small_config(data=str(tiny_file))
    train(config, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    bomb = pickle.dumps(Payload())

    torch.save({"format": 1, "method": Payload()}, tmp_path / "run" / "checkpoint" / "last.pt")
    with pytest.raises(InputError, match="checkpoint"):
        train(config, tmp_path / "run", resume=True)
    for name in ("model.safetensors", "bomb.npz", "config.json", "noise.json"):
        (tmp_path / name).write_bytes(bomb)
    with pytest.raises(InputError, match="not a model"):
        plremix.load(tmp_path / "model.safetensors")
    save_file({"networks.0.x": torch.zeros(1)}, tmp_path / "model.safetensors", {"architecture": "__import__('os')"})
    with pytest.raises(InputError, match="not a model"):
        plremix.load(tmp_path / "model.safetensors")
    with zipfile.ZipFile(tmp_path / "object.npz", "w") as archive:
        archive.writestr(
            "x_train.npy",
            b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(128) + bomb,
        )
        archive.writestr("y_train.npy", b"")
    for words in (
        ["train", "bomb.npz"],
        ["train", "object.npz"],
        ["train", "--config", "config.json"],
        ["train", str(tiny_file), "--noise-file", "noise.json"],
    ):
        assert main([*words, "--out", str(tmp_path / "never")]) == 2, words
        assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "executed").exists()


def test_an_unwritable_place_is_told(tmp_path: Path, tiny_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(tiny_file), *SMALL, "--out", "/proc/nowhere/run"]) == 2
    assert "cannot be written" in capsys.readouterr().err
