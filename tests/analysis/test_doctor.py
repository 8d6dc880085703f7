"""The doctor: each sickness made on purpose, mostly in a real run, and named; a healthy run has no findings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import blobs, small_config, small_cross_entropy

from plremix.cli import main
from plremix.config import Config
from plremix.doctor import Facts, examine
from plremix.methods.stepwise import Stepwise
from plremix.training import train

LONG = {"epochs": 14, "lr_epochs": (), "batch_size": 16}  # more than 200 steps of 240 images


def findings(folder: Path, values: dict[str, np.ndarray], make: Any = small_cross_entropy, **changes: Any) -> list[str]:
    folder.mkdir(exist_ok=True)
    np.savez(folder / "data.npz", **values)
    config: Config = make(data=str(folder / "data.npz"), **changes)
    summary = train(config, folder / "run")
    page = (folder / "run" / "report.html").read_text(encoding="utf-8")
    assert ("Before you trust this run" in page) == bool(summary["findings"])
    assert all(finding["advice"] for finding in summary["findings"])
    return [finding["name"] for finding in summary["findings"]]


def test_a_healthy_run_has_no_findings(tmp_path: Path) -> None:
    assert findings(tmp_path, blobs(count=240), **LONG, lr=0.01) == []


def test_losses_that_are_not_finite(tmp_path: Path) -> None:
    assert findings(tmp_path, blobs(), epochs=1, lr=50.0) == ["losses not finite"]


def test_a_learning_rate_that_is_too_high(tmp_path: Path) -> None:
    assert findings(tmp_path, blobs(count=120), epochs=3, lr_epochs=(), batch_size=16, lr=1.3) == [
        "learning rate too high"
    ]


@pytest.mark.parametrize("tested", [True, False])
def test_networks_that_predict_one_class(tmp_path: Path, tested: bool) -> None:
    values = blobs(count=240)
    values["x_train"], values["x_test"] = np.zeros_like(values["x_train"]), np.zeros_like(values["x_test"])
    if not tested:
        values = {name: value for name, value in values.items() if "test" not in name}
    assert findings(tmp_path, values, **LONG, lr=0.005) == ["one class"]


def test_a_clean_side_that_shrank_to_nothing(tmp_path: Path) -> None:
    changes = {"split": "mixture2d", "clean_threshold": 1.0, "contrast": "none", "epochs": 2, "batch_size": 2}
    assert "clean side empty" in findings(tmp_path, blobs(count=240), small_config, **changes)


def test_noise_beyond_what_can_be_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = blobs(count=960, classes=20)
    values["y_train"] = np.random.default_rng(1).integers(0, 20, 960)
    changes = {"epochs": 6, "lr_epochs": (), "batch_size": 16, "lr": 0.005}
    assert findings(tmp_path / "both", values, **changes) == ["too much noise"]
    monkeypatch.setattr(Stepwise, "noise_rate_estimate", lambda self, named: 0.5)
    assert findings(tmp_path / "flagged", values, **changes) == [], "late networks alone may contradict too many"


def test_a_contrast_without_negative_pairs(tmp_path: Path) -> None:
    values = blobs(count=60)
    values["y_train"] = np.zeros(60, dtype=int)
    changes = {"contrast": "plr", "kappa": (0,), "epochs": 8, "batch_size": 2}
    assert findings(tmp_path, values, warmup_epochs=1, **changes) == ["no negative pairs"]  # but in warm-up


def test_too_few_steps(tmp_path: Path) -> None:
    assert findings(tmp_path, blobs(), epochs=2) == ["too few steps"]


def test_wrong_labels_learned_by_heart(tmp_path: Path) -> None:
    changes = {"epochs": 30, "lr_epochs": (), "batch_size": 16, "lr": 0.05, "width": 12, "weak_view": "plain"}
    assert findings(tmp_path, blobs(count=120, wrong=0.6), **changes) == ["accuracy fell"]


def test_a_warm_up_that_is_too_long(tmp_path: Path) -> None:
    changes = {"epochs": 17, "warmup_epochs": 16, "lr_epochs": (), "lr": 0.05, "width": 12, "contrast": "none"}
    views = {"weak_view": "plain", "strong_view": "plain"}
    assert findings(tmp_path, blobs(count=120, wrong=0.6), small_config, **changes, **views) == ["warm-up too long"]


def test_a_real_run_that_is_cut_off_while_it_climbs(tmp_path: Path) -> None:
    slow = {"epochs": 6, "lr": 0.00015, "lr_epochs": ()}  # 450 steps: enough, had they been larger
    assert findings(tmp_path, blobs(600), **slow) == ["too few steps"]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "still climbs" in summary["findings"][0]["what"]


def test_a_run_that_still_climbs_at_its_end() -> None:
    facts = Facts(images=1000, classes=10, largest_given=0.1)
    config = small_cross_entropy(epochs=20).as_dict()
    climbing = [{"epoch": k, "phase": "train", "loss": 1.0, "test_accuracy": 0.1 + 0.04 * k} for k in range(20)]
    assert [finding.name for finding in examine(config, climbing, facts)] == ["too few steps"]
    assert examine(config, climbing[:10], facts) == [], "not at its end yet"
    level = [{**line, "test_accuracy": 0.8} for line in climbing]
    assert examine(config, level, facts) == []
    assert examine(config, [], facts) == []


def test_the_recipes_runs_are_healthy_by_their_own_figures() -> None:
    """What the digits at 80 and 90 % look like at the end: most labels wrong, and yet nothing is."""
    facts = Facts(images=1400, classes=10, largest_given=0.11, largest_predicted=0.12, noise_rate_estimate=0.82)
    config = small_config(epochs=40, batch_size=64).as_dict()
    history = [
        {"epoch": k, "phase": "train", "clean_count": 260, "test_accuracy": 0.96, "loss_clean": 2.2} for k in range(40)
    ]
    assert examine(config, history, facts) == []


def test_a_bad_run_says_so_at_its_end(tmp_path: Path, tiny_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", str(tiny_file), "--method", "cross-entropy", "--epochs", "1", "--width", "4", "--lr", "50"]
    assert main([*words, "--batch-size", "8", "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert "this run went wrong:" in said.err
    assert "The losses are not finite from epoch 1 on" in said.err
    assert "--lr 5" in said.err
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["findings"][0]["name"] == "losses not finite"


def test_the_doctor_needs_nothing_else() -> None:
    program = "import sys, plremix.doctor; assert not {'torch', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_drawn_epochs_are_measured_by_what_they_saw() -> None:
    config = {"lr": 0.1, "batch_size": 64, "epochs": 1, "epoch_images": 64_000}
    history = [{"epoch": 0, "phase": "train", "clean_count": 40_000, "loss_clean": 0.5}]
    assert examine(config, history, Facts(images=1_000_000, classes=14, largest_given=0.1)) == []


def test_who_climbs_back_is_not_told_to_go_on() -> None:
    accuracies = [0.9] * 10 + [0.4] * 14 + [0.45, 0.45, 0.5, 0.5, 0.55, 0.55]
    history = [{"epoch": k, "phase": "train", "test_accuracy": value} for k, value in enumerate(accuracies)]
    config, facts = {"method": "cross-entropy", "epochs": 30, "batch_size": 16}, Facts(2400, 3, 0.34)
    assert [finding.name for finding in examine(config, history, facts)] == ["accuracy fell"]
    climbing = [{**line, "test_accuracy": k / 40} for k, line in enumerate(history)]
    assert [finding.name for finding in examine(config, climbing, facts)] == ["too few steps"]
