"""Classes read out of neighbourhoods: the given labels, spread over the graph of nearest neighbours in embedding space.

Contrastive embeddings put images of one class beside each other long before a classifier that is fed wrong labels knows
it. Where most labels of a neighbourhood agree, that class is believed, whatever the sample itself was given.
Shapes: N samples, d embedding size, k neighbours, C classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

CHUNK = 1024  # rows of the similarity matrix that exist at a time: memory stays linear in N
Floats = NDArray[np.float32]


class Neighbours(NamedTuple):
    """The nearest other samples of each sample, nearest first."""

    indices: Tensor  # int64 (N, k)
    similarities: Tensor  # (N, k), cosine


def nearest_neighbours(embeddings: Tensor, k: int) -> Neighbours:
    """The exact k nearest by cosine, in chunks; fewer where there are not that many others."""
    unit = F.normalize(torch.nan_to_num(embeddings.float()), dim=1)
    k = min(k, len(unit) - 1)
    indices, similarities = [], []
    for start in range(0, len(unit), CHUNK):
        rows = unit[start : start + CHUNK] @ unit.T
        rows[torch.arange(len(rows)), torch.arange(start, start + len(rows))] = -torch.inf  # not its own neighbour
        nearest = rows.topk(k, dim=1)
        indices.append(nearest.indices)
        similarities.append(nearest.values)
    return Neighbours(torch.cat(indices), torch.cat(similarities))


def spread_labels(
    neighbours: Neighbours, labels: Tensor, classes: int, alpha: float, power: float = 3.0, folds: int = 1
) -> Tensor:
    """Class posteriors (N, C): how much of each class's labels reaches a sample over the graph.

    Solves (I - alpha S) Z = Y / class counts, with S the symmetric graph (weights cosine ** power) normalised by
    degree; then columns and rows are normalised, so that a frequent label is not believed for being frequent. alpha
    near 1 lets labels travel far. A sample's own label counts as one vote among those of its surroundings; with more
    folds than one it does not: a fold's posteriors then come from the labels of the others.
    """
    graph = _normalised_graph(neighbours, power)
    given = labels.cpu().numpy()
    rows, spread = np.arange(len(given)), np.zeros((len(given), classes), dtype=np.float32)
    fold = np.random.default_rng(0).permutation(len(given)) % folds  # at random: labels may come in turn
    for one in range(folds):
        theirs = fold == one
        known = rows if folds == 1 else rows[~theirs]
        start = np.zeros_like(spread)
        start[known, given[known]] = 1
        start /= np.maximum(start.sum(0), 1)
        spread[theirs] = np.maximum(_solve(graph, start, alpha)[theirs], 0)
    spread /= np.maximum(spread.sum(0), 1e-30)
    total = spread.sum(1, keepdims=True)
    posterior = np.where(total > 0, spread / np.maximum(total, 1e-30), 1 / classes)
    return torch.from_numpy(posterior.astype(np.float32)).to(labels.device)


def count_labels(neighbours: Neighbours, labels: Tensor, classes: int) -> Tensor:
    """How many of a sample's neighbours, and of itself, were given each class (N, C)."""
    near = torch.cat([labels[:, None], labels[neighbours.indices]], dim=1)
    return torch.zeros(len(labels), classes, device=labels.device).scatter_add_(1, near, torch.ones_like(near).float())


def _normalised_graph(neighbours: Neighbours, power: float) -> sparse.csr_matrix:
    """S = D^-1/2 W D^-1/2 of the neighbour graph, made symmetric."""
    count, k = neighbours.indices.shape
    weights = neighbours.similarities.clamp(min=0).pow(power).cpu().numpy().astype(np.float32)
    columns = neighbours.indices.cpu().numpy()
    one_way = sparse.csr_matrix((weights.ravel(), columns.ravel(), np.arange(0, count * k + 1, k)), (count, count))
    graph = one_way + one_way.T
    scale = 1 / np.sqrt(np.maximum(np.asarray(graph.sum(1)).ravel(), 1e-12))
    return sparse.csr_matrix(sparse.diags(scale) @ graph @ sparse.diags(scale))


def _solve(graph: sparse.csr_matrix, start: Floats, alpha: float, tolerance: float = 1e-4, most: int = 200) -> Floats:
    """(I - alpha S)^-1 start by conjugate gradients, all classes at once; the matrix is positive definite."""
    solution = start.copy()
    residual = alpha * (graph @ start)  # start - (I - alpha S) start
    direction = residual.copy()
    size = (residual * residual).sum(0)
    enough = tolerance**2 * np.maximum((start * start).sum(0), 1e-30)
    for _ in range(most):
        if (size <= enough).all():
            break
        image = direction - alpha * (graph @ direction)
        step = size / np.maximum((direction * image).sum(0), 1e-30)
        solution += step * direction
        residual -= step * image
        shrunk = (residual * residual).sum(0)
        direction = residual + shrunk / np.maximum(size, 1e-30) * direction
        size = shrunk
    return solution
