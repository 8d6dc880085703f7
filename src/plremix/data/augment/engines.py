"""Two engines, one meaning: compiled loops for the CPU, batched torch operations for every other device."""

from __future__ import annotations

from typing import Protocol, cast

from torch import Tensor

from plremix.data.augment import batched, compiled


class Engine(Protocol):
    """What both modules offer; images are uint8 (n, c, H, W), parameters have a row an image."""

    def shift(self, images: Tensor, rows: Tensor, offsets: Tensor, flip: Tensor) -> Tensor:
        """Moved and mirrored."""

    def resize(self, images: Tensor, rows: Tensor, boxes: Tensor, flip: Tensor, side: tuple[int, int]) -> Tensor:
        """A box of each image at another size."""

    def operate(self, images: Tensor, codes: Tensor, values: Tensor) -> Tensor:
        """A program of operations an image, in place."""

    def cover(self, images: Tensor, holes: Tensor) -> Tensor:
        """Grey rectangles, in place."""

    def normalise(self, images: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """To floats."""


def engine(images: Tensor) -> Engine:
    """The engine for the device that the images are on."""
    return cast(Engine, compiled if images.device.type == "cpu" else batched)
