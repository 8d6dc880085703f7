"""The 2-d mixture of the split (paper, sec. 4.3): normalised losses of classifier and prototypes, with the fit.

The points were kept during the run (`snapshots`); they are there for every co-divide run, whatever its split goes by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from plremix.analysis.drawing import COLOURS, Drawn
from plremix.errors import InputError
from plremix.methods.base import Arrays
from plremix.report import figures

SHOWN = 3  # epochs side by side
GRID = 200


def chosen_epochs(kept: list[int], wanted: tuple[int, ...]) -> list[int]:
    """The epochs asked for; else the first after warm-up, the last, and the one in the middle."""
    if missing := sorted(set(wanted) - set(kept)):
        raise InputError(
            f"--mixture-epochs {','.join(map(str, missing))}: nothing was kept of that; there is "
            f"{', '.join(map(str, kept))}"
        )
    places = np.linspace(0, len(kept) - 1, min(SHOWN, len(kept))).round().astype(int)
    return list(wanted) or [kept[place] for place in places]


def draw(snapshots: dict[int, Arrays], epochs: list[int]) -> Drawn:
    """A panel an epoch."""
    columns = min(SHOWN, len(epochs))
    lines = -(-len(epochs) // columns)
    figure = Figure(figsize=(3.6 * columns + 0.4, 3.7 * lines + 0.4), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    rows: list[list[object]] = []
    for place, epoch in enumerate(epochs):
        axes = panels.flat[place]
        _panel(axes, snapshots[epoch])
        axes.set_title(f"what epoch {epoch} began with", fontsize=10)
        rows += _rows(epoch, snapshots[epoch])
    for axes in panels.flat[len(epochs) :]:
        axes.set_axis_off()
    figure.supxlabel("loss of the classifier, normalised", fontsize=10)
    figure.supylabel("loss of the prototypes, normalised", fontsize=10)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=8)
    known = len(snapshots[epochs[0]]["is_right"]) > 0
    kinds = "of right and wrong labels" if known else "taken as clean and as noisy (the truth is not known)"
    return Drawn(
        "mixture",
        "The mixture over the losses",
        f"Up to 256 samples {kinds}, first network. Ellipses: two standard deviations of the components; dashed: where "
        "both are as probable.",
        figure,
        ["epoch", "sample", "loss_classifier", "loss_prototypes", "label_right", "taken_as_clean", "clean_posterior"],
        rows,
    )


def clean_posterior(points: NDArray[Any], snapshot: Arrays) -> NDArray[np.float64]:
    """Probability (n,) of the clean component, the first one, at points (n, 2)."""
    log_densities = []
    for mean, covariance, weight in zip(snapshot["means"], snapshot["covariances"], snapshot["weights"], strict=True):
        away = np.asarray(points, dtype=np.float64) - mean
        square = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        log_weight = np.log(max(float(weight), 1e-300))
        log_densities.append(log_weight - (square + np.linalg.slogdet(covariance)[1]) / 2)
    clean, noisy = log_densities
    posterior: NDArray[np.float64] = 1 / (1 + np.exp(np.clip(noisy - clean, -700, 700)))
    return posterior


def _panel(axes: Axes, snapshot: Arrays) -> None:
    points, right = snapshot["points"], snapshot["is_right"]
    if len(right):
        groups = [("label right", right), ("label wrong", ~right.astype(bool))]
    else:
        clean = snapshot["is_clean"].astype(bool)
        groups = [("taken as clean", clean), ("taken as noisy", ~clean)]
    for place, (label, member) in enumerate(groups):
        x, y = points[member.astype(bool)].T
        if place == 0:
            axes.scatter(x, y, s=14, linewidths=0.8, label=label, marker="o", facecolors="none", edgecolors=COLOURS[0])
        else:
            axes.scatter(x, y, s=14, linewidths=0.8, label=label, marker="x", color=COLOURS[1])
    for mean, covariance, weight, label in zip(
        snapshot["means"], snapshot["covariances"], snapshot["weights"], ("clean", "noisy"), strict=True
    ):
        if weight > 0:
            figures.ellipse(axes, mean, covariance, label)
    line = np.linspace(-0.05, 1.05, GRID)
    grid = np.stack(np.meshgrid(line, line), axis=-1)
    posterior = clean_posterior(grid.reshape(-1, 2), snapshot).reshape(GRID, GRID)
    if posterior.min() < 0.5 < posterior.max():
        axes.contour(line, line, posterior, levels=[0.5], colors="black", linewidths=1.2, linestyles="--")
    axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal")


def _rows(epoch: int, snapshot: Arrays) -> list[list[object]]:
    right = snapshot["is_right"].tolist() or [""] * len(snapshot["points"])
    posterior = clean_posterior(snapshot["points"], snapshot).tolist()
    columns = (snapshot["rows"].tolist(), snapshot["points"].tolist(), right, snapshot["is_clean"].tolist(), posterior)
    return [[epoch, row, *point, *rest] for row, point, *rest in zip(*columns, strict=True)]
