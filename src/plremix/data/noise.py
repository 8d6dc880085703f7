"""Label noise: symmetric, asymmetric by a map or inside groups of classes, or read from a JSON list in data order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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


def next_in_group(labels: Tensor, groups: Sequence[Sequence[int]], ratio: float, generator: torch.Generator) -> Tensor:
    """Each sample goes, with the probability `ratio`, to the next class of its group; the last class to the first."""
    target = torch.arange(1 + max(max(group) for group in groups))
    for group in groups:
        target[list(group)] = torch.tensor([*group[1:], group[0]])
    moves = torch.rand(len(labels), generator=generator) < ratio
    return torch.where(moves, target[labels], labels)


def random_in_group(
    labels: Tensor, groups: Sequence[Sequence[int]], ratio: float, generator: torch.Generator
) -> Tensor:
    """A share `ratio` of the samples gets one of the other classes of its group; groups are of one size, 2 or more."""
    size = len(groups[0])
    table = torch.tensor([list(group) for group in groups])  # (groups, size)
    place = torch.empty(table.numel(), dtype=torch.int64)
    place[table.flatten()] = torch.arange(table.numel())  # group * size + position of each class
    chosen = _chosen(len(labels), ratio, generator)
    group, position = place[labels[chosen]] // size, place[labels[chosen]] % size
    step = torch.randint(1, size, (len(chosen),), generator=generator)
    noisy = labels.clone()
    noisy[chosen] = table[group, (position + step) % size]
    return noisy


def blocks(classes: int, size: int) -> list[range]:
    """Consecutive class numbers in groups of `size`."""
    if classes % size:
        raise InputError(f"blocks of {size} classes need a multiple of {size} classes, got {classes}")
    return [range(start, start + size) for start in range(0, classes, size)]


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
