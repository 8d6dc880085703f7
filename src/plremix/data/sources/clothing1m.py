"""Clothing1M: a million shop pictures in 14 classes with labels from the text around them, about 38 % of them wrong.

The layout is the official one: `images/0` to `images/9`, and the lists beside them or in `annotations/`. The clean
validation set is looked at after every epoch, the clean test set once, after the last.
"""

from __future__ import annotations

from pathlib import Path

from plremix.data.dataset import LabelledImages
from plremix.data.sources import published
from plremix.data.sources.published import Entries, Skipped
from plremix.errors import InputError

TITLE = "Clothing1M"
FOLDERS = ("clothing1m", "Clothing1M", "clothing1M")
CLASSES = (
    "T-Shirt",
    "Shirt",
    "Knitwear",
    "Chiffon",
    "Sweater",
    "Hoodie",
    "Windbreaker",
    "Jacket",
    "Down Coat",
    "Suit",
    "Shawl",
    "Dress",
    "Vest",
    "Underwear",
)
PIXELS = ((0.6959, 0.6537, 0.6371), (0.3113, 0.3192, 0.3214))  # mean and deviation, published code
LISTS = {  # which images, and the labels of (at least) those
    "train": ("noisy_train_key_list.txt", "noisy_label_kv.txt"),
    "validation": ("clean_val_key_list.txt", "clean_label_kv.txt"),
    "test": ("clean_test_key_list.txt", "clean_label_kv.txt"),
}


def load(data_dir: Path, side: int, resize: int = 0, *, stream: str = "auto") -> LabelledImages:
    """The noisy training images, and the clean validation and test images."""
    names = dict.fromkeys(name for pair in LISTS.values() for name in pair)
    root = published.find_root(TITLE, data_dir, FOLDERS, [*map(_places, names), ("images",)])
    skipped: Skipped = []
    sets: dict[str, Entries] = {}
    labels = {name: _labels(root, name) for name in dict.fromkeys(name for _, name in LISTS.values())}
    for part, (keys, values) in LISTS.items():
        source = _found(root, keys)
        entries, unlabelled = _with_labels(source, labels[values], values)
        sets[part], missing = published.only_present(TITLE, root, entries, source)
        skipped += unlabelled + missing
    return LabelledImages(
        images=sets["train"].files(root, side, resize, stream),
        given_labels=sets["train"].classes(),
        true_labels=None,
        test_images=sets["test"].files(root, side, resize, stream),
        test_labels=sets["test"].classes(),
        classes=CLASSES,
        ids=tuple(sets["train"].names),
        skipped=tuple(skipped),
        validation=sets["validation"].trusted(root, side, resize, stream),
        pixel_statistics=PIXELS,
    )


def _places(name: str) -> tuple[str, str]:
    return name, f"annotations/{name}"


def _found(root: Path, name: str) -> Path:
    return published.first_of(root, _places(name)) or root / name


def _labels(root: Path, name: str) -> dict[str, int]:
    source = _found(root, name)
    entries = published.read_labels(source)
    published.check_labels(entries, len(CLASSES), source)
    return dict(zip(entries.names, entries.labels, strict=True))


def _with_labels(source: Path, labels: dict[str, int], values: str) -> tuple[Entries, Skipped]:
    """The images of a list that have a label, and the others with the reason."""
    entries, skipped = Entries(), []
    for name in published.read_names(source):
        if name in labels:
            entries.add(labels[name], name)
        else:
            skipped.append((name, f"it has no label in {values}"))
    if len(skipped) > len(entries.names):
        raise InputError(f"{len(skipped):,} images of {source} have no label in {values}: is that list whole?")
    return entries, skipped
