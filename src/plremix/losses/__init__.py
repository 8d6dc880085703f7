"""Losses as pure functions of tensors; this room imports nothing else of ours, so that a file can be lifted out."""

from plremix.losses.contrastive import (
    PLRLoss,
    contrast_with_stats,
    contrastive_loss,
    likely_classes,
    reliable_negatives,
)
from plremix.losses.regularisers import negative_entropy, prior_penalty
from plremix.losses.semi_supervised import (
    mean_softmax,
    mixup,
    ramped_weight,
    sharpen,
    soft_cross_entropy,
    squared_error,
)

__all__ = [
    "PLRLoss",
    "contrast_with_stats",
    "contrastive_loss",
    "likely_classes",
    "mean_softmax",
    "mixup",
    "negative_entropy",
    "prior_penalty",
    "ramped_weight",
    "reliable_negatives",
    "sharpen",
    "soft_cross_entropy",
    "squared_error",
]
