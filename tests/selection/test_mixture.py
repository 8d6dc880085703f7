"""The mixture finds the clean samples, and losses that tell nothing apart do not stop it."""

from __future__ import annotations

import numpy as np
import pytest

from plremix.selection import fit_mixture, normalise_losses


def two_clouds(clean: int, noisy: int, seed: int = 0) -> np.ndarray:
    draws = np.random.default_rng(seed)
    low = draws.normal((0.5, 0.4), 0.1, (clean, 2))
    high = draws.normal((3.0, 2.0), 0.3, (noisy, 2))
    return np.concatenate([low, high])


@pytest.mark.parametrize("columns", [1, 2])
def test_the_component_with_small_losses_is_the_clean_one(columns: int) -> None:
    mixture = fit_mixture(two_clouds(30, 70)[:, :columns])
    is_clean = mixture.clean_probability > 0.5
    assert is_clean[:30].all()
    assert not is_clean[30:].any()
    assert np.linalg.norm(mixture.means[0]) < np.linalg.norm(mixture.means[1])
    assert mixture.weights[0] == pytest.approx(0.3, abs=0.02)
    assert mixture.covariances.shape == (2, columns, columns)


def test_losses_that_are_scaled_already_stay_as_they_are() -> None:
    losses = 0.3 + 0.1 * normalise_losses(two_clouds(30, 70))
    assert fit_mixture(losses, scaled=True).means.max() < 0.4
    assert fit_mixture(losses).means.max() > 0.5


def test_the_fit_can_take_more_steps() -> None:
    losses = np.random.default_rng(0).gamma(2.0, size=500)
    assert fit_mixture(losses, steps=1).weights[0] != pytest.approx(fit_mixture(losses, steps=100).weights[0], abs=1e-3)


@pytest.mark.parametrize(
    "losses",
    [
        np.ones(10),
        np.full((10, 2), np.nan),
        np.array([1.0]),
        np.array([1.0, 2.0]),
        np.full(10, np.inf),
        np.zeros((1, 2)),
    ],
)
def test_losses_that_tell_nothing_apart_leave_everyone_clean(losses: np.ndarray) -> None:
    mixture = fit_mixture(losses)
    assert (mixture.clean_probability == 1).all()
    assert np.isfinite(mixture.means).all()


def test_losses_that_are_not_finite_count_as_the_largest() -> None:
    losses = two_clouds(30, 70)
    losses[3] = np.inf
    losses[50, 0] = np.nan
    assert np.isfinite(normalise_losses(losses)).all()
    mixture = fit_mixture(losses)
    assert np.isfinite(mixture.clean_probability).all()
    assert mixture.clean_probability[3] < 0.5
    assert mixture.clean_probability[0] > 0.5


def test_normalising_goes_from_0_to_1_in_each_column() -> None:
    values = normalise_losses(two_clouds(5, 5))
    assert values.min(0).tolist() == [0, 0]
    assert values.max(0).tolist() == [1, 1]


def test_the_same_losses_give_the_same_split() -> None:
    losses = two_clouds(40, 60)
    first, second = fit_mixture(losses), fit_mixture(losses)
    assert np.array_equal(first.clean_probability, second.clean_probability)
