"""Tiny data and tiny runs for the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric

from plremix.config import CoDivideConfig, Config, CrossEntropyConfig
from plremix.data.dataset import LabelledImages
from plremix.training.setup import build_method

SMALL: dict[str, Any] = {
    "network": "preact-resnet-small",
    "width": 4,
    "weak_view": "crop",
    "strong_view": "distort",
    "epochs": 3,
    "warmup_epochs": 1,
    "lr_epochs": (2,),
    "kappa_epochs": (2, 3),
    "ramp_epochs": 1,
    "batch_size": 8,
    "embedding_size": 8,
    "epoch_length": "data",
    "device": "cpu",
}


def blobs(
    count: int = 60, classes: int = 3, side: int = 8, channels: int = 1, wrong: float = 0.3, seed: int = 0
) -> dict[str, np.ndarray]:
    """Images that a network learns in seconds: a bright bar whose place is the class; a share has wrong labels."""
    draws = np.random.default_rng(seed)

    def make(number: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(number) % classes
        images = draws.integers(0, 60, (number, side, side, channels))
        for image, label in zip(images, labels, strict=True):
            column = label * side // classes
            image[:, column : column + max(1, side // classes)] += 150
        return images.astype(np.uint8), labels

    x_train, y_true = make(count)
    x_test, y_test = make(max(classes, count // 2))
    y_train = np.where(draws.random(count) < wrong, draws.integers(0, classes, count), y_true)
    return {"x_train": x_train, "y_train": y_train, "y_true": y_true, "x_test": x_test, "y_test": y_test}


def small_config(**changes: Any) -> CoDivideConfig:
    """A PLReMix run that takes a second or two."""
    return CoDivideConfig(**{**SMALL, **changes})


def small_cross_entropy(**changes: Any) -> CrossEntropyConfig:
    known = set(CrossEntropyConfig.__dataclass_fields__)
    return CrossEntropyConfig(**{key: value for key, value in {**SMALL, **changes}.items() if key in known})


def method_on(data: LabelledImages, config: Config) -> Any:
    return build_method(config, data, Fabric(accelerator="cpu", devices=1))


def same_state(first: Any, second: Any) -> bool:
    """Nested states that are equal bit for bit."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same_state(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same_state, first, second))
    return bool(first == second)


def contents(folder: Path, *names: str) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}
