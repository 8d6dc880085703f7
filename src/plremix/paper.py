"""The numbers of the paper's seven tables, as they stand there, and the recipe of each cell that we have a method for.

Test accuracy in per cent; `-` where the paper has none. A row without a method is a number from the literature that
nothing here can fill yet.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of a table: `recipe` is what its cells are trained with, where the row does not say more."""

    label: str
    recipe: str
    measure: str = ""  # where all rows measure the same


@dataclass(frozen=True)
class Row:
    """A row: numbers in the order of the columns, and what of ours fills it."""

    label: str
    numbers: str
    measure: str = ""
    method: str = ""  # empty: we do not have it
    suffix: str = ""  # of the recipe's name

    def values(self) -> list[str]:
        return self.numbers.split()


@dataclass(frozen=True)
class Table:
    """One table of the paper; `label` is its name in the LaTeX source."""

    title: str
    label: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def _both(label: str, best: str, last: str, method: str = "", suffix: str = "") -> tuple[Row, Row]:
    return Row(label, best, "best", method, suffix), Row(label, last, "last", method, suffix)


def _noises(data: str, *noises: str) -> tuple[Column, ...]:
    return tuple(Column(f"{data} {noise}", f"{data}-{noise}") for noise in noises)


_CIFAR = ("sym-20", "sym-50", "sym-80", "sym-90", "asym-40")

TABLES: dict[str, Table] = {
    "cifar": Table(
        "CIFAR-10 and CIFAR-100",
        "tb:results",
        _noises("cifar10", *_CIFAR) + _noises("cifar100", *_CIFAR),
        (
            *_both(
                "Cross-entropy",
                "86.8 79.4 62.9 42.7 85.0 62.0 46.7 19.9 10.1 44.5",
                "82.7 57.9 26.1 16.8 72.3 61.8 37.3 8.8 3.5 -",
                "cross-entropy",
            ),
            *_both(
                "MixUp",
                "95.6 87.1 71.6 52.2 - 67.8 57.3 30.8 14.6 48.1",
                "92.3 77.3 46.7 43.9 77.7 66.0 46.6 17.6 8.1 -",
                "mixup",
            ),
            *_both(
                "Co-teaching+",
                "89.5 85.7 67.4 47.9 - 65.6 51.8 27.9 13.7 -",
                "88.2 84.1 45.5 30.1 - 64.1 45.3 15.5 8.8 -",
                "co-teaching-plus",
            ),
            *_both(
                "DivideMix",
                "96.1 94.6 93.2 76.0 93.4 77.3 74.6 60.2 31.5 55.1",
                "95.7 94.4 92.9 75.4 92.1 76.9 74.2 59.6 31.0 -",
                "dividemix",
            ),
            Row("ELR+", "95.8 94.8 93.3 78.7 93.3 77.6 73.6 60.8 33.4 73.2", "best", "elr-plus"),
            Row("MOIT+", "94.1 91.8 81.1 74.7 93.3 75.9 70.6 47.6 41.8 74.0", "best"),
            Row("Sel-CL+ (pre-trained)", "95.5 93.9 89.2 81.9 93.4 76.5 72.4 59.6 48.8 72.7", "best"),
            Row("UNICON", "96.0 95.6 93.9 90.8 94.1 78.9 77.6 63.9 44.8 74.8", "best", "unicon"),
            *_both(
                "ScanMix (pre-trained)",
                "96.0 94.5 93.5 91.0 93.7 77.0 75.7 66.0 58.5 -",
                "95.7 93.9 92.6 90.3 93.4 76.0 75.4 65.0 58.2 -",
            ),
            Row("TCL", "95.0 93.9 92.5 89.4 92.7 78.0 73.3 65.0 54.5 -", "best"),
            *_both(
                "PLReMix without the 2-d mixture",
                "96.38 95.63 94.89 92.36 95.42 78.08 76.94 69.27 48.97 66.49",
                "96.18 95.31 94.70 92.16 94.98 77.66 76.70 68.96 48.66 61.25",
                "plremix",
                "-mixture1d",
            ),
            *_both(
                "PLReMix",
                "96.63 95.71 95.08 92.74 95.11 77.95 77.78 68.76 50.17 64.89",
                "96.46 95.36 94.84 92.43 94.72 77.78 77.31 68.41 49.44 62.67",
                "plremix",
            ),
        ),
    ),
    "tiny-imagenet": Table(
        "Tiny-ImageNet",
        "tb:tiny",
        _noises("tiny-imagenet", "sym-0", "sym-20", "sym-50", "sym-80", "asym-45"),
        (
            *_both("Cross-entropy", "57.4 35.8 19.8 - 26.3", "56.7 35.6 19.6 - 26.2", "cross-entropy"),
            *_both("Co-teaching+", "52.4 48.2 41.8 - 26.9", "52.1 47.7 41.2 - 26.5", "co-teaching-plus"),
            *_both("M-correction", "57.7 57.2 51.6 - 24.8", "57.2 56.6 51.3 - 24.1"),
            *_both("UNICON", "63.1 59.2 52.7 - -", "62.7 58.4 52.4 - -", "unicon"),
            *_both("PLReMix", "62.93 60.70 54.94 37.47 33.97", "62.46 60.39 54.31 36.43 33.25", "plremix"),
        ),
    ),
    "clothing1m": Table(
        "Clothing1M, after the last epoch",
        "tb:clothing1m",
        (Column("accuracy", "clothing1m", "test_accuracy"),),
        (
            Row("Cross-entropy", "69.21", method="cross-entropy"),
            Row("Joint-Optim", "72.16"),
            Row("P-correction", "73.49"),
            Row("DivideMix", "74.76", method="dividemix"),
            Row("ELR+", "74.81", method="elr-plus"),
            Row("C2D (pre-trained)", "74.30", method="dividemix", suffix="-pretrained"),
            Row("UNICON", "74.95", method="unicon"),
            Row("ScanMix (pre-trained)", "74.35"),
            Row("TCL", "74.8"),
            Row("PLReMix", "74.85", method="plremix"),
        ),
    ),
    "webvision": Table(
        "WebVision, first 50 classes; the best epoch of each column",
        "tb:webvision",
        (
            Column("WebVision top-1", "webvision", "test_accuracy"),
            Column("WebVision top-5", "webvision", "test_top5"),
            Column("ILSVRC12 top-1", "webvision", "ilsvrc12_accuracy"),
            Column("ILSVRC12 top-5", "webvision", "ilsvrc12_top5"),
        ),
        (
            Row("Co-teaching", "63.6 85.2 61.5 84.7", method="co-teaching"),
            Row("DivideMix", "77.3 91.6 75.2 90.8", method="dividemix"),
            Row("ELR+", "77.8 91.7 70.3 89.8", method="elr-plus"),
            Row("UNICON", "77.6 93.4 75.3 93.7", method="unicon"),
            Row("TCL", "79.1 92.3 75.4 92.4"),
            Row("ScanMix (pre-trained)", "80.0 93.0 75.8 92.6"),
            Row("PLReMix", "81.49 93.79 77.75 93.08", method="plremix"),
        ),
    ),
    "combination": Table(
        "PLR and SimCLR in other methods, CIFAR-10",
        "tb:scalability",
        _noises("cifar10", "sym-20", "sym-50", "asym-40"),
        tuple(
            Row(f"{label}{' with ' if contrast else ''}{contrast}", numbers, "last", method, f"-{method}{suffix}")
            for label, method, contrast, suffix, numbers in [
                ("Co-teaching+", "co-teaching-plus", "", "", "88.73 77.52 68.64"),
                ("Co-teaching+", "co-teaching-plus", "SimCLR", "-simclr", "88.62 80.24 68.86"),
                ("Co-teaching+", "co-teaching-plus", "PLR", "-plr", "90.28 85.68 70.92"),
                ("JoCoR", "jocor", "", "", "88.13 80.94 75.48"),
                ("JoCoR", "jocor", "SimCLR", "-simclr", "84.76 78.81 78.56"),
                ("JoCoR", "jocor", "PLR", "-plr", "89.34 83.46 81.46"),
            ]
        ),
    ),
    "ablation": Table(
        "The contrast of PLReMix swapped",
        "tb:ablation",
        _noises("cifar10", "sym-50", "sym-80", "sym-90") + _noises("cifar100", "sym-50", "sym-80", "sym-90"),
        (
            *_both("FlatPLR", "95.71 95.08 92.74 77.78 68.76 50.17", "95.36 94.84 92.43 77.31 68.41 49.44", "plremix"),
            *_both(
                "PLR", "95.71 93.58 91.71 75.64 66.98 50.78", "95.31 93.39 91.46 75.39 66.76 50.54", "plremix", "-plr"
            ),
            *_both(
                "SimCLR",
                "93.44 90.44 86.80 73.10 63.50 47.76",
                "93.23 90.28 86.51 72.32 63.02 46.81",
                "plremix",
                "-simclr",
            ),
            *_both(
                "SCL", "94.37 93.41 91.24 72.55 68.43 54.07", "94.08 93.11 91.00 72.18 68.03 53.72", "plremix", "-scl"
            ),
        ),
    ),
    "kappa": Table(
        "kappa, CIFAR-10 at 80 % symmetric noise",
        "tab:ablation_k",
        (
            Column("kappa = 3", "cifar10-sym-80-kappa-3"),
            Column("kappa = 2", "cifar10-sym-80-kappa-2"),
            Column("kappa = 1", "cifar10-sym-80-kappa-1"),
            Column("only y", "cifar10-sym-80-only-y"),
            Column("falling", "cifar10-sym-80"),
        ),
        _both("PLReMix", "91.83 93.93 93.74 94.74 95.08", "91.29 92.81 93.60 94.58 94.84", "plremix"),
    ),
}
