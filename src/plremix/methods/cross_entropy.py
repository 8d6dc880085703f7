"""Plain cross-entropy on the given labels: memorises the wrong ones, and is what everything is compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import Tensor

from plremix.config import CrossEntropyConfig
from plremix.data.augment import VIEWS
from plremix.data.files import Images
from plremix.data.loading import Loader, batches, passes
from plremix.methods.base import Arrays, Averages, Metrics, no_one_watches
from plremix.methods.learner import Learner
from plremix.networks import Architecture
from plremix.randomness import generator
from plremix.selection import Verdict, judge_labels


class CrossEntropy:
    """One network, one weak view a sample, every given label believed."""

    def __init__(
        self, config: CrossEntropyConfig, loader: Loader, labels: Tensor, architecture: Architecture, fabric: Fabric
    ) -> None:
        self.config, self.loader, self.labels = config, loader, labels
        self.learner = Learner(config, architecture, 0, fabric)
        self.networks = [self.learner.network]
        self.on_step: Callable[[float], None] = no_one_watches

    def train_epoch(self, epoch: int) -> Metrics:
        seed, averages = self.config.seed, Averages()
        self.learner.start_epoch(self.config.learning_rate(epoch))
        everyone = passes(torch.arange(len(self.loader)), len(self.loader), generator(seed, "order", epoch))
        steps = [self.loader.share(indices) for indices in batches(everyone, self.config.batch_size)]
        views = self.loader.epoch(steps, [VIEWS[self.config.weak_view]], partial(generator, seed, "views", epoch))
        for step, (mine, (images,)) in enumerate(zip(steps, views, strict=True)):
            loss = F.cross_entropy(self.learner.forward(images).logits, self.labels[mine])
            self.learner.descend(loss)
            averages.add({"loss": loss})
            self.on_step((step + 1) / len(steps))
        self.learner.finish_epoch()
        return {"phase": "train", **averages.means()}

    def logits(self, images: Images) -> Tensor:
        return self.learner.predict(images, self.loader).logits

    def verdict(self) -> Verdict:
        return judge_labels(self.logits(self.loader.images).cpu().numpy()[None], self.labels.cpu().numpy())

    def clean_samples(self) -> tuple[Tensor, Tensor] | None:
        return None

    def split_details(self) -> Arrays:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {"learner": self.learner.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state["learner"])
