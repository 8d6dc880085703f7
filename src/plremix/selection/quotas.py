"""Quotas: class scores levelled so that each class gets its share of all samples.

Under heavy noise a whole cluster may carry more labels of a neighbouring class than of its own; that class would then
take two clusters and leave another with none. Quotas settle it by what fits best over all (Sinkhorn's rounds).
"""

from __future__ import annotations

import torch
from torch import Tensor


def fill_quotas(posterior: Tensor, shares: Tensor, sharpness: float) -> Tensor:
    """Sharpen posteriors (N, C), and level them so that each class gets its share (C,) of all samples."""
    return level_classes(sharpness * posterior.clamp(min=1e-30).log(), shares)


def level_classes(scores: Tensor, shares: Tensor, rounds: int = 100) -> Tensor:
    """Posteriors (N, C) of log scores (N, C) with an offset a class, such that class means are `shares` (C,)."""
    wanted = shares.clamp(min=1e-30).log()
    offsets = torch.zeros_like(shares)
    for _ in range(rounds):
        reached = (scores + offsets).softmax(1).mean(0).clamp(min=1e-30).log()
        offsets = torch.where(shares > 0, offsets + wanted - reached, -torch.inf)
    return (scores + offsets).softmax(1)
