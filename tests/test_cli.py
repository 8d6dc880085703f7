"""The command line: promises kept, bad input in one line with status 2, and no torch before it is needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import blobs, contents

from plremix import __version__
from plremix.cli import _train_arguments, main

SMALL = ["--width", "4", "--batch-size", "8", "--embedding-size", "8", "--epochs", "3", "--device", "cpu"]


def plremix(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "plremix", *words], capture_output=True, text=True, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "digits-sym-80", "--kapa", "3"], "--kapa"),
        (["train", "digits-sym-80", "--noise-ratio", "1.5"], "--noise-ratio must be a share from 0 to 1, got 1.5"),
        (["train", "digits-sym-80", "--kappa", "-1"], "kappa"),
        (["train", "digits-sym-80", "--kappa=-1"], "--kappa must be 0 or more"),
        (["train", "digits-sym-80", "--kappa", "x"], "--kappa"),
        (["train", "digits-sym-80", "--batch-size", "1"], "--batch-size must be at least 2"),
        (["train", "digits-sym-80", "--epochs", "0"], "--epochs must be at least 1"),
        (["train", "digits-sym-80", "--epochs", "many"], "--epochs"),
        (["train", "digits-sym-80", "--warmup-epochs", "99"], "--warmup-epochs must be at most"),
        (["train", "digits-sym-80", "--split", "magic"], "magic"),
        (["train", "digits-sym-80", "--method", "magic"], "there is no method 'magic'"),
        (["train", "digits-sym-80", "--method", "cross-entropy", "--lambda-u", "3"], "--lambda-u"),
        (["train", "digits-sym-80", "--lambda-u", "x"], "--lambda-u must be a number or auto, got 'x'"),
        (["train", "digits-sym-80", "--method", "elr", "--split", "mixture1d"], "goes with --method dividemix, unicon"),
        (["train", "digits-sym-80", "--kappa", "2,1"], "must be one epoch for each change of --kappa 2,1, so 1 in all"),
        (
            ["train", "digits-sym-80", "--noise", "symmetric", "--noise-file", "x.json"],
            "leave out --noise, or the file",
        ),
        (["predict", "nowhere", "images"], "nowhere does not exist"),
        (["export", "nowhere"], "nowhere does not exist"),
        (["analyze", "nowhere"], "nowhere does not exist"),
        (["clean", "nowhere"], "nowhere does not exist"),
        (["train", "mnist"], "there is no recipe 'mnist'"),
        (["train"], "needs a recipe"),
        (["train", "digits-sym-80", "--config", "x.json"], "not from both"),
        (["train", "--config", "nowhere.json"], "cannot be read"),
        (["train", "own.npz", "--noise", "symmetric"], "add --noise-ratio"),
        (["train", "--seed", "1", "digits-sym-80"], "needs a recipe"),
        (["train", "own.npz", "--noise-ratio", "0.3"], "--noise-ratio does nothing without noise"),
        (["train", "digits-sym-80", "--noise-map", "3:5"], "--noise-map goes with asymmetric noise"),
        (["train", "digits-sym-80", "--noise_map=3:5"], "--noise-map goes with asymmetric noise"),
        (["train", "digits-sym-80", "--lambda_u", "x"], "--lambda-u must be a number or auto, got 'x'"),
        (["clean", ".", "--noise-map", "3:5"], "--noise-map goes with asymmetric noise"),
        (["clean", ".", "--noise-ratio", "0.3"], "--noise-ratio does nothing without noise"),
        (["train", "digits-sym-80", "--network", ""], "--network must be a name"),
        (["train", "digits-sym-80", "--test", "photos"], "--test is for own images; digits has test images of its own"),
        (["train", "digits-sym-80", "--nodes", "2"], "--nodes 2: start the same command on each machine by torchrun"),
        (["demo", "--bogus"], "--bogus"),
        (["recipes", "mnist"], "there is no recipe"),
        (["recipes", "a", "b"], "one name at most"),
        (["export", "--format", "onnx"], "needs one run folder or model.safetensors file, got 0"),
        (["export", "a", "b"], "needs one run folder or model.safetensors file, got 2"),
        (["dance"], "there is no command 'dance'"),
    ],
)
def test_bad_input_is_one_line_and_status_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert message in said.err
    assert "│" not in said.err


def test_too_little_memory_is_told(tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", str(tiny_file), *SMALL, "--width", "10000000", "--out", str(tmp_path / "run"), "--quiet"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: out of memory")
    assert said.count("\n") == 1


def test_a_width_beyond_all_memory_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "digits-sym-80", "--width", "99999999999", "--epochs", "1", "--out", str(tmp_path / "run")]
    assert main([*words, "--quiet"]) == 2
    assert capsys.readouterr().err.startswith("error: out of memory")


def test_a_start_that_was_refused_leaves_nothing_in_the_way(
    tiny_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["train", str(tiny_file), *SMALL, "--out", str(out), "--quiet"]
    assert main([*words, "--weights", "nowhere.safetensors"]) == 2
    assert not out.exists()
    out.mkdir()
    (out / "noise.json").write_text("somebody else's")
    assert main(words) == 2
    assert "files that a run would overwrite (noise.json)" in capsys.readouterr().err
    assert (out / "noise.json").read_text() == "somebody else's"
    (out / "noise.json").unlink()
    assert main([*words, "--weights", "nowhere.safetensors"]) == 2
    assert main(words) == 0, "the corrected command"


@pytest.mark.parametrize(
    "words",
    [
        *(["--help"], ["recipes"], ["train", "digits-sym-80", "--kapa", "3"], ["train", "-h"]),
        *(["clean", "photos", "--lr", "-1"], ["clean", "photos", "--kapa", "3"], ["demo", "--epochs", "0"]),
        ["clean", "photos", "--time-budget", "soon"],
    ],
)
def test_help_and_errors_answer_without_torch_and_at_once(words: list[str]) -> None:
    best = 99.0
    for _ in range(3):
        began = os.times()
        program = f"import sys; from plremix.cli import main; status = main({words}); assert 'torch' not in sys.modules"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        used = os.times()  # of the processor, so that other work on the machine does not count
        spent = (used.children_user + used.children_system) - (began.children_user + began.children_system)
        best = min(best, spent or used.elapsed - began.elapsed)
        assert "AssertionError" not in done.stderr
    assert best < 1.0


def test_version_and_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--version"], ["train", "--version"], ["demo", "--version"]):
        assert main(words) == 0
        assert __version__ in capsys.readouterr().out
    assert main(["recipes"]) == 0
    under: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("  "):
            under[next(reversed(under))].append(line.split()[0])
        else:
            under[line.partition(":")[0]] = []
    rows = ("plr", "simclr", "scl", "flatplr", "queue", "mixture2d", "mixture1d")
    rows += ("kappa-3", "kappa-2", "kappa-1", "only-y")
    assert under["digits ablation"] == [f"digits-sym-80-{row}" for row in rows]
    assert under["digits"] == [f"digits-{noise}" for noise in ("sym-20", "sym-50", "sym-80", "sym-90", "asym-40")]
    assert under.keys() > {"cifar", "tiny-imagenet", "clothing1m", "webvision", "combination", "ablation", "kappa"}
    assert main(["recipes", "digits-sym-90"]) == 0
    assert "noise_ratio            0.9" in capsys.readouterr().out


def test_train_on_an_npz_file_and_again_from_its_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "own.npz", worst=blobs()["y_train"], **blobs())
    first, second = tmp_path / "first", tmp_path / "second"
    flags = ["--label-key", "worst", "--truth-key", "y_true", "--seed", "5", *SMALL]
    assert main(["train", str(tmp_path / "own.npz"), *flags, "--out", str(first)]) == 0
    said = capsys.readouterr().out
    assert "plremix" in said
    assert "report.html" in said
    assert main(["train", "--config", str(first / "config.json"), "--out", str(second), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert contents(first, "metrics.jsonl", "labels.csv") == contents(second, "metrics.jsonl", "labels.csv")
    assert json.loads((first / "config.json").read_text())["seed"] == 5


def test_flags_override_a_recipe_and_schedules_follow_the_length(tmp_path: Path) -> None:
    flags = [
        "--epochs",
        "4",
        "--warmup-epochs",
        "2",
        "--kappa",
        "2",
        "--no-flat",
        "--split",
        "mixture1d",
        "--width",
        "4",
    ]
    assert main(["train", "digits-sym-50", *flags, "--out", str(tmp_path / "run"), "--quiet"]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["epochs"], config["warmup_epochs"], config["lr_epochs"]) == (4, 2, [3])
    assert _train_arguments(["digits-sym-50", "--epochs", "+80"])[1].warmup_epochs == 20
    assert (config["kappa"], config["flat"], config["split"]) == ([2], False, "mixture1d")


def test_the_default_folder_names_recipe_method_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "digits-sym-20", "--method", "cross-entropy", "--epochs", "1", "--quiet"]) == 0
    out = tmp_path / "runs" / "digits-sym-20-cross-entropy-seed0"
    assert json.loads((out / "summary.json").read_text())["status"] == "done"
    noise = json.loads((out / "noise.json").read_text())
    assert len(noise) == 1400


def test_the_demo_writes_both_runs_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "--epochs", "2", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    for method in ("cross-entropy", "plremix"):
        assert (out / method / "report.html").exists()
        assert f"│ {method}" in said
    assert str(out / "plremix" / "report.html") in said.replace("\n", "")
    assert main(["demo", "--epochs", "2", "--out", str(out)]) == 2


def test_the_last_demo_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = []

    def run(config: Any, out: Path, *, resume: bool, progress: Any) -> dict[str, Any]:
        seen.append((str(out), resume))
        out.mkdir(parents=True, exist_ok=True)
        (out / "config.json").touch()
        return {"best": None, "last": None, "seconds": 0.0}

    monkeypatch.setattr("plremix.training.train", run)
    for words in (["--resume"], [], [], ["--resume"]):
        assert main(["demo", *words]) == 0
    folders = [("runs/demo", True), ("runs/demo-2", False), ("runs/demo-3", False), ("runs/demo-3", True)]
    assert seen == [(f"{folder}/{method}", go) for folder, go in folders for method in ("cross-entropy", "plremix")]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_leaves_a_run_that_resume_continues(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", **blobs(count=120))
    words = ["train", str(tmp_path / "own.npz"), *SMALL, "--epochs", "12"]
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    assert plremix(*words, "--out", str(straight), "--quiet").returncode == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "plremix", *words, "--out", str(broken)],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what starts in the background ignores it
    )
    metrics = broken / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") >= 3):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"--resume" in complaint
    assert b"Traceback" not in complaint
    assert json.loads((broken / "summary.json").read_text())["status"] == "interrupted"
    assert plremix(*words, "--out", str(broken), "--resume", "--quiet").returncode == 0
    files = ("metrics.jsonl", "labels.csv", "model.safetensors")
    assert contents(straight, *files) == contents(broken, *files)
