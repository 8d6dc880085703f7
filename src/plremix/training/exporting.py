"""A corrected copy of a folder of images, by links: the originals are neither moved nor changed."""

from __future__ import annotations

import csv
import os
import re
import shutil
from pathlib import Path

from plremix.errors import InputError
from plremix.training.folder import RunFolder, plain_cell


def export_tree(run: RunFolder, source: Path, target: Path) -> int:
    """Link every image of the run below `target`/<corrected label>/; returns how many there are."""
    root = source if source.is_dir() else source.parent
    if target.exists() and any(target.iterdir()):
        raise InputError(f"--export-folder {target} exists and is not empty; choose another one")
    if target.resolve().is_relative_to(source.resolve()) and source.is_dir():
        raise InputError(f"--export-folder {target} lies inside {source}, which must not be changed")
    with open(run.corrected, newline="", encoding="utf-8") as file:
        rows = [(plain_cell(row["id"]), plain_cell(row["corrected_label"])) for row in csv.DictReader(file)]
    for name, label in rows:
        folder = target / _safe(label)
        folder.mkdir(parents=True, exist_ok=True)
        _link((root / name).resolve(), _free(folder, _safe(name.replace("/", "__"))))
    return len(rows)


def _safe(name: str) -> str:
    """A name for one file or folder: no separators, not too long, never a way out of the tree."""
    cleaned = re.sub(r"[/\\\x00-\x1f]", "_", name).strip() or "_"
    if set(cleaned) == {"."}:
        cleaned = "_" * len(cleaned)
    stem, dot, ending = cleaned.rpartition(".")
    return cleaned if len(cleaned.encode()) <= 200 else f"{(stem or ending)[:60]}{dot}{ending[-10:]}"


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
