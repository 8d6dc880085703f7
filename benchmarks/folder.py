"""A folder of PNG files with wrong labels, as a user has it: `plremix clean` beside the same network on true labels.

    python benchmarks/folder.py --data-dir DIR         # where fashion_small.npz is: half an hour on two cores

5,000 Fashion-MNIST images in a sub-folder a class; 30 % lie in another class's. `plremix clean FOLDER --test FOLDER`,
nothing else told, is timed from the command to the report. Then plain cross-entropy learns the true labels for as long,
with the same network and views. Both parts are kept in benchmarks/results/folder.json; what is there is not run again.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from cells import RESULTS
from PIL import Image
from sklearn.metrics import average_precision_score, roc_auc_score

NAMES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
WRONG = 0.3
TRIAL = 4  # epochs that say how many fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    with np.load(parser.parse_args().data_dir / "fashion_small.npz", allow_pickle=False) as arrays:
        images, truth, test_images, test_labels = (arrays[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    draws = np.random.default_rng(0)
    given = np.where(draws.random(len(truth)) < WRONG, (truth + draws.integers(1, 10, len(truth))) % 10, truth)
    file = RESULTS / "folder.json"
    result: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    result |= {"command": "python benchmarks/folder.py --data-dir DIR", "wrong": float((given != truth).mean())}
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        write_tree(here / "given", images, given)
        write_tree(here / "true", images, truth)
        write_tree(here / "test", test_images, test_labels)
        if "plremix clean" not in result:
            result["plremix clean"] = clean(here, truth)
            file.write_text(json.dumps(result, indent=2) + "\n")
        if "true labels" not in result:
            result["true labels"] = on_true_labels(here, result["plremix clean"])
            file.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def clean(here: Path, truth: np.ndarray) -> dict[str, Any]:
    """The user's command, from its start to the report."""
    began = time.perf_counter()
    plremix("clean", here / "given", "--test", here / "test", "--out", here / "run")
    seconds = time.perf_counter() - began
    assert (here / "run" / "report.html").exists()
    summary, chosen = (json.loads((here / "run" / name).read_text()) for name in ("summary.json", "config.json"))
    settings = {name: chosen[name] for name in ("epochs", "batch_size", "network", "image_size", "weak_view")}
    return {
        "date": date.today().isoformat(),
        "versions": chosen["versions"],
        "seconds": seconds,
        **found(here / "run" / "labels.csv", truth),
        **accuracies(summary),
        "noise_rate_estimate": summary["noise_rate_estimate"],
        **settings,
    }


def on_true_labels(here: Path, chosen: dict[str, Any]) -> dict[str, Any]:
    """Cross-entropy with the same network and views, for as many epochs as fit into that time."""
    words = ["train", here / "true", "--method", "cross-entropy", "--lr", "0.05", "--test", here / "test"]
    words += ["--batch-size", str(2 * chosen["batch_size"]), "--network", chosen["network"], "--channels", "1"]
    words += ["--image-size", str(chosen["image_size"]), "--weak-view", chosen["weak_view"]]
    plremix(*words, "--epochs", str(TRIAL), "--out", here / "trial")
    trial = json.loads((here / "trial" / "summary.json").read_text())
    epochs = round(chosen["seconds"] / (trial["seconds"] / TRIAL))
    plremix(*words, "--epochs", str(epochs), "--out", here / "upper")
    summary = json.loads((here / "upper" / "summary.json").read_text())
    return {
        "date": date.today().isoformat(),
        "seconds": summary["seconds"],
        "epochs": epochs,
        **accuracies(summary),
    }


def write_tree(folder: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """A file an image, named by its number."""
    for name in NAMES:
        (folder / name).mkdir(parents=True)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        Image.fromarray(image).save(folder / NAMES[label] / f"{number:05d}.png")


def plremix(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "plremix", *map(str, words), "--quiet"], check=True)


def accuracies(summary: dict[str, Any]) -> dict[str, float]:
    return {name: summary[name] for name in ("best", "last", "final")}


def found(labels: Path, truth: np.ndarray) -> dict[str, float]:
    """How well wrong labels were found; the number in a file's name says which image it is."""
    with open(labels, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    true = np.array([NAMES[truth[int(Path(line["id"]).stem)]] for line in lines])
    given, predicted = (np.array([line[name] for line in lines]) for name in ("given_label", "predicted_label"))
    flagged = np.array([line["is_label_issue"] == "True" for line in lines])
    score = np.array([float(line["label_score"]) for line in lines])
    wrong = given != true
    return {
        "average_precision": float(average_precision_score(wrong, -score)),
        "auroc": float(roc_auc_score(wrong, -score)),
        "flagged": float(flagged.mean()),
        "precision": float(wrong[flagged].mean()),
        "recall": float(flagged[wrong].mean()),
        "corrected_accuracy": float((np.where(flagged, predicted, given) == true).mean()),
    }


if __name__ == "__main__":
    main()
