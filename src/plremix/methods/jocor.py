"""JoCoR (Wei et al. 2020): two networks are trained as one on samples that they both find easy and agree on."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from plremix.config import JoCoRConfig
from plremix.methods.coteaching import CoTeaching
from plremix.methods.forgetting import smallest
from plremix.methods.stepwise import Losses


class JoCoR(CoTeaching):
    """As Co-teaching knows what to forget; but one loss of both networks, and one choice for both."""

    config: JoCoRConfig  # type: ignore[assignment]

    def losses(self, mine: Tensor, weak: Tensor, epoch: int, step: int, steps: int) -> Losses:
        logits = [learner.forward(weak).logits for learner in self.learners]
        joint = joint_loss(logits, self.labels[mine], self.config.agreement)
        return {"loss": joint[smallest(joint.detach(), self.kept(epoch))].mean()}


def joint_loss(logits: list[Tensor], labels: Tensor, agreement: float) -> Tensor:
    """(b,): (1 - lambda) (CE_1 + CE_2) + lambda (KL(p_2 || p_1) + KL(p_1 || p_2)); both arguments have a gradient."""
    first, second = (F.log_softmax(one.float(), dim=1) for one in logits)
    supervised = sum(F.cross_entropy(one.float(), labels, reduction="none") for one in logits)
    apart = ((first.exp() - second.exp()) * (first - second)).sum(1)  # both divergences added up
    return (1 - agreement) * supervised + agreement * apart
