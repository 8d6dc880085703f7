"""The semi-supervised terms and regularisers equal the authors' figures and naive loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from plremix.losses import (
    mean_softmax,
    mixup,
    negative_entropy,
    prior_penalty,
    ramped_weight,
    sharpen,
    soft_cross_entropy,
    squared_error,
)


def softmax_row(row: Tensor) -> list[float]:
    powers = [math.exp(value - float(row.max())) for value in row.tolist()]
    return [power / sum(powers) for power in powers]


def test_both_sides_and_the_ramp_equal_the_published_figures(parity: dict[str, Tensor]) -> None:
    for case in range(3):
        clean = soft_cross_entropy(parity["semi_logits_x"], parity["semi_targets_x"])
        noisy = squared_error(parity["semi_logits_u"], parity["semi_targets_u"])
        weight = ramped_weight(25, float(parity[f"semi{case}_epoch"]), 10, 16)
        assert abs(clean - parity[f"semi{case}_lx"]) < 1e-5
        assert abs(noisy - parity[f"semi{case}_lu"]) < 1e-5
        assert abs(weight - parity[f"semi{case}_lambda"]) < 1e-5


def test_regularisers_equal_the_published_figures(parity: dict[str, Tensor]) -> None:
    logits = torch.cat([parity["semi_logits_x"], parity["semi_logits_u"]])
    assert abs(prior_penalty(logits) - parity["semi_prior_penalty"]) < 1e-5
    assert abs(negative_entropy(logits) - parity["neg_entropy"]) < 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_term_equals_a_loop_over_samples_and_classes(dtype: torch.dtype) -> None:
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(7, 4, generator=draws, dtype=dtype) * 3
    targets = torch.rand(7, 4, generator=draws, dtype=dtype)
    targets /= targets.sum(1, keepdim=True)
    rows = [softmax_row(row) for row in logits.double()]
    wanted = targets.double().tolist()
    cross = sum(
        -t * math.log(p) for row, want in zip(rows, wanted, strict=True) for p, t in zip(row, want, strict=True)
    )
    square = sum((p - t) ** 2 for row, want in zip(rows, wanted, strict=True) for p, t in zip(row, want, strict=True))
    entropy = sum(p * math.log(p) for row in rows for p in row)
    means = [sum(row[c] for row in rows) / 7 for c in range(4)]
    prior = sum(0.25 * math.log(0.25 / mean) for mean in means)
    within = 1e-5 if dtype == torch.float32 else 1e-12
    assert soft_cross_entropy(logits, targets).item() == pytest.approx(cross / 7, abs=within)
    assert squared_error(logits, targets).item() == pytest.approx(square / 28, abs=within)
    assert negative_entropy(logits).item() == pytest.approx(entropy / 7, abs=within)
    assert prior_penalty(logits).item() == pytest.approx(prior, abs=within)


def test_sharpening_squares_and_normalises_at_one_half() -> None:
    rows = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    squares = rows.square() / rows.square().sum(1, keepdim=True)
    assert torch.allclose(sharpen(rows, 0.5), squares, atol=1e-6)
    assert torch.allclose(sharpen(torch.eye(3), 0.5), torch.eye(3))


def test_mixup_blends_images_and_targets_with_the_same_partner() -> None:
    images, targets = torch.arange(3.0).view(3, 1), torch.eye(3)
    mixed, mixed_targets = mixup(images, targets, 0.75, torch.tensor([1, 2, 0]))
    assert torch.allclose(mixed[:, 0], torch.tensor([0.25, 1.25, 1.5]))
    assert torch.allclose(mixed_targets[2], torch.tensor([0.25, 0.0, 0.75]))


def test_half_precision_logits_do_not_overflow() -> None:
    logits = torch.tensor([[60000.0, -60000.0], [-60000.0, 60000.0]], dtype=torch.float16)
    for loss in (soft_cross_entropy(logits, torch.eye(2)), prior_penalty(logits), negative_entropy(logits)):
        assert loss.dtype == torch.float32
        assert torch.isfinite(loss)


def test_half_precision_logits_and_targets_lose_nothing_on_the_way() -> None:
    draws = torch.Generator().manual_seed(0)
    logits, targets = torch.randn(16, 10, generator=draws).half(), torch.rand(16, 10, generator=draws).half()
    for measure in (
        lambda one, other: squared_error(one, other),
        lambda one, other: mean_softmax([one, other]),
        lambda one, other: sharpen(other, 0.5),
    ):
        exact = measure(logits.double(), targets.double())
        assert torch.allclose(measure(logits, targets).double(), exact, atol=1e-6, rtol=1e-5)
