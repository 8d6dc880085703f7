"""What the loop may ask of a method. A method owns what happens inside an epoch, and its state; it opens no file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from plremix.config import Config
from plremix.data.files import Images
from plremix.data.loading import Loader
from plremix.methods.learner import Learner
from plremix.networks import Network
from plremix.selection import Verdict

Metrics = dict[str, float | int | str]
Arrays = dict[str, NDArray[np.generic]]


class ClassSets(NamedTuple):
    """Which samples are contrasted with each other, and the classes of each: disjoint ones repel each other."""

    rows: Tensor  # (n,) of the training set
    classes: Tensor  # (n, k) class numbers, perhaps one twice; k = 0: all repel each other


class Method(Protocol):
    """The verbs of a method."""

    loader: Loader
    labels: Tensor  # (N,) as given
    classes: int
    learners: list[Learner]
    networks: list[Network]
    on_step: Callable[[float], None]  # told the share of the epoch that is done

    @property
    def config(self) -> Config:
        """What the run is."""

    def start_copies(self) -> None:
        """After pre-training: let slow copies of the networks, where there are any, start from them as they are now."""

    def train_epoch(self, epoch: int) -> Metrics:
        """Train for one epoch; `phase` and the losses by name."""

    def logits(self, images: Images) -> Tensor:
        """Class logits (n, C) for images (n, c, H, W)."""

    def clean_samples(self) -> tuple[Tensor, Tensor] | None:
        """The last epoch's split: who was clean (n networks, N), and how sure that was; None without one."""

    def verdict(self) -> Verdict:
        """What the networks, as they are now, think of every given label."""

    def noise_rate_estimate(self, named: float) -> float:
        """The share of wrong labels that the method went by, of which its verdict may name a part; without one, the
        share `named`."""

    def negative_sets(self, epoch: int) -> list[ClassSets]:
        """By what the contrast part of the epoch just trained chose its negatives; empty without one."""

    def loss_pairs(self) -> Tensor | None:
        """The last epoch's losses (n networks, N, 2) of classifier and prototypes; None without prototypes."""

    def split_details(self) -> Arrays:
        """The split that the networks would make now, for people to look at; empty where there is none."""

    def state_dict(self) -> dict[str, Any]:
        """All that the next epoch depends on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""


def no_one_watches(share: float) -> None:
    """Where nobody wants to know how far an epoch is."""


class Averages:
    """Means of what the steps of an epoch report. Tensors are added up where they are and read once, at the end."""

    def __init__(self) -> None:
        self._sums: dict[str, Any] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)

    def add(self, values: Mapping[str, Tensor | float]) -> None:
        for name, value in values.items():
            self._sums[name] = self._sums[name] + (value.detach() if isinstance(value, Tensor) else value)
            self._counts[name] += 1

    def means(self) -> dict[str, float]:
        return {name: float(total) / self._counts[name] for name, total in self._sums.items()}
