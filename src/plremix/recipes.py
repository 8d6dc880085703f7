"""Named recipes: the only place where the settings of a run are decided. `plremix recipes` shows them by table."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from plremix.config import CONFIGS, CoDivideConfig, Config, config_class
from plremix.errors import InputError


@dataclass(frozen=True)
class Recipe:
    """A cell of a table: its settings, whatever the method; each method takes those that it has."""

    name: str
    table: str
    settings: dict[str, Any]
    changes: dict[str, Any] = field(default_factory=dict)  # what makes the row of an ablation


# Ours, for the 8x8 digits on a CPU. Chosen on 1,000 of the 1,400 training images by the other 400, seeds from 100
# up (README, "Figures"); the test images had no part in it.
DIGITS: dict[str, Any] = {
    "data": "digits",
    "network": "preact-resnet-small",
    "weak_view": "crop",
    "strong_view": "distort",
    "epochs": 40,
    "lr": 0.05,
    "lr_epochs": (30,),
    "warmup_epochs": 10,
    "split": "neighbours",
    "neighbour_epochs": 30,
    "kappa_epochs": (15, 25),
    "ramp_epochs": 8,
    "temperature": 0.2,
    "prototype_momentum": 0.9,
    "epoch_length": "data",
    "lambda_u": "auto",
}

# Where a method wants another value than PLReMix. Cross-entropy's was chosen in the same way; the others are values to
# start from, until `benchmarks/tuning.py` has run for each of them.
_ADAM: dict[str, Any] = {"lr": 0.001, "lr_epochs": (16,), "forget_epochs": 8}
BY_METHOD: dict[str, dict[str, Any]] = {
    "cross-entropy": {"lr": 0.005},
    "mixup": {"lr": 0.02},
    "co-teaching": _ADAM,
    "co-teaching-plus": {**_ADAM, "plus_epoch": 16},
    "jocor": {**_ADAM, "agreement": 0.5},
    "dividemix": {"split": "mixture1d", "contrast": "none", "strong_view": "crop"},
    "elr": {"lr": 0.02, "lr_schedule": "cosine"},
    "elr-plus": {"lr": 0.02},
    "unicon": {
        "split": "class-balanced",
        "contrast": "simclr",
        "contrast_side": "noisy",
        "contrast_weight": 0.025,
        "temperature": 0.05,
        "flat": False,
        "warmup_contrast": False,
        "lambda_u": 30.0,
        "lr_schedule": "cosine",
    },
}

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in [
        Recipe("digits-sym-20", "digits", {**DIGITS, "noise": "symmetric", "noise_ratio": 0.2}),
        Recipe("digits-sym-50", "digits", {**DIGITS, "noise": "symmetric", "noise_ratio": 0.5}),
        Recipe("digits-sym-80", "digits", {**DIGITS, "noise": "symmetric", "noise_ratio": 0.8}),
        Recipe("digits-sym-90", "digits", {**DIGITS, "noise": "symmetric", "noise_ratio": 0.9}),
        Recipe(
            "digits-asym-40",
            "digits",
            {**DIGITS, "noise": "asymmetric", "noise_ratio": 0.4, "warmup_entropy": True},
        ),
    ]
}

_ROWS: dict[str, dict[str, Any]] = {  # ablation: what differs from the recipe without the suffix
    "plr": {"flat": False},
    "simclr": {"contrast": "simclr"},
    "scl": {"contrast": "scl"},
    "queue": {"contrast": "plr-queue"},
    "mixture2d": {"split": "mixture2d"},
    "mixture1d": {"split": "mixture1d"},
    "kappa-3": {"kappa": (3,)},
    "kappa-2": {"kappa": (2,)},
    "kappa-1": {"kappa": (1,)},
    "only-y": {"kappa": (0,)},
}
for _suffix, _changes in _ROWS.items():
    _base = RECIPES["digits-sym-80"]
    _name = f"{_base.name}-{_suffix}"
    RECIPES[_name] = Recipe(_name, "digits ablation", {**_base.settings, **_changes}, _changes)

# Own arrays: as the digits, for 8x8 to 32x32 images on a CPU.
OWN: dict[str, Any] = DIGITS


def for_own_images(images: int, classes: int, side: int, channels: int, gpu: bool) -> dict[str, Any]:
    """Settings for own images by what they are like: how many, of how many classes, how large, grey or in colour.

    A CPU gets the small network and at most 64 pixels; small sets get smaller batches and more epochs, so that there
    are enough steps. Grey images (digits, documents, scans) are never mirrored.
    """
    largest = 128 if gpu else 64
    size = next((fitting for fitting in (16, 28, 32, 48, 64, 96, 128) if side <= fitting), 128)
    colour = channels == 3
    epochs = round(40 * min(1.0, (1400 / images) ** 0.6)) if images >= 1000 else 60
    settings = {
        **OWN,
        "network": "preact-resnet18" if gpu and images >= 5000 else "preact-resnet-small",
        "image_size": min(size, largest),
        "channels": channels,
        "weak_view": "crop-flip" if colour else "crop",
        "strong_view": "autoaugment-cifar" if colour else "distort",
        "batch_size": 64 if images >= 1000 else max(8, images // 16),
    }
    return {**settings, "epochs": max(12, epochs)}


METHODS = tuple(CONFIGS)


def build(name: str, method: str = "plremix", epochs: int | None = None) -> Config:
    """The config of a recipe, or of own data, for one method; `epochs` scales its schedules."""
    kind = config_class(method)
    if name.endswith((".npz", ".csv")) or Path(name).is_dir():
        settings = {**OWN, "recipe": "own", "data": name}
    elif name in RECIPES:
        settings = {**RECIPES[name].settings, "recipe": name}
    else:
        raise InputError(
            f"there is no recipe {name!r}; `plremix recipes` lists them, and the path of an .npz or .csv file or of a "
            "folder with a sub-folder a class works too"
        )
    settings |= BY_METHOD.get(method, {})
    known = {field.name for field in fields(kind)}
    config = kind(**{"method": method, **{key: value for key, value in settings.items() if key in known}})
    return config if epochs is None else scaled(config, epochs)


def own(path: Path, settings: dict[str, Any], method: str = "plremix", epochs: int | None = None) -> Config:
    """A run on own images: `settings` of `for_own_images`, schedules scaled to their number of epochs."""
    kind = config_class(method)
    known = {field.name for field in fields(kind)}
    values = {**settings, **BY_METHOD.get(method, {}), "recipe": "own", "data": str(path), "method": method}
    length = epochs or values["epochs"]
    values["epochs"] = OWN["epochs"]
    return scaled(kind(**{key: value for key, value in values.items() if key in known}), length)


def scaled(config: Config, epochs: int) -> Config:
    """The same recipe at another length: every schedule keeps its place in the run."""
    if epochs < 1:
        raise InputError(f"--epochs must be at least 1, got {epochs}")
    factor = epochs / config.epochs

    def moved(value: int | None) -> int | None:
        return value if not value else min(epochs, max(1, round(value * factor)))

    changes: dict[str, Any] = {"epochs": epochs}
    for name in config.schedules:
        value = getattr(config, name)
        changes[name] = tuple(map(moved, value)) if isinstance(value, tuple) else moved(value)
    if isinstance(config, CoDivideConfig):
        changes["prototype_momentum"] = config.prototype_momentum ** (1 / factor)  # the same memory over the whole run
    return replace(config, **changes)
