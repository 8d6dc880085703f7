"""Labels spread over the neighbour graph: exact, and right where most given labels are wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.selection import count_labels, fill_quotas, nearest_neighbours, spread_labels
from plremix.selection import neighbours as module


def clusters(count: int, classes: int, wrong: float, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings in one cluster a class, the truth, and given labels of which a share is redrawn."""
    draws = torch.Generator().manual_seed(seed)
    truth = torch.arange(count) % classes
    centres = F.normalize(torch.randn(classes, 16, generator=draws), dim=1)
    embeddings = F.normalize(centres[truth] + 0.15 * torch.randn(count, 16, generator=draws), dim=1)
    redrawn = torch.rand(count, generator=draws) < wrong
    given = torch.where(redrawn, torch.randint(0, classes, (count,), generator=draws), truth)
    return embeddings, truth, given


def test_neighbours_equal_a_full_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    embeddings, _, _ = clusters(50, 4, 0.0)
    found = nearest_neighbours(embeddings * 3, 5)
    cosine = embeddings @ embeddings.T
    cosine.fill_diagonal_(-2)
    expected = cosine.sort(dim=1, descending=True)
    assert torch.equal(found.indices, expected.indices[:, :5])
    assert torch.allclose(found.similarities, expected.values[:, :5], atol=1e-6)


def test_labels_nearby_are_counted_with_ones_own() -> None:
    embeddings, _, given = clusters(50, 4, 0.5)
    graph = nearest_neighbours(embeddings, 5)
    votes = count_labels(graph, given, 5)
    for row, near in enumerate(graph.indices.tolist()):
        labels = [int(given[other]) for other in (row, *near)]
        assert votes[row].tolist() == [labels.count(label) for label in range(5)]


def test_spreading_equals_the_inverse_matrix() -> None:
    embeddings, _, given = clusters(80, 4, 0.7)
    found = nearest_neighbours(embeddings, 6)
    weights = np.zeros((80, 80))
    for i in range(80):
        for j, s in zip(found.indices[i].tolist(), found.similarities[i].tolist(), strict=True):
            weights[i, j] = max(s, 0) ** 3
    weights = weights + weights.T
    degree = weights.sum(1)
    normalised = weights / np.sqrt(np.outer(degree, degree))
    labels = np.eye(4)[given.numpy()]
    expected = np.linalg.inv(np.eye(80) - 0.99 * normalised) @ (labels / labels.sum(0))
    expected /= expected.sum(0)
    expected /= expected.sum(1, keepdims=True)
    assert np.abs(spread_labels(found, given, 4, 0.99).numpy() - expected).max() < 1e-3


@pytest.mark.parametrize("wrong", [0.0, 0.5, 0.8])
def test_the_neighbourhood_knows_the_class_where_labels_are_wrong(wrong: float) -> None:
    embeddings, truth, given = clusters(1000, 10, wrong)
    posterior = spread_labels(nearest_neighbours(embeddings, 10), given, 10, 0.99)
    assert (posterior.argmax(1) == truth).float().mean() > 0.97
    assert torch.allclose(posterior.sum(1), torch.ones(1000), atol=1e-4)


def test_a_frequent_label_is_not_believed_for_being_frequent() -> None:
    embeddings, truth, _ = clusters(300, 3, 0.0)
    rare = (truth != 2) | (torch.arange(300) < 18)  # six samples of the third class
    embeddings, truth = embeddings[rare], truth[rare]
    posterior = spread_labels(nearest_neighbours(embeddings, 10), truth, 3, 0.99)
    assert (posterior.argmax(1)[truth == 2] == 2).all()


@pytest.mark.parametrize("count", [2, 3, 11])
def test_fewer_samples_than_neighbours_and_absent_classes_are_fine(count: int) -> None:
    embeddings = torch.randn(count, 4, generator=torch.Generator().manual_seed(0))
    posterior = spread_labels(nearest_neighbours(embeddings, 10), torch.arange(count) % 2, 5, 0.99)
    assert posterior.shape == (count, 5)
    assert torch.isfinite(posterior).all()


def test_embeddings_that_are_alike_zero_or_not_finite_give_finite_posteriors() -> None:
    for embeddings in (torch.ones(30, 4), torch.zeros(30, 4), torch.full((30, 4), torch.nan)):
        posterior = spread_labels(nearest_neighbours(embeddings, 10), torch.arange(30) % 3, 3, 0.99)
        assert torch.isfinite(posterior).all()
        assert torch.allclose(posterior.sum(1), torch.ones(30), atol=1e-4)


def test_quotas_give_each_class_its_share_and_settle_which_cluster_is_whose() -> None:
    """Both clusters carry more labels of the second class; together they must be one of each."""
    posterior = torch.tensor([[0.48, 0.52]] * 50 + [[0.30, 0.70]] * 50)
    assert (posterior.argmax(1) == 1).all()
    settled = fill_quotas(posterior, torch.tensor([0.5, 0.5]), sharpness=8.0)
    assert settled.argmax(1).tolist() == [0] * 50 + [1] * 50
    assert torch.allclose(settled.mean(0), torch.tensor([0.5, 0.5]), atol=1e-3)
    assert torch.allclose(settled.sum(1), torch.ones(100), atol=1e-5)


def test_a_class_that_nobody_was_given_gets_nothing() -> None:
    settled = fill_quotas(torch.rand(20, 3).softmax(1), torch.tensor([0.5, 0.5, 0.0]), sharpness=8.0)
    assert torch.isfinite(settled).all()
    assert (settled[:, 2] == 0).all()


def test_with_folds_a_sample_is_judged_by_the_labels_of_others() -> None:
    draws = torch.Generator().manual_seed(0)
    embeddings, labels = torch.randn(40, 6, generator=draws), torch.randint(0, 3, (40,), generator=draws)
    neighbours = nearest_neighbours(embeddings, 5)
    graph = np.zeros((40, 40))
    for row in range(40):
        for near, similarity in zip(neighbours.indices[row], neighbours.similarities[row], strict=True):
            weight = max(float(similarity), 0.0) ** 3
            graph[row, near] += weight
            graph[near, row] += weight
    scale = 1 / np.sqrt(graph.sum(1))
    inverse = np.linalg.inv(np.eye(40) - 0.9 * graph * scale * scale[:, None])
    expected = np.zeros((40, 3))
    folds = np.random.default_rng(0).permutation(40) % 5
    for fold in range(5):
        seen = np.eye(3)[labels.numpy()] * (folds != fold)[:, None]
        expected[folds == fold] = (inverse @ (seen / seen.sum(0)))[folds == fold]
    expected /= expected.sum(0)
    expected /= expected.sum(1, keepdims=True)
    found = spread_labels(neighbours, labels, 3, alpha=0.9, folds=5)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-3)

    changed = labels.clone()
    changed[7] = (labels[7] + 1) % 3
    again = spread_labels(neighbours, changed, 3, alpha=0.9, folds=5)
    assert (again[7].argsort() == found[7].argsort()).all()


def test_labels_that_come_in_turn_do_not_share_a_fold() -> None:
    labels = torch.arange(200) % 10
    embeddings = torch.eye(10)[labels] + 0.1 * torch.randn(200, 10, generator=torch.Generator().manual_seed(0))
    found = spread_labels(nearest_neighbours(embeddings, 5), labels, 10, alpha=0.9, folds=5)
    assert (found.argmax(1) == labels).float().mean() > 0.95
