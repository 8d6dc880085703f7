"""Classes read out of whole clusters: where hardly a label in five is right, only many votes together can be trusted.

The embeddings are grouped into as many clusters as there are classes, without looking at labels; then all labels of a
cluster vote on its class. One vote says next to nothing under heavy noise, a hundred say a lot.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from plremix.selection.quotas import level_classes

LARGE = 10_000_000  # samples times classes above which one start of k-means must do


def vote_in_clusters(embeddings: list[Tensor], labels: Tensor, classes: int) -> Tensor:
    """Class posteriors (N, C), the same for all of a cluster; clusters are of all networks' embeddings (N, d) together.

    A label of a cluster's own class is more frequent there than elsewhere by a factor that is estimated from the best
    one-to-one match of clusters and classes; the votes' likelihoods are then levelled to the classes' shares.
    """
    points = torch.cat([F.normalize(torch.nan_to_num(part.float()), dim=1) for part in embeddings], dim=1)
    cluster = _clusters(points.cpu().numpy(), min(classes, len(points)))
    given = labels.cpu().numpy()
    votes = np.zeros((classes, classes))
    np.add.at(votes, (cluster, given), 1)
    matched = votes[linear_sum_assignment(-votes)].sum() / len(given)
    factor = matched * (classes - 1) / max(1 - matched, 1e-6)
    scores = torch.from_numpy(math.log(max(factor, 1.0001)) * votes).float()[torch.from_numpy(cluster).long()]
    shares = torch.bincount(labels.cpu(), minlength=classes) / len(labels)
    return level_classes(scores, shares, rounds=300).to(labels.device)


def _clusters(points: np.ndarray, count: int) -> np.ndarray:
    starts = 10 if len(points) * count <= LARGE else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters: some stay empty
        found: np.ndarray = KMeans(count, n_init=starts, random_state=0).fit_predict(points)
    return found
