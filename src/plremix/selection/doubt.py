"""What a given label is itself worth: how many are wrong, read from how well posteriors foretell them, and Bayes' rule.

On easy images who contradicts a label is mostly right. On hard ones the prediction is as likely to be the mistake, and
where few labels are wrong a label should be believed against a prediction that is only a little surer of another class.
How many are wrong and how sure the posteriors may be of themselves are not known, but both show: labels that posteriors
have not seen are likeliest under the right ones. Shapes: N samples, C classes.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.selection.quotas import fill_quotas

ENOUGH = 50_000  # samples to find the shares of pairs by
SHARPNESS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)


def calibrate(posterior: Tensor, labels: Tensor) -> tuple[Tensor, float]:
    """Posteriors (N, C) as sharp as the given labels (N,) bear out, and the share of those that is wrong.

    `posterior` must not know a sample's own label. Wrong labels are taken to go to all other classes alike.
    """
    classes = posterior.shape[1]
    shares = torch.bincount(labels, minlength=classes) / len(labels)
    best, rate, likelihood = posterior, 0.0, -torch.inf
    for sharpness in SHARPNESS:
        levelled = fill_quotas(posterior, shares, sharpness)
        wrong, fits = wrong_share(levelled.gather(1, labels[:, None])[:, 0], classes)
        if fits > likelihood:
            best, rate, likelihood = levelled, wrong, fits
    return best, rate


def wrong_share(believed: Tensor, classes: int, rounds: int = 60) -> tuple[float, float]:
    """The share of wrong labels under which the given ones, believed (N,) beforehand, are likeliest; their mean
    log-likelihood. Each round takes the mean of what is believed afterwards for the next share."""
    believed, wrong = believed.double(), 0.3
    for _ in range(rounds):
        right = believed * (1 - wrong)
        likelihood = (right + (1 - believed) * wrong / (classes - 1)).clamp(min=1e-300)
        wrong = min(max(1 - float((right / likelihood).mean()), 1e-3), 1 - 1 / classes)
    return wrong, float(likelihood.log().mean())


def confident_joint(posterior: Tensor, labels: Tensor) -> Tensor:
    """How many samples of each true class (rows) were given each label (columns), (C, C), as far as one can be sure.

    A sample counts for the most probable of those classes that it is as sure of as samples with that label are on
    average, and for none where there is no such class. Columns are stretched to the number of labels.
    """
    classes = posterior.shape[1]
    given = F.one_hot(labels, classes).to(posterior.dtype)
    counts = given.sum(0)
    usual = (posterior * given).sum(0) / counts.clamp(min=1)
    sure = (posterior >= usual) & (counts > 0)
    counted = sure.any(1)
    true = posterior.masked_fill(~sure, -1).argmax(1)[counted]
    joint = 0.5 * torch.eye(classes).to(posterior)  # a class that nobody is sure of keeps its labels
    joint.index_put_((true, labels[counted]), torch.ones_like(true, dtype=joint.dtype), accumulate=True)
    return joint / joint.sum(0) * counts


def rate_by_count(posterior: Tensor, labels: Tensor) -> float:
    """The share of wrong labels as the confident joint counts them; at most what blind guessing would have."""
    joint = confident_joint(posterior, labels)
    return min(1 - float(joint.diagonal().sum() / joint.sum()), 1 - 1 / posterior.shape[1])


def rate_by_quotas(posterior: Tensor, labels: Tensor) -> float:
    """The share of the labels (N,) that are not the most probable class once each class has its share of samples."""
    shares = torch.bincount(labels, minlength=posterior.shape[1]) / len(labels)
    return float((fill_quotas(posterior, shares, 1.0).argmax(1) != labels).float().mean())


def foretells(posterior: Tensor, labels: Tensor, deviations: float = 4.0) -> bool:
    """Whether the most probable class is the given label more often than by chance, by so many standard deviations."""
    classes, count, predicted = posterior.shape[1], len(labels), posterior.argmax(1)
    shares = [torch.bincount(one, minlength=classes).double() / count for one in (predicted, labels)]
    chance = float(shares[0] @ shares[1])
    hits = float((predicted == labels).double().mean())
    return hits > chance + deviations * math.sqrt(chance * (1 - chance) / count)


def shares_alike(wrong: float, classes: int) -> Tensor:
    """The share of each label (columns) among the samples of each true class (rows), (C, C), where every class has as
    many wrong labels and they go to all others alike."""
    shares = torch.full((classes, classes), wrong / (classes - 1), dtype=torch.float64)
    return shares.fill_diagonal_(1 - wrong)


def shares_by_count(posterior: Tensor, labels: Tensor) -> Tensor:
    """Such shares, pair by pair as the confident joint counts them."""
    joint = confident_joint(posterior, labels)
    return joint / joint.sum(1, keepdim=True).clamp(min=1e-12)


def likeliest_shares(posterior: Tensor, labels: Tensor, wrong: float, rounds: int = 40) -> Tensor:
    """Such shares: alike for all pairs, or each pair's own where the labels are much likelier so.

    Labels that went from one class to one other look like images that cannot be told apart, and no label alike seems
    wrong. What each pair has of its own is found as in `wrong_share`, and believed if it explains twice as much as so
    many free shares, chosen among all pairs, would of labels at random (the extended Bayesian information criterion):
    on hard images the posteriors' own mistakes go by pairs, too.
    Of very many samples a part, evenly spread, is enough.
    """
    every, classes = -(-len(labels) // ENOUGH), posterior.shape[1]
    some, given = posterior[::every].double(), labels[::every]
    shares = shares_alike(max(wrong, 0.05), classes).to(some)
    for _ in range(rounds):
        joint = torch.zeros_like(shares).index_add_(0, given, weigh_labels(some, given, shares)).T
        shares = (joint + 1e-9) / (joint + 1e-9).sum(1, keepdim=True)
    used, pairs = int((joint > 1).sum() - (joint.diagonal() > 1).sum()), classes * (classes - 1)
    _, likelihood = wrong_share(some.gather(1, given[:, None])[:, 0], classes)
    gain = _log_likelihood(some, given, shares) - len(given) * likelihood
    choices = math.lgamma(pairs + 1) - math.lgamma(used + 1) - math.lgamma(pairs - used + 1)
    if used and gain > 2 * (used / 2 * math.log(len(given)) + choices):
        return shares
    return shares_alike(wrong, classes).to(some)


def _log_likelihood(posterior: Tensor, labels: Tensor, shares: Tensor) -> float:
    return float((posterior * shares[:, labels].T).sum(1).clamp(min=1e-300).log().sum())


def weigh_votes(posterior: Tensor, votes: Tensor, shares: Tensor, weight: float) -> Tensor:
    """Class posteriors (N, C) that also know how many labels of each class are near a sample, votes (N, C), by the
    shares (C, C) in which classes are given labels. Labels of one place are not independent, so each counts for
    `weight` of one; and a share that was counted as none is not believed to be none."""
    evidence = votes @ shares.clamp(min=0.01).log().T.to(votes)
    return (posterior.clamp(min=1e-4).log() + weight * evidence).softmax(1)


def weigh_labels(posterior: Tensor, labels: Tensor, shares: Tensor) -> Tensor:
    """Class posteriors (N, C) that know the given labels (N,), by the shares (C, C) in which classes are given labels;
    from posteriors (N, C) of the images alone."""
    weighed = posterior * shares.to(posterior)[:, labels].T
    return weighed / weighed.sum(1, keepdim=True).clamp(min=1e-30)
