"""How much of a batch the small-loss methods leave out: the noise rate, told or estimated, reached bit by bit."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from plremix.selection import judge_labels


def kept_share(rate: float, epoch: int, first: int, epochs: int) -> float:
    """R(e) = 1 - rate * min((e - first) / (epochs - 1), 1): all at epoch `first`, 1 - rate `epochs` epochs later."""
    return 1 - rate * min(max((epoch - first) / max(1, epochs - 1), 0.0), 1.0)


def smallest(losses: Tensor, share: float) -> Tensor:
    """Places (k,) of the smallest of losses (b,): floor(share * b) of them, at least one."""
    return losses.argsort(stable=True)[: max(1, int(share * len(losses)))]


def estimated_rate(logits: Sequence[Tensor], labels: Tensor) -> float:
    """Share of the labels that the networks' logits (N, C) speak against, as in the final verdict."""
    stacked = torch.stack(list(logits)).cpu().numpy()
    return float(judge_labels(stacked, labels.cpu().numpy()).is_label_issue.mean())
