"""MixUp (Zhang et al. 2018): blended images with blended given labels are harder to memorise."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.config import MixUpConfig
from plremix.losses import mixup, soft_cross_entropy
from plremix.methods.stepwise import Losses, Stepwise
from plremix.randomness import beta, generator


class MixUp(Stepwise):
    """One network; every image is blended with another of its batch, and so are their labels."""

    config: MixUpConfig

    def losses(self, mine: Tensor, weak: Tensor, epoch: int, step: int, steps: int) -> Losses:
        config = self.config
        share = beta(config.mixup_alpha, generator(config.seed, "share", epoch, step))
        draws = generator(config.seed, "mixup", epoch, step, self.loader.rank)
        partners = torch.randperm(len(mine), generator=draws).to(weak.device)
        given = F.one_hot(self.labels[mine], self.classes).float()
        images, targets = mixup(weak, given, share, partners)
        return {"loss": soft_cross_entropy(self.learners[0].forward(images).logits, targets)}
