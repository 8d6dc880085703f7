"""The noise rate as every method estimates it after warm-up, beside the truth.

    python benchmarks/noise_rate.py

Digits, all methods, 20, 50 and 80 % symmetric and 40 % asymmetric noise, seed 10. The estimate is made before an epoch
of its own (`noise_rate_after_warmup` in metrics.jsonl), so runs end after it, with the schedules of whole ones. Prints
the table, and writes it to benchmarks/results/noise_rate.md; about five minutes on two cores.
"""

from __future__ import annotations

import json
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

import torch
from cells import RESULTS, keep
from comparison import METHODS

from plremix import recipes, train

NOISES = ("sym-20", "sym-50", "sym-80", "asym-40")
SEED = 10


def main() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        rates = list(pool.map(measure, *zip(*((method, noise) for method in METHODS for noise in NOISES), strict=True)))
    lines = [f"| | {' | '.join(NOISES)} |", "|---|" + "---|" * len(NOISES)]
    for row, method in enumerate(METHODS):
        of_method = rates[row * len(NOISES) : (row + 1) * len(NOISES)]
        lines.append(f"| {method} | {' | '.join(f'{estimate:.1%} ({truth:.1%})' for estimate, truth in of_method)} |")
    largest = max(abs(estimate - truth) for estimate, truth in rates)
    made = f"Estimate (truth), digits, seed {SEED}; {date.today()}, torch {torch.__version__}."
    table = "\n".join([*lines, "", f"{made} Off by {100 * largest:.1f} points at most."])
    keep(RESULTS / "noise_rate.md", table + "\n")
    print(table)


def measure(method: str, noise: str) -> tuple[float, float]:
    """Estimated and true share of wrong labels."""
    torch.set_num_threads(1)
    whole = recipes.build(f"digits-{noise}", method)
    read = getattr(whole, "forget_epochs", whole.warmup_epochs)
    length = whole.epochs if method == "elr-plus" else read + 1  # how slow its copies are goes by the length
    period = whole.lr_period or whole.scheduled_epochs
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        summary = train(replace(whole, seed=SEED, epochs=length, lr_period=period), folder)
        noted = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return noted[read]["noise_rate_after_warmup"], summary["noise_rate"]


if __name__ == "__main__":
    main()
