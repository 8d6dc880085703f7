"""The verdict on every given label, once training is over: how believable, wrong or not, and what it should be.

It need not be the split that was trained on: a loose split trains better, a tight one judges better. Where there are
only networks, their logits are turned into the margin of the given label over the best other class; the margins of
right and of wrong labels are two bells of one width, which a mixture with tied variance finds. Where there is a
neighbourhood, it counts beside them, and the label is wrong if both together find another class more probable; on hard
images, where they are often mistaken themselves, the given label has the benefit of the doubt (`doubt.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from plremix.selection.doubt import likeliest_shares, weigh_labels

NETWORKS = 0.7  # their share in it beside the neighbourhood; chosen on the digits, holds on photographs (docs)


class Verdict(NamedTuple):
    """One row a sample; what `labels.csv` is made of."""

    label_score: NDArray[np.float64]  # (N,) in [0, 1], low = likely wrong; continuous, so that it ranks to the end
    is_label_issue: NDArray[np.bool_]  # (N,)
    predicted: NDArray[np.int64]  # (N,) most probable class
    confidence: NDArray[np.float64]  # (N,) its probability

    def at_strictness(self, strictness: float) -> Verdict:
        """Fewer or more labels flagged, by their scores: none at 0, as judged at 0.5, all but the safest half at 1."""
        judged, count = int(self.is_label_issue.sum()), len(self.label_score)
        if strictness == 0.5:
            return self
        if strictness < 0.5:
            wanted = round(2 * strictness * judged)
        else:
            wanted = round(judged + (2 * strictness - 1) * max(count // 2 - judged, 0))
        order = np.lexsort((self.label_score, ~self.is_label_issue))  # flagged ones first, worst first
        flagged = np.zeros(count, dtype=np.bool_)
        flagged[order[:wanted]] = True
        return self._replace(is_label_issue=flagged)

    def corrected(self, labels: NDArray[np.integer]) -> NDArray[np.int64]:
        """The given labels (N,) with the most probable class in place of those that look wrong."""
        return np.where(self.is_label_issue, self.predicted, labels)


def label_margins(logits: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Logit of the given label minus the best other one (N,): negative where the network disagrees."""
    values = np.array(logits, dtype=np.float64)
    rows = np.arange(len(values))
    given = values[rows, labels]
    values[rows, labels] = -np.inf
    margins: NDArray[np.float64] = given - values.max(1)
    return margins


def judge_labels(logits: NDArray[np.floating], labels: NDArray[np.integer]) -> Verdict:
    """Judge the given labels (N,) by the logits (networks, N, C) of all networks."""
    margins = np.mean([label_margins(one, labels) for one in logits], axis=0)
    margins = np.clip(np.nan_to_num(margins), -1e6, 1e6)
    probabilities = _softmax(np.mean(logits, axis=0))  # as the networks predict together
    return _verdict(margins, _lower_bell(margins), probabilities)


def judge_together(
    logits: NDArray[np.floating],
    neighbourhood: NDArray[np.floating],
    labels: NDArray[np.integer],
    wrong: float | None = None,
) -> Verdict:
    """Judge the given labels (N,) by all networks' logits (networks, N, C) and the neighbourhood's posteriors (N, C).

    Where about `wrong` of the labels seem wrong, they have the benefit of the doubt; without it they count for nothing.
    """
    by_networks = np.mean([_softmax(one) for one in logits], axis=0)
    known = NETWORKS * by_networks + (1 - NETWORKS) * neighbourhood
    if wrong is not None:
        both, given = torch.from_numpy(known).double(), torch.from_numpy(labels.astype(np.int64))
        known = weigh_labels(both, given, likeliest_shares(both, given, wrong)).numpy()
    margins = label_margins(np.log(np.maximum(known, 1e-300)), labels)
    return _verdict(margins, margins < 0, known)


def _verdict(margins: NDArray[np.float64], wrong: NDArray[np.bool_], probabilities: NDArray[np.float64]) -> Verdict:
    return Verdict(
        label_score=1 / (1 + np.exp(-margins / max(1.0, np.abs(margins).max() / 30))),  # beyond 30, 1 + exp(-m) is 1
        is_label_issue=wrong,
        predicted=probabilities.argmax(1).astype(np.int64),
        confidence=probabilities.max(1),
    )


def _lower_bell(margins: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Samples that belong to the lower of two bells; where the bells do not straddle 0, the sign decides."""
    disagreeing = margins < 0
    if len(np.unique(margins)) < 3 or disagreeing.all() or not disagreeing.any():
        return disagreeing
    points = margins[:, None]
    start = np.array([[margins[disagreeing].mean()], [margins[~disagreeing].mean()]])
    spread = max(float(margins.var()), 1e-12)
    mixture = GaussianMixture(
        n_components=2, covariance_type="tied", reg_covar=1e-3 * spread, means_init=start, max_iter=200, random_state=0
    ).fit(points)
    low, high = sorted(mixture.means_[:, 0])
    if not low < 0 < high:
        return disagreeing
    lower: NDArray[np.bool_] = mixture.predict(points) == int(mixture.means_[:, 0].argmin())
    return lower


def _softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    shifted = np.nan_to_num(logits.astype(np.float64))
    powers = np.exp(shifted - shifted.max(1, keepdims=True))
    probabilities: NDArray[np.float64] = powers / powers.sum(1, keepdims=True)
    return probabilities
