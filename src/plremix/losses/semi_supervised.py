"""The parts of the semi-supervised loss L_SST (paper, sec. 3.4): sharpened targets, MixUp, a term for either side."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """Raise (b, C) to the power 1 / temperature and normalise; in log space, so that tiny probabilities survive."""
    return F.softmax(_full(probabilities).clamp(min=1e-30).log() / temperature, dim=1)


def mixup(images: Tensor, targets: Tensor, share: float, partners: Tensor) -> tuple[Tensor, Tensor]:
    """Blend every image and its target with its partner's (`partners` is a permutation): `share` of itself."""
    return (
        share * images + (1 - share) * images[partners],
        share * targets + (1 - share) * targets[partners],
    )


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of logits (b, C) against soft targets (b, C): the term of the clean side."""
    return -(targets * F.log_softmax(_full(logits), dim=1)).sum(1).mean()


def squared_error(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean over samples *and classes* of (softmax - target)^2: the term of the noisy side.

    The paper's formula sums over classes; the published weights lambda_U belong to the mean.
    """
    return (F.softmax(_full(logits), dim=1) - targets).square().mean()


def ramped_weight(weight: float, epoch: float, warmup_epochs: float, ramp_epochs: float) -> float:
    """lambda_U(t): from 0 at the end of warm-up linearly up to `weight`; `epoch` counts steps as fractions."""
    return weight * min(max((epoch - warmup_epochs) / ramp_epochs, 0.0), 1.0)


def mean_softmax(logits: list[Tensor]) -> Tensor:
    """Mean of the class probabilities (b, C) over views or networks: a guessed label."""
    return torch.stack([F.softmax(_full(one), dim=1) for one in logits]).mean(0)


def _full(tensor: Tensor) -> Tensor:
    """Half precision goes up to float32; float64 stays."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
