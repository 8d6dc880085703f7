"""Momentum class prototypes (paper, sec. 3.2): one unit vector a class in embedding space, and how they move.

Shapes: N samples, C classes, d embedding size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

TEMPERATURE = 0.1  # tau_s, paper, eq. 4


def prototype_logits(embeddings: Tensor, prototypes: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """Scaled cosine (N, C) of unit embeddings (N, d) with the prototypes (C, d)."""
    return embeddings @ prototypes.T / temperature


def initial_prototypes(embeddings: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Normalised mean embedding of the samples given each label; a class without samples gets a zero vector."""
    return F.normalize(_class_means(embeddings, labels, classes), dim=1)


def update_prototypes(prototypes: Tensor, embeddings: Tensor, classes_of: Tensor, momentum: float = 0.99) -> Tensor:
    """Move each prototype towards the mean embedding of its confident samples; a class with none keeps its own."""
    means = F.normalize(_class_means(embeddings, classes_of, len(prototypes)), dim=1)
    moved = F.normalize(momentum * prototypes + (1 - momentum) * means, dim=1)
    present = torch.bincount(classes_of, minlength=len(prototypes)) > 0
    return torch.where(present[:, None], moved, prototypes)


def update_prototypes_one_by_one(
    prototypes: Tensor, embeddings: Tensor, classes_of: Tensor, momentum: float = 0.99
) -> Tensor:
    """The update as the paper writes it (eq. 6): one step a sample, in data order."""
    prototypes = prototypes.clone()
    for embedding, k in zip(F.normalize(embeddings, dim=1), classes_of.tolist(), strict=True):
        prototypes[k] = F.normalize(momentum * prototypes[k] + (1 - momentum) * embedding, dim=0)
    return prototypes


def _class_means(embeddings: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Sums would do: the callers normalise. Means keep the scale when a class has very many samples."""
    sums = torch.zeros(classes, embeddings.shape[1], dtype=embeddings.dtype, device=embeddings.device)
    sums.index_add_(0, labels, embeddings)
    counts = torch.bincount(labels, minlength=classes).clamp(min=1)
    return sums / counts[:, None]
