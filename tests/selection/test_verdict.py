"""The verdict ranks wrong labels first and flags about as many as there are."""

from __future__ import annotations

import numpy as np
import pytest

from plremix.selection import judge_labels, judge_together, label_margins


def two_networks(count: int, wrong: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits of two networks that mostly see the truth, the given labels, and which of them are wrong."""
    draws = np.random.default_rng(seed)
    truth = draws.integers(0, 5, count)
    is_wrong = draws.random(count) < wrong
    given = np.where(is_wrong, (truth + 1 + draws.integers(0, 4, count)) % 5, truth)
    logits = draws.normal(0, 1.0, (2, count, 5))
    logits[:, np.arange(count), truth] += 6
    return logits, given, is_wrong


def test_the_margin_is_the_given_logit_over_the_best_other() -> None:
    logits = np.array([[1.0, 4.0, 2.5], [3.0, 0.0, 1.0]])
    assert label_margins(logits, np.array([2, 0])).tolist() == [-1.5, 2.0]


@pytest.mark.parametrize("wrong", [0.1, 0.4, 0.7])
def test_wrong_labels_are_flagged_at_any_noise_rate(wrong: float) -> None:
    logits, given, is_wrong = two_networks(2000, wrong)
    verdict = judge_labels(logits, given)
    assert (verdict.is_label_issue == is_wrong).mean() > 0.98
    assert verdict.label_score[is_wrong].max() < np.median(verdict.label_score[~is_wrong])
    assert ((verdict.label_score >= 0) & (verdict.label_score <= 1)).all()


def test_scores_rank_to_the_end() -> None:
    logits, given, _ = two_networks(500, 0.5)
    verdict = judge_labels(logits * 3, given)
    assert len(np.unique(verdict.label_score)) > 490


def test_when_all_agree_nothing_is_flagged() -> None:
    logits = np.zeros((2, 20, 3))
    logits[:, :, 0] = 5
    assert not judge_labels(logits, np.zeros(20, dtype=int)).is_label_issue.any()


def test_logits_that_are_not_finite_give_a_finite_verdict() -> None:
    logits, given, _ = two_networks(50, 0.3)
    logits[0, 3] = np.nan
    logits[1, 4, 0] = np.inf
    verdict = judge_labels(logits, given)
    assert np.isfinite(verdict.label_score).all()
    assert np.isfinite(verdict.confidence).all()


def test_networks_and_neighbourhood_judge_together() -> None:
    logits, given, is_wrong = two_networks(300, 0.4)
    near = np.random.default_rng(1).dirichlet(np.ones(5), 300)
    verdict = judge_together(logits, near, given)
    powers = np.exp(logits)
    known = 0.7 * (powers / powers.sum(2, keepdims=True)).mean(0) + 0.3 * near
    assert np.array_equal(verdict.predicted, known.argmax(1))
    assert np.allclose(verdict.confidence, known.max(1))
    assert np.array_equal(verdict.is_label_issue, known.argmax(1) != given)
    assert verdict.label_score[is_wrong].mean() < verdict.label_score[~is_wrong].mean()


def test_labels_that_have_the_benefit_of_the_doubt_are_flagged_less() -> None:
    logits, given, _ = two_networks(300, 0.1)
    near = np.random.default_rng(1).dirichlet(np.ones(5), 300)
    doubted = judge_together(logits / 4, near, given, wrong=0.1)
    assert doubted.is_label_issue.sum() < judge_together(logits / 4, near, given).is_label_issue.sum() / 2
