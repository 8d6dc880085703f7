"""Co-divide: its targets equal a naive computation, its parts can be swapped, and no split stops it."""

from __future__ import annotations

import copy
import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers import blobs, method_on, same_state, small_config
from sklearn.mixture import GaussianMixture
from torch import Tensor

from plremix.config import LATE_EPOCHS
from plremix.data.augment import VIEWS
from plremix.data.dataset import LabelledImages
from plremix.data.loading import passes
from plremix.data.sources import arrays
from plremix.losses import contrastive_loss, reliable_negatives
from plremix.methods import codivide
from plremix.methods.base import Averages
from plremix.methods.codivide import CoDivide, first_noise_rate
from plremix.methods.learner import Predictions
from plremix.methods.splits import (
    SPLITS,
    Scores,
    Split,
    class_balanced,
    divergence_from_labels,
    mixture1d,
    mixture2d,
    neighbours,
    small_loss,
)
from plremix.randomness import beta, generator
from plremix.selection import Verdict, prototype_logits


def finite(method: CoDivide) -> bool:
    return all(torch.isfinite(p).all() for network in method.networks for p in network.state_dict().values())


def test_an_epoch_of_each_phase_reports_its_losses(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config())
    warm = method.train_epoch(0)
    assert warm["phase"] == "warmup"
    assert {"loss_classifier", "loss_contrast", "log_negatives"} <= warm.keys()
    assert method.clean_samples() is None
    trained = method.train_epoch(1)
    assert trained["phase"] == "train"
    assert {"loss_clean", "loss_noisy", "loss_prior", "loss_contrast", "negative_share"} <= trained.keys()
    assert 0 <= trained["clean_count"] <= 60
    assert [part.shape for part in method.clean_samples()] == [(2, 60), (2, 60)]


def test_the_networks_start_apart_and_stay_apart(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config())
    for epoch in range(3):
        first, second = (network.classifier.weight for network in method.networks)
        assert (first - second).abs().mean() > 0.01
        method.train_epoch(epoch)


@pytest.mark.parametrize("view", ["weak", "strong"])
def test_the_loss_of_a_warm_up_step_is_the_sum_of_its_terms(
    tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    """Cross-entropy on the given labels, negative entropy, and the contrast with its own temperature and weight."""
    settings = {"warmup_temperature": 0.3, "temperature": 0.9, "contrast_weight": 0.5, "warmup_clip": 0.7}
    config = small_config(batch_size=30, flat=False, warmup_entropy=True, warmup_view=view, **settings)
    method, draws = method_on(tiny, config), torch.Generator().manual_seed(0)
    learner = method.learners[1]
    classify, project = (0.1 * torch.randn(64, size, generator=draws) for size in (3, 8))
    shown: list[Tensor] = []

    def forward(images: Tensor, embeddings: bool = False) -> SimpleNamespace:
        shown.append(images)
        return SimpleNamespace(logits=images.flatten(1) @ classify, embeddings=images.flatten(1) @ project)

    descended: list[tuple[float, float]] = []
    learner.forward = forward
    learner.descend = lambda loss, longest: descended.append((loss.item(), longest))
    method.train_epoch(0)

    order = passes(torch.arange(60), 60, generator(0, "order", 1, 0))
    views = torch.cat(shown).chunk(3)
    said = (views[0].flatten(1) @ classify).log_softmax(1)
    truth = sum(-float(row[label]) for row, label in zip(said, tiny.given_labels[order], strict=True)) / 60
    entropy = -sum(float(p.exp() * p) for p in said.flatten()) / 60
    pairs = torch.stack([one.flatten(1) @ project for one in views[1:]], dim=1)
    contrast = contrastive_loss(pairs, temperature=0.3).item()
    assert descended == [(pytest.approx(truth - entropy + 0.5 * contrast, abs=1e-4), 0.7)]
    plain = VIEWS[config.weak_view if view == "weak" else config.strong_view]
    seen = next(iter(method.loader.epoch([order], [plain], lambda step: generator(0, "views", 1, 0, step))))[0]
    assert torch.equal(seen, views[0])


def test_targets_equal_the_papers_formula(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config())
    probability = torch.linspace(0, 1, 60)
    split = Split(probability > 0.5, probability, torch.zeros(60, 3), torch.zeros(60, 1))
    clean, noisy = torch.tensor([50, 58, 40]), torch.tensor([1, 2, 3])
    weak1, weak2 = (torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(s)) for s in (0, 1))
    other = method.networks[1].eval()
    theirs = [other(view[3:]).logits.softmax(1) for view in (weak1, weak2)]
    state = {name: value.clone() for name, value in method.networks[0].state_dict().items()}
    method.networks[0].train()
    both = method.networks[0](torch.cat([weak1, weak2])).logits.softmax(1).chunk(2)
    method.networks[0].load_state_dict(state)

    targets = method._targets(0, split, clean, noisy, [weak1, weak2])
    for row, sample in enumerate(clean.tolist()):
        w = float(probability[sample])
        given = torch.eye(3)[tiny.given_labels[sample]]
        expected = (w * given + (1 - w) * (both[0][row] + both[1][row]) / 2).square()
        assert torch.allclose(targets[row], expected / expected.sum(), atol=1e-4)
    for row in range(3):
        expected = ((both[0][3 + row] + both[1][3 + row] + theirs[0][row] + theirs[1][row]) / 4).square()
        assert torch.allclose(targets[3 + row], expected / expected.sum(), atol=1e-4)


@pytest.mark.parametrize("clean", [0, 2, 5])
def test_the_losses_of_a_step_equal_the_papers_formulas(tiny: LabelledImages, clean: int) -> None:
    """Half-way up the ramp, in the middle of an epoch: 2 + 3 / 6 epochs, of which 1 to 4 are the ramp."""
    method: Any = method_on(tiny, small_config(lambda_u=10.0, ramp_epochs=3, epochs=9))
    draws = torch.Generator().manual_seed(0)
    weight = 0.2 * torch.randn(64, 3, generator=draws)
    method.learners[1].forward = lambda images: SimpleNamespace(logits=images.flatten(1) @ weight)
    views = [torch.randn(5, 1, 8, 8, generator=draws) for _ in range(2)]
    targets = torch.randn(5, 3, generator=draws).softmax(1)
    losses = method._losses(1, torch.arange(clean), views, targets, epoch=2, step=3, steps=6)

    samples = [(view[i], targets[i]) for view in views for i in range(clean)]
    samples += [(view[i], targets[i]) for view in views for i in range(clean, 5)]
    share = beta(method.config.beta, generator(0, "share", 1, 2, 3))
    share = max(share, 1 - share)
    partners = torch.randperm(10, generator=generator(0, "mixup", 1, 2, 3, 0)).tolist()
    assert share < 0.9, "hardly blended"
    classifier = error = 0.0
    mean = [0.0] * 3
    for one, other in enumerate(partners):
        image, target = (
            share * mine + (1 - share) * its for mine, its in zip(samples[one], samples[other], strict=True)
        )
        said = (image.flatten() @ weight).softmax(0).tolist()
        if one < 2 * clean:
            classifier -= sum(t * math.log(p) for t, p in zip(target.tolist(), said, strict=True)) / (2 * clean)
        else:
            error += sum((p - t) ** 2 for t, p in zip(target.tolist(), said, strict=True)) / 3 / (10 - 2 * clean)
        mean = [so_far + p / 10 for so_far, p in zip(mean, said, strict=True)]
    expected = {"loss_prior": sum(math.log((1 / 3) / p) / 3 for p in mean)}
    if clean:
        expected["loss_clean"] = classifier
    if clean < 5:
        expected["loss_noisy"] = 10.0 * 0.5 * error
    assert {name: loss.item() for name, loss in losses.items()} == pytest.approx(expected, abs=1e-5)
    assert expected["loss_prior"] > 1e-3, "or its sign would not show"


def test_guesses_of_an_epoch_are_what_the_split_was_made_from(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(warmup_epochs=0, guess="epoch", learned_view="guessed", contrast="none"))
    before = [learner.predict(method.loader.images, method.loader).logits for learner in method.learners]
    passes: list[int] = []
    for network in method.networks:
        network.register_forward_hook(
            lambda module, images, out: passes.append(len(images[0]) if module.training else 0)
        )
    method.train_epoch(0)
    assert all(torch.equal(kept, seen) for kept, seen in zip(method.guesses, before, strict=True))
    assert max(passes) <= 2 * method.config.batch_size  # one view of either side, and no pass to guess from

    clean, noisy = torch.tensor([50, 58, 40]), torch.tensor([1, 2, 3])
    probability = torch.linspace(0, 1, 60)
    split = Split(probability > 0.5, probability, torch.zeros(60, 3), torch.zeros(60, 1))
    targets = method._targets(1, split, clean, noisy, [])
    mine, theirs = before[1].softmax(1), before[0].softmax(1)
    for row, sample in enumerate(clean.tolist()):
        w = float(probability[sample])
        expected = (w * torch.eye(3)[tiny.given_labels[sample]] + (1 - w) * mine[sample]).square()
        assert torch.allclose(targets[row], expected / expected.sum(), atol=1e-5)
    for row, sample in enumerate(noisy.tolist()):
        expected = ((mine[sample] + theirs[sample]) / 2).square()
        assert torch.allclose(targets[3 + row], expected / expected.sum(), atol=1e-5)


@pytest.mark.parametrize(("wrong", "wanted"), [(0.05, False), (0.6, True)])
def test_contrast_waits_until_labels_turn_out_wrong(
    tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch, wrong: float, wanted: bool
) -> None:
    monkeypatch.setattr(codivide, "calibrate", lambda posterior, labels: (posterior, wrong))
    method = method_on(tiny, small_config(warmup_epochs=2, epochs=4, contrast_above=0.2))
    first, second, third = (method.train_epoch(epoch) for epoch in range(3))
    assert "loss_contrast" not in first
    assert "noise_rate_by_neighbours" not in first
    assert method.contrast_wanted is wanted
    assert second["noise_rate_by_neighbours"] == pytest.approx(wrong)
    assert "noise_rate_by_neighbours" not in third
    assert ("loss_contrast" in second) == ("loss_contrast" in third) == wanted
    again = method_on(tiny, small_config(warmup_epochs=2, epochs=4, contrast_above=0.2))
    again.load_state_dict(method.state_dict())
    assert again.contrast_wanted is wanted
    assert bool(method.negative_sets(2)) == wanted


@pytest.mark.parametrize("wrong", [0.05, 0.6])
def test_the_share_of_wrong_labels_is_seen_before_contrast_starts(wrong: float) -> None:
    data = arrays.from_arrays(blobs(count=300, classes=4, wrong=wrong))
    method = method_on(data, small_config(warmup_epochs=1, contrast_above=0.2))
    draws = torch.Generator().manual_seed(0)
    assert data.true_labels is not None
    near = torch.nn.functional.normalize(torch.eye(4)[data.true_labels] + 0.2 * torch.randn(300, 4, generator=draws))
    for learner in method.learners:
        learner.predict = lambda *given: Predictions(torch.zeros(300, 4), near)
    truly = float((data.given_labels != data.true_labels).float().mean())
    assert method._decide_on_contrast() == pytest.approx(truly, abs=0.05)
    assert method.contrast_wanted is (wrong > 0.2)


def test_labels_are_worth_what_the_first_split_showed(tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch) -> None:
    method = method_on(tiny, small_config(split="neighbours", benefit_of_doubt=True))
    for epoch in range(2):
        method.train_epoch(epoch)
    assert method.noise_rate_estimate(0.02) == 0.02
    monkeypatch.setattr(codivide, "calibrate", lambda posterior, labels: (posterior, 0.01))
    monkeypatch.setattr(codivide, "foretells", lambda posterior, labels: True)
    monkeypatch.setattr(codivide, "rate_by_count", lambda posterior, labels: 0.5)
    verdicts = []
    for method.noise_rate, expected in ((0.05, 0.05), (0.4, 0.4), (0.6, 0.5)):  # at most what is counted now
        verdicts.append(method.verdict())
        assert method.noise_rate_estimate(0.02) == expected
        assert method.noise_rate_estimate(0.7) == 0.7, "at least what is named"
    assert (verdicts[0].label_score > verdicts[1].label_score).all()
    assert (verdicts[1].label_score > verdicts[2].label_score).all()

    monkeypatch.setattr(codivide, "foretells", lambda posterior, labels: False)
    method.noise_rate_judged = None
    assert (method.verdict().label_score > verdicts[0].label_score).all()  # who knows nothing accuses nobody
    assert method.noise_rate_estimate(0.02) == 0.02


@pytest.mark.parametrize("split", ["mixture1d", "mixture2d", "class-balanced", "small-loss"])
def test_networks_alone_tell_the_noise_rate_by_the_first_split(split: str, tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(split=split, warmup_epochs=1))
    method.train_epoch(0)
    assert method.noise_rate_estimate(0.3) == 0.3, "before it there is only what is named"
    first = method.train_epoch(1)["noise_rate_after_warmup"]
    assert first not in (0.0, 0.99)
    method.train_epoch(2)
    assert method.noise_rate_estimate(0.99) == first
    unread = method_on(tiny, small_config(split=split, warmup_epochs=0))
    unread.train_epoch(0)
    assert unread.noise_rate_estimate(0.3) == 0.3, "networks that have learned nothing are not asked"


def scores(logits: Tensor, prototype_cosines: Tensor) -> Scores:
    """Embeddings that have these cosines with axis-aligned prototypes."""
    return Scores(logits, prototype_cosines, torch.eye(logits.shape[1]))


def test_the_2d_mixture_sees_both_losses_and_the_1d_one_the_classifiers_alone() -> None:
    labels = torch.zeros(40, dtype=torch.long)
    by_classifier = torch.zeros(40, 2)
    by_classifier[:20, 0], by_classifier[20:, 1] = 4.0, 4.0
    by_classifier += torch.randn(40, 2, generator=torch.Generator().manual_seed(0)) * 0.1
    by_prototypes = by_classifier.flip(0)  # the prototypes see it the other way round
    config = small_config()
    (one,), (two,) = (
        part([scores(by_classifier, by_prototypes)], labels, config, 1) for part in (mixture1d, mixture2d)
    )
    assert one.points.shape == (40, 1)
    assert two.points.shape == (40, 2)
    assert (one.clean_probability[:20] > 0.5).all()
    assert (one.clean_probability[20:] < 0.5).all()
    (both,) = mixture2d([scores(by_classifier, by_classifier)], labels, config, 1)
    assert torch.equal(both.clean_probability > 0.5, one.clean_probability > 0.5)
    expected = torch.nn.functional.cross_entropy(by_prototypes / 0.1, labels, reduction="none")
    expected = (expected - expected.min()) / (expected.max() - expected.min())
    assert torch.allclose(two.points[:, 1], expected, atol=1e-5)


@pytest.mark.parametrize("side", ["all clean", "all noisy", "one clean", "one noisy"])
@pytest.mark.parametrize("length", ["clean", "data"])
def test_an_empty_or_tiny_side_does_not_stop_it(tiny: LabelledImages, side: str, length: str) -> None:
    method = method_on(tiny, small_config(warmup_epochs=0, epoch_length=length))
    probability = {"all clean": torch.ones(60), "all noisy": torch.zeros(60)}.get(side)
    if probability is None:
        probability = torch.zeros(60) if side == "one clean" else torch.ones(60)
        probability[7] = 1 - probability[7]
    real = method.divide
    method.divide = lambda *given: [
        split._replace(is_clean=probability > 0.5, clean_probability=probability) for split in real(*given)
    ]
    metrics = method.train_epoch(0)
    assert all(np.isfinite(value) for value in metrics.values() if not isinstance(value, str))
    assert finite(method)
    assert ("loss_noisy" in metrics) == (side != "all clean")
    assert ("loss_clean" in metrics) == (side != "all noisy")


@pytest.mark.parametrize("classes", [2, 3, 4, 5])
@pytest.mark.parametrize("flat", [True, False])
def test_kappa_3_trains_with_few_classes(classes: int, flat: bool) -> None:
    data = arrays.from_arrays(blobs(classes=classes))
    method = method_on(data, small_config(kappa=(3,), flat=flat))
    for epoch in range(2):
        metrics = method.train_epoch(epoch)
        assert all(np.isfinite(value) for value in metrics.values() if not isinstance(value, str))
    assert finite(method)


@pytest.mark.parametrize("contrast", ["none", "simclr", "scl", "plr", "plr-queue"])
@pytest.mark.parametrize("split", list(SPLITS))
def test_parts_are_swapped_by_name(tiny: LabelledImages, contrast: str, split: str) -> None:
    method = method_on(tiny, small_config(contrast=contrast, split=split))
    seen = {**method.train_epoch(0), **method.train_epoch(1)}
    assert ("loss_contrast" in seen) == (contrast != "none")
    assert finite(method)


@pytest.mark.parametrize(
    "changes",
    [
        {"prototype_update": "sample"},
        {"prototype_class": "pseudo-label"},
        {"warmup_entropy": True},
        {"given_label_epochs": 0},
        {"kappa": (0,)},
        {"neighbour_epochs": 0, "split": "neighbours"},
    ],
)
def test_options_of_the_paper_train_too_and_change_something(changes: dict) -> None:
    data = arrays.from_arrays(blobs(count=80, classes=6))  # with three classes hardly a pair is left to repel
    others = {name: value for name, value in changes.items() if name == "split"}
    usual, method = (method_on(data, small_config(**each)) for each in (others, changes))
    for epoch in range(3):
        usual.train_epoch(epoch)
        method.train_epoch(epoch)
    assert finite(method)
    assert not same_state(usual.state_dict(), method.state_dict())


@pytest.mark.parametrize("split", SPLITS)
def test_an_epoch_trains_on_the_split_of_that_name(tiny: LabelledImages, split: str) -> None:
    method = method_on(tiny, small_config(split=split, clean_threshold=0.8, mixture_steps=3))
    method.train_epoch(0)
    scores = method._score(method.rows)
    expected = SPLITS[split](scores, tiny.given_labels, method.config, 1)
    method.train_epoch(1)
    assert torch.equal(method.clean_samples()[0], torch.stack([one.is_clean for one in expected]))
    order = [1 - one.points[:, 0] if split == "class-balanced" else one.clean_probability for one in expected]
    ranks = [[one.argsort(stable=True).tolist() for one in each] for each in (method.clean_samples()[1], order)]
    assert ranks[0] == ranks[1]
    others = {name: SPLITS[name](scores, tiny.given_labels, method.config, 1) for name in SPLITS if name != split}
    for name, other in others.items():
        assert not torch.equal(expected[0].clean_probability, other[0].clean_probability), name


def test_the_threshold_of_a_mixture_and_its_steps_are_the_configs() -> None:
    draws, labels, counts = torch.Generator().manual_seed(0), torch.arange(60) % 3, []
    scores = Scores(2 * torch.randn(60, 3, generator=draws), torch.randn(60, 8, generator=draws), torch.eye(3, 8))
    for settings in ({}, {"clean_threshold": 0.9}, {"mixture_steps": 1}):
        (split,) = mixture2d([scores], labels, small_config(**settings), 1)
        counts.append((int(split.is_clean.sum()), split.clean_probability.sum().item()))
    assert counts[1][0] < counts[0][0]
    assert counts[1][1] == counts[0][1] != counts[2][1]


@pytest.mark.parametrize("by", ["classifier", "pseudo-label"])
def test_prototypes_move_by_the_networks_own_confident_samples(tiny: LabelledImages, by: str) -> None:
    """Neither by the other network's, as published, nor by a constant mix of classifier and prototypes."""
    momentum, epoch, draws = 0.5, 1, torch.Generator().manual_seed(0)
    method = method_on(tiny, small_config(prototype_momentum=momentum, prototype_class=by))
    method.train_epoch(0)
    method.prototypes = [F.normalize(torch.randn(3, 8, generator=draws), dim=1) for _ in (0, 1)]
    scores = [
        Scores(2 * torch.randn(60, 3, generator=draws), F.normalize(torch.randn(60, 8, generator=draws), dim=1), own)
        for own in method.prototypes
    ]
    mix = 0.5 * (1 + math.cos(math.pi * epoch / method.config.epochs))
    method._score = lambda rows: scores
    method.train_epoch(epoch)
    for index, own in enumerate(scores):
        near = prototype_logits(own.embeddings, own.prototypes)
        pseudo = ((1 - mix) * near + mix * own.logits).softmax(1)
        largest = pseudo.max(1).values
        general = momentum / 3 + (1 - momentum) * largest.mean()
        usual = momentum / 3 + (1 - momentum) * pseudo.mean(0)
        sure = largest >= (usual / usual.max() * general)[pseudo.argmax(1)]
        classes = (own.logits if by == "classifier" else pseudo).argmax(1)
        assert 0 < sure.sum() < 60
        for k in range(3):
            members = own.embeddings[sure & (classes == k)]
            expected = own.prototypes[k]
            if len(members):
                mean = members.mean(0)
                expected = momentum * expected + (1 - momentum) * mean / mean.norm()
            assert torch.allclose(method.prototypes[index][k], expected / expected.norm(), atol=1e-5)


def test_guessed_labels_are_as_sharp_as_the_config_says(tiny: LabelledImages) -> None:
    split = Split(torch.zeros(60, dtype=torch.bool), torch.zeros(60), torch.zeros(60, 3), torch.zeros(60, 1))
    entropies = []
    for sharpen in (0.25, 0.5, 1.0):
        method = method_on(tiny, small_config(sharpen=sharpen))
        weak = [torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(s)) for s in (0, 1)]
        targets = method._targets(0, split, torch.arange(0), torch.arange(6), weak)
        entropies.append(-(targets * targets.log()).sum(1).mean().item())
    assert entropies == sorted(entropies)
    assert len(set(entropies)) == 3


def test_prototypes_start_from_the_given_labels_and_move_a_little(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(warmup_epochs=0, prototype_momentum=0.9))
    before = method._score(method.rows)
    start = [score.prototypes.clone() for score in before]
    for k in range(3):
        mean = before[0].embeddings[tiny.given_labels == k].mean(0)
        assert torch.allclose(start[0][k], mean / mean.norm(), atol=1e-5)
    method.train_epoch(0)
    for old, new in zip(start, method.prototypes, strict=True):
        assert torch.allclose(new.norm(dim=1), torch.ones(3), atol=1e-5)
        assert not torch.equal(old, new)


def test_the_published_epoch_is_as_long_as_the_clean_side(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(epoch_length="clean"))
    split = Split(torch.arange(60) < 25, torch.zeros(60), torch.zeros(60, 3), torch.zeros(60, 1))
    clean, noisy = (torch.cat(side) for side in zip(*method._draw_epoch(split, 0, 0), strict=True))
    assert len(clean) == len(noisy) == 24
    assert set(clean.tolist()) <= set(range(25))
    by_data = method_on(tiny, small_config(epoch_length="data"))
    clean, noisy = (torch.cat(side) for side in zip(*by_data._draw_epoch(split, 0, 0), strict=True))
    assert len(clean) == len(noisy) == 56
    assert set(noisy.tolist()) <= set(range(25, 60))


@pytest.mark.parametrize("changes", [{}, {"averaging": 0.9, "guess": "epoch", "contrast_above": 0.01}])
def test_state_goes_on_exactly(tiny: LabelledImages, changes: dict[str, Any]) -> None:
    config = small_config(epochs=4, **changes)
    straight, broken = method_on(tiny, config), method_on(tiny, config)
    for epoch in range(2):
        straight.train_epoch(epoch)
        broken.train_epoch(epoch)
    resumed = method_on(tiny, config)
    resumed.load_state_dict(broken.state_dict())
    for epoch in (2, 3):
        assert straight.train_epoch(epoch) == resumed.train_epoch(epoch)
    assert same_state(straight.state_dict(), resumed.state_dict())


@pytest.mark.parametrize("split", ["mixture1d", "mixture2d"])
def test_losses_of_the_last_epochs_are_averaged_and_go_on_exactly(tiny: LabelledImages, split: str) -> None:
    """DivideMix at 90 %: each epoch's losses are scaled to 0..1, and their mean of the last ones is what is fitted."""
    config = small_config(epochs=6, split=split, contrast="none", loss_history=3)
    method, columns = method_on(tiny, config), 1 if split == "mixture1d" else 2
    scaled: list[list[np.ndarray]] = []  # by epoch and network
    for epoch in range(6):
        if epoch == 4:
            resumed = method_on(tiny, config)
            resumed.load_state_dict(copy.deepcopy(method.state_dict()))
        metrics = method.train_epoch(epoch)
        if epoch >= 4:
            assert metrics == resumed.train_epoch(epoch)
            assert same_state(method.state_dict(), resumed.state_dict())
        if epoch == 0:
            continue  # warm-up is no part of it
        pairs = method.loss_pairs().double().numpy()
        scaled.append([(one - one.min(0)) / (one.max(0) - one.min(0)) for one in pairs])
        for index in (0, 1):
            points = sum(past[index][:, :columns] for past in scaled[-3:]) / len(scaled[-3:])
            naive = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0).fit(points)
            clean = np.linalg.norm(naive.means_, axis=1).argmin()
            expected = naive.predict_proba(points)[:, clean]
            assert method.splits[index].clean_probability.numpy() == pytest.approx(expected, abs=1e-4)
            assert method.splits[index].points.numpy() == pytest.approx(points, abs=1e-6)
            assert method.splits[index].mixture.means[0] == pytest.approx(naive.means_[clean], abs=1e-4), "scaled twice"
    assert len(method.past) == 2
    alone = method_on(tiny, small_config(split=split))
    alone.train_epoch(1)
    assert alone.past == []


def test_the_second_network_can_get_a_split_of_its_own(tiny: LabelledImages) -> None:
    """UNICON divides again, by both networks, once the first one has learned."""
    for anew in (False, True):
        method = method_on(tiny, small_config(split="class-balanced", divide_anew=anew, lr=0.1))
        method.train_epoch(0)
        before, real, got = method.next_splits(1), method._train, []

        def watched(index: int, split: Split, epoch: int, averages: Averages) -> None:
            got.append((split, method.next_splits(1)))  # noqa: B023
            real(index, split, epoch, averages)  # noqa: B023

        method._train = watched
        method.train_epoch(1)
        (first, _), (second, then) = got
        expected = then[0] if anew else before[0]
        assert not torch.equal(then[0].is_clean, before[0].is_clean), "nothing to tell apart"
        assert torch.equal(first.points, before[1].points)
        assert torch.equal(second.points, expected.points)
        assert torch.equal(second.class_scores, expected.class_scores)
        assert torch.equal(method.clean_samples()[0], torch.stack([expected.is_clean, before[1].is_clean]))


def test_the_last_epochs_learn_the_corrected_labels(tiny: LabelledImages) -> None:
    config = small_config(epochs=5, warmup_epochs=1, finish_epochs=3, split="neighbours", benefit_of_doubt=True)
    method = method_on(tiny, config)
    assert [method.train_epoch(epoch)["phase"] for epoch in (0, 1)] == ["warmup", "train"]
    judged = method.verdict()
    broken = copy.deepcopy(method.state_dict())
    losses = []
    for epoch in (2, 3, 4):
        resumed = method_on(tiny, config)
        resumed.load_state_dict(broken)
        metrics = method.train_epoch(epoch)
        assert metrics == resumed.train_epoch(epoch)
        splits = [each.clean_samples() for each in (method, resumed)]
        assert all(torch.equal(one, other) for one, other in zip(*splits, strict=True))
        broken = copy.deepcopy(method.state_dict())
        assert same_state(broken, resumed.state_dict())
        assert metrics["clean_count"] == (~judged.is_label_issue).sum()
        assert method.negative_sets(epoch) == []
        assert method.loss_pairs() is None
        losses.append(metrics["loss_corrected"])
        split = method.clean_samples()
        assert split is not None
        assert np.array_equal(split[0][0].numpy(), ~judged.is_label_issue), "what they learn stays the same"
    assert losses[2] < losses[0]
    assert not np.array_equal(judged.label_score, method.verdict().label_score), "what they know does not"
    method.config = dataclasses.replace(config, epochs=config.epochs + LATE_EPOCHS, finish_epochs=LATE_EPOCHS + 1)
    for before, after in zip(judged, method.verdict(), strict=True):
        assert np.array_equal(before, after), "what they have learned by heart is no evidence"

    method = method_on(tiny, small_config(epochs=9, warmup_epochs=1, finish_epochs=8))
    method.train_epoch(0)
    others = (tiny.given_labels.numpy() + 1) % 3  # no label is right, says the verdict
    wrong = Verdict(np.zeros(60), np.ones(60, dtype=bool), others, np.ones(60))
    method._judge = lambda: (wrong, wrong)
    for epoch in range(1, 9):
        method.train_epoch(epoch)
    assert (method.logits(tiny.images).argmax(1).numpy() == others).mean() > 0.6


def test_a_sure_correction_counts_for_more(tiny: LabelledImages) -> None:
    config = small_config(epochs=2, warmup_epochs=1, finish_epochs=1)
    method = method_on(tiny, config)
    method.train_epoch(0)
    before, losses = copy.deepcopy(method.state_dict()), []
    for sure in (1.0, 0.5, 0.0):
        method = method_on(tiny, config)
        method.load_state_dict(before)
        verdict = Verdict(np.ones(60), np.zeros(60, dtype=bool), tiny.given_labels.numpy(), np.full(60, sure))
        method._judge = lambda verdict=verdict: (verdict, verdict)
        losses.append(method.train_epoch(1)["loss_corrected"])
    assert losses[0] > losses[1] > losses[2] == 0


def test_networks_learn_from_a_more_careful_verdict_than_people_are_told(
    tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(epochs=2, warmup_epochs=1, finish_epochs=1, split="neighbours", benefit_of_doubt=True)
    method = method_on(tiny, config)
    method.train_epoch(0)
    method.noise_rate = 0.65
    monkeypatch.setattr(codivide, "calibrate", lambda posterior, labels: (posterior, 0.01))
    monkeypatch.setattr(codivide, "foretells", lambda posterior, labels: True)
    monkeypatch.setattr(codivide, "rate_by_count", lambda posterior, labels: 0.65)
    told, careful = method._judge()
    assert (told.label_score <= careful.label_score).all()
    assert told.is_label_issue.sum() > careful.is_label_issue.sum()
    method.train_epoch(1)
    assert np.array_equal(method.judged.is_label_issue, told.is_label_issue)
    labels = tiny.given_labels.numpy()
    assert np.array_equal(method.lesson.labels.numpy(), careful.corrected(labels))
    assert np.allclose(method.lesson.weights.numpy(), careful.confidence)

    older = method.state_dict()  # a file of a version that had one verdict
    del older["lesson"], older["noise_rate_judged"]
    again = method_on(tiny, config)
    again.load_state_dict(older)
    again.train_epoch(1)
    assert np.array_equal(again.judged.is_label_issue, told.is_label_issue)
    assert np.array_equal(again.lesson.labels.numpy(), told.corrected(labels))


def test_a_part_of_the_samples_is_contrasted_all_are_learned(tiny: LabelledImages) -> None:
    split = Split(torch.arange(60) < 30, torch.ones(60), torch.zeros(60, 3), torch.zeros(60, 1))
    whole, part = (method_on(tiny, small_config(contrast_every=every)) for every in (1, 3))
    for all_of_it, some in zip(*(one.steps(0, split, 1, contrasts=True) for one in (whole, part)), strict=True):
        assert torch.equal(some.mine, all_of_it.mine[::3])
        for view, cut in zip(all_of_it.strong, some.strong, strict=True):
            assert torch.equal(cut, view[::3])
        assert torch.equal(some.losses["loss_clean"], all_of_it.losses["loss_clean"])
    warm = [method_on(tiny, small_config(contrast_every=every)).train_epoch(0) for every in (1, 2)]
    assert warm[0]["phase"] == "warmup"
    assert [metrics["anchors_used"] for metrics in warm] == [32, 16]  # two views of 16 samples a step, or of 8


def test_a_small_noisy_side_takes_its_share_of_a_step_and_no_more(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(noisy_batch="proportional", epoch_length="data"))
    size, count = method.config.batch_size, len(tiny)
    for clean_count in (count, count - 2, count // 2, 3, 0):
        split = Split(
            torch.arange(count) < clean_count, torch.ones(count), torch.zeros(count, 3), torch.zeros(count, 1)
        )
        expected = min(size, math.ceil(2 * size * (count - clean_count) / count))
        for clean, noisy in method._draw_epoch(split, 0, 0):
            assert len(noisy) == expected
            assert len(clean) == (2 * size - expected if clean_count else 0)


def test_a_batch_is_never_larger_than_the_data(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(batch_size=10**6))
    split = Split(torch.arange(60) < 25, torch.zeros(60), torch.zeros(60, 3), torch.zeros(60, 1))
    assert [(len(clean), len(noisy)) for clean, noisy in method._draw_epoch(split, 0, 0)] == [(60, 60)]


@pytest.mark.parametrize(
    ("noisy_batch", "ranks", "batch_size", "sizes"),
    [("proportional", 4, 8, (3, 1)), ("by-share", 2, 2, (1, 1)), ("by-share", 2, 10, (5, 3))],
)
def test_every_process_gets_a_share_of_a_small_noisy_side(
    tiny: LabelledImages, noisy_batch: str, ranks: int, batch_size: int, sizes: tuple[int, int]
) -> None:
    method = method_on(tiny, small_config(noisy_batch=noisy_batch, epoch_length="data", batch_size=batch_size))
    is_clean = torch.arange(60) >= 3
    split = Split(is_clean, torch.ones(60), torch.zeros(60, 3), torch.zeros(60, 1))
    for rank in range(ranks):
        method.loader = dataclasses.replace(method.loader, rank=rank, ranks=ranks)
        assert {(len(clean), len(noisy)) for clean, noisy in method._draw_epoch(split, 0, 0)} == {sizes}


def test_unicons_noisy_batch_follows_the_share_of_the_clean_side(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(noisy_batch="by-share", epoch_length="clean"))
    for clean, expected in ((20, 12), (30, 8), (48, 5), (2, 32)):  # floor(8 / (2 R)), at most four times as many
        split = Split(torch.arange(60) < clean, torch.zeros(60), torch.zeros(60, 3), torch.zeros(60, 1))
        drawn = method._draw_epoch(split, 0, 0)
        assert len(drawn) == max(1, clean // 8)
        assert {len(noisy) for _, noisy in drawn} == {expected}
        assert {len(certain) for certain, _ in drawn} == {8}
        assert all((noisy >= clean).all() for _, noisy in drawn)
    assert np.isfinite(method.train_epoch(1)["loss_noisy"])


def learned_images(method: CoDivide) -> tuple[dict[str, Tensor], list[Tensor], Tensor]:
    """The losses of one step that hardly blends, the views that labels were guessed from, and what was learned from."""
    split = Split(torch.arange(60) < 30, torch.ones(60), torch.zeros(60, 3), torch.zeros(60, 1))
    guessed: list[Tensor] = []
    learned: list[Tensor] = []
    targets, forward = method._targets, method.learners[0].forward
    method._targets = lambda *given: guessed.extend(given[-1]) or targets(*given)
    method.learners[0].forward = lambda images: learned.append(images) or forward(images)
    step = next(method.steps(0, split, 1, contrasts=True))
    return step.losses, guessed, learned[0]


def test_dividemix_learns_from_the_views_that_it_guesses_from(tiny: LabelledImages) -> None:
    for learned_view in ("guessed", "weak", "strong"):
        config = small_config(beta=1e-4, contrast="none", learned_view=learned_view)  # the share is all but 1
        _, (weak1, weak2), learned = learned_images(method_on(tiny, config))
        expected = torch.cat([weak1[:8], weak2[:8], weak1[8:], weak2[8:]])
        assert torch.allclose(learned, expected, atol=1e-3) == (learned_view == "guessed")


@pytest.mark.parametrize("guess", ["step", "epoch"])
def test_further_weak_views_to_learn_from_leave_the_strong_ones_to_the_contrast(
    tiny: LabelledImages, guess: str
) -> None:
    split = Split(torch.arange(60) < 30, torch.ones(60), torch.zeros(60, 3), torch.zeros(60, 1))

    def views(**settings: Any) -> tuple[Tensor, list[Tensor]]:
        config = small_config(beta=1e-4, guess=guess, **settings)
        method, learned = method_on(tiny, config), []
        method.guesses = [torch.zeros(60, 3)] * 2
        forward = method.learners[0].forward
        method.learners[0].forward = lambda images: learned.append(images) or forward(images)
        step = next(method.steps(0, split, 1, contrasts=settings["contrast"] != "none"))
        return learned[0], step.strong

    plain, none = views(learned_view="weak", contrast="none", strong_view="distort")
    weak, _ = views(learned_view="strong", contrast="none", strong_view="crop")
    assert torch.equal(plain, weak), "as if the strong views were weak ones"
    assert none == []
    learned, (first, second) = views(learned_view="weak", contrast="plr", weak_view="plain", strong_view="distort")
    _, (third, _) = views(learned_view="strong", contrast="plr", weak_view="plain", strong_view="plain")
    assert torch.allclose(learned[:8], third[:8], atol=1e-3), "images as they are"
    assert not torch.allclose(first, third, atol=1e-3)
    assert not torch.allclose(first, second, atol=1e-3)


def test_the_noisy_side_can_be_left_to_blend_in(tiny: LabelledImages) -> None:
    losses, _, learned = learned_images(method_on(tiny, small_config(learn_noisy=False)))
    assert len(learned) == 2 * 8
    assert losses.keys() == {"loss_prior", "loss_clean"}
    losses, _, learned = learned_images(method_on(tiny, small_config()))
    assert len(learned) == 4 * 8
    assert losses.keys() == {"loss_prior", "loss_clean", "loss_noisy"}


def test_warm_up_can_draw_more_images_than_later_epochs(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(epoch_images=30, warmup_images=48))
    seen = []
    for epoch in range(2):
        method.train_epoch(epoch)
        seen.append(len(method.rows))
    assert seen[1] <= 30 < seen[0] <= 48


def test_quotas_do_not_take_plr_its_negatives() -> None:
    """Most zeros were called 9: quotas then make 9 everybody's second choice, but PLR's sets must not follow them."""
    draws = torch.Generator().manual_seed(0)
    truth = torch.arange(400) % 10
    centres = torch.randn(10, 16, generator=draws)
    embeddings = torch.nn.functional.normalize(centres[truth] + 0.4 * torch.randn(400, 16, generator=draws), dim=1)
    labels = torch.where((truth == 0) & (torch.arange(400) % 40 != 0), torch.tensor(9), truth)
    logits = torch.randn(400, 10, generator=draws)
    score = Scores(logits, embeddings, torch.zeros(10, 16))
    first, second = neighbours([score, score], labels, small_config(warmup_epochs=1), epoch=1)
    assert torch.equal(first.is_clean, second.is_clean)
    assert first.guess_weight == 0.5
    by_quota = reliable_negatives(first.guesses, 2).float().mean()
    for_plr = reliable_negatives(first.class_scores, 2).float().mean()
    assert for_plr > 1.3 * by_quota
    right = (truth[:, None] != truth[None])[reliable_negatives(first.class_scores, 2)].float().mean()
    assert right > 0.95


def test_one_class_each_is_taken_after_the_quotas_sets_of_several_before(tiny: LabelledImages) -> None:
    """Before them all samples may have the same first class, and SCL would pull everything together."""
    alike, fair = torch.eye(3)[torch.zeros(60, dtype=torch.long)], torch.eye(3)[torch.arange(60) % 3]
    split = Split(torch.arange(60) < 30, torch.ones(60), alike, torch.zeros(60, 1), guesses=fair)
    for contrast, expected in (("scl", fair), ("plr", alike)):
        method = method_on(tiny, small_config(contrast=contrast))
        seen: list[Tensor] = []
        real = method.contrasts[0].__call__
        method.contrasts[0] = lambda *given, seen=seen, real=real: seen.append(given[2]) or real(*given)
        method._train(0, split, 1, Averages())
        assert all(torch.equal(scores, expected) for scores in seen)
        assert seen


def test_the_split_passes_from_the_neighbourhood_to_the_networks() -> None:
    embeddings = torch.eye(3).repeat(20, 1) + 0.01 * torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    by_graph, by_networks = torch.arange(60) % 3, (torch.arange(60) % 3 + 1) % 3
    score = Scores(10 * torch.eye(3)[by_networks], embeddings, torch.zeros(3, 3))
    config = small_config(warmup_epochs=1, neighbour_epochs=3)
    early, late = (neighbours([score, score], by_graph, config, epoch)[0] for epoch in (1, 3))
    assert early.is_clean.all()
    assert not late.is_clean.any()
    assert late.guess_weight == 0


@pytest.mark.parametrize(("wrong", "votes", "heard"), [(0.4, 0.5, True), (0.4, 0.0, False), (0.75, 0.5, False)])
def test_labels_nearby_speak_against_the_networks_for_as_much_as_they_are_worth(
    wrong: float, votes: float, heard: bool
) -> None:
    """A fifth of class 0 looks different, and both networks take it for class 1: its labels say otherwise, unless they
    are no better than chance."""
    draws = torch.Generator().manual_seed(0)
    truth = torch.arange(400) % 4
    place = torch.where(torch.arange(400) % 20 == 0, 4, truth)
    embeddings = torch.eye(5)[place] + 0.05 * torch.randn(400, 5, generator=draws)
    moved = (truth + torch.randint(1, 4, (400,), generator=draws)) % 4
    labels = torch.where(torch.rand(400, generator=draws) < wrong, moved, truth)
    logits = 2.5 * torch.eye(4)[torch.where(place == 4, 1, truth)]
    score = Scores(logits, embeddings, torch.zeros(4, 5))
    config = small_config(warmup_epochs=1, neighbour_epochs=3, neighbours=19, neighbour_votes=votes)
    split = neighbours([score, score], labels, config, epoch=3)[0]
    odd = place == 4
    assert (split.guesses.argmax(1)[~odd] == truth[~odd]).float().mean() > 0.98
    assert (split.guesses.argmax(1)[odd] == 0).float().mean() == float(heard)
    assert (split.class_scores.argmax(1)[odd] == 0).float().mean() == float(heard)
    assert split.is_clean[odd & (labels == 0)].all() == heard
    assert split.guess_weight == (0.5 if votes else 0.0)


def scored(count: int = 200, classes: int = 4, wrong: float = 0.4) -> tuple[list[Scores], Tensor, Tensor]:
    """Two networks that know the truth fairly well, the given labels, and who is right."""
    draws = torch.Generator().manual_seed(0)
    truth = torch.arange(count) % classes
    is_wrong = torch.rand(count, generator=draws) < wrong
    given = torch.where(is_wrong, (truth + 1) % classes, truth)
    logits = [4 * torch.eye(classes)[truth] + torch.randn(count, classes, generator=draws) for _ in range(2)]
    return [Scores(one, torch.zeros(count, 2), torch.zeros(classes, 2)) for one in logits], given, ~is_wrong


def test_small_losses_are_as_many_as_labels_seem_right() -> None:
    scores, given, right = scored()
    for split in small_loss(scores, given, small_config(), 0):
        assert int(split.is_clean.sum()) == pytest.approx(int(right.sum()), abs=6)
        assert (split.is_clean == right).float().mean() > 0.95


def test_small_losses_stay_as_many_as_after_warm_up_when_labels_are_known_by_heart() -> None:
    scores, given, _ = scored()
    by_heart = [one._replace(logits=9 * torch.eye(4)[given], noise_rate=0.25) for one in scores]
    for split in small_loss(by_heart, given, small_config(), 5):
        assert split.is_clean.float().mean().item() == pytest.approx(0.75, abs=0.01)
    untrained = [one._replace(noise_rate=0.75) for one in scores]  # what networks say that have learned nothing yet
    for split in small_loss(untrained, given, small_config(warmup_epochs=0), 5):
        assert split.is_clean.float().mean().item() == pytest.approx(0.6, abs=0.05)


def test_a_small_loss_splits_label_counts_for_as_much_as_its_own_network_believes() -> None:
    scores, given, _ = scored()
    for split, own in zip(small_loss(scores, given, small_config(), 0), scores, strict=True):
        expected = [float(row.softmax(0)[label]) for row, label in zip(own.logits, given, strict=True)]
        assert split.clean_probability.tolist() == pytest.approx(expected, abs=1e-6)


def naive_divergence(prediction: Tensor, label: Tensor) -> float:
    """Jensen-Shannon divergence of one prediction (C,) from its label."""
    target = torch.eye(len(prediction))[label]
    middle = (prediction + target) / 2
    parts = [
        sum(float(p * (p / m).log()) for p, m in zip(one, middle, strict=True) if p > 0) for one in (prediction, target)
    ]
    return sum(parts) / 2


def test_a_balanced_splits_label_counts_for_less_the_more_is_said_against_it() -> None:
    scores, given, _ = scored(count=40)
    together = torch.stack([one.logits.softmax(1) for one in scores]).mean(0)
    naive = [naive_divergence(row, label) for row, label in zip(together, given, strict=True)]
    expected = [1.0 if divergence < 0.5 else 1 - divergence for divergence in naive]
    assert 0 < sum(weight < 1 for weight in expected) < 40
    for split in class_balanced(scores, given, small_config(), 0):
        assert split.clean_probability.tolist() == pytest.approx(expected, abs=1e-5)


def test_the_first_noise_rate_is_the_splits_own_where_it_keeps_quotas() -> None:
    """Others keep what is best learned from: there the networks' predictions are counted, class by class."""
    truth = torch.arange(12) % 3
    given = truth.clone()
    given[[0, 1]] = truth[[1, 0]]  # two of twelve are wrong
    favouring = 4 * torch.eye(3)[truth] + torch.tensor([9.0, 0.0, 0.0])  # all rows like the first class best
    scores = [Scores(favouring, torch.zeros(12, 2), torch.zeros(3, 2))] * 2
    splits = [
        Split(torch.arange(12) < clean, torch.ones(12), favouring, torch.zeros(12, 1), guesses=favouring)
        for clean in (6, 9)
    ]
    assert first_noise_rate(splits, scores, given) == pytest.approx(1 - (6 / 12 + 9 / 12) / 2)
    without = [split._replace(guesses=None) for split in splits]
    assert first_noise_rate(without, scores, given) == pytest.approx(2 / 12)


def test_the_balanced_split_takes_as_many_of_every_class() -> None:
    scores, given, right = scored()
    given = torch.where(torch.arange(200) < 8, 0, given)  # classes are not equally frequent
    split = class_balanced(scores, given, small_config(), 0)[0]
    together = torch.stack([one.logits.softmax(1) for one in scores]).mean(0)
    naive = torch.tensor([naive_divergence(row, label) for row, label in zip(together, given, strict=True)])
    assert torch.allclose(divergence_from_labels(together, given), naive, atol=1e-5)
    quota = int((naive < naive.mean()).sum() / 4)
    for label in range(4):
        members = (given == label).nonzero()[:, 0]
        expected = members[naive[members].argsort()[:quota]]
        assert sorted((split.is_clean & (given == label)).nonzero()[:, 0].tolist()) == sorted(expected.tolist())
    assert (split.is_clean & right).sum() > 0.9 * split.is_clean.sum()
