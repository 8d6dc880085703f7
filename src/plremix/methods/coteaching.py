"""Co-teaching (Han et al. 2018) and Co-teaching+ (Yu et al. 2019): two networks pick small losses for each other.

What the published code does otherwise, and why we do not: it divides the mean loss once more by the number of samples
kept, which would make any loss added beside it a hundred times too strong; Co-teaching+ feeds its softmax outputs to
the cross-entropy as if they were logits; where networks do not disagree at all it learns from the whole batch early on,
where the share to keep comes to less than one sample from all that they disagree on, and its list of those loses
sample 0. Here nothing is learned from a batch without disagreement, and of any other at least one sample is kept.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.config import CoTeachingConfig
from plremix.methods.base import Metrics
from plremix.methods.forgetting import kept_share, smallest
from plremix.methods.stepwise import Losses, Stepwise


class CoTeaching(Stepwise):
    """In each batch either network is trained on the samples whose loss is small for the other one."""

    config: CoTeachingConfig
    networks_used = 2
    judged_epochs = 1  # what is forgotten goes by the rate at once

    def start_epoch(self, epoch: int) -> Metrics:
        """Before anything is forgotten, the rate is estimated if nobody told it: the networks have learned a little."""
        for learner in self.learners:
            learner.set_beta1(self.config.beta1(epoch))
        return {**super().start_epoch(epoch), "forget_rate": self.rate()}

    def first_judged(self) -> int:
        return self.config.forget_epochs

    def rate(self) -> float:
        """The forget rate: as told, or the noise rate once it is known."""
        told = self.config.forget_rate
        return (self.noise_rate or 0.0) if told == "auto" else told

    def kept(self, epoch: int) -> float:
        """The share of a batch that is learned from in this epoch."""
        first = self.config.forget_epochs if self.config.forget_rate == "auto" else 0
        return kept_share(self.rate(), epoch, first, self.config.forget_epochs)

    def losses(self, mine: Tensor, weak: Tensor, epoch: int, step: int, steps: int) -> Losses:
        config, given = self.config, self.labels[mine]
        logits = [learner.forward(weak).logits for learner in self.learners]
        plus = config.teaches_disagreements(epoch)
        taught = disagreeing(logits) if plus else torch.arange(len(mine), device=weak.device)
        chosen = exchange([one[taught] for one in logits], given[taught], self.kept(epoch))
        return {
            f"loss_{index}": F.cross_entropy(one[taught][places], given[taught][places])
            if len(places)
            else one.sum() * 0.0
            for index, (one, places) in enumerate(zip(logits, chosen, strict=True))
        }


def disagreeing(logits: list[Tensor]) -> Tensor:
    """Places (k,) where the two networks predict different classes; maybe none."""
    return (logits[0].argmax(1) != logits[1].argmax(1)).nonzero()[:, 0]


def exchange(logits: list[Tensor], labels: Tensor, share: float) -> list[Tensor]:
    """For each of two networks the places of the samples that the other one would keep."""
    if not len(labels):
        return [torch.zeros(0, dtype=torch.long, device=labels.device)] * 2
    kept = [smallest(F.cross_entropy(one.detach(), labels, reduction="none"), share) for one in logits]
    return kept[::-1]
