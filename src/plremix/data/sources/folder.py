"""A folder with a sub-folder a class: the sub-folder's name is the class of every image below it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch

from plremix.data.dataset import LabelledImages
from plremix.data.files import ImageFiles, Images, check_files
from plremix.errors import InputError

ENDINGS = frozenset(".bmp .gif .jpeg .jpg .jp2 .pgm .png .ppm .tif .tiff .webp".split())  # noqa: SIM905
MEMORY = 2_000_000_000  # bytes of pixels that are kept instead of decoded again at each step


def load(path: Path, side: int, *, resize: int | None = None, stream: str = "auto") -> LabelledImages:
    """All images that can be read, at `side` x `side`; ids are paths relative to the folder."""
    found = list(_labelled_files(path))
    if not found:
        raise InputError(f"{path} has no images in sub-folders; expected {path}/<class>/<image>.png, .jpg, ...")
    names = [str(file.relative_to(path)) for file, _ in found]
    usable, skipped = check_files([file for file, _ in found], names)
    classes = tuple(sorted({found[place][1] for place in usable}))
    if len(classes) < 2:
        raise InputError(f"{path} has readable images of one class only ({classes[0]}): at least two are needed")
    number = {name: index for index, name in enumerate(classes)}
    files = ImageFiles([found[place][0] for place in usable], side, resize=resize)
    labels = torch.tensor([number[found[place][1]] for place in usable])
    return LabelledImages(
        images=in_memory_if_small(files, stream),
        given_labels=labels,
        true_labels=None,
        test_images=None,
        test_labels=None,
        classes=classes,
        ids=tuple(names[place] for place in usable),
        skipped=tuple((names[place], reason) for place, reason in skipped),
    )


def in_memory_if_small(files: ImageFiles, stream: str) -> Images:
    """The pixels themselves where they fit ("auto"), else the files."""
    small = len(files) * files.channels * files.side**2 <= MEMORY
    return files if stream == "always" or (stream == "auto" and not small) else files[:]


def _labelled_files(path: Path) -> Iterator[tuple[Path, str]]:
    """Every image below a sub-folder with that sub-folder's name, in a fixed order; links lead round no circles."""
    try:
        classes = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"the folder {path} cannot be read: {error.strerror or error}") from error
    for folder in classes:
        seen: set[str] = set()
        for place, inside, files in os.walk(folder, followlinks=True):
            real = os.path.realpath(place)
            if real in seen:
                inside.clear()
                continue
            seen.add(real)
            inside.sort()
            for name in sorted(files):
                if Path(name).suffix.lower() in ENDINGS and not name.startswith("."):
                    yield Path(place) / name, folder.name
