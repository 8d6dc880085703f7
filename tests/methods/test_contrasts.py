"""The contrast part: its loss pair by pair, a queue, views of two sizes, and pre-training without labels."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers import contents, method_on, same_state, small_config, small_cross_entropy

from plremix.config import CoDivideConfig, Config
from plremix.data.dataset import LabelledImages
from plremix.losses import contrastive_loss, reliable_negatives
from plremix.methods.codivide import CoDivide, weight_for
from plremix.methods.contrasts import Contrast
from plremix.methods.pretraining import pretrain
from plremix.training import train


def naive_contrast(embeddings: torch.Tensor, attract: list, repel: list, flat: bool) -> torch.Tensor:
    """One anchor, one pair at a time, with a gradient: views (n, 2, d), temperature 0.5, sample-level relations."""
    unit, terms = F.normalize(embeddings, dim=2), []
    views = [(i, a) for i in range(len(unit)) for a in (0, 1)]
    for i, a in views:
        pairs = [(j, unit[i, a] @ unit[j, c] / 0.5) for j, c in views if (i, a) != (j, c)]
        pulled = [similarity for j, similarity in pairs if j == i or attract[i][j]]
        pushed = [similarity for j, similarity in pairs if j != i and repel[i][j]]
        if flat and pushed:
            terms.append(sum((s - sum(pulled)).exp() for s in pushed).log())
        if not flat:
            total = sum(s.exp() for s in pulled + pushed)
            terms.append(-sum((s.exp() / total).log() for s in pulled) / len(pulled))
    return sum(terms) / len(terms)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("name", ["simclr", "scl", "plr"])
def test_the_contrast_of_a_batch_equals_a_loop_over_pairs(name: str, flat: bool) -> None:
    """In value and gradient: the flat form's value is its weight, whatever it saw."""
    settings = {"contrast": name, "flat": flat, "contrast_weight": 0.5, "kappa": (2,), "temperature": 0.5}
    draws = torch.Generator().manual_seed(0)
    embeddings = torch.randn(7, 2, 4, generator=draws, dtype=torch.float64).requires_grad_()
    learner: Any = SimpleNamespace(embed=lambda views: embeddings)
    labels, scores = torch.randint(8, (30,), generator=draws), torch.randn(30, 8, generator=draws)
    mine = torch.randperm(30, generator=draws)[:7]
    contrast = Contrast(small_cross_entropy(**settings), learner, labels)
    loss, seen = contrast([torch.zeros(7, 1, 8, 8)] * 2, mine, scores, epoch=1)

    ranked = [scores[i].argsort(descending=True).tolist() for i in mine]
    sets = [{*order[:2], int(labels[i])} for order, i in zip(ranked, mine, strict=True)]
    alike = [[name == "scl" and one[0] == other[0] for other in ranked] for one in ranked]
    apart = [[name == "simclr" or (name == "plr" and not one & other) for other in sets] for one in sets]
    if name == "scl":
        apart = [[not same for same in row] for row in alike]
        assert 7 < sum(map(sum, alike)) < 49, "some pairs of either kind"
    if name == "plr":
        without = [[set(one[:2]).isdisjoint(other[:2]) for other in ranked] for one in ranked]
        first = [[one[0] != other[0] for other in ranked] for one in ranked]
        assert len({sum(map(sum, pairs)) for pairs in (apart, without, first)}) == 3, "labels and kappa count"
    expected = 0.5 * naive_contrast(embeddings, alike, apart, flat)
    assert loss.item() == pytest.approx(0.5 if flat else expected.item(), abs=1e-6)
    if flat:
        assert seen["log_negatives"].item() == pytest.approx(2 * expected.item(), abs=1e-6)
    (found,), (wanted,) = (torch.autograd.grad(one, embeddings) for one in (loss, expected))
    assert torch.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("name", ["simclr", "scl", "plr"])
@pytest.mark.parametrize("epoch", [0, 1])
def test_a_sample_does_not_repel_its_copies_where_a_short_side_is_repeated(name: str, epoch: int) -> None:
    draws = torch.Generator().manual_seed(0)
    embeddings = torch.randn(3, 2, 4, generator=draws)
    mine = torch.tensor([5, 9, 5])
    learner: Any = SimpleNamespace(embed=lambda views: embeddings)
    config = small_cross_entropy(contrast=name, flat=False, warmup_epochs=1, temperature=0.5, kappa=(1,))
    scores = 9 * torch.eye(8)[torch.arange(30) % 8]
    contrast = Contrast(config, learner, torch.arange(30) % 8)
    loss, _ = contrast([torch.zeros(3, 1, 8, 8)] * 2, mine, scores, epoch=epoch)
    same = mine[:, None] == mine
    attract = same if name == "scl" and epoch else torch.zeros_like(same)
    assert loss.item() == pytest.approx(naive_contrast(embeddings, attract, ~same, flat=False).item(), abs=1e-5)


def test_the_queue_holds_the_latest_samples_by_a_slow_encoder(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_cross_entropy(contrast="plr-queue", queue_size=12))
    contrast: Contrast = method.contrasts[0]
    assert contrast.queue is not None
    views = [torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(s)) for s in (0, 1)]
    scores = torch.randn(60, 3, generator=torch.Generator().manual_seed(2))
    contrast(views, torch.arange(8), scores, 0)
    assert contrast.queue.rows.tolist() == list(range(8))
    contrast(views, torch.arange(20, 28), scores, 0)
    assert contrast.queue.rows.tolist() == [*range(20, 28), 0, 1, 2, 3]
    with torch.no_grad():
        for parameter in method.networks[0].parameters():
            parameter.add_(1.0)
    before = next(contrast.queue.encoder.parameters()).clone()
    contrast.queue.push(views[0], torch.arange(8))
    moved = next(contrast.queue.encoder.parameters()) - before
    assert torch.allclose(moved, torch.full_like(moved, 0.01), atol=1e-5), "one hundredth of the way"


def test_queued_samples_repel_only_where_their_classes_are_disjoint(tiny: LabelledImages) -> None:
    settings = {"contrast": "plr-queue", "kappa": (1,), "flat": False, "temperature": 0.5, "warmup_epochs": 2}
    method = method_on(tiny, small_cross_entropy(**settings))
    contrast: Contrast = method.contrasts[0]
    assert contrast.queue is not None
    draws = torch.Generator().manual_seed(0)
    contrast.queue.keys, contrast.queue.rows = torch.randn(5, 8, generator=draws), torch.arange(10, 15)
    views = [torch.randn(4, 1, 8, 8, generator=draws) for _ in range(2)]
    scores = torch.randn(60, 3, generator=draws)
    network = copy.deepcopy(method.networks[0])
    rows = [*range(4), *range(10, 15)]
    embeddings = torch.stack(network(torch.cat(views), logits=False, embeddings=True).embeddings.chunk(2), dim=1)
    keys = contrast.queue.keys
    disjoint = reliable_negatives(scores[rows], 1, tiny.given_labels[rows])[:4]
    plain = contrastive_loss(embeddings, keys=keys, temperature=0.5)
    expected = contrastive_loss(embeddings, disjoint, keys=keys, temperature=0.5)
    assert plain.item() != pytest.approx(expected.item(), abs=0.1)
    found, _ = contrast(views, torch.arange(4), scores, 2)
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)
    contrast.queue.keys, contrast.queue.rows = keys, torch.arange(10, 15)
    found, _ = contrast(views, torch.arange(4), scores, 1)
    assert found.item() == pytest.approx(plain.item(), abs=1e-5), "in warm-up everybody is a negative"


def test_a_sample_does_not_repel_itself_in_the_queue(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_cross_entropy(contrast="plr-queue", flat=False, warmup_epochs=1))
    contrast: Contrast = method.contrasts[0]
    assert contrast.queue is not None
    draws = torch.Generator().manual_seed(0)
    keys, views = torch.randn(4, 8, generator=draws), [torch.randn(4, 1, 8, 8, generator=draws) for _ in range(2)]
    contrast.queue.keys, contrast.queue.rows = keys, torch.arange(4)
    network = copy.deepcopy(method.networks[0])
    embeddings = torch.stack(network(torch.cat(views), logits=False, embeddings=True).embeddings.chunk(2), dim=1)
    others = ~torch.eye(4, dtype=torch.bool).repeat(1, 2)
    expected = contrastive_loss(embeddings, others, keys=keys, temperature=method.config.temperature)
    found, _ = contrast(views, torch.arange(4), torch.randn(60, 3, generator=draws), 0)
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("name", ["plr", "scl"])
def test_before_predictions_are_worth_going_by_every_other_sample_is_a_negative(
    tiny: LabelledImages, name: str
) -> None:
    method = method_on(tiny, small_cross_entropy(contrast=name, warmup_epochs=1, epochs=2))
    shares = [method.train_epoch(epoch)["negative_share"] for epoch in (0, 1)]
    assert shares[0] == 1.0
    assert shares[1] < 1.0
    sizes = [method.contrasts[0].class_sets(method.tables[0], epoch).shape[1] for epoch in (0, 1)]
    assert sizes[0] == 0 < sizes[1]


def test_views_of_two_sizes_are_contrasted_together(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_cross_entropy(contrast="plr"))
    views = [torch.randn(4, 1, side, side) for side in (16, 16, 8, 8, 8)]
    embeddings = method.learners[0].embed(views)
    assert embeddings.shape == (4, 5, 8)
    loss, _ = method.contrasts[0](views, torch.arange(4), torch.randn(60, 3), 0)
    assert loss.isfinite()


@pytest.mark.parametrize("make", [small_config, small_cross_entropy])
def test_multi_crop_gives_the_contrast_eight_views(tiny: LabelledImages, make: Callable[..., Config]) -> None:
    method = method_on(tiny, make(contrast="plr", crop_sides=(16, 8), small_crops=6))
    seen = []
    embed = method.learners[0].embed
    method.learners[0].embed = lambda views: seen.append([view.shape[-1] for view in views]) or embed(views)
    for epoch in (0, 1):  # warm-up, training
        assert all(np.isfinite(value) for value in method.train_epoch(epoch).values() if not isinstance(value, str))
    assert all(sides == [16] * 2 + [8] * 6 for sides in seen)
    assert seen


def test_pre_training_moves_the_backbone_without_labels_and_is_exact(tiny: LabelledImages) -> None:
    states = []
    for labels in (tiny.given_labels, tiny.given_labels.flip(0)):
        method = method_on(tiny, small_config(pretrain="simclr", pretrain_epochs=3))
        start = copy.deepcopy(method.networks[0].state_dict())
        method.labels = labels
        losses = [pretrain(method, epoch) for epoch in range(3)]
        assert losses[-1] < losses[0]
        first = next(name for name in start if name.startswith("backbone."))
        assert not torch.equal(start[first], method.networks[0].state_dict()[first])
        assert torch.equal(start["classifier.weight"], method.networks[0].state_dict()["classifier.weight"])
        states.append(method.networks[0].state_dict())
    assert same_state(*states)


def test_pre_training_leaves_no_momentum_behind(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(pretrain="simclr", pretrain_epochs=2))
    held = []
    for epoch in range(2):
        pretrain(method, epoch)
        held.append([len(learner.optimizer.state_dict()["state"]) for learner in method.learners])
    assert min(held[0]) > 0
    assert held[1] == [0, 0]


@pytest.mark.parametrize("make", [small_config, small_cross_entropy])
def test_the_queues_encoder_starts_where_pre_training_ended(tiny: LabelledImages, make: Callable[..., Config]) -> None:
    method = method_on(tiny, make(contrast="plr-queue", pretrain="simclr", pretrain_epochs=2))
    for epoch in range(2):
        pretrain(method, epoch)
        for contrast, learner in zip(method.contrasts, method.learners, strict=True):
            same = same_state(contrast.queue.encoder.state_dict(), learner.network.state_dict())
            assert same == (epoch == 1)


def test_the_queues_encoder_starts_where_warm_up_ended(tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch) -> None:
    method = method_on(tiny, small_config(contrast="plr-queue", warmup_epochs=2))
    for epoch in range(2):
        method.train_epoch(epoch)
    warm = [copy.deepcopy(learner.network.state_dict()) for learner in method.learners]
    started = []
    real = Contrast.__call__

    def watched(self: Contrast, *given: Any) -> Any:
        if not len(self.queue.rows):
            started.append(same_state(self.queue.encoder.state_dict(), warm[method.contrasts.index(self)]))
        return real(self, *given)

    monkeypatch.setattr(Contrast, "__call__", watched)
    method.train_epoch(2)
    assert started == [True, True]


def test_a_run_that_stops_after_pre_training_goes_on_without_it(tmp_path: Path, tiny_file: Path) -> None:
    config = small_cross_entropy(data=str(tiny_file), pretrain="simclr", pretrain_epochs=2, epochs=2)
    train(config, tmp_path / "whole")

    class Stopped(Exception):
        pass

    from plremix.training import run as module

    class Stop(module.Silent):
        def epoch(self, metrics: dict[str, object]) -> None:
            raise Stopped

    with pytest.raises(Stopped):
        train(config, tmp_path / "stopped", progress=Stop)
    train(config, tmp_path / "stopped", resume=True)
    names = ("metrics.jsonl", "labels.csv", "model.safetensors")
    assert contents(tmp_path / "whole", *names) == contents(tmp_path / "stopped", *names)


def test_the_weight_of_the_noisy_side_follows_the_noise(tiny: LabelledImages) -> None:
    assert [weight_for(rate, 10) for rate in (0.0, 0.18, 0.45, 0.6, 0.72, 0.81, 0.95)] == pytest.approx(
        [0, 0, 25, 25, 25, 50, 50]
    )
    assert weight_for(0.45, 100) == pytest.approx(150), "the paper's for CIFAR-100"
    assert 200 <= weight_for(0.5, 200) <= 300, "the paper's for Tiny-ImageNet, 50 and 80 %"
    assert weight_for(0.45, 2) == weight_for(0.45, 10)
    method: CoDivide = method_on(tiny, small_config(lambda_u="auto"))
    for epoch in range(2):
        metrics = method.train_epoch(epoch)
    assert 0 < method.noise_rate == metrics["noise_rate_after_warmup"] < 1
    assert metrics["lambda_u"] == weight_for(method.noise_rate, 3)
    told = method_on(tiny, small_config(lambda_u=7.0))
    told.train_epoch(0)
    assert told.train_epoch(1)["lambda_u"] == 7.0


def test_without_warm_up_the_first_split_does_not_set_the_weight_for_good(
    tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter((0.81, 0.45, 0.0))
    monkeypatch.setattr("plremix.methods.codivide.first_noise_rate", lambda *given: next(seen))
    method = method_on(tiny, small_config(lambda_u="auto", warmup_epochs=0))
    assert [method.train_epoch(epoch)["lambda_u"] for epoch in range(3)] == pytest.approx([50, 25, 0])


def test_unicon_contrasts_the_noisy_side_alone(tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config(method="unicon", split="class-balanced", contrast="simclr", contrast_side="noisy", flat=False)
    assert isinstance(config, CoDivideConfig)
    method = method_on(tiny, config)
    seen: list[tuple[int, list[int], set[int]]] = []
    real = Contrast.__call__

    def watched(self: Contrast, strong: Any, mine: torch.Tensor, table: torch.Tensor, epoch: int) -> Any:
        seen.append((method.contrasts.index(self), mine.tolist(), {len(view) for view in strong}))
        return real(self, strong, mine, table, epoch)

    monkeypatch.setattr(Contrast, "__call__", watched)
    method.train_epoch(0)
    assert not seen, "warm-up has a contrast of its own"
    metrics = method.train_epoch(1)
    assert metrics["anchors_used"] == 2 * config.batch_size
    for index, rows, views in seen:
        assert views == {len(rows)} == {config.batch_size}
        assert not method.splits[1 - index].is_clean[rows].any()
    assert {index for index, _, _ in seen} == {0, 1}
