"""What every source gives: images as one uint8 tensor, labels beside them, and the test set where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plremix.data.files import Images
from plremix.errors import InputError

SAMPLED = 1000  # files that mean and deviation are taken from
COUNTED = 8192  # images whose levels are counted at a time
SMALLEST_SIDE = 8  # pixels; three stages of a network leave 2x2 of it


class TrustedImages(NamedTuple):
    """Images with labels that are trusted."""

    images: Images  # uint8 (M, c, H, W)
    labels: Tensor  # int64 (M,)


@dataclass(frozen=True)
class LabelledImages:
    """A training set with given labels, the truth where it is known, and a test set where there is one.

    A validation set is looked at after every epoch; the test sets of such data are then kept for the end of the run.
    """

    images: Images  # uint8 (N, c, H, W)
    given_labels: Tensor  # int64 (N,)
    true_labels: Tensor | None  # int64 (N,)
    test_images: Images | None  # uint8 (M, c, H, W)
    test_labels: Tensor | None  # int64 (M,)
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    paths: tuple[Path | str, ...] = ()  # the file of each image, where it has one of its own
    skipped: tuple[tuple[str, str], ...] = ()  # id and reason of each file that could not be read
    validation: TrustedImages | None = None
    other_tests: Mapping[str, TrustedImages] = field(default_factory=dict)  # further test sets by name
    pixel_statistics: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # published mean and deviation

    def __len__(self) -> int:
        return len(self.images)

    @property
    def channels(self) -> int:
        return self.images.shape[1]

    @property
    def side(self) -> tuple[int, int]:
        height, width = self.images.shape[-2:]
        return height, width

    def relabelled(self, given_labels: Tensor) -> LabelledImages:
        """Other labels to train on; those that were the best known are the truth that is measured against."""
        truth = self.given_labels if self.true_labels is None else self.true_labels
        return replace(self, given_labels=given_labels, true_labels=truth)

    def measured_on(self, last: bool) -> dict[str, TrustedImages]:
        """What accuracy is measured on after an epoch, by name; `last`: it is the last epoch of the run."""
        test = {}
        if self.test_images is not None and self.test_labels is not None:
            test = {"test": TrustedImages(self.test_images, self.test_labels)}
        if self.validation is None:
            return {**test, **self.other_tests}
        return {"validation": self.validation, **(test if last else {}), **(self.other_tests if last else {})}

    def statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and deviation (c,) of the training pixels on the [0, 1] scale: published ones, or from the pixels.

        Those take one pass over counts of levels; of files, a thousand spread evenly over the set stand for all.
        """
        if self.pixel_statistics is not None:
            return torch.tensor(self.pixel_statistics[0]), torch.tensor(self.pixel_statistics[1])
        pixels = self.images
        if not isinstance(pixels, Tensor):
            pixels = pixels[torch.linspace(0, len(self) - 1, min(len(self), SAMPLED)).long()]
        levels = torch.arange(256, dtype=torch.float64) / 255
        means, deviations = [], []
        for channel in range(self.channels):
            # Some images at a time: counting takes their pixels as wider numbers.
            counts = torch.stack(
                [
                    torch.bincount(pixels[start : start + COUNTED, channel].flatten().int(), minlength=256)
                    for start in range(0, len(pixels), COUNTED)
                ]
            ).sum(0)
            mean = (counts * levels).sum() / counts.sum()
            variance = (counts * (levels - mean).square()).sum() / counts.sum()
            means.append(mean)
            deviations.append(variance.sqrt())
        # A set of blank images has no deviation; 1 / 255 keeps the division harmless.
        return torch.stack(means).float(), torch.stack(deviations).clamp(min=1 / 255).float()


def images_from_array(array: NDArray[np.generic], name: str) -> Tensor:
    """uint8 (N, H, W) or (N, H, W, channels) with 1 or 3 channels, to (N, c, H, W)."""
    if array.dtype != np.uint8:
        scaled = "; pixels from 0 to 1 become that by (pixels * 255).round().astype(np.uint8)"
        hint = scaled if array.dtype.kind == "f" else "; .astype(np.uint8) makes it that if they fit"
        raise InputError(f"{name} must hold uint8 pixels (0 to 255), got {array.dtype}{hint}")
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or array.shape[-1] not in (1, 3):
        raise InputError(
            f"{name} must have the shape (N, height, width) or (N, height, width, 1 or 3), got {array.shape}"
        )
    if len(array) == 0:
        raise InputError(f"{name} has no images")
    if len(array) == 1 and name == "x_train":
        raise InputError("x_train has one image; at least two are needed")
    if min(array.shape[1:3]) < SMALLEST_SIDE:
        raise InputError(f"{name} must be at least {SMALLEST_SIDE}x{SMALLEST_SIDE} pixels, got {array.shape[1:3]}")
    return torch.from_numpy(np.ascontiguousarray(array.transpose(0, 3, 1, 2)))


def labels_from_array(array: NDArray[np.generic], name: str, count: int) -> Tensor:
    """Whole numbers from 0 up, one an image, to int64 (N,)."""
    if array.ndim != 1 or len(array) != count:
        raise InputError(f"{name} must have one label for each of the {count} images, got the shape {array.shape}")
    if array.dtype.kind == "f":
        whole = np.trunc(array.astype(np.float64))
        array = whole.astype(np.int64) if np.isfinite(whole).all() and np.array_equal(whole, array) else array
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} must hold whole numbers (class 0, 1, 2, ...), got {_describe(array)}")
    labels = array.astype(np.int64)
    if labels.min() < 0:
        raise InputError(
            f"{name} must hold class numbers from 0 up, got {labels.min()}; "
            "leave out images without a label, or save labels that are names as text, by .astype(str)"
        )
    return torch.from_numpy(labels)


def _describe(array: NDArray[np.generic]) -> str:
    if array.dtype.kind == "f":
        return "fractions" if np.isfinite(array).all() else "missing or infinite values (NaN, inf)"
    return f"{array.dtype}"
