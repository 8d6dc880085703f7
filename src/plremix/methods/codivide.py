"""Co-divide: two networks split the data for each other and train on the split (paper, sec. 3).

PLReMix is this method with the 2-d mixture and PLR; its relatives differ in the parts that the config names. DivideMix:
the 1-d mixture, no contrast, weak views only. UNICON: as many samples of every class by their divergence from the given
label, SimCLR on the noisy side.
Shapes: b samples a side, C classes, d embedding size, N samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import Tensor

from plremix.config import CoDivideConfig
from plremix.data.augment import VIEWS
from plremix.data.files import Images
from plremix.data.loading import Loader, batches, passes
from plremix.losses import (
    contrast_with_stats,
    mean_softmax,
    mixup,
    negative_entropy,
    prior_penalty,
    ramped_weight,
    sharpen,
    soft_cross_entropy,
    squared_error,
)
from plremix.methods.base import Arrays, Averages, ClassSets, Metrics, no_one_watches
from plremix.methods.contrasts import Contrast, contrasts_of, strong_views
from plremix.methods.drawing import rows_of, spread
from plremix.methods.forgetting import estimated_rate
from plremix.methods.gathering import gather_rows, same_everywhere
from plremix.methods.learner import Learner
from plremix.methods.splits import SPLITS, Scores, Split, both_losses, neighbourhood, scaled_losses
from plremix.networks import Architecture
from plremix.randomness import beta, generator
from plremix.selection import (
    ConfidenceThresholds,
    Verdict,
    calibrate,
    foretells,
    initial_prototypes,
    judge_labels,
    judge_together,
    prototype_logits,
    rate_by_count,
    soft_pseudo_labels,
    update_prototypes,
    update_prototypes_one_by_one,
)


class Step(NamedTuple):
    """One step of a network on a batch of either side."""

    losses: dict[str, Tensor]  # the terms of L_SST
    strong: list[Tensor]  # un-mixed strong views of the samples that are contrasted, where there are any
    mine: Tensor  # those samples
    share: float  # of the epoch that is done after it


class Lesson(NamedTuple):
    """What the last epochs learn."""

    labels: Tensor  # (N,)
    weights: Tensor  # (N,) in [0, 1]: each counts for as much as it is sure


class CoDivide:
    """Warm-up on all samples, then an epoch is: both networks score, split, and train on each other's split."""

    def __init__(
        self, config: CoDivideConfig, loader: Loader, labels: Tensor, architecture: Architecture, fabric: Fabric
    ) -> None:
        self.config, self.loader, self.labels, self.fabric = config, loader, labels, fabric
        self.classes = architecture.classes
        contrasts = config.contrast != "none" or config.pretrain != "none"
        self.learners = [Learner(config, architecture, m, fabric, train_projector=contrasts) for m in (0, 1)]
        self.networks = [learner.shown for learner in self.learners]
        self.weak, self.strong = VIEWS[config.weak_view], strong_views(config)
        self.warmup_view = self.weak if config.warmup_view == "weak" else VIEWS[config.strong_view]
        self.divide = SPLITS[config.split]
        self.contrasts = contrasts_of(config, self.learners, labels)
        self.contrast_wanted: bool | None = None if config.waits_with_contrast else True  # None: not known yet
        self.rows = torch.arange(len(loader))  # the samples of the running epoch
        self.noise_rate: float | None = None  # share of the labels that the first split found wrong
        self.prototypes: list[Tensor] = []  # (C, d) of each network, once warm-up is over
        self.thresholds = [ConfidenceThresholds.start(self.classes, labels.device) for _ in self.learners]
        self.splits: list[Split] = []
        self.guesses: list[Tensor] = []  # (N, C) logits of each network that the last split was made from
        self.pairs: Tensor | None = None  # (2, N, 2) losses of classifier and prototypes that the last epoch began with
        self.judged: Verdict | None = None  # on every label, when the last epochs began
        self.lesson: Lesson | None = None  # what they learn
        self.noise_rate_judged: float | None = None  # share of wrong labels that the verdict goes by
        self.past: list[Tensor] = []  # such losses of the last epochs, scaled, where the config averages them
        self.on_step: Callable[[float], None] = no_one_watches

    # --- the epoch ---

    def train_epoch(self, epoch: int) -> Metrics:
        averages, warms_up = Averages(), epoch < self.config.warmup_epochs
        drawn = self.config.warmup_images if warms_up else 0
        self.rows = rows_of(epoch, self.config, self.labels, self.classes, drawn)
        for contrast in self.contrasts:
            contrast.start_epoch()
        if epoch == self.config.warmup_epochs:  # only now are slow copies asked: they start from what was learned
            self.start_copies()
        if self.contrast_wanted is None and 2 * epoch >= self.config.warmup_epochs:
            averages.add({"noise_rate_by_neighbours": self._decide_on_contrast()})
        if warms_up:
            for index in (0, 1):
                self._warm_up(index, epoch, averages)
            return {"phase": "warmup", **averages.means()}
        if self.config.finishes(epoch):
            return self._finish(epoch, averages)

        scores, given = self._score(self.rows), self.labels[self.rows]
        self.splits = self._divide(scores, epoch)
        pairs = [both_losses(one, given) for one in scores]
        self.pairs = torch.stack([spread(pair, self.rows, len(self.loader)) for pair in pairs])
        for index in (0, 1):
            if index == 1 and self.config.divide_anew:
                self.splits[0] = self._divide(self._score(self.rows), epoch)[0]
            self._train(index, self.splits[1 - index], epoch, averages)
            self._move_prototypes(index, scores[index], epoch)
        for contrast in self.contrasts:
            contrast.finish_epoch()
        if self.config.loss_history > 1:
            self.past.append(torch.stack([scaled_losses(pair) for pair in pairs]))
            self.past = self.past[1 - self.config.loss_history :]
        clean = [int(split.is_clean.sum()) for split in self.splits]
        noted: Metrics = {"clean_count": sum(clean) // 2, "lambda_u": self._lambda_u()}
        if epoch == self.config.warmup_epochs:
            noted["noise_rate_after_warmup"] = self.noise_rate or 0.0
        return {"phase": "train", **noted, **averages.means()}

    def _divide(self, scores: list[Scores], epoch: int) -> list[Split]:
        """Each network's split of this epoch's samples, as tables of all; the first one shows the noise rate."""
        self.guesses = [spread(torch.nan_to_num(one.logits), self.rows, len(self.loader)) for one in scores]
        splits = self.divide(scores, self.labels[self.rows], self.config, epoch)
        splits = [split._replace(is_clean=same_everywhere(split.is_clean)) for split in splits]
        if self.noise_rate is None or not self.config.warmup_epochs:  # without warm-up the first split knows nothing
            rate = first_noise_rate(splits, scores, self.labels[self.rows])
            agreed = same_everywhere(torch.tensor(rate, dtype=torch.float64, device=self.labels.device))
            self.noise_rate = float(agreed)
        return [split.of_all(self.rows, len(self.loader)) for split in splits]

    def _decide_on_contrast(self) -> float:
        """Views for the contrast cost more than all the rest of a step, and pay where many labels are wrong: the share
        that seems to be."""
        outputs = [learner.predict(self.loader.images, self.loader, self.rows) for learner in self.learners]
        given = self.labels[self.rows]
        near = neighbourhood([out.embeddings for out in outputs], given, self.classes, self.config, folds=5)
        wrong = float(same_everywhere(torch.tensor(calibrate(near, given)[1], device=given.device)))
        self.contrast_wanted = wrong >= self.config.contrast_above
        return wrong

    def _contrasts(self) -> list[Contrast]:
        """Those of the running epoch, one for each network; none before they are wanted."""
        return self.contrasts if self.contrast_wanted else []

    def _contrasted_by(self, split: Split) -> Tensor:
        """Class scores (N, C) that pairs are chosen by. Where only the first class of a sample counts, its guessed one:
        before the quotas one class may be the first for most of them, and all would attract each other."""
        return split.class_scores if self.config.contrast != "scl" or split.guesses is None else split.guesses

    def _lambda_u(self) -> float:
        """The weight of the noisy side: as told, or by the noise rate that the first split showed."""
        told = self.config.lambda_u
        return weight_for(self.noise_rate or 0.0, self.classes) if told == "auto" else told

    def _score(self, rows: Tensor) -> list[Scores]:
        """What each network says of these un-augmented samples; the first time, prototypes start from them."""
        outputs = [learner.predict(self.loader.images, self.loader, rows) for learner in self.learners]
        if not self.prototypes:
            labels, usable = self.labels[rows], [out.embeddings.isfinite().all(1) for out in outputs]
            self.prototypes = [
                initial_prototypes(out.embeddings[fine], labels[fine], self.classes)
                for out, fine in zip(outputs, usable, strict=True)
            ]
        return [
            Scores(out.logits, out.embeddings, prototypes, tuple(past[index] for past in self.past), self.noise_rate)
            for index, (out, prototypes) in enumerate(zip(outputs, self.prototypes, strict=True))
        ]

    # --- warm-up: cross-entropy on a weak view, contrast with every other sample on two strong ones ---

    def _warm_up(self, index: int, epoch: int, averages: Averages) -> None:
        config, learner = self.config, self.learners[index]
        contrasts = bool(self._contrasts()) and config.warmup_contrast
        learner.start_epoch(config.learning_rate(epoch), projects=contrasts)
        order = passes(self.rows, len(self.rows), generator(config.seed, "order", index, epoch))
        steps = [self.loader.share(indices) for indices in batches(order, 2 * config.batch_size)]
        wanted = [self.warmup_view, *(self.strong if contrasts else [])]
        draws = partial(generator, config.seed, "views", index, epoch)
        for step, (mine, views) in enumerate(zip(steps, self.loader.epoch(steps, wanted, draws), strict=True)):
            strong = [view[:: config.contrast_every] for view in views[1:]]
            if config.crop_sides:
                logits = learner.forward(views[0]).logits
                embeddings = learner.embed(strong) if contrasts else None
            else:  # views of one size: a single pass
                out = learner.forward(torch.cat([views[0], *strong]), embeddings=contrasts)
                logits = out.logits[: len(mine)]
                embeddings = torch.stack(out.embeddings[len(mine) :].chunk(2), dim=1) if contrasts else None
            seen: dict[str, Tensor] = {}
            losses = {"loss_classifier": F.cross_entropy(logits, self.labels[mine])}
            if config.warmup_entropy:
                losses["loss_entropy"] = negative_entropy(logits)
            if embeddings is not None:
                contrast, seen = contrast_with_stats(
                    gather_rows(embeddings), flat=config.flat, temperature=config.warmup_temperature
                )
                losses["loss_contrast"] = config.contrast_weight * contrast
            learner.descend(torch.stack(list(losses.values())).sum(), config.warmup_clip)
            averages.add({**losses, **seen})
            self.on_step((index + (step + 1) / len(steps)) / 2)
        learner.finish_epoch()

    # --- semi-supervised training on the other network's split ---

    def _train(self, index: int, split: Split, epoch: int, averages: Averages) -> None:
        learner, contrasts = self.learners[index], bool(self._contrasts())
        learner.start_epoch(self.config.learning_rate(epoch), projects=contrasts)
        for step in self.steps(index, split, epoch, contrasts=contrasts):
            learner.add_gradient(torch.stack(list(step.losses.values())).sum())
            averages.add(step.losses)
            if contrasts:
                contrast, seen = self.contrasts[index](step.strong, step.mine, self._contrasted_by(split), epoch)
                learner.add_gradient(contrast)
                averages.add({"loss_contrast": contrast, **seen})
            learner.step()
            self.on_step((index + step.share) / 2)
        learner.finish_epoch()

    def steps(self, index: int, split: Split, epoch: int, *, contrasts: bool) -> Iterator[Step]:
        """The losses of each step of an epoch, and strong views if it contrasts; what is done with their gradients is
        the caller's affair."""
        sides = self._draw_epoch(split, index, epoch)
        rows = [torch.cat(both) for both in sides]
        draws = partial(generator, self.config.seed, "views", index, epoch)
        strong = self.strong if self.config.learned_view == "strong" or contrasts else []
        used = 2 if self.config.guess == "step" else 1  # views of a sample that its guess is learned in
        more = used if self.config.learned_view == "weak" else 0
        every_view = self.loader.epoch(rows, [self.weak] * (used + more) + strong, draws)
        for step, ((clean, noisy), drawn) in enumerate(zip(sides, every_view, strict=True)):
            guessed, further, strong_ones = drawn[:used], drawn[used : used + more], drawn[used + more :]
            targets = self._targets(index, split, clean, noisy, guessed)
            learned = {"guessed": guessed, "weak": further, "strong": strong_ones[:used]}[self.config.learned_view]
            losses = self._losses(index, clean, learned, targets, epoch, step, len(rows))
            seen = slice(0 if self.config.contrast_side == "all" else len(clean), None, self.config.contrast_every)
            yield Step(losses, [view[seen] for view in strong_ones], rows[step][seen], (step + 1) / len(rows))

    def next_splits(self, epoch: int) -> list[Split]:
        """The splits that the networks, as they are now, would begin that epoch with."""
        scores = self._score(torch.arange(len(self.loader)))
        self.guesses = [torch.nan_to_num(one.logits) for one in scores]
        return self.divide(scores, self.labels, self.config, epoch)

    def _draw_epoch(self, split: Split, index: int, epoch: int) -> list[tuple[Tensor, Tensor]]:
        """A share of either side for each step: as many steps as the setting says, a short side repeated."""
        size, is_clean = min(self.config.batch_size, len(self.rows)), split.is_clean.cpu()[self.rows]
        clean, noisy = self.rows[is_clean], self.rows[~is_clean]
        steps = max(1, (len(clean) if self.config.epoch_length == "clean" else len(self.rows)) // size)
        sizes = [size, size]
        if self.config.noisy_batch == "by-share":  # bounded, for splits that find hardly anyone clean
            share = max(1, size * len(self.rows) // (2 * max(1, len(clean))))
            sizes[1] = min(self.loader.for_all(share), 4 * size)
        if self.config.noisy_batch == "proportional":
            share = math.ceil(2 * size * len(noisy) / max(1, len(self.rows)))
            sizes[1] = min(self.loader.for_all(share), size)
            sizes[0] = 2 * size - sizes[1]
        draws = generator(self.config.seed, "order", index, epoch)
        orders = [passes(side, steps * each, draws) for side, each in zip((clean, noisy), sizes, strict=True)]
        first, second = (
            [self.loader.share(order[step * each : (step + 1) * each]) for step in range(steps)]
            for order, each in zip(orders, sizes, strict=True)
        )
        return list(zip(first, second, strict=True))

    def _losses(
        self, index: int, clean: Tensor, views: list[Tensor], targets: Tensor, epoch: int, step: int, steps: int
    ) -> dict[str, Tensor]:
        """The terms of L_SST for a batch whose first samples are the clean ones, in one or two views; an empty side has
        none."""
        config, learner = self.config, self.learners[index]
        draws = generator(config.seed, "mixup", index, epoch, step, self.loader.rank)
        share = beta(config.beta, generator(config.seed, "share", index, epoch, step))
        images, mixed_targets = mixup(
            _by_side(views, len(clean)),
            _by_side([targets] * len(views), len(clean)),
            max(share, 1 - share),
            torch.randperm(len(views) * len(targets), generator=draws).to(targets.device),
        )
        sides = len(views) * len(clean)
        if not config.learn_noisy and sides:
            images = images[:sides]
        logits = learner.forward(images).logits
        losses = {"loss_prior": prior_penalty(logits)}
        if len(clean):
            losses["loss_clean"] = soft_cross_entropy(logits[:sides], mixed_targets[:sides])
        if len(logits) > sides:
            weight = ramped_weight(self._lambda_u(), epoch + step / steps, config.warmup_epochs, config.ramp_epochs)
            losses["loss_noisy"] = weight * squared_error(logits[sides:], mixed_targets[sides:])
        return losses

    @torch.no_grad()
    def _targets(self, index: int, split: Split, clean: Tensor, noisy: Tensor, weak: list[Tensor]) -> Tensor:
        """Co-refinement of the clean side's labels and co-guessing of the noisy side's (2b, C), sharpened."""
        mine, theirs = self._guesses(index, clean, noisy, weak)
        refined = mean_softmax([logits[: len(clean)] for logits in mine])
        believed = split.clean_probability[clean][:, None]
        given = F.one_hot(self.labels[clean], self.classes)
        refined = believed * given + (1 - believed) * refined
        if len(noisy):
            guessed = mean_softmax([*(logits[len(clean) :] for logits in mine), *theirs])
            if split.guesses is not None:
                guessed = (1 - split.guess_weight) * guessed + split.guess_weight * split.guesses[noisy]
            refined = torch.cat([refined, guessed])
        return sharpen(refined, self.config.sharpen)

    def _guesses(
        self, index: int, clean: Tensor, noisy: Tensor, weak: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Logits of a network for both sides, and of the other one for the noisy side: of each view now, or of the
        images as they were before the epoch."""
        if self.config.guess == "epoch":
            return [self.guesses[index][torch.cat([clean, noisy])]], [self.guesses[1 - index][noisy]]
        mine = self.learners[index].guess(torch.cat(weak), train_mode=True).chunk(len(weak))
        if not len(noisy):
            return list(mine), []
        theirs = self.learners[1 - index].guess(torch.cat([view[len(clean) :] for view in weak]), train_mode=False)
        return list(mine), list(theirs.chunk(len(weak)))

    # --- the last epochs: cross-entropy on the corrected labels, each counting for as much as it is sure ---

    def _finish(self, epoch: int, averages: Averages) -> Metrics:
        config = self.config
        if self.lesson is None:
            self.judged, careful = (self.judged,) * 2 if self.judged else self._judge()  # older files have one verdict
            labels, sure = careful.corrected(self.labels.cpu().numpy()), torch.from_numpy(careful.confidence)
            lesson = torch.from_numpy(labels).to(self.labels.device), sure.float().to(self.labels.device)
            self.lesson = Lesson(*map(same_everywhere, lesson))
        assert self.judged is not None
        self.splits, self.pairs = [], None  # nobody is split any more
        corrected, weights = self.lesson
        for index, learner in enumerate(self.learners):
            learner.start_epoch(config.learning_rate(epoch), projects=False)
            order = passes(self.rows, len(self.rows), generator(config.seed, "order", index, epoch))
            steps = [self.loader.share(indices) for indices in batches(order, 2 * config.batch_size)]
            draws = partial(generator, config.seed, "views", index, epoch)
            views = self.loader.epoch(steps, [self.weak], draws)
            for step, (mine, (weak,)) in enumerate(zip(steps, views, strict=True)):
                losses = F.cross_entropy(learner.forward(weak).logits, corrected[mine], reduction="none")
                loss = (weights[mine] * losses).mean()
                learner.descend(loss)
                averages.add({"loss_corrected": loss})
                self.on_step((index + (step + 1) / len(steps)) / 2)
            learner.finish_epoch()
        return {"phase": "train", "clean_count": int((~self.judged.is_label_issue).sum()), **averages.means()}

    # --- prototypes ---

    def _move_prototypes(self, index: int, scores: Scores, epoch: int) -> None:
        """Confident samples move their class's prototype; each network by its own embeddings and thresholds."""
        config = self.config
        finite = scores.logits.isfinite().all(1) & scores.embeddings.isfinite().all(1)
        scores = Scores(scores.logits[finite], scores.embeddings[finite], scores.prototypes)
        if not len(scores.logits):
            return
        by_prototypes = prototype_logits(scores.embeddings, scores.prototypes)
        pseudo_labels = soft_pseudo_labels(by_prototypes, scores.logits, epoch / config.epochs)
        self.thresholds[index] = self.thresholds[index].updated(pseudo_labels, config.prototype_momentum)
        confident = self.thresholds[index].confident(pseudo_labels)
        counts_for = (scores.logits if config.prototype_class == "classifier" else pseudo_labels).argmax(1)
        update = update_prototypes if config.prototype_update == "epoch" else update_prototypes_one_by_one
        self.prototypes[index] = update(
            self.prototypes[index], scores.embeddings[confident], counts_for[confident], config.prototype_momentum
        )

    # --- what the loop asks for ---

    def start_copies(self) -> None:
        for contrast in self.contrasts:
            contrast.start_copies()

    def logits(self, images: Images) -> Tensor:
        return torch.stack([learner.predict(images, self.loader).logits for learner in self.learners]).sum(0)

    def verdict(self) -> Verdict:
        """By the networks as they are; or as they were before the last epochs, if those taught them labels by heart."""
        return self._judge()[0] if self.judged is None or self.config.judges_at_the_end else self.judged

    def _judge(self) -> tuple[Verdict, Verdict]:
        """The verdict on every label, and the more careful one that networks may learn from.

        With the benefit of the doubt, labels are worth what the first split showed, unless the neighbourhood counts
        fewer wrong ones now, or knows nothing. By itself it finds few where images are hard, and a network learns more
        from a wrong label than from a wrong correction.
        """
        outputs = [learner.predict(self.loader.images, self.loader) for learner in self.learners]
        logits, given = torch.stack([out.logits for out in outputs]).cpu().numpy(), self.labels.cpu().numpy()
        if not self._asks_neighbours():
            return (judge_labels(logits, given),) * 2
        near = neighbourhood([out.embeddings for out in outputs], self.labels, self.classes, self.config, folds=5)
        near, wrong = calibrate(near, self.labels)
        posteriors = near.cpu().numpy()
        if not self.config.benefit_of_doubt:
            return (judge_together(logits, posteriors, given),) * 2
        careful = judge_together(logits, posteriors, given, wrong)
        if self.noise_rate is None or not foretells(near, self.labels):
            return careful, careful
        self.noise_rate_judged = max(wrong, min(self.noise_rate, rate_by_count(near, self.labels)))
        return judge_together(logits, posteriors, given, self.noise_rate_judged), careful

    def _asks_neighbours(self) -> bool:
        """Whether the verdict is the neighbourhood's, too."""
        return self.config.split == "neighbours" or self.config.benefit_of_doubt

    def noise_rate_estimate(self, named: float) -> float:
        """Networks alone tell it best by the first split after a warm-up: later they know wrong labels by heart."""
        if self.noise_rate is not None and self.config.warmup_epochs and not self._asks_neighbours():
            return self.noise_rate
        return max(named, self.noise_rate_judged or 0.0)

    def clean_samples(self) -> tuple[Tensor, Tensor] | None:
        if self.judged is not None:
            believed = torch.from_numpy(np.stack([~self.judged.is_label_issue]))
            return believed, torch.from_numpy(np.stack([self.judged.label_score]))
        if not self.splits:
            return None
        return (
            torch.stack([split.is_clean for split in self.splits]),
            torch.stack([split.clean_probability if split.order is None else split.order for split in self.splits]),
        )

    def negative_sets(self, epoch: int) -> list[ClassSets]:
        if self.config.finishes(epoch):
            return []
        if epoch < self.config.warmup_epochs:  # there every other sample is a negative
            contrasts = self.config.warmup_contrast and bool(self._contrasts())
            return [ClassSets(self.rows, self.labels.new_empty(len(self.rows), 0))] if contrasts else []
        sets = []
        for contrast, split in zip(self._contrasts(), reversed(self.splits), strict=False):
            rows = self.rows if self.config.contrast_side == "all" else self.rows[~split.is_clean.cpu()[self.rows]]
            likely = contrast.class_sets(self._contrasted_by(split), epoch)
            sets.append(ClassSets(rows, likely[rows.to(self.labels.device)]))
        return sets

    def loss_pairs(self) -> Tensor | None:
        return self.pairs

    def split_details(self) -> Arrays:
        splits = self.next_splits(self.config.epochs)
        details = {
            "clean_probability": np.stack([split.clean_probability.cpu().numpy() for split in splits]),
            "is_clean": np.stack([split.is_clean.cpu().numpy() for split in splits]),
            "points": np.stack([split.points.numpy() for split in splits]),
        }
        mixtures = [split.mixture for split in splits if split.mixture is not None]
        if mixtures:
            details["means"] = np.stack([mixture.means for mixture in mixtures])
            details["covariances"] = np.stack([mixture.covariances for mixture in mixtures])
        return details

    def state_dict(self) -> dict[str, Any]:
        return {
            "learners": [learner.state_dict() for learner in self.learners],
            "contrasts": [contrast.state_dict() for contrast in self.contrasts],
            "contrast_wanted": self.contrast_wanted,
            "noise_rate": self.noise_rate,
            "past": self.past,
            "judged": None if self.judged is None else [torch.from_numpy(part) for part in self.judged],
            "lesson": None if self.lesson is None else list(self.lesson),
            "noise_rate_judged": self.noise_rate_judged,
            "prototypes": self.prototypes,
            "thresholds": [tuple(thresholds) for thresholds in self.thresholds],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for learner, saved in zip(self.learners, state["learners"], strict=True):
            learner.load_state_dict(saved)
        for contrast, saved in zip(self.contrasts, state["contrasts"], strict=True):
            contrast.load_state_dict(saved)
        self.contrast_wanted = state.get("contrast_wanted", self.contrast_wanted)  # not in older files
        self.noise_rate, self.past = state["noise_rate"], list(state["past"])
        self.judged = None if state["judged"] is None else Verdict(*(part.numpy() for part in state["judged"]))
        device = self.labels.device
        lesson, self.noise_rate_judged = state.get("lesson"), state.get("noise_rate_judged")  # not in older files
        self.lesson = None if lesson is None else Lesson(*(part.to(device) for part in lesson))
        self.prototypes = [prototypes.to(device) for prototypes in state["prototypes"]]
        self.thresholds = [ConfidenceThresholds(*(part.to(device) for part in saved)) for saved in state["thresholds"]]


def first_noise_rate(splits: list[Split], scores: list[Scores], labels: Tensor) -> float:
    """The share of wrong labels after warm-up. A split that gives each class its quota has it; others keep as clean
    what is best learned from, which is something else."""
    if any(split.guesses is None for split in splits):
        return estimated_rate([one.logits for one in scores], labels)
    return 1 - float(torch.stack([split.is_clean.float().mean() for split in splits]).mean())


def weight_for(noise_rate: float, classes: int) -> float:
    """lambda_U for a share of wrong labels: through the values that the paper has for CIFAR-10.

    20 % symmetric noise (18 % wrong): 0; 50 % (45 %) and 80 % (72 %): 25; 90 % (81 %): 50. The squared error is a mean
    over the classes, so it is the smaller the more there are: the paper has six times as much for CIFAR-100, and eight
    to twelve times for the 200 classes of Tiny-ImageNet. No less than for ten where there are fewer.
    """
    by_rate = float(np.interp(noise_rate, [0.2, 0.45, 0.72, 0.81], [0.0, 25.0, 25.0, 50.0]))
    return by_rate * 6 ** max(0.0, math.log10(classes / 10))


def _by_side(views: list[Tensor], clean: int) -> Tensor:
    """Views (2b, ...) of clean and noisy samples as one batch with the whole clean side in front."""
    return torch.cat([view[:clean] for view in views] + [view[clean:] for view in views])
