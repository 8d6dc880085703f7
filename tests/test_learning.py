"""What it is for: PLReMix learns from labels that are mostly wrong, and plain cross-entropy does not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from plremix.recipes import build
from plremix.training import train


def test_plremix_finds_wrong_digits_at_half_noise(tmp_path: Path) -> None:
    summary = train(build("digits-sym-50", epochs=18), tmp_path / "run")
    assert summary["best"] > 0.9
    assert summary["detection"]["auroc"] > 0.95
    assert summary["noise_rate_estimate"] == pytest.approx(summary["noise_rate"], abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["sym-20", "sym-50", "sym-80", "asym-40"])
def test_the_noise_rate_is_known_within_five_points_after_warm_up(noise: str, tmp_path: Path) -> None:
    """The first split's rate, which `--lambda-u auto` goes by; half a minute each."""
    recipe = build(f"digits-{noise}")
    summary = train(replace(recipe, epochs=recipe.warmup_epochs + 1), tmp_path / "run")
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["noise_rate_after_warmup"] == pytest.approx(summary["noise_rate"], abs=0.05)


@pytest.mark.slow
def test_plremix_is_15_points_above_cross_entropy_at_80_per_cent(tmp_path: Path) -> None:
    """The mean of seeds 0, 1, 2; about six minutes."""
    last = {
        method: mean(
            train(replace(build("digits-sym-80", method), seed=seed), tmp_path / f"{method}-{seed}")["last"]
            for seed in (0, 1, 2)
        )
        for method in ("cross-entropy", "plremix")
    }
    assert last["plremix"] > last["cross-entropy"] + 0.15
