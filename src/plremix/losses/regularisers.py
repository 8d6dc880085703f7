"""Terms that keep the predictions of a batch from collapsing or from becoming sure too early."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def prior_penalty(logits: Tensor) -> Tensor:
    """sum_c pi_c log(pi_c / p_c), with pi uniform p the batch mean of softmax(logits (b, C)): L_reg of the paper."""
    mean = F.softmax(_full(logits), dim=1).mean(0)
    return -(mean.clamp(min=1e-30).log().mean() + math.log(logits.shape[1]))


def negative_entropy(logits: Tensor) -> Tensor:
    """Mean negative entropy of the predictions (b, C): added in warm-up under asymmetric noise."""
    log_probability = F.log_softmax(_full(logits), dim=1)
    return (log_probability.exp() * log_probability).sum(1).mean()


def _full(tensor: Tensor) -> Tensor:
    """Half precision goes up to float32; float64 stays."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
