"""Gradient conflict between the contrastive and the semi-supervised loss (paper, sec. 4.3), at a checkpoint of a run.

With g1 the gradient of the contrastive loss and g2 that of L_SST over the parameters of the backbone, which both share:
entanglement g1·g2 / |g2|² (negative: they fight) and ratio |g1| / |g2|. SimCLR and PLR are measured on the same batches
and weights, in the run's form (flat or not) and at its temperature, each with weight 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor, nn

from plremix.analysis.drawing import COLOURS, MARKERS, Drawn
from plremix.config import CoDivideConfig
from plremix.methods.codivide import CoDivide
from plremix.methods.contrasts import Contrast
from plremix.methods.splits import Split

CONTRASTS = {"simclr": "SimCLR", "plr": "PLR"}
WHOLE = "backbone"
BINS = 30


class Conflict(NamedTuple):
    """One contrastive loss against L_SST on one batch, over one layer or over the whole backbone."""

    network: int
    step: int
    layer: str
    contrast: str
    entanglement: float
    ratio: float


def measure(method: CoDivide, epoch: int, batches: int, per_layer: bool = False) -> list[Conflict]:
    """For each network the conflicts on `batches` batches, as the epoch that would come next would see them."""
    for learner in method.learners:
        freeze_statistics(learner.network)
    found = []
    for index, split in enumerate(reversed(method.next_splits(epoch))):  # each learns from the other's split
        backbone = method.learners[index].network.backbone
        layers, parameters = layers_of(backbone, per_layer), list(backbone.parameters())
        for step, losses in enumerate(itertools.islice(step_losses(method, index, split, epoch), batches)):
            taken = {name: torch.autograd.grad(loss, parameters) for name, loss in losses.items()}
            for layer, places in layers.items():
                flat = {name: torch.cat([parts[k].flatten() for k in places]) for name, parts in taken.items()}
                for name in CONTRASTS:
                    found.append(Conflict(index, step, layer, name, *entanglement_and_ratio(flat[name], flat["sst"])))
    return found


def entanglement_and_ratio(first: Tensor, second: Tensor) -> tuple[float, float]:
    """g1·g2 / |g2|² and |g1| / |g2| of two gradients (p,); without a second gradient there is neither (NaN)."""
    square = second.double().square().sum()
    if square == 0:
        return float("nan"), float("nan")
    return float(first.double() @ second.double() / square), float(first.double().norm() / square.sqrt())


def step_losses(method: CoDivide, index: int, split: Split, epoch: int) -> Iterator[dict[str, Tensor]]:
    """Step by step L_SST (`sst`) and both contrastive losses, by the method's own code; there is no end of steps.

    When an epoch is through, it is drawn anew with another seed: its weights and schedules stay.
    """
    config, learner = method.config, method.learners[index]
    plain = replace(config, contrast_weight=1.0)
    contrasts = {
        "simclr": Contrast(replace(plain, contrast="simclr"), learner, method.labels),
        "plr": Contrast(replace(plain, contrast="plr"), learner, method.labels),
    }
    learner.network.train()
    for seed in itertools.count(config.seed):
        method.config = replace(config, seed=seed)
        for step in method.steps(index, split, epoch, contrasts=True):
            losses = {"sst": torch.stack(list(step.losses.values())).sum()}
            for name, contrast in contrasts.items():
                losses[name] = contrast(step.strong, step.mine, split.class_scores, epoch)[0]
            yield losses


def freeze_statistics(network: nn.Module) -> None:
    """Batch norm still goes by each batch, but its running statistics, which are state, stay as they are."""
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = 0.0


def layers_of(backbone: nn.Module, per_layer: bool) -> dict[str, list[int]]:
    """Places of the parameters, of the whole backbone and on request of each of its layers."""
    names = [name for name, _ in backbone.named_parameters()]
    layers = {WHOLE: list(range(len(names)))}
    if per_layer:
        for place, name in enumerate(names):
            layers.setdefault(name.rpartition(".")[0], []).append(place)
    return layers


# --- numbers and pictures ---


def summary(conflicts: list[Conflict], config: CoDivideConfig, epoch: int) -> dict[str, Any]:
    """Medians and shares for JSON, by contrast; with layers, those too."""
    layers = list(dict.fromkeys(conflict.layer for conflict in conflicts))
    result: dict[str, Any] = {
        "epoch": epoch,
        "flat": config.flat,
        "temperature": config.temperature,
        "kappa": config.kappa_at(epoch),
        "batches": len({(conflict.network, conflict.step) for conflict in conflicts}),
        **_numbers(conflicts, WHOLE),
    }
    if len(layers) > 1:
        result["layers"] = {layer: _numbers(conflicts, layer) for layer in layers if layer != WHOLE}
    return result


def _numbers(conflicts: list[Conflict], layer: str) -> dict[str, dict[str, float]]:
    numbers = {}
    for name in CONTRASTS:
        entanglement, ratio = _values(conflicts, layer, name)
        numbers[name] = {
            "median_entanglement": float(np.median(entanglement)),
            "share_negative": float((entanglement < 0).mean()),
            "median_ratio": float(np.median(ratio)),
            "share_ratio_above_1": float((ratio > 1).mean()),
            "median_cosine": float(np.median(entanglement / np.maximum(ratio, 1e-30))),
        }
    return numbers


def table(numbers: dict[str, Any]) -> str:
    """For the screen."""
    lines = [
        f"gradients against the semi-supervised loss after epoch {numbers['epoch']}, {numbers['batches']} batches, "
        f"{'flat form' if numbers['flat'] else 'InfoNCE form'}, temperature {numbers['temperature']:g}, kappa "
        f"{numbers['kappa']}:",
        f"{'':8}{'median entanglement':>21}{'share negative':>16}{'median ratio':>14}{'ratio above 1':>15}",
    ]
    for name, shown in CONTRASTS.items():
        one = numbers[name]
        lines.append(
            f"{shown:8}{one['median_entanglement']:>21.3f}{one['share_negative']:>16.1%}{one['median_ratio']:>14.3f}"
            f"{one['share_ratio_above_1']:>15.1%}"
        )
    return "\n".join(lines)


def draw(conflicts: list[Conflict], numbers: dict[str, Any]) -> Drawn:
    """Both distributions side by side, as in the paper; rows of all layers behind them."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for column, axes, words in ((0, left, "entanglement g1·g2 / |g2|²"), (1, right, "ratio |g1| / |g2|")):
        by_contrast = {name: _values(conflicts, WHOLE, name)[column] for name in CONTRASTS}
        _histograms(axes, by_contrast, 0.0 if column == 0 else 1.0)
        axes.set(xlabel=words, ylabel="batches")
        axes.margins(y=0.25)
        axes.legend(fontsize=8, loc="upper right")
    left.set_title("Do they pull the same way?")
    right.set_title("Which is the stronger?")
    return Drawn(
        "gradients",
        "Gradients of the contrastive loss against those of the semi-supervised one",
        f"After epoch {numbers['epoch']}, {numbers['batches']} batches, same weights, form and temperature. Left of 0 "
        "the two losses fight each other; right of 1 the contrastive loss is the stronger one.",
        figure,
        Conflict._fields,
        conflicts,
    )


def draw_layers(conflicts: list[Conflict], numbers: dict[str, Any]) -> Drawn:
    """Medians by layer, first layer on top."""
    layers = list(numbers["layers"])
    figure = Figure(figsize=(9, 1.4 + 0.24 * len(layers)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    heights = np.arange(len(layers))
    for place, (name, shown) in enumerate(CONTRASTS.items()):
        for one, key in zip(axes, ("median_entanglement", "median_ratio"), strict=True):
            values = [numbers["layers"][layer][name][key] for layer in layers]
            shift = 0.16 * (2 * place - 1)  # beside each other, so that neither hides the other
            one.plot(values, heights + shift, MARKERS[place], color=COLOURS[place], markersize=5, label=shown)
    for one, line, words in zip(axes, (0, 1), ("median entanglement", "median ratio"), strict=True):
        one.axvline(line, color="black", linewidth=0.8)
        one.set(xlabel=words)
        one.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes[0].set_yticks(heights, layers, fontsize=8)
    axes[0].invert_yaxis()
    axes[1].legend(fontsize=8)
    rows = [[layer, name, *numbers["layers"][layer][name].values()] for layer in layers for name in CONTRASTS]
    header = ["layer", "contrast", *numbers["layers"][layers[0]]["plr"]]
    return Drawn(
        "gradients-by-layer",
        "The same by layer of the backbone",
        "Medians over the batches; the first layer is on top.",
        figure,
        header,
        rows,
    )


def _histograms(axes: Axes, by_contrast: dict[str, NDArray[np.float64]], mark: float) -> None:
    everything = np.concatenate(list(by_contrast.values()))
    bins = np.linspace(min(everything.min(), mark), max(everything.max(), mark), BINS + 1).tolist()
    for place, (name, values) in enumerate(by_contrast.items()):
        label = f"{CONTRASTS[name]} (median {np.median(values):.2f})"
        hatch = "" if place else "///"
        axes.hist(values, bins=bins, color=COLOURS[place], alpha=0.55, label=label, hatch=hatch, edgecolor="white")
    axes.axvline(mark, color="black", linewidth=1)


def are_finite(conflicts: list[Conflict]) -> bool:
    """Whether there is anything to draw for both losses, in every layer that was looked at."""
    parts = {(one.layer, one.contrast) for one in conflicts}
    return bool(parts) and all(_values(conflicts, *part).size for part in parts)


def _values(conflicts: list[Conflict], layer: str, contrast: str) -> NDArray[np.float64]:
    """Entanglements and ratios (2, n); batches without a gradient of L_SST are left out."""
    values = np.array(
        [[one.entanglement, one.ratio] for one in conflicts if one.layer == layer and one.contrast == contrast]
    )
    finite: NDArray[np.float64] = values[np.isfinite(values).all(1)].T
    return finite
