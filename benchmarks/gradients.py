"""Gradient conflict in the middle of real runs: SimCLR and PLR against the semi-supervised loss (docs/analysis.md).

A run is stopped at an epoch and measured there. Each line is the mean over the seeds of what `plremix analyze`
prints for one run; both contrastive losses see the same weights and batches.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import plremix
from plremix.analysis import gradients
from plremix.analysis.opened import OpenedRun
from plremix.memory import keep_freed_memory
from plremix.training.progress import Silent

RUNS = {"PLR": "digits-sym-80", "SimCLR": "digits-sym-80-simclr"}
FORMS = [(True, 0.2), (True, 1.0), (False, 0.2), (False, 1.0)]
COLUMNS = ("median_entanglement", "share_negative", "median_ratio", "share_ratio_above_1", "median_cosine")


def stopped_run(recipe: str, seed: int, epoch: int, folder: Path) -> OpenedRun:
    """A real run with the flat form and without neighbours' votes, interrupted right after an epoch as by Ctrl-C."""

    class StopAt(Silent):
        def epoch(self, metrics: dict[str, Any]) -> None:
            if metrics["epoch"] + 1 == epoch:
                raise KeyboardInterrupt

    out = folder / f"{recipe}-{seed}"
    with contextlib.suppress(KeyboardInterrupt):
        config = replace(plremix.recipe(recipe), seed=seed, flat=True, neighbour_votes=0.0)
        plremix.train(config, out, progress=StopAt)
    return OpenedRun(out)


def measured(run: OpenedRun, flat: bool, temperature: float, batches: int) -> dict[str, Any]:
    method: Any = run.method()
    method.config = replace(method.config, flat=flat, temperature=temperature)
    conflicts = gradients.measure(method, run.epochs_done, batches)
    return gradients.summary(conflicts, method.config, run.epochs_done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epoch", type=int, default=20)
    parser.add_argument("--batches", type=int, default=50, help="of each network")
    chosen = parser.parse_args()
    keep_freed_memory()
    print(
        "| trained with | form | temperature | loss | " + " | ".join(name.replace("_", " ") for name in COLUMNS) + " |"
    )
    print("|---" * (4 + len(COLUMNS)) + "|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for trained, recipe in RUNS.items():
            runs = [stopped_run(recipe, seed, chosen.epoch, Path(scratch)) for seed in range(chosen.seeds)]
            for flat, temperature in FORMS:
                found = [measured(run, flat, temperature, chosen.batches) for run in runs]
                for name, shown in gradients.CONTRASTS.items():
                    cells = [f"{mean(one[name][column] for one in found):.3f}" for column in COLUMNS]
                    form = "flat" if flat else "InfoNCE"
                    print(f"| {trained} | {form} | {temperature:g} | {shown} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
