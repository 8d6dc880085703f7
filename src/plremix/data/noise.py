"""Label noise: symmetric, asymmetric, or read from a JSON list in data order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from plremix.errors import InputError


def symmetric(labels: Tensor, classes: int, ratio: float, generator: torch.Generator) -> Tensor:
    """A random share `ratio` of the samples gets a label drawn over all classes, the true one included."""
    chosen = _chosen(len(labels), ratio, generator)
    noisy = labels.clone()
    noisy[chosen] = torch.randint(0, classes, (len(chosen),), generator=generator)
    return noisy


def asymmetric(
    labels: Tensor, classes: int, ratio: float, generator: torch.Generator, class_map: Mapping[int, int] | None = None
) -> Tensor:
    """A share `ratio` of the samples goes through `class_map` (classes outside it stay), or to the next class."""
    target = torch.arange(classes)
    if class_map:
        for source, to in class_map.items():
            if not (0 <= source < classes and 0 <= to < classes):
                raise InputError(f"the noise map sends class {source} to {to}, but the classes are 0 to {classes - 1}")
            target[source] = to
    else:
        target = (target + 1) % classes
    chosen = _chosen(len(labels), ratio, generator)
    noisy = labels.clone()
    noisy[chosen] = target[labels[chosen]]
    return noisy


def read_noise_file(path: Path, count: int, classes: int) -> Tensor:
    """The labels to train on: a JSON list of `count` whole numbers in data order."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the noise file {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"the noise file {path} is not JSON: {error}") from error
    if not isinstance(values, list) or len(values) != count:
        found = f"a list of {len(values)}" if isinstance(values, list) else "no list"
        raise InputError(f"the noise file {path} must be a JSON list of {count} labels in data order, found {found}")
    if not all(type(value) is int and 0 <= value < classes for value in values):
        bad = next(value for value in values if type(value) is not int or not 0 <= value < classes)
        raise InputError(f"the noise file {path} must hold class numbers from 0 to {classes - 1}, found {bad!r}")
    return torch.tensor(values, dtype=torch.int64)


def _chosen(count: int, ratio: float, generator: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=generator)[: round(ratio * count)]
