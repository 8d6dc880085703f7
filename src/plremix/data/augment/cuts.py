"""How a view's pixels are taken out of an image: the whole of it, a shifted crop, or a box of random size and shape.

A cut draws numbers that do not depend on an image's size, so that files of any size can be cut where they are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from plremix.data.augment.engines import engine

Parameters = dict[str, Tensor]  # each with a row an image
Side = tuple[int, int]  # height, width
TRIES = 10  # boxes drawn before the middle of the image is taken instead


class Cut(Protocol):
    """Draw once, then take from a tensor of images, or say which box of a file is wanted."""

    def draw(self, count: int, side: Side, generator: torch.Generator) -> Parameters:
        """Parameters for `count` images whose views are `side` pixels large."""

    def size(self, side: Side) -> Side:
        """Height and width of the views where the run's images have `side`."""

    def take(self, images: Tensor, rows: Tensor, drawn: Parameters) -> Tensor:
        """Views of the images `rows`, new in memory."""

    def boxes(self, drawn: Parameters, sides: Tensor, zoom: float) -> Tensor:
        """Boxes (n, 4: left, top, right, bottom) in files of `sides` (n, 2: height, width); zoom: see `Shift`."""


@dataclass(frozen=True)
class Whole:
    """The image as it is; of a file, the largest middle part of the right shape."""

    def draw(self, count: int, side: Side, generator: torch.Generator) -> Parameters:
        return {"flip": torch.zeros(count, dtype=torch.bool)}

    def size(self, side: Side) -> Side:
        return side

    def take(self, images: Tensor, rows: Tensor, drawn: Parameters) -> Tensor:
        return images[rows.to(images.device)]

    def boxes(self, drawn: Parameters, sides: Tensor, zoom: float) -> Tensor:
        return _placed(sides.amin(1, keepdim=True).expand(-1, 2) * zoom, sides, torch.full((len(sides), 2), 0.5))


@dataclass(frozen=True)
class Shift:
    """Moved by up to an eighth of the side (4 pixels of 32, as published); black comes in at the edge.

    A file shows what is really there instead: a square of `zoom` times its short side (224 / 256) anywhere in it.
    """

    flip: bool = False
    still: bool = False  # mirrored at most

    def draw(self, count: int, side: Side, generator: torch.Generator) -> Parameters:
        pad = max(1, min(side) // 8)
        offsets = torch.randint(0, 2 * pad + 1, (count, 2), generator=generator)
        flip = torch.randint(0, 2, (count,), generator=generator, dtype=torch.bool)
        moves = torch.zeros_like(offsets) if self.still else pad - offsets
        return {"moves": moves, "pad": torch.full((count,), pad), "flip": flip & self.flip}

    def size(self, side: Side) -> Side:
        return side

    def take(self, images: Tensor, rows: Tensor, drawn: Parameters) -> Tensor:
        device = images.device
        return engine(images).shift(images, rows.to(device), drawn["moves"].to(device), drawn["flip"].to(device))

    def boxes(self, drawn: Parameters, sides: Tensor, zoom: float) -> Tensor:
        where = (drawn["moves"] / drawn["pad"][:, None] + 1) / 2
        return _placed(sides.amin(1, keepdim=True).expand(-1, 2) * zoom, sides, where)


@dataclass(frozen=True)
class ResizedCrop:
    """A box of `low` to `high` of the area and 3:4 to 4:3 in shape, brought to one size; mirrored half the time."""

    low: float
    high: float = 1.0
    flip: bool = True
    side: int | None = None  # None: that of the images

    def draw(self, count: int, side: Side, generator: torch.Generator) -> Parameters:
        def uniform(*shape: int) -> Tensor:
            return torch.rand(count, *shape, generator=generator, dtype=torch.float64)

        area = self.low + (self.high - self.low) * uniform(TRIES)
        shape = (torch.tensor(4 / 3).double().log() * (2 * uniform(TRIES) - 1)).exp()  # width / height
        flip = (uniform() < 0.5) & self.flip
        return {"area": area, "shape": shape, "where": uniform(2), "flip": flip}

    def size(self, side: Side) -> Side:
        return side if self.side is None else (self.side, self.side)

    def take(self, images: Tensor, rows: Tensor, drawn: Parameters) -> Tensor:
        device, (height, width) = images.device, images.shape[-2:]
        boxes = self.boxes(drawn, torch.tensor([[height, width]]).expand(len(rows), 2), 1.0)
        return engine(images).resize(
            images, rows.to(device), boxes.to(device), drawn["flip"].to(device), self.size((height, width))
        )

    def boxes(self, drawn: Parameters, sides: Tensor, zoom: float) -> Tensor:
        """The first drawn box that fits; where none does, the largest middle part of an allowed shape."""
        sides = sides.double()
        area = drawn["area"] * sides.prod(1, keepdim=True)
        heights, widths = (area / drawn["shape"]).sqrt().round(), (area * drawn["shape"]).sqrt().round()
        fits = (heights >= 1) & (widths >= 1) & (heights <= sides[:, :1]) & (widths <= sides[:, 1:])
        first = fits.int().argmax(1, keepdim=True)
        drawn_size = torch.cat([heights.gather(1, first), widths.gather(1, first)], dim=1)
        fallback = torch.minimum(sides, sides.flip(1) * 4 / 3).round()
        any_fits = fits.any(1, keepdim=True)
        size = torch.where(any_fits, drawn_size, fallback)
        where = torch.where(any_fits, drawn["where"], 0.5)
        free = (sides - size + 1 - 1e-9).clamp(min=0)
        corner = torch.where(any_fits, (where * free).floor(), ((sides - size) / 2).round())
        return torch.cat([corner.flip(1), (corner + size).flip(1)], dim=1)


def _placed(sizes: Tensor, sides: Tensor, where: Tensor) -> Tensor:
    """Boxes of `sizes` (n, 2) inside `sides` (n, 2), at `where` from 0 (top, left) to 1."""
    corner = (sides - sizes).double() * where
    return torch.cat([corner.flip(1), (corner + sizes).flip(1)], dim=1)
