"""Negative pairs: shares counted from class sets equal a naive count over pairs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers import blobs, method_on, small_config, small_cross_entropy

from plremix.data.dataset import LabelledImages
from plremix.data.sources import arrays
from plremix.losses import likely_classes, reliable_negatives
from plremix.methods.base import ClassSets
from plremix.training.evaluation import negative_quality


def naive(sets: list[set[int]], truth: list[int]) -> tuple[float, float]:
    """Share selected of all pairs, and share of those whose true classes differ."""
    selected = correct = pairs = 0
    for i in range(len(sets)):
        for j in range(i):
            pairs += 1
            if not sets[i] & sets[j]:
                selected += 1
                correct += truth[i] != truth[j]
    return selected / pairs, correct / selected


@pytest.mark.parametrize(("classes", "kappa", "given"), [(3, 1, True), (10, 3, True), (10, 2, False), (7, 0, True)])
def test_counts_equal_a_naive_count_over_pairs(classes: int, kappa: int, given: bool) -> None:
    draws = torch.Generator().manual_seed(classes)
    scores = torch.randn(70, classes, generator=draws)
    labels, truth = (torch.randint(classes, (70,), generator=draws) for _ in range(2))
    labels = labels if given else None
    likely = likely_classes(scores, kappa, labels)
    found = negative_quality([ClassSets(torch.arange(70), likely)], classes, truth)
    expected = naive([set(row) for row in likely.tolist()], truth.tolist())
    assert (found["negative_selected"], found["negative_correct"]) == pytest.approx(expected)
    mask = reliable_negatives(scores, kappa, labels)
    assert found["negative_selected"] == pytest.approx(float(mask.sum()) / (70 * 69)), "and what the loss goes by"


@pytest.mark.parametrize("changes", [{}, {"contrast": "simclr"}, {"contrast": "scl"}, {"contrast_side": "noisy"}])
def test_a_method_says_what_its_last_epoch_went_by(changes: dict[str, Any]) -> None:
    data = arrays.from_arrays(blobs(classes=6, side=12))
    method = method_on(data, small_config(kappa=(2,), **changes))
    assert method.negative_sets(1) == []
    method.train_epoch(1)
    scores = torch.randn(2, 60, 6, generator=torch.Generator().manual_seed(0))  # surer than one epoch makes them
    method.splits = [one._replace(class_scores=own) for one, own in zip(method.splits, scores, strict=True)]
    sets = method.negative_sets(1)
    assert len(sets) == 2
    expected = []
    for index, (rows, likely) in enumerate(sets):
        split = method.splits[1 - index]
        if "contrast_side" in changes:
            assert torch.equal(rows, (~split.is_clean).nonzero()[:, 0])
        for row, classes in zip(rows.tolist(), likely.tolist(), strict=True):
            top = split.class_scores[row].topk(2).indices.tolist()
            if changes.get("contrast") == "simclr":
                assert classes == []
            elif changes.get("contrast") == "scl":
                assert classes == top[:1]
            else:
                assert set(classes) == {*top, int(data.given_labels[row])}
        expected.append(naive([set(row) for row in likely.tolist()], data.true_labels[rows].tolist()))
    found = negative_quality(sets, 6, data.true_labels)
    selected, correct = torch.tensor(expected).mean(0).tolist()
    assert found["negative_selected"] == pytest.approx(selected)
    assert found["negative_correct"] == pytest.approx(correct)


def test_in_warm_up_every_pair_is_pushed_apart(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config())
    method.train_epoch(0)
    found = negative_quality(method.negative_sets(0), 3, tiny.true_labels)
    assert found == pytest.approx({"negative_selected": 1.0, "negative_correct": 2 * 20 / 59})
    assert "negative_correct" not in negative_quality(method.negative_sets(0), 3, None)


def test_other_methods_count_as_well_and_none_without_a_contrast(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_cross_entropy(contrast="plr", kappa=(1,)))
    method.train_epoch(0)
    assert "negative_selected" in negative_quality(method.negative_sets(0), 3, None)
    plain = method_on(tiny, small_cross_entropy())
    plain.train_epoch(0)
    assert negative_quality(plain.negative_sets(0), 3, tiny.true_labels) == {}
