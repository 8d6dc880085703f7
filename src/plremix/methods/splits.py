"""The split part of co-divide: one network's scores in, who is clean out. Parts are chosen by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.selection import Mixture, fit_mixture, normalise_losses, prototype_logits


class Scores(NamedTuple):
    """What a network says of the un-augmented training set (METHOD, step 4a)."""

    logits: Tensor  # (N, C)
    embeddings: Tensor  # (N, d)
    prototypes: Tensor  # (C, d)


class Split(NamedTuple):
    """Who is clean, and the class scores that PLR takes its likely classes from."""

    clean_probability: Tensor  # (N,)
    class_scores: Tensor  # (N, C)
    losses: Tensor  # (N, f), normalised: what the mixture saw
    mixture: Mixture


SplitPart = Callable[[Scores, Tensor], Split]


def mixture1d(scores: Scores, labels: Tensor) -> Split:
    """A mixture over the classifier's loss alone (DivideMix; the paper's "w/o 2d GMM")."""
    return _by_mixture(scores, F.cross_entropy(scores.logits, labels, reduction="none")[:, None])


def mixture2d(scores: Scores, labels: Tensor) -> Split:
    """A mixture over the classifier's and the prototypes' loss jointly (paper, sec. 3.2)."""
    by_classifier = F.cross_entropy(scores.logits, labels, reduction="none")
    by_prototypes = F.cross_entropy(prototype_logits(scores.embeddings, scores.prototypes), labels, reduction="none")
    return _by_mixture(scores, torch.stack([by_classifier, by_prototypes], dim=1))


def _by_mixture(scores: Scores, losses: Tensor) -> Split:
    mixture = fit_mixture(losses.cpu().numpy())
    device = losses.device
    return Split(
        torch.from_numpy(mixture.clean_probability).float().to(device),
        scores.logits,
        torch.from_numpy(normalise_losses(losses.cpu().numpy())).float(),
        mixture,
    )


SPLITS: dict[str, SplitPart] = {"mixture1d": mixture1d, "mixture2d": mixture2d}
