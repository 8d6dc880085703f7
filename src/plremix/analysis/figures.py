"""All figures of a run, one after the other; what cannot be made is left out with a sentence that says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from plremix.analysis import curves, embeddings, gradients, mixture, negatives
from plremix.analysis.drawing import Drawn, Left, write
from plremix.analysis.opened import OpenedRun
from plremix.config import CoDivideConfig
from plremix.doctor import Finding, examine
from plremix.errors import InputError
from plremix.methods.codivide import CoDivide
from plremix.report import add_figures, figures
from plremix.training.files import write_text
from plremix.training.run import facts_of

NOT_WANTED = "few labels seemed wrong, so nothing was contrasted (--contrast-above)"


class Analysis(NamedTuple):
    """What was made, what was not and why, and what there is to say."""

    written: list[Path]
    left: list[Left]
    table: str  # the gradients; empty without
    findings: list[Finding]


def analyze(
    path: Path,
    out: Path | None = None,
    *,
    batches: int = 50,
    per_layer: bool = False,
    flat: bool | None = None,
    temperature: float | None = None,
    mixture_epochs: tuple[int, ...] = (),
    embedding: Literal["tsne", "pca"] = "tsne",
) -> Analysis:
    """Write the figures of a run to `out`, or into the run folder, whose report then shows them too."""
    if batches < 1:
        raise InputError(f"--batches must be at least 1, got {batches}")
    if temperature is not None and not temperature > 0:
        raise InputError(f"--temperature must be above 0, got {temperature}")
    run = OpenedRun(path)
    folder = out or run.folder.analysis
    numbers: dict[str, Any] = {}
    made: list[Drawn] = []
    left: list[Left] = []
    parts = (
        _curves(run),
        _negatives(run),
        _mixture(run, mixture_epochs),
        _gradients(run, numbers, batches, per_layer, flat, temperature),
        _embeddings(run, embedding),
    )
    for part in parts:
        for one in part:
            made.append(one) if isinstance(one, Drawn) else left.append(one)
    written = [file for drawn in made for file in write(drawn, folder)]
    if numbers:
        written.append(folder / "gradients.json")
        write_text(written[-1], json.dumps(numbers, indent=2) + "\n")
    if out is None and run.folder.report.exists():
        shown = [drawn for drawn in made if drawn.name != "curves"]  # those are in the report already
        add_figures(run.folder.report, [(one.title, one.caption, figures.svg(one.figure)) for one in shown])
        written.append(run.folder.report)
    findings = examine(run.config.as_dict(), run.history, facts_of(run.data))
    return Analysis(written, left, gradients.table(numbers) if numbers else "", findings)


def compare(paths: list[Path], out: Path) -> Analysis:
    """The learning curves of several runs in one figure."""
    runs = [OpenedRun(path) for path in paths]
    groups = curves.grouped([(run.config, run.history) for run in runs])
    if not groups:
        return Analysis([], [Left("curves", "none of the runs has a test accuracy")], "", [])
    return Analysis(write(curves.draw(groups), out), [], "", [])


# --- the parts ---


def _curves(run: OpenedRun) -> Iterator[Drawn | Left]:
    groups = curves.grouped([(run.config, run.history)])
    yield curves.draw(groups) if groups else Left("curves", "the run has no test set, or no finished epoch")


def _negatives(run: OpenedRun) -> Iterator[Drawn | Left]:
    if any("negative_selected" in line for line in run.history):
        yield negatives.draw(run.config, run.history)
    elif run.config.contrast == "none":
        yield Left("negatives", "the run has no contrastive loss, so it selects no pairs")
    elif any("noise_rate_by_neighbours" in line for line in run.history):
        yield Left("negatives", NOT_WANTED)
    else:
        yield Left("negatives", "no epoch of the run has counted its pairs")


def _mixture(run: OpenedRun, epochs: tuple[int, ...]) -> Iterator[Drawn | Left]:
    snapshots = run.folder.read_snapshots()
    if snapshots:
        yield mixture.draw(snapshots, mixture.chosen_epochs(list(snapshots), epochs))
    elif isinstance(run.config, CoDivideConfig):
        yield Left("mixture", "no epoch after warm-up is finished, or the run is of an earlier version")
    else:
        yield Left("mixture", f"{run.config.method} does not split the samples into clean and noisy")


def _gradients(
    run: OpenedRun,
    numbers: dict[str, Any],
    batches: int,
    per_layer: bool,
    flat: bool | None,
    temperature: float | None,
) -> Iterator[Drawn | Left]:
    """Also fills in `numbers`."""
    config = run.config
    if not isinstance(config, CoDivideConfig):
        yield Left("gradients", f"{config.method} has no semi-supervised loss")
    elif not run.has_checkpoint:
        yield Left("gradients", "the run has no checkpoint (checkpoint/last.pt)")
    elif run.epochs_done < config.warmup_epochs:
        yield Left("gradients", f"the run is in epoch {run.epochs_done} of {config.warmup_epochs} of its warm-up")
    else:
        method = run.method()
        assert isinstance(method, CoDivide)
        if method.contrast_wanted is False:
            yield Left("gradients", NOT_WANTED)
            return
        method.config = replace(
            config,
            flat=config.flat if flat is None else flat,
            temperature=config.temperature if temperature is None else temperature,
        )
        conflicts = gradients.measure(method, run.epochs_done, batches, per_layer)
        if not gradients.are_finite(conflicts):
            yield Left("gradients", "no batch has finite gradients: the weights are lost")
            return
        numbers.update(gradients.summary(conflicts, method.config, run.epochs_done))
        yield gradients.draw(conflicts, numbers)
        if per_layer:
            yield gradients.draw_layers(conflicts, numbers)


def _embeddings(run: OpenedRun, how: Literal["tsne", "pca"]) -> Iterator[Drawn | Left]:
    if not run.has_checkpoint:
        yield Left("embeddings", "the run has no checkpoint (checkpoint/last.pt)")
        return
    rows = embeddings.some_rows(len(run.data))
    vectors, predicted = embeddings.look(run.method(), rows)
    known = run.is_wrong is not None
    wrong = run.is_wrong[rows] if run.is_wrong is not None else predicted != run.data.given_labels.numpy()[rows]
    flat = embeddings.flatten(vectors, how)
    yield embeddings.draw(run.data, rows, flat, predicted, np.asarray(wrong), known, how)
