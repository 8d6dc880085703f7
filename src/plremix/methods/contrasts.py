"""The contrast part: which pairs of a batch attract or repel each other. Chosen by name; any method takes one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from plremix.config import Config
from plremix.data.augment import VIEWS, View, multi_crop
from plremix.losses import contrast_with_stats, likely_classes, reliable_negatives
from plremix.methods.gathering import gather_rows, share_statistics
from plremix.methods.learner import Learner

Stats = dict[str, Tensor]


class Contrast:
    """The contrast part of one learner."""

    def __init__(self, config: Config, learner: Learner, labels: Tensor) -> None:
        self.config, self.learner, self.labels = config, learner, labels
        self.queue = Queue(config, learner, labels.device) if config.contrast == "plr-queue" else None

    def start_copies(self) -> None:
        """The slow copy of a network that has been trained without it starts there."""
        if self.queue is not None:
            self.queue.encoder.load_state_dict(self.learner.network.state_dict())

    def start_epoch(self) -> None:
        """Where an epoch has samples of its own, nothing is known of those that were queued before."""
        if self.queue is not None and self.config.epoch_images:
            self.queue.clear()

    def finish_epoch(self) -> None:
        if self.queue is not None:
            share_statistics(self.queue.encoder)

    def __call__(
        self, strong: Sequence[Tensor], mine: Tensor, class_scores: Tensor, epoch: int
    ) -> tuple[Tensor, Stats]:
        """The weighted loss of two or more strong views of the samples `mine`, in a pass of their own: batch norm sees
        them apart. `class_scores` (N, C) say which classes are likely for whom, once warm-up is over: networks that
        know nothing yet find the same classes likely for everybody, and hardly a negative would be left.
        """
        config, queue = self.config, self.queue
        embeddings = gather_rows(self.learner.embed(strong))
        everyone = gather_rows(mine.to(self.labels.device))
        rows, keys = (everyone, None) if queue is None else (torch.cat([everyone, queue.rows]), queue.keys)
        negatives, positives = self._relations(everyone, rows, class_scores, epoch)
        loss, seen = contrast_with_stats(
            embeddings, negatives, positives=positives, keys=keys, flat=config.flat, temperature=config.temperature
        )
        if queue is not None:
            queue.push(strong[0], everyone)
        return config.contrast_weight * loss, seen

    def _relations(
        self, everyone: Tensor, rows: Tensor, class_scores: Tensor, epoch: int
    ) -> tuple[Tensor, Tensor | None]:
        """Whom each sample of the batch (b,) repels among the `rows` (b + K,) of batch and queue; whom of the batch it
        attracts besides its own views."""
        config = self.config
        if config.contrast == "simclr" or epoch < config.warmup_epochs:  # every other sample is a negative;
            return everyone[:, None] != rows, None  # where a short side is repeated, a sample is no other than its copy
        if config.contrast == "scl":  # samples of the same pseudo label are positives, all others negatives
            pseudo_labels = class_scores[everyone].argmax(1)
            same = pseudo_labels[:, None] == pseudo_labels
            return ~same, same
        # only samples whose likely classes are disjoint are negatives (paper, sec. 3.3)
        given = self.labels[rows] if self._uses_given(epoch) else None
        return reliable_negatives(class_scores[rows], config.kappa_at(epoch), given)[: len(everyone)], None

    def class_sets(self, class_scores: Tensor, epoch: int) -> Tensor:
        """Class numbers (N, k) of every sample: those that have none in common repel each other (k = 0: all do)."""
        if self.config.contrast == "simclr" or epoch < self.config.warmup_epochs:
            return self.labels.new_empty(len(self.labels), 0)
        if self.config.contrast == "scl":
            return class_scores.argmax(1, keepdim=True)
        labels = self.labels if self._uses_given(epoch) else None
        return likely_classes(class_scores, self.config.kappa_at(epoch), labels)

    def _uses_given(self, epoch: int) -> bool:
        until = self.config.given_label_epochs
        return until is None or epoch < until

    def state_dict(self) -> dict[str, Any]:
        return {} if self.queue is None else self.queue.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.queue is not None:
            self.queue.load_state_dict(state)


class Queue:
    """Embeddings of samples of earlier steps, by an encoder that follows the network slowly: more negatives to see.

    The paper names it as future work; whether a queued sample is a negative is decided by its likely classes, too. Of
    MoCo it is the negatives' half: positives are the network's own views, and one view of a sample is queued.
    """

    def __init__(self, config: Config, learner: Learner, device: torch.device) -> None:
        self.size, self.momentum, self.learner = config.queue_size, config.queue_momentum, learner
        self.encoder = copy.deepcopy(learner.network).requires_grad_(False)
        self.keys = torch.zeros(0, config.embedding_size, device=device)
        self.rows = torch.zeros(0, dtype=torch.long, device=device)

    def clear(self) -> None:
        self.keys, self.rows = self.keys[:0], self.rows[:0]

    @torch.no_grad()
    def push(self, views: Tensor, everyone: Tensor) -> None:
        """Follow the network, and let this step's samples in; the oldest leave."""
        mine, theirs = self.encoder.state_dict(), self.learner.network.state_dict()
        for name, value in mine.items():
            if value.is_floating_point():
                value.lerp_(theirs[name], 1 - self.momentum)
            else:
                value.copy_(theirs[name])
        self.encoder.eval()
        embeddings = gather_rows(self.encoder(views, logits=False, embeddings=True).embeddings.float())
        self.keys = torch.cat([embeddings, self.keys])[: self.size]
        self.rows = torch.cat([everyone, self.rows])[: self.size]

    def state_dict(self) -> dict[str, Any]:
        return {"encoder": self.encoder.state_dict(), "keys": self.keys, "rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.encoder.load_state_dict(state["encoder"])
        self.keys, self.rows = (state[name].to(self.keys.device) for name in ("keys", "rows"))


def strong_views(config: Config) -> list[View]:
    """The views of a sample that the contrast sees: two, or with multi-crop two large and several small ones."""
    strong = VIEWS[config.strong_view]
    if not config.crop_sides:
        return [strong] * 2
    (large, small), scales = config.crop_sides, config.crop_scales
    return multi_crop(strong.stages, (large, scales[0], scales[1]), (small, scales[2], scales[3]), config.small_crops)


def contrasts_of(config: Config, learners: list[Learner], labels: Tensor) -> list[Contrast]:
    """One for each learner; none where the config has no contrast."""
    return [] if config.contrast == "none" else [Contrast(config, learner, labels) for learner in learners]
