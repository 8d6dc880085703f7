"""The time left counts cheap and dear epochs for what they cost."""

from __future__ import annotations

import pytest

from plremix.config import CoDivideConfig, CrossEntropyConfig
from plremix.training import progress


def test_time_left_knows_that_warm_up_is_cheap(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    config = CoDivideConfig(epochs=10, warmup_epochs=4, kappa_epochs=(5, 6), split="neighbours")
    costs = [config.epoch_cost(epoch) for epoch in range(10)]
    lines = progress.Lines()
    lines.start("own", costs, 2)
    for epoch in range(2, 10):
        now[0] += costs[epoch]  # a second a unit
        lines.epoch({"epoch": epoch, "phase": "x"})
    left = [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert left == [
        "3:09 left",
        "3:00 left",
        "2:30 left",
        "2:00 left",
        "1:30 left",
        "1:00 left",
        "0:30 left",
        "0:00 left",
    ]


def test_the_bar_is_full_at_the_end() -> None:
    bar = progress.Bar()
    bar.start("own", [1.0, 1.0, 3.0], 1)
    bar.step(0.5)
    assert bar._bar.tasks[0].completed == 1.5
    for epoch in (1, 2):
        bar.epoch({"epoch": epoch, "phase": "x"})
        bar.step(0.0)
    assert bar._bar.tasks[0].completed == bar._bar.tasks[0].total == 5
    bar.stop()


def test_cost_follows_the_passes() -> None:
    def costs(**changes: object) -> tuple[float, float]:
        config = CoDivideConfig(epochs=10, warmup_epochs=4, kappa_epochs=(5, 6), **changes)  # type: ignore[arg-type]
        return config.epoch_cost(3), config.epoch_cost(4)

    assert costs() == (9, 30)  # 3 views learned from; 6 looked at, 4 + 4 learned from
    assert costs(warmup_contrast=False) == (3, 30)
    assert costs(contrast="none") == (3, 18)
    assert CrossEntropyConfig().epoch_cost(0) == CrossEntropyConfig().epoch_cost(99)
