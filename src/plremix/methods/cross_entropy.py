"""Plain cross-entropy on the given labels: memorises the wrong ones, and is what everything is compared with."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from plremix.methods.stepwise import Losses, Stepwise


class CrossEntropy(Stepwise):
    """One network, every given label believed."""

    def losses(self, mine: Tensor, weak: Tensor, epoch: int, step: int, steps: int) -> Losses:
        logits = self.learners[0].forward(weak).logits
        return {"loss": F.cross_entropy(logits, self.labels[mine])}
