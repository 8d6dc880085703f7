"""Contrastive pre-training without labels (SimCLR), before any method: C2D, and the paper's rows with a dagger."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from plremix.config import Config
from plremix.data.augment import VIEWS
from plremix.data.loading import Loader, batches, passes
from plremix.losses import contrast_with_stats
from plremix.methods.gathering import gather_rows
from plremix.methods.learner import Learner
from plremix.randomness import generator


def pretrain(learners: list[Learner], config: Config, loader: Loader, on_epoch: Callable[[int, float], None]) -> None:
    """Train backbone and projector of every learner on two strong views of every image; told: epoch, mean loss."""
    strong = [VIEWS[config.strong_view]] * 2
    for epoch in range(config.pretrain_epochs):
        total, count = 0.0, 0
        for index, learner in enumerate(learners):
            learner.start_epoch(config.lr)
            draws = generator(config.seed, "pretrain order", index, epoch)
            order = passes(torch.arange(len(loader)), len(loader), draws)
            steps = [loader.share(indices) for indices in batches(order, 2 * config.batch_size)]
            views = loader.epoch(steps, strong, partial(generator, config.seed, "pretrain views", index, epoch))
            for pair in views:
                out = learner.forward(torch.cat(pair), logits=False, embeddings=True)
                embeddings = gather_rows(torch.stack(out.embeddings.chunk(2), dim=1))
                loss, _ = contrast_with_stats(embeddings, temperature=config.warmup_temperature)
                learner.descend(loss)
                total, count = total + float(loss.detach()), count + 1
            learner.finish_epoch()
        on_epoch(epoch, total / max(1, count))
    for learner in learners:
        learner.forget_momentum()
