"""Negative pairs over the epochs (paper, sec. 4.3): how many the contrast part selects, and how many of them are right.

Counted during training over all pairs of training samples (`training/evaluation.py`); this room only draws.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from plremix.analysis.drawing import COLOURS, Drawn, whole_epochs
from plremix.config import Config
from plremix.report import figures


def draw(config: Config, history: list[dict[str, Any]]) -> Drawn:
    """Both shares, with kappa's steps where kappa counts."""
    lines = [line for line in history if "negative_selected" in line]
    known = any("negative_correct" in line for line in lines)
    figure = Figure(figsize=(9 if known else 5, 3.4), layout="constrained")
    panels = figure.subplots(1, 2 if known else 1, squeeze=False)[0]
    names = [
        ("negative_selected", "share of all pairs that is selected"),
        ("negative_correct", "share of those that is right"),
    ]
    for place, (axes, (name, words)) in enumerate(zip(panels, names, strict=False)):
        there = [line for line in lines if name in line]
        epochs = [line["epoch"] + 1 for line in there]
        values = [100 * line[name] for line in there]
        axes.plot(epochs, values, color=COLOURS[place], marker="o", markersize=3)
        axes.set(xlabel="epoch", ylabel="%", title=words)
        figures.mark_warmup(axes, history)
        axes.margins(y=0.12)
        whole_epochs(axes)
        for epoch, kappa in _steps(config, len(history)):
            axes.axvline(epoch + 0.5, color="black", linewidth=0.8, linestyle=":")
            axes.annotate(
                f"κ = {kappa}",
                (epoch + 0.5, 0.98),
                xycoords=("data", "axes fraction"),
                xytext=(3, 0),
                textcoords="offset points",
                ha="left",
                va="top",
                fontsize=8,
            )
        if any(line["phase"] == "warmup" for line in lines):
            axes.legend(fontsize=8, loc="lower right")
    return Drawn(
        "negatives",
        "Negative pairs",
        "Left: the share of all pairs of training samples that the contrastive loss pushes apart. Right: the share of "
        "those whose true classes differ. In warm-up every pair is pushed apart; dotted: where kappa changes.",
        figure,
        ["epoch", "kappa", "selected", "correct"],
        [
            [
                line["epoch"] + 1,
                "" if line["epoch"] < config.warmup_epochs else config.kappa_at(line["epoch"]),
                line["negative_selected"],
                line.get("negative_correct", ""),
            ]
            for line in lines
        ],
    )


def _steps(config: Config, epochs: int) -> list[tuple[int, int]]:
    """Epochs at which kappa takes a value, from the end of warm-up on, as far as the run got."""
    if config.contrast not in ("plr", "plr-queue"):
        return []
    first = int(getattr(config, "warmup_epochs", 0))
    changes = [
        epoch
        for epoch in range(first, epochs)
        if epoch == first or config.kappa_at(epoch) != config.kappa_at(epoch - 1)
    ]
    return [(epoch, config.kappa_at(epoch)) for epoch in changes]
