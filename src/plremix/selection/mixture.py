"""Two-component Gaussian mixture over per-sample losses (paper, sec. 3.2): the component near 0 is the clean one.

Shapes: N samples, f losses of each (1: classifier alone; 2: classifier and prototypes).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

Floats = NDArray[np.float64]


class Mixture(NamedTuple):
    """What the fit found; component 0 is the clean one."""

    clean_probability: Floats  # (N,)
    means: Floats  # (2, f)
    covariances: Floats  # (2, f, f)
    weights: Floats  # (2,)


def normalise_losses(losses: NDArray[np.floating]) -> Floats:
    """Min-max to [0, 1] per column (N, f); a constant column becomes 0, a loss that is not finite the largest one."""
    values = np.array(losses, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    for column in values.T:
        finite = np.isfinite(column)
        column[~finite] = column[finite].max() if finite.any() else 0.0
        low, high = column.min(), column.max()
        column[:] = (column - low) / (high - low) if high > low else 0.0
    return values


def fit_mixture(losses: NDArray[np.floating], *, scaled: bool = False, steps: int = 10) -> Mixture:
    """Fit the mixture on losses (N,) or (N, f), normalised inside unless they are `scaled`; settings as published.

    Where there is nothing to tell apart (fewer than three different points), every sample counts as clean: training
    then goes on with the given labels instead of stopping.
    """
    points = np.asarray(losses, dtype=np.float64) if scaled else normalise_losses(losses)
    if len(np.unique(points, axis=0)) < 3:
        return _all_clean(points)
    mixture = GaussianMixture(
        n_components=2,
        max_iter=steps,
        tol=1e-2,  # published code
        reg_covar=5e-4,  # published code
        random_state=0,  # the only draw is the k-means start: a function of the losses
    )
    with np.errstate(all="ignore"):
        _fit_quietly(mixture, points)
    posterior = mixture.predict_proba(points)
    order = np.argsort(np.linalg.norm(mixture.means_, axis=1))
    return Mixture(posterior[:, order[0]], mixture.means_[order], mixture.covariances_[order], mixture.weights_[order])


def _fit_quietly(mixture: GaussianMixture, points: Floats) -> None:
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many iterations are all that is wanted
        mixture.fit(points)


def _all_clean(points: Floats) -> Mixture:
    features = points.shape[1]
    means = np.stack([points.mean(0), np.ones(features)])
    return Mixture(np.ones(len(points)), means, np.stack([np.eye(features) * 5e-4] * 2), np.array([1.0, 0.0]))
