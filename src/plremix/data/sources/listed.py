"""Image files with labels, wherever the list came from: checked, brought to one size, classes numbered."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from plremix.data.dataset import LabelledImages
from plremix.data.files import ImageFiles, Images, check_files, open_image
from plremix.errors import InputError

MEMORY = 2_000_000_000  # bytes of pixels that are kept instead of decoded again at each step
LOOKED_AT = 100  # files that say what the images are like
NO_TEXT = "its name is not valid UTF-8: rename it"
GREY_ENOUGH = 3  # levels that colour channels may differ by in a greyscale picture


@dataclass
class ListedFiles:
    """Names, files and labels in one order, and what was left out so far."""

    names: list[str] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, path: Path, label: str) -> None:
        """One more; not if its name has bytes that are no text, which no list could hold."""
        if not is_text(name + label):
            self.leave_out(name, NO_TEXT)
            return
        self.names.append(name)
        self.paths.append(path)
        self.labels.append(label)

    def leave_out(self, name: str, reason: str) -> None:
        self.skipped.append((readable(name), reason))


def readable(name: str) -> str:
    """For people, whatever its bytes are."""
    return name.encode("utf-8", "backslashreplace").decode()


def is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class Look(NamedTuple):
    """What images are like, from some of them."""

    images: int
    side: int  # median of the short sides
    channels: int  # 1 where they are all grey


def look_at(listed: ListedFiles) -> Look:
    """Open some files; those that cannot be read say nothing."""
    places = np.linspace(0, len(listed.paths) - 1, min(LOOKED_AT, len(listed.paths))).astype(int)
    sides, colours = [], False
    for place in np.unique(places):
        try:
            pixels = np.asarray(open_image(listed.paths[place], largest=64)).astype(int)
            with Image.open(listed.paths[place]) as image:
                sides.append(min(image.size))
        except Exception:  # it will be listed when all files are checked
            continue
        colours = colours or bool((pixels.max(2) - pixels.min(2)).max() > GREY_ENOUGH)
    return Look(len(listed.paths), int(statistics.median(sides)) if sides else 0, 3 if colours or not sides else 1)


def load(
    listed: ListedFiles,
    side: int,
    channels: int = 3,
    *,
    resize: int | None = None,
    stream: str = "auto",
    classes: tuple[str, ...] = (),
) -> LabelledImages:
    """All files that can be read; `classes` fixes the classes (a test set has those of its training set)."""
    usable, unreadable = check_files(listed.paths, listed.names)
    names = classes or class_names([listed.labels[place] for place in usable])
    if len(names) < 2:
        raise InputError(f"all readable images are of one class ({names[0]}): at least two are needed")
    number = {name: index for index, name in enumerate(names)}
    if strange := sorted({listed.labels[place] for place in usable} - set(names)):
        raise InputError(f"there are labels that the training images do not have: {', '.join(strange[:5])}")
    files = ImageFiles([listed.paths[place] for place in usable], side, resize=resize, channels=channels)
    skipped = [*listed.skipped, *((listed.names[place], reason) for place, reason in unreadable)]
    return LabelledImages(
        images=in_memory_if_small(files, stream),
        given_labels=torch.tensor([number[listed.labels[place]] for place in usable]),
        true_labels=None,
        test_images=None,
        test_labels=None,
        classes=names,
        ids=tuple(listed.names[place] for place in usable),
        paths=tuple(files.paths),
        skipped=tuple(skipped),
    )


def class_names(labels: list[str]) -> tuple[str, ...]:
    """Each once, sorted: numbers by value, all else by spelling."""
    names = set(labels)
    if all(name.isdecimal() for name in names):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))


def in_memory_if_small(files: ImageFiles, stream: str) -> Images:
    """The pixels themselves where they fit ("auto"), else the files; files that are cut anew each time stay files."""
    if files.zoom < 1 and stream == "never":
        raise InputError("--stream never keeps pixels in memory, but --resize cuts files anew at each step: leave one")
    small = files.zoom == 1 and len(files) * files.channels * files.side**2 <= MEMORY
    return files if stream == "always" or (stream == "auto" and not small) else files[:]
