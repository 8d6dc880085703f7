"""The contrast part: which pairs of a batch attract or repel each other. Parts are chosen by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from plremix.losses import contrast_with_stats, reliable_negatives

# embeddings (b, v, d), class scores (b, C), given labels (b,) or None, kappa, flat, temperature -> loss, what it saw
ContrastPart = Callable[[Tensor, Tensor, Tensor | None, int, bool, float], tuple[Tensor, dict[str, Tensor]]]


def simclr(
    embeddings: Tensor, class_scores: Tensor, labels: Tensor | None, kappa: int, flat: bool, temperature: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Every other sample is a negative."""
    return contrast_with_stats(embeddings, flat=flat, temperature=temperature)


def scl(
    embeddings: Tensor, class_scores: Tensor, labels: Tensor | None, kappa: int, flat: bool, temperature: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Samples of the same pseudo label are positives, all others negatives."""
    pseudo_labels = class_scores.argmax(1)
    same = pseudo_labels[:, None] == pseudo_labels[None, :]
    return contrast_with_stats(embeddings, positives=same, flat=flat, temperature=temperature)


def plr(
    embeddings: Tensor, class_scores: Tensor, labels: Tensor | None, kappa: int, flat: bool, temperature: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Only samples whose likely classes are disjoint are negatives (paper, sec. 3.3)."""
    negatives = reliable_negatives(class_scores, kappa, labels)
    return contrast_with_stats(embeddings, negatives, flat=flat, temperature=temperature)


CONTRASTS: dict[str, ContrastPart] = {"simclr": simclr, "scl": scl, "plr": plr}
