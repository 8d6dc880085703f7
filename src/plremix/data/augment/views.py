"""The named views, each a cut and what is then done with its pixels; and the step to a network's input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.data.augment import policies
from plremix.data.augment.cuts import Cut, Parameters, ResizedCrop, Shift, Side, Whole
from plremix.data.augment.engines import engine
from plremix.data.augment.operations import GREY


class Stage(Protocol):
    """Something that is done with the pixels of a view."""

    def draw(self, count: int, side: Side, generator: torch.Generator) -> Parameters:
        """Parameters for `count` views of `side` pixels."""

    def apply(self, images: Tensor, drawn: Parameters) -> Tensor:
        """uint8 (n, c, H, W) in and out; the views' own memory may be used."""


@dataclass(frozen=True)
class View:
    """How one kind of view is drawn and made. Draws come from the caller's generator, for the whole batch."""

    cut: Cut
    stages: tuple[Stage, ...] = ()

    def draw(
        self, count: int, side: Side, generator: torch.Generator, *, rank: int = 0, ranks: int = 1
    ) -> list[Parameters]:
        """Parameters of the cut and of each stage for `count` images: rows rank, rank + ranks, ... of a batch."""
        size = self.cut.size(side)
        drawn = [self.cut.draw(count * ranks, size, generator)]
        drawn += [stage.draw(count * ranks, size, generator) for stage in self.stages]
        if ranks == 1:
            return drawn
        return [{name: values[rank::ranks].contiguous() for name, values in parameters.items()} for parameters in drawn]

    def finish(self, pixels: Tensor, drawn: list[Parameters]) -> Tensor:
        """What follows the cut."""
        for stage, parameters in zip(self.stages, drawn[1:], strict=True):
            pixels = stage.apply(pixels, parameters) if len(pixels) else pixels
        return pixels

    def __call__(self, images: Tensor, generator: torch.Generator, *, rank: int = 0, ranks: int = 1) -> Tensor:
        """Views (uint8) of `images`, which are rows rank, rank + ranks, ... of a batch."""
        side = (images.shape[-2], images.shape[-1])
        drawn = self.draw(len(images), side, generator, rank=rank, ranks=ranks)
        if not len(images):
            return images.new_empty(0, images.shape[1], *self.cut.size(side))
        return self.finish(self.cut.take(images, torch.arange(len(images)), drawn[0]), drawn)


def normalise(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """uint8 (n, c, H, W) to float with the data set's mean and deviation (c,) of the [0, 1] scale; channels last."""
    scale, shift = 1 / (255 * std), mean / std
    return engine(images).normalise(images, scale, shift)


@dataclass(frozen=True)
class Operate:
    """A program of operations an image."""

    policy: policies.Policy

    def draw(self, count: int, side: Side, generator: torch.Generator) -> Parameters:
        return self.policy(count, min(side), generator)._asdict()

    def apply(self, images: Tensor, drawn: Parameters) -> Tensor:
        return engine(images).operate(images, drawn["codes"], drawn["values"])


@dataclass(frozen=True)
class Cover:
    """A grey square of up to `share` of the side, with its middle anywhere in the image."""

    share: float = 0.5

    def draw(self, count: int, side: Side, generator: torch.Generator) -> Parameters:
        height, width = side
        half = (torch.rand(count, generator=generator) * self.share * min(side) / 2)[:, None]
        middle = torch.rand(count, 2, generator=generator) * torch.tensor([width, height])
        most = torch.tensor([width, height, width, height])
        holes = torch.cat([middle - half, middle + half], dim=1).round().long()
        return {"holes": torch.minimum(holes.clamp(min=0), most)}

    def apply(self, images: Tensor, drawn: Parameters) -> Tensor:
        return engine(images).cover(images, drawn["holes"])


@dataclass(frozen=True)
class Distort:
    """For digits and documents: rotate, scale, shear, shift, contrast, brightness, a grey square. Never mirrors by
    itself. These are batched operations on any device.
    """

    flip: bool = False

    def draw(self, count: int, side: Side, generator: torch.Generator) -> Parameters:
        def uniform(low: float, high: float, *shape: int) -> Tensor:
            return low + (high - low) * torch.rand(count, *shape, generator=generator)

        return {
            "angle": uniform(-math.pi / 9, math.pi / 9),  # 20 degrees either way keeps a 6 from a 9
            "scale": uniform(0.8, 1.2, 2),
            "shear": uniform(-0.25, 0.25),
            "shift": uniform(-0.25, 0.25, 2),  # of half the side: one pixel of 8
            "contrast": uniform(0.6, 1.4),
            "brightness": uniform(-40.0, 40.0),
            "hole": uniform(0.0, 1.0, 2),
            "hole_side": uniform(0.0, 0.4),
            "flip": torch.randint(0, 2, (count,), generator=generator, dtype=torch.bool) & self.flip,
        }

    def apply(self, images: Tensor, drawn: Parameters) -> Tensor:
        drawn = {name: values.to(images.device) for name, values in drawn.items()}
        cos, sin = drawn["angle"].cos(), drawn["angle"].sin()
        scale_x, scale_y = drawn["scale"].unbind(1)
        shift_x, shift_y = drawn["shift"].unbind(1)
        affine = torch.stack(
            [
                torch.stack([cos * scale_x, (drawn["shear"] * cos - sin) * scale_y, shift_x], dim=1),
                torch.stack([sin * scale_x, (drawn["shear"] * sin + cos) * scale_y, shift_y], dim=1),
            ],
            dim=1,
        )
        if self.flip:
            images = torch.where(drawn["flip"][:, None, None, None], images.flip(-1), images)
        grid = F.affine_grid(affine, list(images.shape), align_corners=False)
        moved = F.grid_sample(images.float(), grid, padding_mode="border", align_corners=False)
        middle = moved.mean((1, 2, 3), keepdim=True)
        contrast, brightness = (drawn[name].view(-1, 1, 1, 1) for name in ("contrast", "brightness"))
        coloured = (moved - middle) * contrast + middle + brightness
        covered = torch.where(_hole(images, drawn), float(GREY), coloured)
        return covered.round().clamp(0, 255).to(torch.uint8)


def _hole(images: Tensor, drawn: Parameters) -> Tensor:
    """True (n, 1, H, W) inside a square with up to 0.4 of the side, somewhere in each image."""
    sides, inside = images.shape[-2:], []
    half = drawn["hole_side"][:, None] * min(sides) / 2
    for axis, side in enumerate(sides):
        places = torch.arange(side, device=images.device) + 0.5
        inside.append((places - drawn["hole"][:, axis, None] * side).abs() <= half)
    return (inside[0][:, :, None] & inside[1][:, None, :])[:, None]


_CIFAR, _IMAGENET = Operate(policies.auto_augment(policies.CIFAR)), Operate(policies.auto_augment(policies.IMAGENET))

VIEWS: dict[str, View] = {
    "plain": View(Whole()),
    "flip": View(Shift(flip=True, still=True)),
    "crop": View(Shift()),
    "crop-flip": View(Shift(flip=True)),
    "resized-crop": View(ResizedCrop(0.08)),
    "distort": View(Whole(), (Distort(),)),
    "distort-flip": View(Whole(), (Distort(flip=True),)),
    "autoaugment-cifar": View(Shift(flip=True), (_CIFAR,)),
    "autoaugment-imagenet": View(Shift(flip=True), (_IMAGENET,)),
    "flip-autoaugment-imagenet": View(Shift(flip=True, still=True), (_IMAGENET,)),  # Tiny-ImageNet: no crop
    "randaugment": View(Shift(flip=True), (Operate(policies.rand_augment()), Cover())),
    "simclr": View(ResizedCrop(0.2), (Operate(policies.simclr_colours()),)),
}


def multi_crop(
    stages: tuple[Stage, ...], large: tuple[int, float, float], small: tuple[int, float, float], count: int = 6
) -> list[View]:
    """Two large and `count` small views of an image, each (side, smallest, largest share of the area)."""
    big, little = (View(ResizedCrop(low, high, side=side), stages) for side, low, high in (large, small))
    return [big] * 2 + [little] * count
