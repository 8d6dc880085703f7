"""Classes and probabilities for new images, by the model of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from plremix.data.files import ImageFiles, at_size, check_files, warn_of_left_out
from plremix.data.sheets import csv_text
from plremix.data.sources.folder import ENDINGS, images_below
from plremix.data.sources.listed import NO_TEXT, is_text, readable
from plremix.errors import InputError
from plremix.networks import load

CHUNK = 256  # images at a time


def predict_files(run: Path, *paths: Path, proba: bool = False, networks: Literal["one", "both"] = "both") -> str:
    """CSV text: id, predicted_label, confidence (and proba_<class>); files that cannot be read are left out."""
    model = load(run)
    if networks == "one":
        model.networks = model.networks[:1]
    found = _files(paths)
    nameless = [name for name in found if not is_text(name)]
    warn_of_left_out([(readable(name), NO_TEXT) for name in nameless], "")
    found = {name: file for name, file in found.items() if name not in nameless}
    names, files = list(found), list(found.values())
    usable, unreadable = check_files(files, names)
    warn_of_left_out([(names[place], reason) for place, reason in unreadable], "")
    side, resize = max(model.side), max(model.resize, 0)
    images = ImageFiles([files[at] for at in usable], side, resize=resize or None, channels=len(model.mean))
    header = ["id", "predicted_label", "confidence", *(f"proba_{name}" for name in model.classes if proba)]
    rows: list[list[object]] = []
    for start in range(0, len(images), CHUNK):
        # Models of arrays may have been trained on images that are not square.
        probabilities = model(at_size(images[start : start + CHUNK], model.side))
        for place, row in zip(usable[start : start + CHUNK], probabilities.tolist(), strict=True):
            best = max(range(len(row)), key=row.__getitem__)
            rows.append([names[place], model.classes[best], row[best], *(row if proba else [])])
    return csv_text(header, rows)


def _files(paths: tuple[Path, ...]) -> dict[str, Path]:
    """Images, and all those below folders, by their ids: of one path relative to it, of several as they were given, so
    that no two are the same."""
    found: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            below = list(images_below(path))
            if not below:
                raise InputError(f"{path} has no images ({', '.join(sorted(ENDINGS))})")
            found |= {(file.relative_to(path) if len(paths) == 1 else file).as_posix(): file for file in below}
        elif path.is_file():
            found[path.name if len(paths) == 1 else path.as_posix()] = path
        elif path.exists():
            raise InputError(f"{path} is neither an image file nor a folder")
        else:
            raise InputError(f"{path} does not exist")
    return found
