"""WebVision 1.0: pictures that a search engine gave for 1,000 words, labelled by the word; about 20 % are wrong.

The layout is the official one. The paper takes the first 50 classes of Google's pictures, and tests on WebVision's
validation set and on the same classes of ILSVRC12's (`imagenet/val/<wnid>/`, in the same folder or beside it).
"""

from __future__ import annotations

import logging
from pathlib import Path

from plremix.data.dataset import LabelledImages, TrustedImages
from plremix.data.sources import published
from plremix.data.sources.published import Entries
from plremix.errors import InputError, some_of

log = logging.getLogger("plremix")

TITLE = "WebVision 1.0"
FOLDERS = ("webvision", "WebVision", "webvision1.0")
LISTS = {
    "google": ["info/train_filelist_google.txt"],
    "all": ["info/train_filelist_google.txt", "info/train_filelist_flickr.txt"],
}
VALIDATION, VALIDATION_IMAGES, SYNSETS = "info/val_filelist.txt", "val_images_256", "info/synsets.txt"
ILSVRC12 = "imagenet/val"


def load(
    data_dir: Path,
    side: int,
    resize: int = 0,
    *,
    first_classes: int = 0,
    subset: str = "google",
    stream: str = "auto",
) -> LabelledImages:
    """Training images of the first classes (0: of all), WebVision's test images, and ILSVRC12's if they are there."""
    parts = [(name,) for name in (*LISTS[subset], VALIDATION, VALIDATION_IMAGES)]
    root = published.find_root(TITLE, data_dir, FOLDERS, parts)
    words = published.read_words(published.first_of(root, (SYNSETS,)))
    listed = {name: published.read_labels(root / name) for name in LISTS[subset]}
    known = len(words) or 1 + max(max(entries.labels, default=0) for entries in listed.values())
    count = first_classes or known
    if known < 2:
        raise InputError(f"{TITLE} in {root} has one class in its lists; at least two are needed")
    if count > known:
        raise InputError(f"--first-classes {count}: {TITLE} in {root} has only {known} classes")

    train, skipped = Entries(), []
    for name, entries in listed.items():
        published.check_labels(entries, known, root / name)
        present, missing = published.only_present(TITLE, root, _first(entries, count), root / name)
        train.names.extend(present.names)
        train.labels.extend(present.labels)
        skipped += missing
    validation = _first(published.read_labels(root / VALIDATION), count)
    test, missing = published.only_present(TITLE, root / VALIDATION_IMAGES, validation, root / VALIDATION)
    second = _ilsvrc12(root, list(words)[:count], side, resize, stream)
    return LabelledImages(
        images=train.files(root, side, resize, stream),
        given_labels=train.classes(),
        true_labels=None,
        test_images=test.files(root / VALIDATION_IMAGES, side, resize, stream),
        test_labels=test.classes(),
        classes=tuple(words.values())[:count] if words else tuple(map(str, range(count))),
        ids=tuple(train.names),
        skipped=(*skipped, *((f"{VALIDATION_IMAGES}/{name}", reason) for name, reason in missing)),
        other_tests={} if second is None else {"ilsvrc12": second},
        pixel_statistics=published.IMAGENET_PIXELS,
    )


def _first(entries: Entries, count: int) -> Entries:
    """The entries of the first `count` classes."""
    kept = Entries()
    for name, label in zip(entries.names, entries.labels, strict=True):
        if label < count:
            kept.add(label, name)
    return kept


def _ilsvrc12(root: Path, wnids: list[str], side: int, resize: int, stream: str) -> TrustedImages | None:
    """ILSVRC12's validation images of the same classes; None, and a word on it, where they are not there."""
    places = [root / ILSVRC12, root.absolute().parent / ILSVRC12]
    place = next((place for place in places if place.is_dir()), None)
    if place is None or not wnids:
        lacking = f"{SYNSETS} in {root}" if place else f"{places[0]} or {places[1]}"
        log.warning("no test on ILSVRC12's validation set: there is no %s", lacking)
        return None
    found, without = Entries(), []
    for label, wnid in enumerate(wnids):
        names = published.image_names(place / wnid)
        found.add(label, *(f"{wnid}/{name}" for name in names))
        if not names:
            without.append(wnid)
    if without:
        raise InputError(
            f"ILSVRC12's validation set in {place} has no images of {len(without)} of the {len(wnids)} classes "
            f"({some_of(without)}): sort it into a folder a class, or move it away to do without it"
        )
    return found.trusted(place, side, resize, stream)
