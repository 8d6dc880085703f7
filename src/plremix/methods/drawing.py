"""Which samples an epoch sees: all of them, or some that are drawn anew, class by class (Clothing1M: 64,000 of 1M)."""

from __future__ import annotations

import torch
from torch import Tensor

from plremix.config import Config
from plremix.data.loading import class_wise
from plremix.randomness import generator


def rows_of(epoch: int, config: Config, labels: Tensor, classes: int, count: int = 0) -> Tensor:
    """Their rows (n,), rising; the same whenever an epoch is run again. `count` of them, or as the config says."""
    count = count or config.epoch_images
    if not count:
        return torch.arange(len(labels))
    return class_wise(labels.cpu(), classes, count, generator(config.seed, "epoch images", epoch))


def spread(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """Values (n, ...) of `rows` in a table of all `count` samples; numbers of the others are unknown (NaN)."""
    if len(rows) == count:
        return values
    unknown = float("nan") if values.is_floating_point() else 0
    table = values.new_full((count, *values.shape[1:]), unknown)
    table[rows.to(values.device)] = values
    return table
