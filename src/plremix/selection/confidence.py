"""Self-adaptive confidence thresholds (paper, eq. 5): which samples may move the prototypes.

Shapes: N samples, C classes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


def soft_pseudo_labels(prototype_logits: Tensor, class_logits: Tensor, progress: float) -> Tensor:
    """Class probabilities (N, C) from both heads; at `progress` 0 of the run the classifier alone, at 1 the prototypes.

    As in the published code: a mix of logits with a cosine weight alpha. (The paper mixes probabilities with a
    constant alpha that it does not give.)
    """
    alpha = 0.5 * (1 + math.cos(math.pi * progress))
    return F.softmax((1 - alpha) * prototype_logits + alpha * class_logits, dim=1)


class ConfidenceThresholds(NamedTuple):
    """A global threshold tau_g and class means tau_c; both are exponential moving averages."""

    global_threshold: Tensor  # ()
    class_means: Tensor  # (C,)

    @classmethod
    def start(cls, classes: int, device: torch.device | None = None) -> ConfidenceThresholds:
        return cls(torch.tensor(1 / classes, device=device), torch.full((classes,), 1 / classes, device=device))

    def updated(self, pseudo_labels: Tensor, momentum: float = 0.99) -> ConfidenceThresholds:
        """The thresholds after seeing all samples' soft pseudo labels (N, C) once."""
        return ConfidenceThresholds(
            momentum * self.global_threshold + (1 - momentum) * pseudo_labels.max(1).values.mean(),
            momentum * self.class_means + (1 - momentum) * pseudo_labels.mean(0),
        )

    def confident(self, pseudo_labels: Tensor) -> Tensor:
        """Samples (N,) whose largest probability reaches the threshold of its class."""
        confidence, likely_class = pseudo_labels.max(1)
        thresholds = self.class_means / self.class_means.max() * self.global_threshold
        return confidence >= thresholds[likely_class]
