"""Which samples a step takes, and their views: an index tensor is all that a split or an epoch's order is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from plremix.data.augment import VIEWS, normalise


def passes(indices: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` draws from `indices`: shuffled, and shuffled again as often as it takes; empty stays empty."""
    if not len(indices):
        return indices
    rounds = -(-count // len(indices))
    order = torch.cat([torch.randperm(len(indices), generator=generator) for _ in range(rounds)])
    return indices[order[:count]]


def batches(order: Tensor, size: int) -> Iterator[Tensor]:
    """Full batches of `size`; a set smaller than one batch comes as a single one, so that an epoch is never empty."""
    size = min(size, len(order))
    for start in range(0, len(order) - size + 1, size) if size else ():
        yield order[start : start + size]


@dataclass(frozen=True)
class ImageBank:
    """All images on the device, and how batches of them become views.

    `rank` of `ranks` processes: all is drawn for the whole batch, of which each process takes every ranks-th row.
    """

    images: Tensor  # uint8 (N, c, H, W)
    mean: Tensor  # (c,)
    std: Tensor  # (c,)
    rank: int = 0
    ranks: int = 1

    def __len__(self) -> int:
        return len(self.images)

    def share(self, indices: Tensor) -> Tensor:
        """This process's rows of a batch; a remainder that cannot be shared out evenly is dropped."""
        return indices[: len(indices) // self.ranks * self.ranks][self.rank :: self.ranks]

    def views(self, mine: Tensor, names: tuple[str, ...], generator: torch.Generator) -> list[Tensor]:
        """A view for each name of the samples `mine` (a share), ready for a network: float (n, c, H, W)."""
        images = self.images[mine.to(self.images.device)]
        drawn = [VIEWS[name](images, generator, rank=self.rank, ranks=self.ranks) for name in names]
        return [normalise(view, self.mean, self.std) for view in drawn]
