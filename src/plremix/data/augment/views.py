"""The named views, and the step from uint8 pixels to a network's input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Parameters = dict[str, Tensor]  # each with a row an image


@dataclass(frozen=True)
class View:
    """How one kind of view is drawn and applied."""

    draw: Callable[[int, int, torch.Generator], Parameters]  # count, side, generator
    apply: Callable[[Tensor, Parameters], Tensor]  # uint8 (n, c, H, W) in and out

    def __call__(self, images: Tensor, generator: torch.Generator, *, rank: int = 0, ranks: int = 1) -> Tensor:
        """Views of `images`, which are rows rank, rank + ranks, ... of a batch; draws are made for the whole batch."""
        drawn = self.draw(len(images) * ranks, min(images.shape[-2:]), generator)
        mine = {name: values[rank::ranks].to(images.device) for name, values in drawn.items()}
        return self.apply(images, mine)


def normalise(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """uint8 (n, c, H, W) to float with the data set's mean and deviation (c,) of the [0, 1] scale; channels last."""
    scale = (1 / (255 * std)).view(-1, 1, 1)
    shift = (mean / std).view(-1, 1, 1)
    return (images * scale - shift).contiguous(memory_format=torch.channels_last)


def _draw_crop(count: int, side: int, generator: torch.Generator) -> Parameters:
    pad = max(1, side // 8)  # 4 of 32, as published
    offsets = torch.randint(0, 2 * pad + 1, (count, 2), generator=generator)
    flip = torch.randint(0, 2, (count,), generator=generator, dtype=torch.bool)
    return {"offsets": offsets, "flip": flip, "pad": torch.full((count,), pad)}


def _apply_crop(images: Tensor, drawn: Parameters) -> Tensor:
    """Shift by up to `pad` pixels; what comes in at the edge is black."""
    n, channels, height, width = images.shape
    if not n:
        return images
    pad = int(drawn["pad"][0])
    padded = F.pad(images, (pad, pad, pad, pad))
    rows = drawn["offsets"][:, :1] + torch.arange(height, device=images.device)
    columns = drawn["offsets"][:, 1:] + torch.arange(width, device=images.device)
    batch = torch.arange(n, device=images.device)[:, None, None, None]
    channel = torch.arange(channels, device=images.device)[None, :, None, None]
    return padded[batch, channel, rows[:, None, :, None], columns[:, None, None, :]]


def _apply_crop_flip(images: Tensor, drawn: Parameters) -> Tensor:
    mirrored = torch.where(drawn["flip"][:, None, None, None], images.flip(-1), images)
    return _apply_crop(mirrored, drawn)


def _draw_distort(count: int, side: int, generator: torch.Generator) -> Parameters:
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
        "flip": torch.randint(0, 2, (count,), generator=generator, dtype=torch.bool),
    }


def _apply_distort(images: Tensor, drawn: Parameters) -> Tensor:
    """Rotate, scale, shear, shift, change contrast and brightness, and cover a rectangle with grey. Never mirrors."""
    if not len(images):
        return images
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
    grid = F.affine_grid(affine, list(images.shape), align_corners=False)
    moved = F.grid_sample(images.float(), grid, padding_mode="border", align_corners=False)
    middle = moved.mean((1, 2, 3), keepdim=True)
    contrast, brightness = (drawn[name].view(-1, 1, 1, 1) for name in ("contrast", "brightness"))
    coloured = (moved - middle) * contrast + middle + brightness
    covered = torch.where(_hole(images, drawn), 128.0, coloured)
    return covered.round().clamp(0, 255).to(torch.uint8)


def _apply_distort_flip(images: Tensor, drawn: Parameters) -> Tensor:
    mirrored = torch.where(drawn["flip"][:, None, None, None], images.flip(-1), images)
    return _apply_distort(mirrored, drawn)


def _hole(images: Tensor, drawn: Parameters) -> Tensor:
    """True (n, 1, H, W) inside a square with up to 0.4 of the side, somewhere in each image."""
    height, width = images.shape[-2:]
    half = (drawn["hole_side"] * min(height, width) / 2).view(-1, 1, 1)
    y = (torch.arange(height, device=images.device) + 0.5)[None, :, None] - (drawn["hole"][:, 0] * height).view(
        -1, 1, 1
    )
    x = (torch.arange(width, device=images.device) + 0.5)[None, None, :] - (drawn["hole"][:, 1] * width).view(-1, 1, 1)
    return ((y.abs() <= half) & (x.abs() <= half))[:, None]


def _draw_nothing(count: int, side: int, generator: torch.Generator) -> Parameters:
    return {}


VIEWS: dict[str, View] = {
    "plain": View(_draw_nothing, lambda images, drawn: images),
    "crop": View(_draw_crop, _apply_crop),
    "crop-flip": View(_draw_crop, _apply_crop_flip),
    "distort": View(_draw_distort, _apply_distort),  # digits and documents: never mirrored
    "distort-flip": View(_draw_distort, _apply_distort_flip),
}
