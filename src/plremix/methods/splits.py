"""The split part of co-divide: what both networks say of the training set in, who is clean out, for each network.

Parts are chosen by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.config import CoDivideConfig
from plremix.losses import mean_softmax, sharpen
from plremix.methods.drawing import spread
from plremix.methods.forgetting import estimated_rate, smallest
from plremix.selection import (
    Mixture,
    Neighbours,
    calibrate,
    count_labels,
    fill_quotas,
    fit_mixture,
    nearest_neighbours,
    normalise_losses,
    prototype_logits,
    shares_by_count,
    spread_labels,
    vote_in_clusters,
    weigh_labels,
    weigh_votes,
)


class Scores(NamedTuple):
    """What a network says of the un-augmented training set, once an epoch."""

    logits: Tensor  # (N, C)
    embeddings: Tensor  # (N, d)
    prototypes: Tensor  # (C, d)
    past: tuple[Tensor, ...] = ()  # (N, 2) each: both losses of the epochs before, scaled to 0..1
    noise_rate: float | None = None  # share of the labels that the first split found wrong, once there was one


class Split(NamedTuple):
    """Who is clean, how sure that is, and the class scores that PLR takes its likely classes from."""

    is_clean: Tensor  # bool (N,)
    clean_probability: Tensor  # (N,): weight of the given label in the targets of the clean side
    class_scores: Tensor  # (N, C)
    points: Tensor  # (N, 1 or 2) in [0, 1]: what the decision was made from, for people to look at
    mixture: Mixture | None = None
    guesses: Tensor | None = None  # (N, C): what the split itself thinks of each sample
    guess_weight: float = 0.0  # its weight in the noisy side's guessed labels
    order: Tensor | None = None  # (N,): who is more likely clean than whom, where the probability does not tell

    def of_all(self, rows: Tensor, count: int) -> Split:
        """A split of the samples `rows` as tables of all `count`, so that a sample has one number in all places."""
        return self._replace(
            is_clean=spread(self.is_clean, rows, count),
            clean_probability=spread(self.clean_probability, rows, count),
            class_scores=spread(self.class_scores, rows, count),
            guesses=None if self.guesses is None else spread(self.guesses, rows, count),
            order=None if self.order is None else spread(self.order, rows, count),
        )


SplitPart = Callable[[Sequence[Scores], Tensor, CoDivideConfig, int], list[Split]]  # the last: epoch


def mixture1d(scores: Sequence[Scores], labels: Tensor, config: CoDivideConfig, epoch: int) -> list[Split]:
    """A mixture over the classifier's loss alone (DivideMix; the paper's "w/o 2d GMM")."""
    return [_by_mixture(one, _classifier_loss(one, labels)[:, None], config) for one in scores]


def mixture2d(scores: Sequence[Scores], labels: Tensor, config: CoDivideConfig, epoch: int) -> list[Split]:
    """A mixture over the classifier's and the prototypes' loss jointly (paper, sec. 3.2)."""
    return [_by_mixture(one, both_losses(one, labels), config) for one in scores]


def neighbours(scores: Sequence[Scores], labels: Tensor, config: CoDivideConfig, epoch: int) -> list[Split]:
    """Clean where the most probable class is the given one; the neighbourhood decides early, the networks late.

    After warm-up the embeddings' neighbourhoods know the classes far better than the classifiers do; at the end of
    training it is the other way round (docs/figures.md). Both networks' graphs count: where one is wrong by chance, the
    other mostly is not. Whole clusters have a say beside it, for where labels are so noisy that only many of them
    together mean something. PLR's sets come from the same posteriors, and so does a part of the noisy side's guessed
    labels. What the nearest samples were given is evidence once more, for as much as labels are worth: a group of
    images that all of these take for another class is given back by its labels. With the benefit of the doubt a
    sample's own label counts so, too.
    """
    classes = scores[0].logits.shape[1]
    shares = torch.bincount(labels, minlength=classes) / len(labels)
    embeddings, sharpness = [one.embeddings for one in scores], config.neighbour_sharpness
    graphs = [nearest_neighbours(own, config.neighbours) for own in embeddings]
    together = _spread(graphs, labels, classes, config, folds=5 if config.benefit_of_doubt else 1)
    early = calibrate(together, labels)[0] if config.benefit_of_doubt else fill_quotas(together, shares, sharpness)
    if config.cluster_vote:
        voted = vote_in_clusters(embeddings, labels, classes)
        early = (1 - config.cluster_vote) * early + config.cluster_vote * voted
    late = mean_softmax([torch.nan_to_num(one.logits) for one in scores])
    trust = config.trust_in_networks(epoch)
    posterior = fill_quotas((1 - trust) * early + trust * late, shares, 1.0)
    # PLR's sets are taken before the quotas: those make a class that is short of samples everybody's second choice, and
    # then hardly a pair is left whose sets are disjoint.
    likely = (1 - trust) * sharpen(together, 1 / sharpness) + trust * late
    guess_weight = (1 - trust) / 2
    if config.neighbour_votes:
        votes = torch.stack([count_labels(graph, labels, classes) for graph in graphs]).mean(0)
        given_as = shares_by_count(posterior, labels)
        posterior, likely = (weigh_votes(part, votes, given_as, config.neighbour_votes) for part in (posterior, likely))
        guess_weight = 0.5

    known = posterior
    if config.benefit_of_doubt:
        known = weigh_labels(posterior, labels, shares_by_count(posterior, labels))
    believed = known.gather(1, labels[:, None])[:, 0]
    is_clean = known.argmax(1) == labels
    splits = []
    for one in scores:
        losses = scaled_losses(_classifier_loss(one, labels)).float()
        points = torch.cat([losses, 1 - believed.cpu()[:, None]], dim=1)
        splits.append(Split(is_clean, believed, likely, points, guesses=posterior, guess_weight=guess_weight))
    return splits


def neighbourhood(
    embeddings: Sequence[Tensor], labels: Tensor, classes: int, config: CoDivideConfig, folds: int
) -> Tensor:
    """Class posteriors (N, C) by the graphs of all networks' embeddings (N, d); flat, however right.

    With more folds than one, no sample's posteriors know its own label.
    """
    graphs = [nearest_neighbours(own, config.neighbours) for own in embeddings]
    return _spread(graphs, labels, classes, config, folds)


def _spread(graphs: Sequence[Neighbours], labels: Tensor, classes: int, config: CoDivideConfig, folds: int) -> Tensor:
    """The same, of graphs that are there already."""
    each = [spread_labels(graph, labels, classes, config.neighbour_alpha, folds=folds) for graph in graphs]
    return torch.stack(each).mean(0)


def small_loss(scores: Sequence[Scores], labels: Tensor, config: CoDivideConfig, epoch: int) -> list[Split]:
    """As many of the smallest losses as there seemed to be right labels after warm-up (Co-teaching's rule for the whole
    set): later on networks know wrong labels by heart, and would find more and more of them right. Where there was no
    warm-up, the first estimate is worth nothing, and each epoch makes its own."""
    known = scores[0].noise_rate if config.warmup_epochs else None
    rate = estimated_rate([one.logits for one in scores], labels) if known is None else known
    splits = []
    for one in scores:
        losses = torch.nan_to_num(_classifier_loss(one, labels), nan=torch.inf)
        is_clean = torch.zeros_like(labels, dtype=torch.bool)
        is_clean[smallest(losses, 1 - rate)] = True
        believed = F.softmax(torch.nan_to_num(one.logits.float()), dim=1).gather(1, labels[:, None])[:, 0]
        splits.append(Split(is_clean, believed, one.logits, scaled_losses(losses).float()))
    return splits


def class_balanced(scores: Sequence[Scores], labels: Tensor, config: CoDivideConfig, epoch: int) -> list[Split]:
    """As many samples of every class: those whose predictions diverge least from the given label (UNICON).

    The cut is the mean divergence; UNICON's further rule for large ones cannot apply (the natural-log divergence never
    reaches its bound), and is left out. So are two accidents of the published code: a class with too few samples fills
    its places with sample 0, and the first network scores in training mode when the second one's division is made.
    """
    together = mean_softmax([torch.nan_to_num(one.logits) for one in scores])
    divergence = divergence_from_labels(together, labels)
    classes = together.shape[1]
    share = float((divergence < divergence.mean()).float().mean())
    quota = max(1, int(share * len(labels) / classes))
    is_clean = torch.zeros_like(labels, dtype=torch.bool)
    for label in labels.unique().tolist():  # type: ignore[no-untyped-call]
        members = (labels == label).nonzero()[:, 0]
        is_clean[members[divergence[members].argsort(stable=True)[:quota]]] = True
    believed = torch.where(divergence < 0.5, 1.0, 1 - divergence)
    points = scaled_losses(divergence).float()
    return [Split(is_clean, believed, one.logits, points, order=1 - divergence) for one in scores]


def divergence_from_labels(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Jensen-Shannon divergence (N,) of predictions (N, C) from the one-hot given labels, natural logarithm."""
    given = F.one_hot(labels, probabilities.shape[1]).to(probabilities.dtype)
    middle = (probabilities + given) / 2

    def from_middle(one: Tensor) -> Tensor:
        return torch.where(one > 0, one * (one.clamp(min=1e-30) / middle.clamp(min=1e-30)).log(), 0.0).sum(1)

    return (from_middle(probabilities) + from_middle(given)) / 2


def both_losses(scores: Scores, labels: Tensor) -> Tensor:
    """Losses (N, 2) of the given labels: by the classifier, and by the prototypes."""
    by_prototypes = F.cross_entropy(prototype_logits(scores.embeddings, scores.prototypes), labels, reduction="none")
    return torch.stack([_classifier_loss(scores, labels), by_prototypes], dim=1)


def _classifier_loss(scores: Scores, labels: Tensor) -> Tensor:
    return F.cross_entropy(scores.logits, labels, reduction="none")


def scaled_losses(losses: Tensor) -> Tensor:
    """(N, f), or (N, 1) of a single one (N,), in float64, each column brought to 0..1."""
    return torch.from_numpy(normalise_losses(losses.cpu().numpy()))


def _by_mixture(scores: Scores, losses: Tensor, config: CoDivideConfig) -> Split:
    """A mixture over losses (N, f), averaged over the epochs that there are; the mean is not scaled once more."""
    now = scaled_losses(losses)
    points = torch.stack([*(past[:, : now.shape[1]] for past in scores.past), now]).mean(0) if scores.past else now
    mixture = fit_mixture(points.numpy(), scaled=True, steps=config.mixture_steps)
    probability = torch.from_numpy(mixture.clean_probability).float().to(losses.device)
    return Split(probability > config.clean_threshold, probability, scores.logits, points.float(), mixture)


SPLITS: dict[str, SplitPart] = {
    "mixture1d": mixture1d,
    "mixture2d": mixture2d,
    "neighbours": neighbours,
    "small-loss": small_loss,
    "class-balanced": class_balanced,
}
