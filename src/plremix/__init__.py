"""plremix: learning with noisy labels on images. The public names; each is imported when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from plremix.estimator import PLReMixClassifier
    from plremix.losses import PLRLoss
    from plremix.networks import load
    from plremix.recipes import build as recipe
    from plremix.training import train

_HOMES = {
    "PLReMixClassifier": ("plremix.estimator", "PLReMixClassifier"),
    "PLRLoss": ("plremix.losses", "PLRLoss"),
    "load": ("plremix.networks", "load"),
    "recipe": ("plremix.recipes", "build"),
    "train": ("plremix.training", "train"),
}

__all__ = ["PLRLoss", "PLReMixClassifier", "__version__", "load", "recipe", "train"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'plremix' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
