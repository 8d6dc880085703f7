"""What published data sets have in common: a folder to be found, text files that list images, and files that may be
missing. A million files are looked for by listing their folders, never by opening them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from plremix.data.dataset import TrustedImages
from plremix.data.files import ImageFiles, Images
from plremix.data.sources.listed import in_memory_if_small
from plremix.errors import InputError, some_of

log = logging.getLogger("plremix")

IMAGENET_PIXELS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation, published code
Skipped = list[tuple[str, str]]


@dataclass
class Entries:
    """Images of a list: paths below the data set's folder, and their class numbers."""

    names: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def add(self, label: int, *names: str) -> None:
        self.names.extend(names)
        self.labels.extend([label] * len(names))

    def files(self, root: Path, side: int, resize: int, stream: str) -> Images:
        """The files as they stay where they are; small sets that need no cutting are decoded once, into memory."""
        paths = [f"{root}/{name}" for name in self.names]
        return in_memory_if_small(ImageFiles(paths, side, resize=resize or None), stream)

    def classes(self) -> Tensor:
        return torch.tensor(self.labels, dtype=torch.int64)

    def trusted(self, root: Path, side: int, resize: int, stream: str) -> TrustedImages:
        return TrustedImages(self.files(root, side, resize, stream), self.classes())


def find_root(title: str, data_dir: Path, folders: Sequence[str], parts: Sequence[Sequence[str]]) -> Path:
    """The folder of a data set: `data_dir` or one of `folders` in it. Each of `parts` is a path, or other names of it.

    What is missing, and where it was looked for, is told.
    """
    places = [*(data_dir / folder for folder in folders), data_dir]
    missing = {place: [part[0] for part in parts if first_of(place, part) is None] for place in places}
    root = min(places, key=lambda place: len(missing[place]))
    if len(missing[root]) == len(parts):
        looked = ", ".join(map(str, places))
        raise InputError(
            f"{title} was not found: looked for {missing[root][0]} in {looked}; --data-dir says where it is"
        )
    if missing[root]:
        lacks = ", ".join(missing[root])
        raise InputError(f"{title} in {root} is not whole: {lacks} is missing there; unpack it again, all of it")
    return root


def first_of(root: Path, names: Sequence[str]) -> Path | None:
    """The first of several places of one thing."""
    return next((root / name for name in names if (root / name).exists()), None)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line that is not empty."""
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if text := line.strip():
                    yield number, text
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the list {path} cannot be read: {error}") from error


def read_names(path: Path) -> list[str]:
    """A list with a path a line."""
    return [_below(text, path, number) for number, text in read_lines(path)]


def read_labels(path: Path) -> Entries:
    """A list with a path and a class number a line."""
    found = Entries()
    for number, text in read_lines(path):
        name, *label = text.rsplit(maxsplit=1)
        if not label or not label[0].isdecimal():
            raise InputError(f"line {number} of {path} must be a path and a class number, found {text!r}")
        found.add(int(label[0]), _below(name, path, number))
    return found


def _below(name: str, path: Path, number: int) -> str:
    """The name itself, if it leads to a file below the data set's folder."""
    parts = name.replace("\\", "/").split("/")
    if not parts[0] or ":" in parts[0] or ".." in parts:  # /a, C:\a, ../a
        raise InputError(f"line {number} of {path} leads out of the data set: {name!r}")
    return name


def bare_name(name: str, path: Path, number: int) -> str:
    """The name itself, if it is a name without a folder."""
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise InputError(f"line {number} of {path} must start with a name without a folder, found {name!r}")
    return name


def only_present(title: str, root: Path, entries: Entries, source: Path) -> tuple[Entries, Skipped]:
    """The entries whose files exist, and the others with the reason; one warning for all, an error if it is most."""
    listed: dict[str, set[str]] = {}
    present, missing = Entries(), []
    for name, label in zip(entries.names, entries.labels, strict=True):
        folder, _, file = name.rpartition("/")
        if folder not in listed:
            listed[folder] = _names_in(root / folder)
        if file in listed[folder]:
            present.add(label, name)
        else:
            missing.append(name)
    if 2 * len(missing) > len(entries.names) or not present.names:
        first = f", the first one {missing[0]}" if missing else ""
        raise InputError(
            f"{len(missing):,} of the {len(entries.names):,} images that {source} lists are missing in {root}{first}: "
            f"is {title} unpacked there, all of it?"
        )
    if missing:
        shown = some_of(missing)
        log.warning(
            "%d of %d images of %s are missing and left out: %s", len(missing), len(entries.names), source, shown
        )
    return present, [(name, "the file does not exist") for name in missing]


def _names_in(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))  # noqa: PTH208 (a million names; no need for paths)
    except OSError:
        return set()


def check_labels(entries: Entries, classes: int, source: Path) -> None:
    """Class numbers are below the number of classes."""
    largest = max(entries.labels, default=0)
    if largest >= classes:
        raise InputError(f"{source} has the class number {largest}, but the classes are 0 to {classes - 1}")


def read_words(path: Path | None) -> dict[str, str]:
    """`n01440764 tench, Tinca tinca` a line, as `n01440764` to `n01440764 tench`: unique, and still a word."""
    if path is None:
        return {}
    found = {}
    for number, text in read_lines(path):
        wnid, *rest = text.split(maxsplit=1)
        word = rest[0].split(",")[0].strip() if rest else ""
        found[bare_name(wnid, path, number)] = f"{wnid} {word}".strip()
    return found


def image_names(folder: Path) -> list[str]:
    """Names of the images in a folder, sorted."""
    return sorted(name for name in _names_in(folder) if name.lower().endswith((".jpeg", ".jpg", ".png")))
