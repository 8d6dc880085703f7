"""What the methods have in common that go through all samples batch by batch; each adds the losses of a step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import torch
from lightning_fabric import Fabric
from torch import Tensor

from plremix.config import Config
from plremix.data.augment import VIEWS
from plremix.data.files import Images
from plremix.data.loading import Loader, batches, passes
from plremix.methods.base import Arrays, Averages, ClassSets, Metrics, no_one_watches
from plremix.methods.contrasts import contrasts_of, strong_views
from plremix.methods.drawing import rows_of, spread
from plremix.methods.forgetting import mean_probabilities
from plremix.methods.learner import Learner, step_together
from plremix.networks import Architecture
from plremix.randomness import generator
from plremix.selection import Verdict, judge_labels, rate_by_quotas

Losses = dict[str, Tensor]


class Stepwise:
    """One or two networks, a weak view a sample, and the contrast part on two strong views where there is one.

    The classes that PLR takes as likely are the predictions at the start of the epoch: of the other network where there
    are two, so that their errors stay crossed.
    """

    networks_used: ClassVar[int] = 1
    judged_epochs: ClassVar[int] = 5  # how many epochs' starts the noise rate is read from: fewer are further off
    noise_rate: float | None = None  # share of the labels that seemed wrong when the networks had learned a little
    opinions: Tensor | None = None  # (N, C) class probabilities, added up while it is read

    def __init__(
        self, config: Config, loader: Loader, labels: Tensor, architecture: Architecture, fabric: Fabric
    ) -> None:
        self.config, self.loader, self.labels, self.fabric = config, loader, labels, fabric
        self.classes = architecture.classes
        contrasts = config.contrast != "none" or config.pretrain != "none"
        self.learners = [
            Learner(config, architecture, index, fabric, train_projector=contrasts)
            for index in range(self.networks_used)
        ]
        self.networks = [learner.shown for learner in self.learners]
        self.contrasts = contrasts_of(config, self.learners, labels)
        self.rows = torch.arange(len(loader))  # the samples of the running epoch
        self.tables: list[Tensor] = []  # class scores (N, C) that each contrast part goes by in this epoch
        self.on_step: Callable[[float], None] = no_one_watches

    # --- what a method says ---

    def start_epoch(self, epoch: int) -> Metrics:
        """What happens before the first step, and what the log should say of it: for some epochs, how many labels seem
        wrong. After warm-up networks have learned a little, and hardly a wrong label by heart."""
        first = self.first_judged()
        if not first <= epoch < first + self.judged_epochs:
            return {}
        seen = mean_probabilities(self._predictions(self.rows))
        if self.opinions is None:
            self.opinions = seen.new_zeros(len(self.labels), self.classes)
        self.opinions[self.rows.to(seen.device)] += seen
        heard = self.opinions.sum(1) > 0  # an epoch need not see all samples
        self.noise_rate = rate_by_quotas(self.opinions[heard], self.labels[heard])
        if epoch + 1 == first + self.judged_epochs:
            self.opinions = None
        return {"noise_rate_after_warmup": self.noise_rate}

    def first_judged(self) -> int:
        """The epoch that begins with it; networks that have learned nothing know nothing."""
        return max(1, self.config.warmup_epochs)

    def losses(self, mine: Tensor, weak: Tensor, epoch: int, step: int, steps: int) -> Losses:
        """The terms of a step (of `steps`) for the samples `mine`, whose weak views (b, c, H, W) are given."""
        raise NotImplementedError

    def after_step(self, epoch: int, step: int, steps: int) -> None:
        """What follows the optimizer in a step of the epoch's `steps`."""

    # --- the epoch ---

    def train_epoch(self, epoch: int) -> Metrics:
        config, averages = self.config, Averages()
        self.rows = rows_of(epoch, config, self.labels, self.classes)
        noted = self.start_epoch(epoch)
        self.tables = self._tables()[::-1] if self.contrasts else []
        for contrast in self.contrasts:
            contrast.start_epoch()
        for learner in self.learners:
            learner.start_epoch(config.learning_rate(epoch), projects=bool(self.contrasts))
        order = passes(self.rows, len(self.rows), generator(config.seed, "order", epoch))
        steps = [self.loader.share(indices) for indices in batches(order, config.batch_size)]
        wanted = [VIEWS[config.weak_view], *(strong_views(config) if self.contrasts else [])]
        views = self.loader.epoch(steps, wanted, partial(generator, config.seed, "views", epoch))
        for step, (mine, (weak, *strong)) in enumerate(zip(steps, views, strict=True)):
            losses = self.losses(mine, weak, epoch, step, len(steps))
            for contrast, table in zip(self.contrasts, self.tables, strict=True):
                loss, seen = contrast(strong, mine, table, epoch)
                losses["loss_contrast"] = losses.get("loss_contrast", torch.zeros_like(loss)) + loss
                averages.add(seen)
            self._descend(torch.stack(list(losses.values())).sum())
            averages.add(losses)
            self.after_step(epoch, step, len(steps))
            self.on_step((step + 1) / len(steps))
        for learner in self.learners:
            learner.finish_epoch()
        for contrast in self.contrasts:
            contrast.finish_epoch()
        return {"phase": "train", **noted, **averages.means()}

    def _descend(self, loss: Tensor) -> None:
        """One step of every network's optimizer: their losses have no parameter in common, so their sum will do."""
        self.fabric.backward(torch.stack([loss, *(learner.nothing() for learner in self.learners)]).sum())
        for learner in self.learners:
            learner.leave_unused()
        step_together(self.learners, self.fabric)

    # --- what the loop asks for ---

    def start_copies(self) -> None:
        for contrast in self.contrasts:
            contrast.start_copies()

    def logits(self, images: Images) -> Tensor:
        return torch.stack([learner.predict(images, self.loader).logits for learner in self.learners]).sum(0)

    def verdict(self) -> Verdict:
        logits = torch.stack(self._predictions())
        return judge_labels(logits.cpu().numpy(), self.labels.cpu().numpy())

    def _predictions(self, rows: Tensor | None = None) -> list[Tensor]:
        """Each network's logits (N, C) of the training images as they are, or of `rows` of them (n, C)."""
        return [learner.predict(self.loader.images, self.loader, rows).logits for learner in self.learners]

    def _tables(self) -> list[Tensor]:
        """The logits of this epoch's samples, each in its own row of (N, C)."""
        return [spread(logits, self.rows, len(self.loader)) for logits in self._predictions(self.rows)]

    def clean_samples(self) -> tuple[Tensor, Tensor] | None:
        return None

    def noise_rate_estimate(self, named: float) -> float:
        return named if self.noise_rate is None else self.noise_rate

    def negative_sets(self, epoch: int) -> list[ClassSets]:
        return [
            ClassSets(self.rows, contrast.class_sets(table, epoch)[self.rows.to(table.device)])
            for contrast, table in zip(self.contrasts, self.tables, strict=True)
        ]

    def loss_pairs(self) -> Tensor | None:
        return None

    def split_details(self) -> Arrays:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {
            "learners": [learner.state_dict() for learner in self.learners],
            "contrasts": [contrast.state_dict() for contrast in self.contrasts],
            "noise_rate": self.noise_rate,
            "opinions": self.opinions,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for learner, saved in zip(self.learners, state["learners"], strict=True):
            learner.load_state_dict(saved)
        for contrast, saved in zip(self.contrasts, state["contrasts"], strict=True):
            contrast.load_state_dict(saved)
        self.noise_rate = state.get("noise_rate", state.get("rate"))  # older files have the second, or none
        opinions = state.get("opinions")  # not in older files
        self.opinions = None if opinions is None else opinions.to(self.labels.device)
