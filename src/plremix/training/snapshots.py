"""Snapshots: what the split of an epoch saw, small enough to keep some in a run folder for `plremix analyze`."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from plremix.config import CoDivideConfig, Config
from plremix.methods.base import Arrays
from plremix.selection import fit_mixture, normalise_losses

POINTS = 256  # paper, sec. 4.3: of right and of wrong labels
KEPT = 10  # snapshots of a run, about
ARRAYS = ("rows", "points", "is_clean", "is_right", "means", "covariances", "weights")


def is_kept(config: Config, epoch: int) -> bool:
    """The first epoch after warm-up, every tenth of those that split the data, and the last of them."""
    if not isinstance(config, CoDivideConfig) or epoch < config.warmup_epochs or config.finishes(epoch):
        return False
    last = config.epochs - config.finish_epochs
    every = max(1, round((last - config.warmup_epochs) / KEPT))
    return (epoch - config.warmup_epochs) % every == 0 or epoch == last - 1


def of_losses(pairs: Tensor, is_clean: Tensor, is_right: Tensor | None) -> Arrays:
    """Normalised losses of some samples of either kind, and the 2-d mixture over those of all samples.

    The kinds are right and wrong labels where the truth is known, else what the split took as clean and as noisy.
    """
    losses = pairs.cpu().numpy()
    seen = np.isfinite(losses).all(1)  # others were not drawn for this epoch
    mixture = fit_mixture(losses[seen] if seen.any() else losses)
    kind = (is_clean if is_right is None else is_right).cpu().numpy()
    members = [np.flatnonzero((kind == one) & seen) for one in (True, False)]
    rows = np.concatenate([some[np.linspace(0, len(some) - 1, min(len(some), POINTS)).astype(int)] for some in members])
    return {
        "rows": rows,
        "points": normalise_losses(losses)[rows].astype(np.float32),  # (n, 2): classifier, prototypes
        "is_clean": is_clean.cpu().numpy()[rows],
        "is_right": kind[rows] if is_right is not None else np.zeros(0, dtype=np.bool_),  # empty: not known
        "means": mixture.means,
        "covariances": mixture.covariances,
        "weights": mixture.weights,
    }
