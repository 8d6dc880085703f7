"""A corrected copy of a folder of images, by links: the originals are neither moved nor changed."""

from __future__ import annotations

import csv
import os
import re
import shutil
from pathlib import Path

from plremix.data.sheets import plain_cell
from plremix.errors import InputError
from plremix.training.folder import RunFolder

LONGEST = 200  # bytes of a name; file systems take 255


def check_target(source: Path, target: Path) -> None:
    """Before a run starts: whether a tree of its images can be built there at all."""
    if source.suffix.lower() == ".npz":
        raise InputError(f"--export-folder links image files, and {source} has none: it holds the pixels themselves")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"--export-folder {target} exists and is not empty; choose another one")
    if source.is_dir() and target.resolve().is_relative_to(source.resolve()):
        raise InputError(f"--export-folder {target} lies inside {source}, which must not be changed")


def export_tree(run: RunFolder, source: Path, target: Path) -> int:
    """Link every image of the run below `target`/<corrected label>/; returns how many there are."""
    check_target(source, target)
    root = source if source.is_dir() else source.parent
    with open(run.corrected, newline="", encoding="utf-8") as file:
        rows = [(plain_cell(row["id"]), plain_cell(row["corrected_label"])) for row in csv.DictReader(file)]
    folders: dict[str, Path] = {}  # by label: two labels never share one
    for name, label in rows:
        if label not in folders:
            folders[label] = _free(target, _safe(label))
            folders[label].mkdir(parents=True)
        _link((root / name).resolve(), _free(folders[label], _safe(name.replace("/", "__"))))
    return len(rows)


def _safe(name: str) -> str:
    """A name for one file or folder: no separators, not too long, never a way out of the tree."""
    cleaned = re.sub(r"[/\\\x00-\x1f]", "_", name).strip() or "_"
    if set(cleaned) == {"."}:
        cleaned = "_" * len(cleaned)
    if len(cleaned.encode()) <= LONGEST:
        return cleaned
    ending = Path(cleaned).suffix
    ending = ending if len(ending.encode()) <= 10 else ""
    return cleaned.encode()[: LONGEST - len(ending.encode())].decode(errors="ignore") + ending


def _free(folder: Path, name: str) -> Path:
    path, number = folder / name, 1
    while os.path.lexists(path):
        path, number = folder / f"{number}-{name}", number + 1
    return path


def _link(original: Path, link: Path) -> None:
    try:
        link.symlink_to(original)
    except OSError:  # a file system without links
        shutil.copyfile(original, link)
