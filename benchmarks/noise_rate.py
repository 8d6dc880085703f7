"""The noise rate as every method estimates it after warm-up, beside the truth.

    python benchmarks/noise_rate.py

Digits, all methods, 20, 50 and 80 % symmetric and 40 % asymmetric noise, three seeds. The
estimate is made before epochs of its own (`noise_rate_after_warmup` in metrics.jsonl), so runs end after those, with
the schedules of whole ones. A JSON file a run in benchmarks/results/noise_rate, so that it goes on after an
interruption; prints the table, and writes it beside them. About ten minutes on two cores.
"""

from __future__ import annotations

import json
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path

import torch
from cells import RESULTS, keep, source
from comparison import METHODS

from plremix import recipes, train
from plremix.training import setup

NOISES = ("sym-20", "sym-50", "sym-80", "asym-40")
SEEDS = (10, 11, 12)


def main() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(measure, *zip(*product(SEEDS, METHODS, NOISES), strict=True)))
    lines = [f"| | {' | '.join(NOISES)} |", "|---|" + "---|" * len(NOISES)]
    for method in METHODS:
        lines.append(f"| {method} | {' | '.join(_shown(method, noise) for noise in NOISES)} |")
    kept = [json.loads(_file(*place).read_text()) for place in product(SEEDS, METHODS, NOISES)]
    last = max(one["date"] for one in kept)
    made = f"Estimate minus truth in points, mean and largest of {len(SEEDS)} seeds; digits, {last}."
    table = "\n".join([*lines, "", f"{made} Off by {max(abs(_error(one)) for one in kept):.1f} at most."])
    keep(RESULTS / "noise_rate.md", table + "\n")
    print(table)


def measure(seed: int, method: str, noise: str) -> None:
    """Run what has no file yet."""
    if _file(seed, method, noise).exists():
        return
    torch.set_num_threads(1)
    whole = recipes.build(f"digits-{noise}", method)
    read = getattr(whole, "forget_epochs", whole.warmup_epochs)
    length = read + getattr(setup.METHODS[method], "judged_epochs", 1)
    if method == "elr-plus":  # how slow its copies are goes by the length
        length = whole.epochs
    period = whole.lr_period or whole.scheduled_epochs
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        summary = train(replace(whole, seed=seed, epochs=length, lr_period=period), folder)
        noted = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    estimates = [line["noise_rate_after_warmup"] for line in noted if "noise_rate_after_warmup" in line]
    content = {
        "estimate": estimates[-1],
        "truth": summary["noise_rate"],
        "date": date.today().isoformat(),
        "source": source(),
        "torch": str(torch.__version__),
    }
    keep(_file(seed, method, noise), json.dumps(content, indent=2) + "\n")


def _file(seed: int, method: str, noise: str) -> Path:
    return RESULTS / "noise_rate" / f"{noise}_{method}_seed{seed}.json"


def _error(kept: dict[str, float]) -> float:
    """In points."""
    return 100 * (kept["estimate"] - kept["truth"])


def _shown(method: str, noise: str) -> str:
    errors = [_error(json.loads(_file(seed, method, noise).read_text())) for seed in SEEDS]
    return f"{sum(errors) / len(errors):+.1f} ({max(errors, key=abs):+.1f})"


if __name__ == "__main__":
    main()
