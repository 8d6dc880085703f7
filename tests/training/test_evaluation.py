"""Accuracies, the split's quality, and Best and Last."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from plremix.training.evaluation import (
    accuracies,
    best_accuracy,
    detection,
    final_accuracy,
    last_accuracy,
    split_quality,
)


def test_top5_counts_from_ten_classes_up() -> None:
    logits = torch.eye(10) + torch.arange(10) / 100
    labels = torch.tensor([0, 1, 2, 3, 4, 9, 9, 9, 9, 0])
    result = accuracies(logits, labels)
    assert result["test_accuracy"] == pytest.approx(0.5)
    assert result["test_top5"] == pytest.approx(0.9)
    assert "test_top5" not in accuracies(torch.eye(4), torch.arange(4))


def test_split_quality_against_counts_by_hand() -> None:
    probability = torch.tensor([0.9, 0.8, 0.4, 0.7, 0.1])
    right = torch.tensor([True, True, True, False, False])
    quality = split_quality(probability[None] > 0.5, probability[None], right)
    assert quality == pytest.approx({"clean_precision": 2 / 3, "clean_recall": 2 / 3, "clean_auroc": 5 / 6})
    perfect = torch.tensor([1.0, 1, 1, 0, 0])
    both = torch.stack([probability, perfect])
    quality = split_quality(both > 0.5, both, right)
    assert quality == pytest.approx({"clean_precision": 5 / 6, "clean_recall": 5 / 6, "clean_auroc": 11 / 12})


def test_samples_without_a_split_do_not_count() -> None:
    probability = torch.tensor([0.9, torch.nan, 0.4, 0.7, torch.nan])
    right = torch.tensor([True, True, True, False, False])
    quality = split_quality(probability[None] > 0.5, probability[None], right)
    assert quality == pytest.approx({"clean_precision": 1 / 2, "clean_recall": 1 / 2, "clean_auroc": 1 / 2})


def test_a_second_set_has_its_own_names() -> None:
    assert accuracies(torch.eye(10), torch.arange(10), "ilsvrc12") == {"ilsvrc12_accuracy": 1.0, "ilsvrc12_top5": 1.0}


def test_one_test_at_the_end_is_best_and_last() -> None:
    history = [{"phase": "train", "validation_accuracy": 0.9}] * 3 + [{"phase": "train", "test_accuracy": 0.7}]
    assert best_accuracy(history) == last_accuracy(history) == 0.7


def test_measures_without_meaning_are_left_out() -> None:
    everyone = torch.ones(1, 4, dtype=torch.bool)
    assert "clean_auroc" not in split_quality(everyone, torch.rand(1, 4), everyone[0])
    nothing = detection(np.ones(3), np.zeros(3, bool), np.zeros(3, bool))
    assert nothing == {"auroc": None, "average_precision": None, "precision": None, "recall": None}


def test_low_scores_mean_wrong() -> None:
    found = detection(np.array([0.1, 0.2, 0.8, 0.9]), np.array([1, 1, 0, 0], bool), np.array([1, 1, 0, 0], bool))
    assert found == {"auroc": 1.0, "average_precision": 1.0, "precision": 1.0, "recall": 1.0}


def test_last_is_the_mean_of_ten_epochs_after_warmup_and_best_the_best() -> None:
    history = [{"phase": "warmup", "test_accuracy": 1.0}] * 3
    history += [{"phase": "train", "test_accuracy": k / 100} for k in range(20)]
    assert last_accuracy(history) == pytest.approx(np.mean(range(10, 20)) / 100)
    assert best_accuracy(history) == 1.0
    assert last_accuracy(history[:5]) == pytest.approx(0.005)
    assert last_accuracy([{"phase": "train"}]) is None
    assert best_accuracy([]) is None


def test_the_final_accuracy_is_that_of_the_networks_that_are_kept() -> None:
    history: list[dict[str, object]] = [{"phase": "train", "test_accuracy": value} for value in (0.5, 0.9, 0.7)]
    assert final_accuracy([*history, {"phase": "train"}]) == 0.7
    assert final_accuracy([{"phase": "train"}]) is None
