"""ELR and ELR+ (Liu et al. 2020): early on networks are right about wrong labels; a running mean of their predictions
keeps them from forgetting it.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import Tensor

from plremix.config import ELRConfig
from plremix.data.loading import Loader
from plremix.losses import mixup, soft_cross_entropy
from plremix.methods.gathering import gather_rows
from plremix.methods.stepwise import Losses, Stepwise
from plremix.networks import Architecture
from plremix.randomness import beta, generator

SMALLEST = 1e-4  # probabilities are kept this far from 0 and 1: it bounds the logarithm


class ELR(Stepwise):
    """One network; the target of a sample follows its own predictions."""

    config: ELRConfig

    def __init__(
        self, config: ELRConfig, loader: Loader, labels: Tensor, architecture: Architecture, fabric: Fabric
    ) -> None:
        super().__init__(config, loader, labels, architecture, fabric)
        self.targets = torch.zeros(self.networks_used, len(labels), self.classes, device=labels.device)

    def losses(self, mine: Tensor, weak: Tensor, epoch: int, step: int, steps: int) -> Losses:
        config = self.config
        logits = self.learners[0].forward(weak).logits
        targets = self._follow(0, mine, bounded(logits.detach()))
        return {
            "loss_classifier": F.cross_entropy(logits, self.labels[mine]),
            "loss_elr": config.elr_weight * early_learning(logits, targets),
        }

    def _follow(self, index: int, mine: Tensor, probabilities: Tensor) -> Tensor:
        """Move the targets of all processes' samples of this step; returns those of `mine` (b, C)."""
        everyone = gather_rows(mine.to(self.labels.device))
        seen = gather_rows(probabilities)
        momentum, table = self.config.elr_momentum, self.targets[index]
        table[everyone] = momentum * table[everyone] + (1 - momentum) * seen / seen.sum(1, keepdim=True)
        return table[mine]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "targets": self.targets}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.targets = state["targets"].to(self.labels.device)


class ELRPlus(ELR):
    """Two networks on blended images; a target follows the other network's slow copy on the image itself.

    The published code draws noise and training images anew for each network, so that the pair sees less noise than it
    says; here both see the same labels. There the networks are trained in
    turn, an epoch each; here together, step by step.
    """

    networks_used = 2

    def __init__(
        self, config: ELRConfig, loader: Loader, labels: Tensor, architecture: Architecture, fabric: Fabric
    ) -> None:
        super().__init__(config, loader, labels, architecture, fabric)
        self.followers = [copy.deepcopy(learner.network).requires_grad_(False) for learner in self.learners]

    def losses(self, mine: Tensor, weak: Tensor, epoch: int, step: int, steps: int) -> Losses:
        config, seen = self.config, {}
        weight = config.elr_weight * slow_start(epoch + (step + 1) / steps, config.elr_epochs)
        given = F.one_hot(self.labels[mine], self.classes).float()
        for index, learner in enumerate(self.learners):
            with torch.no_grad():
                slow = self.followers[1 - index].train()(weak).logits
            targets = self._follow(index, mine, bounded(slow))
            share = beta(config.mixup_alpha, generator(config.seed, "share", index, epoch, step))
            draws = generator(config.seed, "mixup", index, epoch, step, self.loader.rank)
            partners = torch.randperm(len(mine), generator=draws).to(weak.device)
            images, both = mixup(weak, torch.cat([given, targets], dim=1), max(share, 1 - share), partners)
            logits = learner.forward(images).logits
            labels, mixed = both.split(self.classes, dim=1)  # type: ignore[no-untyped-call]
            if config.reweight_labels:
                labels = F.normalize(labels * mixed, p=1.0, dim=1)
            seen[f"loss_classifier_{index}"] = soft_cross_entropy(logits, labels)
            seen[f"loss_elr_{index}"] = weight * early_learning(logits, mixed)
        return seen

    def start_copies(self) -> None:
        super().start_copies()
        for follower, learner in zip(self.followers, self.learners, strict=True):
            follower.load_state_dict(learner.network.state_dict())

    @torch.no_grad()
    def after_step(self, epoch: int, step: int, steps: int) -> None:
        """The slow copies follow: at once in the beginning, hardly at the end (parameters only, as published)."""
        momentum = self._momentum(epoch, step, steps)
        for follower, learner in zip(self.followers, self.learners, strict=True):
            for slow, fast in zip(follower.parameters(), learner.network.parameters(), strict=True):
                slow.lerp_(fast.to(slow.device), 1 - momentum)

    def _momentum(self, epoch: int, step: int, steps: int) -> float:
        """How slowly they follow after this step."""
        config, passed = self.config, epoch + (step + 1) / steps
        if config.ema_epochs is None:  # published: full after 114 of 200 epochs
            return config.ema * slow_start(passed / config.epochs, 0.57)
        if config.ema_epochs == 0:
            return min(1 - 1 / (epoch * steps + step + 1), config.ema)
        return config.ema * slow_start(passed, config.ema_epochs)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "followers": [follower.state_dict() for follower in self.followers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for follower, saved in zip(self.followers, state["followers"], strict=True):
            follower.load_state_dict(saved)


def slow_start(passed: float, length: float) -> float:
    """exp(-5 (1 - passed / length)^2), from nearly 0 to 1, which it stays: published code. No length: 1."""
    return math.exp(-5 * (1 - min(passed / length, 1.0)) ** 2) if length else 1.0


def bounded(logits: Tensor) -> Tensor:
    """Class probabilities (b, C), kept away from 0 and 1."""
    return F.softmax(logits.float(), dim=1).clamp(SMALLEST, 1 - SMALLEST)


def early_learning(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean of log(1 - <target, prediction>): lower the more they agree, so it is negative by design."""
    return (1 - (targets * bounded(logits)).sum(1)).clamp(min=SMALLEST).log().mean()
