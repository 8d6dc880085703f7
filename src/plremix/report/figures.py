"""The report's figures as SVG text: learning curves, and the split with its mixture.

Colours are told apart in print and in colour blindness (Okabe and Ito's set), and every series has its own label.
"""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from numpy.typing import NDArray

from plremix.methods.base import Arrays

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
STYLES = ["-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1))]
MOST_POINTS = 2000  # a scatter of more is a blot, and a large file


def curves(history: list[dict[str, Any]]) -> str:
    """Accuracy on every set, and the split's against the truth, over the epochs, where there is any; and the losses by
    name."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    known = any(name.endswith("_accuracy") or name.startswith("clean_p") for line in history for name in line)
    axes = figure.subplots(1, 2 if known else 1, squeeze=False)[0]
    if known:
        _accuracies(axes[0], history)
    right, epochs = axes[-1], [line["epoch"] + 1 for line in history]
    names = sorted({name for line in history for name in line if name.startswith("loss")})
    for name, style in zip(names, STYLES, strict=False):
        label = name.removeprefix("loss_")
        right.plot(epochs, [line.get(name, np.nan) for line in history], linestyle=style, label=label)
    right.set(xlabel="epoch", title="Losses (mean of an epoch)")
    mark_warmup(right, history)
    if names:
        right.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return svg(figure)


def _accuracies(left: Axes, history: list[dict[str, Any]]) -> None:
    epochs = [line["epoch"] + 1 for line in history]
    measured = dict.fromkeys(name for line in history for name in line if name.endswith("_accuracy"))
    for name, style in zip(measured, STYLES, strict=False):
        values = [100 * line.get(name, np.nan) for line in history]
        marker = "o" if sum(name in line for line in history) == 1 else None  # one point makes no line
        left.plot(epochs, values, color=BLUE, linestyle=style, marker=marker, label=name.replace("_", " "))
    for name, colour in (("clean_precision", ORANGE), ("clean_recall", GREEN)):
        if any(name in line for line in history):
            values = [100 * line.get(name, np.nan) for line in history]
            left.plot(
                epochs, values, color=colour, linestyle="--", label=f"split: {name.removeprefix('clean_')} of clean"
            )
    left.set(xlabel="epoch", ylabel="%", ylim=(0, 102), title="Accuracy")
    mark_warmup(left, history)
    if left.lines:
        left.legend(fontsize=8, loc="lower right")


def split(details: Arrays, is_wrong: NDArray[np.bool_] | None) -> str:
    """The first network's losses with the two components of its mixture; wrong labels marked where they are known."""
    losses = details["points"][0]
    probability = details["clean_probability"][0]
    shown = np.linspace(0, len(losses) - 1, min(len(losses), MOST_POINTS)).astype(int)
    if is_wrong is None:
        clean = details["is_clean"][0]
        groups = [("taken as clean", clean, BLUE, "o"), ("taken as noisy", ~clean, ORANGE, "x")]
    else:
        groups = [("label right", ~is_wrong, BLUE, "o"), ("label wrong", is_wrong, ORANGE, "x")]
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes, histogram = figure.subplots(1, 2)
    for label, member, colour, marker in groups:
        chosen = shown[member[shown]]
        if losses.shape[1] == 2:
            axes.scatter(*losses[chosen].T, s=10, color=colour, marker=marker, linewidths=0.8, alpha=0.6, label=label)
        else:
            axes.hist(losses[member, 0], bins=40, range=(0, 1), color=colour, alpha=0.6, label=label)
        histogram.hist(probability[member], bins=40, range=(0, 1), color=colour, alpha=0.6, label=label)
    if losses.shape[1] == 2:
        if "means" in details:
            for mean, covariance, label in zip(
                details["means"][0], details["covariances"][0], ("clean", "noisy"), strict=True
            ):
                ellipse(axes, mean, covariance, label)
        other = "loss of the prototypes" if "means" in details else "doubt about the given label"
        axes.set(xlabel="loss of the classifier", ylabel=other, xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    else:
        axes.set(xlabel="loss of the classifier", ylabel="samples")
    axes.set_title("What the split is made from")
    axes.legend(fontsize=8)
    histogram.set(xlabel="belief in the given label", ylabel="samples", title="What it makes of it")
    histogram.legend(fontsize=8)
    return svg(figure)


def ellipse(axes: Axes, mean: NDArray[np.float64], covariance: NDArray[np.float64], label: str) -> None:
    """Two standard deviations of a component."""
    values, vectors = np.linalg.eigh(covariance)
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    width, height = 4 * np.sqrt(np.maximum(values[::-1], 0))
    axes.add_patch(
        Ellipse((mean[0], mean[1]), width, height, angle=angle, fill=False, linewidth=1.5, edgecolor="black")
    )
    top, bottom = (mean[1] + side * 2 * np.sqrt(covariance[1, 1]) for side in (1, -1))
    above = top < 0.95  # beside the ellipse, where the axes have room
    axes.annotate(
        label,
        (min(max(mean[0], 0.08), 0.92), top if above else bottom),
        xytext=(0, 3 if above else -3),
        textcoords="offset points",
        ha="center",
        va="bottom" if above else "top",
        weight="bold",
        fontsize=9,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
    )


def mark_warmup(axes: Axes, history: list[dict[str, Any]]) -> None:
    warmup = sum(line["phase"] == "warmup" for line in history)
    if warmup:
        axes.axvspan(0.5, warmup + 0.5, color=GREY, alpha=0.15, linewidth=0, label="warm-up")


def svg(figure: Figure) -> str:
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "plremix", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
