"""Contrastive pre-training without labels (SimCLR), before any method: C2D, and the paper's rows with a dagger."""

from __future__ import annotations

from functools import partial

import torch

from plremix.data.augment import VIEWS
from plremix.data.loading import batches, passes
from plremix.losses import contrast_with_stats
from plremix.methods.base import Method
from plremix.methods.drawing import rows_of
from plremix.methods.gathering import gather_rows
from plremix.randomness import generator


def pretrain(method: Method, epoch: int) -> float:
    """Train backbone and projector of every network for an epoch on two strong views of each image; the mean loss.

    The last epoch leaves the optimizers as new, and slow copies of the networks where the networks are.
    """
    config, loader = method.config, method.loader
    strong = [VIEWS[config.strong_view]] * 2
    rows = rows_of(epoch, config, method.labels, method.classes)
    total, count = 0.0, 0
    for index, learner in enumerate(method.learners):
        learner.start_epoch(config.lr, classifies=False)
        order = passes(rows, len(rows), generator(config.seed, "pretrain order", index, epoch))
        steps = [loader.share(indices) for indices in batches(order, 2 * config.batch_size)]
        views = loader.epoch(steps, strong, partial(generator, config.seed, "pretrain views", index, epoch))
        for pair in views:
            out = learner.forward(torch.cat(pair), logits=False, embeddings=True)
            embeddings = gather_rows(torch.stack(out.embeddings.chunk(2), dim=1))
            loss, _ = contrast_with_stats(embeddings, temperature=config.warmup_temperature)
            learner.descend(loss)
            total, count = total + float(loss.detach()), count + 1
        learner.finish_epoch()
        if epoch + 1 == config.pretrain_epochs:
            learner.forget_momentum()
    if epoch + 1 == config.pretrain_epochs:
        method.start_copies()
    return total / max(1, count)
