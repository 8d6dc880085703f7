"""Finding wrong labels: PLReMix beside cleanlab with five-fold cross-validated probabilities of the same network.

    pip install cleanlab
    python benchmarks/detection.py --data-dir DIR      # where fashion_small.npz and cifar10_small.npz are: two hours
    python benchmarks/detection.py --table             # only the table of what is there

Each cell is kept as JSON in benchmarks/results/detection. Both get the same images and labels, and run at the same time
in a process each with half of the cores, so that their seconds compare whatever else the machine does. cleanlab's five
networks train with plain cross-entropy for longer than PLReMix takes, at PLReMix's learning rate (which serves them
better on such images than the one that was chosen on the digits).
"""

from __future__ import annotations

from plremix.memory import keep_freed_memory

keep_freed_memory()

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from cells import keep
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from plremix import load, recipes
from plremix.config import Config
from plremix.training import train

RESULTS = Path(__file__).parent / "results" / "detection"
ROWS = {  # name: file, key of the given labels, or how much symmetric or asymmetric noise
    "fashion sym-20": ("fashion_small.npz", ("symmetric", 0.2)),
    "fashion asym-40": ("fashion_small.npz", ("asymmetric", 0.4)),
    "cifar10 aggre": ("cifar10_small.npz", "aggre"),
    "cifar10 random1": ("cifar10_small.npz", "random1"),
    "cifar10 worst": ("cifar10_small.npz", "worst"),
}
METHODS = {"plremix": "PLReMix", "cleanlab": "cleanlab"}
MEASURES = ("average_precision", "auroc", "precision_at_errors", "corrected_accuracy", "seconds")
FOLD_EPOCHS = 34  # 27 or 28 of them in all five folds take as long as PLReMix; the table shows both times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows, with commas")
    parser.add_argument("--methods", default=",".join(METHODS), help="which of both; one: with all cores")
    parser.add_argument("--table", action="store_true", help="only print the table")
    chosen = parser.parse_args()
    methods = chosen.methods.split(",")
    for row in chosen.rows.split(",") if not chosen.table else []:
        missing = [method for method in methods if not path_of(row, method).exists()]
        if len(methods) > 1:
            side_by_side(chosen.data_dir, row, missing)
        elif missing:
            run(chosen.data_dir, row, missing[0])
    if chosen.table or len(methods) > 1:
        (RESULTS.parent / "detection.md").write_text(table() + "\n")
        print(table())


def side_by_side(folder: Path, row: str, methods: list[str]) -> None:
    """Each in a process of its own, with its share of the cores."""
    threads = str(max(1, (os.cpu_count() or 1) // len(METHODS)))
    words = [sys.executable, __file__, "--data-dir", str(folder), "--rows", row, "--methods"]
    started = [subprocess.Popen([*words, method], env={**os.environ, "OMP_NUM_THREADS": threads}) for method in methods]
    ended = [process.wait() for process in started]
    if any(ended):
        raise SystemExit(f"{row}: not finished")


def path_of(row: str, method: str) -> Path:
    return RESULTS / f"{row}_{method}.json".replace(" ", "-")


def run(folder: Path, row: str, method: str) -> None:
    images, given, truth = read(folder, *ROWS[row])
    about = {
        "row": row,
        "method": method,
        "command": f"python benchmarks/detection.py --data-dir DIR --rows '{row}'",
        "date": date.today().isoformat(),
        "versions": {name: version(name) for name in ("plremix", "torch", "numpy", "cleanlab")},
    }
    work = run_ours if method == "plremix" else run_cleanlab
    result = {**about, **work(images, given, truth)}
    RESULTS.mkdir(parents=True, exist_ok=True)
    keep(path_of(row, method), json.dumps(result, indent=2) + "\n")
    print(row, method, {name: round(result[name], 4) for name in MEASURES}, flush=True)


def read(folder: Path, file: str, noise: str | tuple[str, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images (N, H, W[, 3]), given labels and the truth; added noise is drawn from a fixed seed."""
    with np.load(folder / file, allow_pickle=False) as arrays:
        images, truth = arrays["x_train"], arrays["y_train"].astype(np.int64)
        if isinstance(noise, str):
            return images, arrays[noise].astype(np.int64), truth
    kind, ratio = noise
    draws = np.random.default_rng(0)
    changed = draws.random(len(truth)) < ratio
    other = draws.integers(0, 10, len(truth)) if kind == "symmetric" else (truth + 1) % 10
    return images, np.where(changed, other, truth), truth


def settings_for(images: np.ndarray) -> dict[str, Any]:
    channels = images.shape[3] if images.ndim == 4 else 1
    return recipes.for_own_images(len(images), 10, min(images.shape[1:3]), channels, gpu=False)


def run_ours(images: np.ndarray, given: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        file = write(Path(scratch), images, given)
        began = time.perf_counter()
        config = recipes.own(file, settings_for(images))
        train(config, Path(scratch) / "run")
        seconds = time.perf_counter() - began
        lines = np.genfromtxt(
            Path(scratch) / "run" / "labels.csv", delimiter=",", names=True, dtype=None, encoding="utf-8"
        )
    corrected = np.where(lines["is_label_issue"], lines["predicted_label"].astype(int), given)
    measured = measures(lines["label_score"], corrected, given, truth)
    return {**measured, "seconds": seconds, "epochs": config.epochs}


def run_cleanlab(images: np.ndarray, given: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Five folds, each judged by a network that was trained on the other four."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    began = time.perf_counter()
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(images, given)
    probabilities = np.zeros((len(images), 10))
    for inside, outside in folds:
        probabilities[outside] = probabilities_of(images, given, inside, outside, FOLD_EPOCHS)
    flagged = find_label_issues(given, probabilities)
    scores = get_label_quality_scores(given, probabilities)
    seconds = time.perf_counter() - began
    corrected = np.where(flagged, probabilities.argmax(1), given)
    measured = measures(scores, corrected, given, truth)
    return {**measured, "seconds": seconds, "epochs": FOLD_EPOCHS}


def probabilities_of(
    images: np.ndarray, given: np.ndarray, inside: np.ndarray, outside: np.ndarray, epochs: int
) -> np.ndarray:
    """Of the images outside the fold, by the same network trained inside it with cross-entropy."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        file = write(Path(scratch), images[inside], given[inside])
        config: Config = recipes.own(file, settings_for(images), "cross-entropy", epochs)
        train(replace(config, lr=recipes.OWN["lr"]), Path(scratch) / "run")
        model = load(Path(scratch) / "run")
    pixels = images[outside] if images.ndim == 4 else images[outside][..., None]
    tensor = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()
    return torch.cat([model(part) for part in tensor.split(256)]).numpy()


def write(folder: Path, images: np.ndarray, given: np.ndarray) -> Path:
    file = folder / "data.npz"
    np.savez(file, x_train=images, y_train=given)
    return file


def measures(score: np.ndarray, corrected: np.ndarray, given: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """`score` is low where a label is likely wrong."""
    wrong = given != truth
    worst = np.argsort(score, kind="stable")[: wrong.sum()]
    return {
        "noise_rate": float(wrong.mean()),
        "average_precision": float(average_precision_score(wrong, -score)),
        "auroc": float(roc_auc_score(wrong, -score)),
        "precision_at_errors": float(wrong[worst].mean()),
        "corrected_accuracy": float((corrected == truth).mean()),
    }


def table() -> str:
    """Each row, and the means over those that both have."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in ROWS:
        paths = [path_of(row, method) for method in METHODS]
        if all(path.exists() for path in paths):
            found[row] = [json.loads(path.read_text()) for path in paths]
    lines = [f"| | | {' | '.join(MEASURES)} |", "|---|---|" + "---|" * len(MEASURES)]
    for row, results in found.items():
        lines += [f"| {row} | {METHODS[result['method']]} | {_shown(result)} |" for result in results]
    for index, name in enumerate(METHODS.values() if found else ()):
        means = {key: float(np.mean([results[index][key] for results in found.values()])) for key in MEASURES}
        lines.append(f"| **mean** | {name} | {_shown(means)} |")
    commands = sorted({f"`{result['command']}`" for results in found.values() for result in results})
    return "\n".join([*lines, "", *(f"- {command}" for command in commands)])


def _shown(result: dict[str, Any]) -> str:
    return " | ".join(f"{result[name]:.0f}" if name == "seconds" else f"{result[name]:.1%}" for name in MEASURES)


if __name__ == "__main__":
    main()
