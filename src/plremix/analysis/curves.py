"""Learning curves of several runs in one figure (the paper's first), with the spread over seeds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from plremix.analysis.drawing import COLOURS, MARKERS, STYLES, Drawn, whole_epochs
from plremix.config import Config
from plremix.training.folder import WHERE_IT_RUNS

NOT_SETTINGS = {"seed", "noise_file", *WHERE_IT_RUNS}  # what does not make another kind of run
LONGEST_NAME = 60


class Group(NamedTuple):
    """Runs that differ only in their seed."""

    name: str
    seeds: list[int]
    epochs: NDArray[np.int64]  # (e,) counted from 1
    accuracies: NDArray[np.float64]  # (runs, e); NaN where a run has not got that far


def grouped(runs: list[tuple[Config, list[dict[str, Any]]]]) -> list[Group]:
    """Runs with a test accuracy by recipe, method and settings, in the order in which they were given."""
    members: dict[str, list[tuple[Config, list[dict[str, Any]]]]] = {}
    for config, history in runs:
        if any("test_accuracy" in line for line in history):
            members.setdefault(repr(_settings(config)), []).append((config, history))
    names = _names([group[0][0] for group in members.values()])
    return [_group(name, group) for name, group in zip(names, members.values(), strict=True)]


def draw(groups: list[Group]) -> Drawn:
    """A line a group: the mean over its seeds; the band is one standard deviation to either side."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    rows: list[list[object]] = []
    for place, group in enumerate(groups):
        mean, deviation, count = _spread(group.accuracies)
        colour, style = COLOURS[place % len(COLOURS)], STYLES[place % len(STYLES)]
        seeds = f"{len(group.seeds)} runs" if len(group.seeds) > 1 else f"seed {group.seeds[0]}"
        axes.plot(
            group.epochs,
            100 * mean,
            color=colour,
            linestyle=style,
            marker=MARKERS[place % len(MARKERS)],
            markevery=max(1, len(mean) // 8),
            markersize=5,
            label=f"{group.name} ({seeds})",
        )
        if len(group.seeds) > 1:
            axes.fill_between(
                group.epochs, 100 * (mean - deviation), 100 * (mean + deviation), color=colour, alpha=0.2, linewidth=0
            )
        rows += [
            [group.name, int(epoch), *values]
            for epoch, *values in zip(group.epochs, mean.tolist(), deviation.tolist(), count.tolist(), strict=True)
        ]
    axes.set(xlabel="epoch", ylabel="test accuracy, %", title="Learning curves")
    whole_epochs(axes)
    axes.grid(color="#dddddd", linewidth=0.6)
    figure.legend(loc="outside lower center", fontsize=8, ncols=1)
    return Drawn(
        "curves",
        "Learning curves",
        "Mean over the runs of each kind, with a band of one standard deviation to either side.",
        figure,
        ["run", "epoch", "mean_test_accuracy", "standard_deviation", "runs"],
        rows,
    )


def _group(name: str, members: list[tuple[Config, list[dict[str, Any]]]]) -> Group:
    length = max(len(history) for _, history in members)
    accuracies = np.full((len(members), length), np.nan)
    for row, (_, history) in zip(accuracies, members, strict=True):
        row[: len(history)] = [line.get("test_accuracy", np.nan) for line in history]
    return Group(name, [config.seed for config, _ in members], np.arange(1, length + 1), accuracies)


def _spread(accuracies: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Mean, standard deviation (of a sample; 0 for a single run) and number of runs, by epoch."""
    there = np.isfinite(accuracies)
    count = there.sum(0)
    mean = np.where(there, accuracies, 0).sum(0) / np.maximum(count, 1)
    square = np.where(there, (accuracies - mean) ** 2, 0).sum(0)
    return np.where(count, mean, np.nan), np.sqrt(square / np.maximum(count - 1, 1)), count


def _settings(config: Config) -> dict[str, Any]:
    return {name: value for name, value in config.as_dict().items() if name not in NOT_SETTINGS}


def _names(configs: list[Config]) -> list[str]:
    """Recipe and method, and of the other settings those in which runs of the same recipe and method differ."""
    names = []
    for config in configs:
        settings = _settings(config)
        kin = [_settings(other) for other in configs if (other.recipe, other.method) == (config.recipe, config.method)]
        differing = [name for name in settings if any(one.get(name) != settings[name] for one in kin)]
        words = ", ".join(f"{name} {_shown(settings[name])}" for name in differing)
        name = f"{config.recipe}, {config.method}" + (f", {words}" if words else "")
        names.append(name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…")
    return names


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
