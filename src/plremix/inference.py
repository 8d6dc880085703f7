"""Classes and probabilities for new images, by the model of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from plremix.data.files import ImageFiles, check_files
from plremix.data.sheets import csv_text
from plremix.data.sources.folder import ENDINGS, images_below
from plremix.errors import InputError
from plremix.networks import load

CHUNK = 256  # images at a time


def predict_files(run: Path, path: Path, *, proba: bool = False, networks: Literal["one", "both"] = "both") -> str:
    """CSV text: id, predicted_label, confidence (and proba_<class>); files that cannot be read are left out."""
    model = load(run)
    if networks == "one":
        model.networks = model.networks[:1]
    files, names = _files(path)
    usable, _ = check_files(files, names)
    side, resize = max(model.side), max(model.resize, 0)
    images = ImageFiles([files[at] for at in usable], side, resize=resize or None, channels=len(model.mean))
    header = ["id", "predicted_label", "confidence", *(f"proba_{name}" for name in model.classes if proba)]
    rows: list[list[object]] = []
    for start in range(0, len(images), CHUNK):
        probabilities = model(_at_size(images[start : start + CHUNK], model.side))
        for place, row in zip(usable[start : start + CHUNK], probabilities.tolist(), strict=True):
            best = max(range(len(row)), key=row.__getitem__)
            rows.append([names[place], model.classes[best], row[best], *(row if proba else [])])
    return csv_text(header, rows)


def _files(path: Path) -> tuple[list[Path], list[str]]:
    """The image itself, or all below a folder, with names relative to it."""
    if path.is_dir():
        files = list(images_below(path))
        names = [file.relative_to(path).as_posix() for file in files]
    elif path.is_file():
        files, names = [path], [path.name]
    else:
        raise InputError(f"{path} does not exist")
    if not files:
        raise InputError(f"{path} has no images ({', '.join(sorted(ENDINGS))})")
    return files, names


def _at_size(images: Tensor, side: tuple[int, ...]) -> Tensor:
    """Models of arrays may have been trained on images that are not square."""
    if tuple(images.shape[-2:]) == tuple(side):
        return images
    resized = torch.nn.functional.interpolate(images.float(), size=tuple(side), mode="bilinear", antialias=True)
    return resized.round().clamp(0, 255).to(torch.uint8)
