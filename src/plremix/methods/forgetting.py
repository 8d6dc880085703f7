"""How much of a batch the small-loss methods leave out: the noise rate, told or estimated, reached bit by bit."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from plremix.losses import mean_softmax
from plremix.selection import rate_by_quotas


def kept_share(rate: float, epoch: int, first: int, epochs: int) -> float:
    """R(e) = 1 - rate * min((e - first) / (epochs - 1), 1): all at epoch `first`, 1 - rate in the last of `epochs`."""
    return 1 - rate * min(max((epoch - first) / max(1, epochs - 1), 0.0), 1.0)


def smallest(losses: Tensor, share: float) -> Tensor:
    """Places (k,) of the smallest of losses (b,): floor(share * b) of them, at least one."""
    return losses.argsort(stable=True)[: max(1, int(share * len(losses)))]


def estimated_rate(logits: Sequence[Tensor], labels: Tensor) -> float:
    """Share of the labels that networks which have learned little yet speak against together, by their logits (N, C).

    At that moment they take many samples for the same few classes, so each class is given its quota first.
    """
    return rate_by_quotas(mean_probabilities(logits), labels)


def mean_probabilities(logits: Sequence[Tensor]) -> Tensor:
    """(N, C) from each network's logits, of which some may not be finite."""
    return mean_softmax([torch.nan_to_num(one) for one in logits])
