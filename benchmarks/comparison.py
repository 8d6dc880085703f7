"""Every method and every ablation beside each other: same data, networks, noise and seeds.

    python benchmarks/comparison.py methods      # digits, all methods, sym 50 / 80 and asym 40, five seeds and more
    python benchmarks/comparison.py ablation     # digits, sym 80: PLReMix with parts swapped; PLR in other methods
    python benchmarks/comparison.py images --data-dir DIR   # fashion_small.npz and cifar10_small.npz, one seed
    python benchmarks/comparison.py methods --table         # only the table of what is there

A cell is one `plremix train`, kept as JSON in benchmarks/results: an interrupted benchmark goes on with those that are
missing. The table is written beside them as Markdown and CSV, with the command behind each cell.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cells import RESULTS, Cell, as_csv, commands, markdown, run_missing

METHODS = (
    *("cross-entropy", "mixup", "co-teaching", "co-teaching-plus", "jocor", "dividemix", "elr", "elr-plus", "unicon"),
    "plremix",
)
# What the trials (`tuning.py`) found and the digits' recipe has not: there the noise rate decides on lambda_U.
FOUND = {"dividemix": ("--lambda-u", "10"), "unicon": ("--lambda-u", "30")}
DISTORTED = ("--weak-view", "distort", "--lr", "0.01")  # cross-entropy by the trials, no longer the plain one
ABLATION = {  # row: recipe suffix
    "PLR and neighbours": "",  # the digits' default: with their votes
    "PLR": "-plr",  # what is not InfoNCE is a part of FlatPLR changed
    "FlatPLR, falling kappa": "-flatplr",
    "SimCLR": "-simclr",
    "SCL": "-scl",
    "PLR with a queue": "-queue",
    "2-d mixture": "-mixture2d",
    "1-d mixture": "-mixture1d",
    "kappa 3": "-kappa-3",
    "kappa 2": "-kappa-2",
    "kappa 1": "-kappa-1",
    "only y": "-only-y",
}
# Methods with a contrast of none, SimCLR and PLR. PLR's settings are the recipe's; SimCLR's, where they are others,
# are by as many trials (`tuning_plugged.py`).
PLUGGED = ("cross-entropy", "co-teaching-plus", "jocor", "dividemix")
FOUND_SIMCLR = {
    "cross-entropy": ("--temperature", "0.5"),
    "jocor": ("--temperature", "0.5"),
    "dividemix": ("--flat", "--temperature", "1"),
}
CLOSE_METHODS = ("unicon", "plremix")  # at sym-80, where five seeds cannot tell
CLOSE_ROWS = (  # three seeds cannot tell
    *("PLR", "SimCLR"),
    *(f"{method} with {contrast}" for method in PLUGGED if method != "dividemix" for contrast in ("simclr", "plr")),
)
MEASURES = ("best", "last", "corrected_accuracy", "average_precision", "seconds")

# Epochs that fit. PLReMix: as `plremix clean` plans for 5,000 images. DivideMix: the same warm-up, then as many epochs
# as take about the same time (guesses in every step are what they cost). The others' settings: `tuning_images.py`.
SMALL_IMAGES = ["--network", "preact-resnet-small", "--weak-view", "crop-flip"]
STRONG = ["--strong-view", "autoaugment-cifar"]
DIVIDEMIX = ["--method", "dividemix", "--lr", "0.005", "--lambda-u", "10", "--batch-size", "16", "--ramp-epochs", "2"]
DIVIDEMIX += ["--epochs", "28", "--warmup-epochs", "20", "--lr-epochs", "25"]
CO_TEACHING_PLUS = ["--method", "co-teaching-plus", "--lr", "0.0005", "--batch-size", "32"]
PLANNED = ["--batch-size", "16", "--epochs", "45", "--warmup-epochs", "20", "--finish-epochs", "16"]
PLANNED += ["--kappa-epochs", "22,24", "--ramp-epochs", "2", "--neighbour-epochs", "38"]
DATA = {
    "fashion sym-80": ("fashion_small.npz", ["--noise", "symmetric", "--noise-ratio", "0.8", "--truth-key", "y_train"]),
    "cifar10 worst": ("cifar10_small.npz", ["--label-key", "worst", "--truth-key", "y_train"]),
}
IMAGE_ROWS = {
    "cross-entropy": ["--method", "cross-entropy", "--lr", "0.02", "--batch-size", "32", "--epochs", "40"],
    "cross-entropy, as long": ["--method", "cross-entropy", "--lr", "0.02", "--batch-size", "32", "--epochs", "130"],
    "mixup": ["--method", "mixup", "--lr", "0.02", "--batch-size", "64", "--epochs", "40"],
    "co-teaching-plus": [*CO_TEACHING_PLUS, "--epochs", "60", "--plus-epoch", "40"],
    "dividemix": [*DIVIDEMIX, "--strong-view", "crop-flip"],
    "dividemix, strong views": [*DIVIDEMIX, *STRONG, "--learned-view", "strong"],
    "plremix": [*STRONG, *PLANNED],
}
# What the contrast is worth: PLReMix contrasts where many labels seem wrong, as on Fashion-MNIST, and not on CIFAR-10.
ONLY = {
    "plremix, never contrasts": ("fashion sym-80", ["--contrast", "none"]),
    "plremix, always contrasts": ("cifar10 worst", ["--contrast-above", "0"]),
}


def methods(chosen: argparse.Namespace) -> list[Cell]:
    rows = {method: ["--method", method, *FOUND.get(method, ())] for method in METHODS}
    rows["plremix"] = []
    rows["cross-entropy, distorted"] = [*rows["cross-entropy"], *DISTORTED]
    return [
        Cell("methods", row, noise, seed, (f"digits-{noise}", *flags))
        for seed in range(10, 20)  # PLReMix had been run on 10 to 14 once before its last change, the neighbours' votes
        for row, flags in rows.items()
        for noise in ("sym-50", "sym-80", "asym-40")
        if seed < 15 or (row in CLOSE_METHODS and noise == "sym-80")
    ]


def ablation(chosen: argparse.Namespace) -> list[Cell]:
    rows = {row: [f"digits-sym-80{suffix}"] for row, suffix in ABLATION.items()}
    for method in PLUGGED:
        alone = ["digits-sym-80", "--method", method, *FOUND.get(method, ())]
        rows[f"{method} with none"] = alone
        rows[f"{method} with simclr"] = [*alone, "--contrast", "simclr", *FOUND_SIMCLR.get(method, ())]
        rows[f"{method} with plr"] = [*alone, "--contrast", "plr"]
    rows["dividemix, pre-trained"] = [*rows["dividemix with none"], "--pretrain", "simclr"]
    return [
        Cell("ablation", row, "sym-80", seed, tuple(words))
        for seed in range(10)
        for row, words in rows.items()
        if seed < 3 or row in CLOSE_ROWS
    ]


def images(chosen: argparse.Namespace) -> list[Cell]:
    places = [(row, name, flags) for name in DATA for row, flags in IMAGE_ROWS.items()]
    places += [(row, name, [*IMAGE_ROWS["plremix"], *flags]) for row, (name, flags) in ONLY.items()]
    return [
        Cell("images", row, name, 0, (str(chosen.data_dir / DATA[name][0]), *DATA[name][1], *SMALL_IMAGES, *flags))
        for row, name, flags in places
    ]


GRIDS = {"methods": methods, "ablation": ablation, "images": images}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", choices=list(GRIDS))
    parser.add_argument("--data-dir", type=Path, default=Path("data"), help="where the .npz files of `images` are")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at a time")
    parser.add_argument("--table", action="store_true", help="only make the table")
    chosen = parser.parse_args()
    cells = GRIDS[chosen.grid](chosen)
    if not chosen.table:
        run_missing(cells, chosen.jobs)
    table = markdown(cells, MEASURES)
    (RESULTS / f"{chosen.grid}.md").write_text(f"{table}\n\n{commands(cells)}\n")
    (RESULTS / f"{chosen.grid}.csv").write_text(as_csv(cells))
    print(table)


if __name__ == "__main__":
    main()
