"""Whole clusters vote: right where a neighbourhood has too few labels to go by."""

from __future__ import annotations

import pytest
import torch
from selection.test_neighbours import clusters

from plremix.selection import fill_quotas, nearest_neighbours, spread_labels, vote_in_clusters


def test_a_cluster_knows_its_class_where_nine_labels_of_ten_are_random() -> None:
    voted, spread = [], []
    for seed in range(5):
        embeddings, truth, given = clusters(1000, 10, 0.9, seed)
        posterior = vote_in_clusters([embeddings, embeddings.flip(1)], given, 10)
        assert torch.allclose(posterior.sum(1), torch.ones(1000), atol=1e-4)
        voted.append((posterior.argmax(1) == truth).float().mean().item())
        graph = spread_labels(nearest_neighbours(embeddings, 10), given, 10, 0.99)
        shares = torch.bincount(given, minlength=10) / 1000
        spread.append((fill_quotas(graph, shares, 8.0).argmax(1) == truth).float().mean().item())
    assert sum(voted) / 5 > 0.9
    assert sum(voted) > sum(spread) - 0.1


@pytest.mark.parametrize("count", [2, 3, 30])
def test_few_samples_absent_classes_and_equal_embeddings_are_fine(count: int) -> None:
    labels = torch.arange(count) % 2
    for embeddings in (torch.randn(count, 4), torch.ones(count, 4), torch.full((count, 4), torch.nan)):
        posterior = vote_in_clusters([embeddings], labels, 5)
        assert posterior.isfinite().all()
        assert (posterior[:, 2:] < 1e-6).all(), "a class that nobody was given gets nothing"
