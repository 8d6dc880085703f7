"""Tiny-ImageNet-200: 100,000 pictures of 64x64 pixels in 200 classes, and 10,000 validation pictures to test on.

The tree is the official one, or one whose validation pictures are sorted into class folders. Classes are numbered in
the order of their sorted WordNet ids, and pictures in that of their sorted names: the order of torchvision's
`ImageFolder`, and so of published noise files. All pictures are decoded once, into the cache.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from torch import Tensor

from plremix.data.cache import Pixels, cached, fingerprint
from plremix.data.dataset import LabelledImages
from plremix.data.download import ARCHIVES, fetch
from plremix.data.files import open_image
from plremix.data.sources import published
from plremix.data.sources.published import Entries, Skipped
from plremix.errors import InputError, some_of

TITLE = "Tiny-ImageNet-200"
FOLDERS = ("tiny-imagenet-200", "tiny-imagenet")
ANNOTATIONS = "val/val_annotations.txt"


def load(data_dir: Path, side: int = 64, cache_dir: Path | None = None, *, download: bool = False) -> LabelledImages:
    """The training pictures with their true labels, and the validation pictures as the test set."""
    try:
        root, wnids, (train, left_out), (test, missing) = _listed(data_dir)
    except InputError as error:
        if not download:
            raise InputError(f"{error}; --download fetches it") from None
        fetch(ARCHIVES["tiny-imagenet"], data_dir)
        root, wnids, (train, left_out), (test, missing) = _listed(data_dir)
    words = published.read_words(published.first_of(root, ("words.txt",)))
    folder = cache_dir or data_dir
    labels = train.classes()
    return LabelledImages(
        images=_pixels(root, train, side, folder, f"tiny-imagenet-{side}-train"),
        given_labels=labels,
        true_labels=labels,
        test_images=_pixels(root, test, side, folder, f"tiny-imagenet-{side}-test"),
        test_labels=test.classes(),
        classes=tuple(words.get(wnid, wnid) for wnid in wnids),
        ids=tuple(train.names),
        skipped=(*left_out, *missing),
        pixel_statistics=published.IMAGENET_PIXELS,
    )


def _listed(data_dir: Path) -> tuple[Path, list[str], tuple[Entries, Skipped], tuple[Entries, Skipped]]:
    """The folder, its classes, and what there is to train and to test on."""
    root = published.find_root(TITLE, data_dir, FOLDERS, [("train",), ("val",)])
    wnids = _wnids(root)
    return root, wnids, _train(root, wnids), _test(root, wnids)


def _wnids(root: Path) -> list[str]:
    """The classes: what `wnids.txt` says, or without it the folders of the training pictures."""
    path = root / "wnids.txt"
    if path.exists():
        wnids = sorted({published.bare_name(text, path, line) for line, text in published.read_lines(path)})
    else:
        wnids = sorted(entry.name for entry in (root / "train").iterdir() if entry.is_dir())
    if len(wnids) < 2:
        raise InputError(f"{TITLE} in {root} has {len(wnids)} classes in wnids.txt or train/: unpack it again")
    return wnids


def _train(root: Path, wnids: list[str]) -> tuple[Entries, Skipped]:
    """`train/<wnid>/images/*`; `train/<wnid>/<wnid>_boxes.txt` says which pictures there should be."""
    entries, without = Entries(), []
    for label, wnid in enumerate(wnids):
        folder = f"train/{wnid}/images"
        names = sorted({*published.image_names(root / folder), *_expected(root / f"train/{wnid}/{wnid}_boxes.txt")})
        entries.add(label, *(f"{folder}/{name}" for name in names))
        if not names:
            without.append(wnid)
    _none_without("training", root / "train", without)
    return published.only_present(TITLE, root, entries, root / "train")


def _test(root: Path, wnids: list[str]) -> tuple[Entries, Skipped]:
    """`val/images/*` by the annotations; or `val/<wnid>/*`, or `val/<wnid>/images/*`."""
    entries, number = Entries(), {wnid: label for label, wnid in enumerate(wnids)}
    if (root / "val/images").is_dir():
        if not (root / ANNOTATIONS).exists():
            raise InputError(f"{TITLE} in {root} is not whole: {ANNOTATIONS} is missing, which labels val/images")
        for line, text in published.read_lines(root / ANNOTATIONS):
            name, wnid, *_ = [*text.split("\t"), ""]
            if wnid not in number:
                raise InputError(f"line {line} of {root / ANNOTATIONS} must be a file and one of the classes: {text!r}")
            entries.add(number[wnid], f"val/images/{published.bare_name(name, root / ANNOTATIONS, line)}")
        return published.only_present(TITLE, root, entries, root / ANNOTATIONS)
    without = []
    for wnid, label in number.items():
        folder = f"val/{wnid}/images" if (root / f"val/{wnid}/images").is_dir() else f"val/{wnid}"
        names = published.image_names(root / folder)
        entries.add(label, *(f"{folder}/{name}" for name in names))
        if not names:
            without.append(wnid)
    _none_without("validation", root / "val", without)
    return entries, []


def _expected(boxes: Path) -> list[str]:
    """The pictures of a class by its list of boxes, if that is there."""
    lines = published.read_lines(boxes) if boxes.exists() else ()
    return [published.bare_name(text.split("\t")[0], boxes, line) for line, text in lines]


def _none_without(kind: str, place: Path, without: list[str]) -> None:
    if without:
        raise InputError(
            f"{TITLE} is not whole: {place} has no {kind} images of {len(without)} classes "
            f"({some_of(without)}); unpack it again, all of it"
        )


def _pixels(root: Path, entries: Entries, side: int, folder: Path, name: str) -> Tensor:
    """uint8 (N, 3, side, side), from the cache where it is there."""
    paths = [root / name for name in entries.names]

    def fill(pixels: Pixels) -> None:
        def decode(place: int) -> None:
            try:
                image = open_image(paths[place])
            except Exception as error:  # a decoder meets anything in a damaged file
                raise InputError(f"{paths[place]} cannot be read ({error}): unpack {TITLE} again") from error
            fitting = ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR)
            pixels[place] = np.asarray(fitting).transpose(2, 0, 1)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(decode, range(len(paths))))

    return cached(folder, name, fingerprint(root, paths, side), (len(paths), 3, side, side), fill)
