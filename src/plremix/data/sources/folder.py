"""A folder with a sub-folder a class: the sub-folder's name is the class of every image below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from plremix.data.sources.listed import ListedFiles
from plremix.errors import InputError

ENDINGS = frozenset(".bmp .gif .jpeg .jpg .jp2 .pgm .png .ppm .tif .tiff .webp".split())  # noqa: SIM905


def read(path: Path) -> ListedFiles:
    """All images in a fixed order; names are paths relative to the folder."""
    found = ListedFiles()
    empty = []
    classes, others = _sub_folders(path)
    for name, real in others.items():
        found.leave_out(f"{name}/", f"it is a link to what is {real}/ already, where its images count")
    elsewhere = {os.path.realpath(folder) for folder in (path, *classes)}  # no link makes one class part of another

    def tell(error: OSError) -> None:
        place = Path(error.filename).relative_to(path).as_posix()
        found.leave_out(f"{place}/", f"the folder cannot be read: {error.strerror}")

    for folder in classes:
        before = len(found.skipped)
        files = list(images_below(folder, elsewhere, tell))
        for file in files:
            found.add(file.relative_to(path).as_posix(), file, folder.name)
        if not files and len(found.skipped) == before:
            empty.append(folder.name)
    if not found.paths:
        raise InputError(f"{path} has no images in sub-folders; expected {path}/<class>/<image>.png, .jpg, ...")
    for name in empty:
        found.leave_out(f"{name}/", "the class folder has no images")
    for entry in sorted(path.iterdir()):
        if entry.is_file() and _is_image(entry.name):
            found.leave_out(entry.name, "it lies beside the class folders, so it has no class")
    return found


def images_below(
    folder: Path, elsewhere: Iterable[str] = (), on_error: Callable[[OSError], None] | None = None
) -> Iterator[Path]:
    """Every file in it or deeper that is named like an image, sorted; links lead round no circles, nor to the real
    paths `elsewhere`. `on_error` is told of folders that cannot be read."""
    seen = {*elsewhere} - {os.path.realpath(folder)}
    for place, inside, files in os.walk(folder, followlinks=True, onerror=on_error):
        real = os.path.realpath(place)
        if real in seen:
            inside.clear()
            continue
        seen.add(real)
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(files):
            if _is_image(name):
                yield Path(place) / name


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in ENDINGS and not name.startswith(".")


def _sub_folders(path: Path) -> tuple[list[Path], dict[str, str]]:
    """The class folders, and what else leads to one of them and would count its images twice: its name to theirs."""
    try:
        entries = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"the folder {path} cannot be read: {error.strerror or error}") from error
    first, others = {os.path.realpath(path): "."}, {}
    for entry in sorted(entries, key=Path.is_symlink):  # a folder itself goes before links to it
        name = first.setdefault(os.path.realpath(entry), entry.name)
        if name != entry.name:
            others[entry.name] = name
    return [entry for entry in entries if entry.name not in others], others
