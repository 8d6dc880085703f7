"""The methods that go batch by batch: each one's core against a naive computation, and all of them train."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers import SMALL, blobs, method_on, same_state

from plremix.config import CONFIGS, Config, ELRConfig, config_class
from plremix.data.dataset import LabelledImages
from plremix.data.sources import arrays
from plremix.methods.coteaching import disagreeing, exchange
from plremix.methods.elr import ELR, ELRPlus, bounded, early_learning
from plremix.methods.forgetting import estimated_rate, kept_share, smallest
from plremix.methods.jocor import joint_loss
from plremix.methods.learner import step_together

STEPWISE = [name for name in CONFIGS if name not in ("plremix", "dividemix", "unicon")]


def config_of(method: str, **changes: Any) -> Config:
    kind = config_class(method)
    known = set(kind.__dataclass_fields__)
    return kind(**{key: value for key, value in {**SMALL, "method": method, **changes}.items() if key in known})


def finite(method: Any) -> bool:
    return all(torch.isfinite(value).all() for network in method.networks for value in network.state_dict().values())


def test_the_kept_share_falls_to_one_minus_the_rate() -> None:
    assert [kept_share(0.4, epoch, 0, 5) for epoch in (0, 2, 4, 9)] == pytest.approx([1.0, 0.8, 0.6, 0.6])
    assert [kept_share(0.4, epoch, 3, 5) for epoch in (0, 3, 5, 7, 9)] == pytest.approx([1.0, 1.0, 0.8, 0.6, 0.6])


def test_the_smallest_losses_are_kept() -> None:
    losses = torch.tensor([3.0, 1.0, 2.0, 5.0, 4.0])
    assert smallest(losses, 0.6).tolist() == [1, 2, 0]
    assert smallest(losses, 0.0).tolist() == [1], "a batch is never empty"


def test_co_teaching_trains_each_network_on_the_others_choice() -> None:
    draws = torch.Generator().manual_seed(0)
    logits = [torch.randn(10, 3, generator=draws) for _ in range(2)]
    labels = torch.randint(3, (10,), generator=draws)
    chosen = exchange(logits, labels, 0.5)
    for mine, other in ((0, 1), (1, 0)):
        naive = sorted(range(10), key=lambda i: -math.log(float(logits[other][i].softmax(0)[labels[i]])))[:5]
        assert chosen[mine].tolist() == naive
    assert [len(places) for places in exchange([one[:0] for one in logits], labels[:0], 0.5)] == [0, 0]


def test_co_teaching_plus_looks_at_disagreements_alone() -> None:
    first = torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    second = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    assert disagreeing([first, second]).tolist() == [1, 2]
    assert disagreeing([first, first]).tolist() == []


def test_jocors_joint_loss_is_the_papers_formula() -> None:
    draws = torch.Generator().manual_seed(0)
    logits = [torch.randn(6, 4, generator=draws) for _ in range(2)]
    labels = torch.randint(4, (6,), generator=draws)
    found = joint_loss(logits, labels, 0.3)
    for i in range(6):
        p, q = (one[i].softmax(0) for one in logits)
        supervised = -p[labels[i]].log() - q[labels[i]].log()
        apart = sum(p[c] * (p[c] / q[c]).log() + q[c] * (q[c] / p[c]).log() for c in range(4))
        assert found[i].item() == pytest.approx(float(0.7 * supervised + 0.3 * apart), abs=1e-5)


def test_elrs_regulariser_and_targets_are_the_papers_formulas(tiny: LabelledImages) -> None:
    draws = torch.Generator().manual_seed(0)
    logits, targets = torch.randn(5, 3, generator=draws), torch.rand(5, 3, generator=draws).softmax(1)
    expected = sum(
        math.log(1 - sum(float(targets[i, c] * logits[i].softmax(0)[c]) for c in range(3))) for i in range(5)
    )
    assert early_learning(logits, targets).item() == pytest.approx(expected / 5, abs=1e-5)
    sure = torch.tensor([[100.0, -100.0]])
    assert early_learning(sure, torch.tensor([[1.0, 0.0]])).isfinite()

    method: ELR = method_on(tiny, config_of("elr"))
    mine, seen = torch.tensor([4, 9]), bounded(torch.randn(2, 3, generator=draws))
    method._follow(0, mine, seen)
    moved = method._follow(0, mine, seen)
    beta = ELRConfig().elr_momentum
    assert torch.allclose(moved, (1 - beta**2) * seen / seen.sum(1, keepdim=True), atol=1e-6)
    assert method.targets[0, [0, 1]].abs().sum() == 0


def test_elr_plus_targets_come_from_the_other_networks_slow_copy(tiny: LabelledImages) -> None:
    method: ELRPlus = method_on(tiny, config_of("elr-plus"))
    with torch.no_grad():
        for parameter in method.followers[1].parameters():
            parameter.zero_()
    weak = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    method.losses(torch.arange(4), weak, 0, 0)
    beta = method.config.elr_momentum
    assert torch.allclose(method.targets[0, :4], torch.full((4, 3), (1 - beta) / 3), atol=1e-5), "a blank network"
    assert not torch.allclose(method.targets[1, :4], torch.full((4, 3), (1 - beta) / 3), atol=1e-3)
    before = next(method.followers[0].parameters()).clone()
    method.after_step(0, 0.0)
    assert torch.allclose(next(method.followers[0].parameters()), next(method.networks[0].parameters()), atol=0.01)
    assert before.shape == next(method.followers[0].parameters()).shape


def test_the_noise_rate_is_read_from_the_networks() -> None:
    draws = torch.Generator().manual_seed(0)
    truth = torch.randint(5, (2000,), generator=draws)
    wrong = torch.rand(2000, generator=draws) < 0.4
    given = torch.where(wrong, (truth + 1) % 5, truth)
    logits = [4 * F.one_hot(truth, 5) + torch.randn(2000, 5, generator=draws) for _ in range(2)]
    assert estimated_rate(logits, given) == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize("contrast", ["none", "simclr", "scl", "plr", "plr-queue"])
@pytest.mark.parametrize("method", STEPWISE)
def test_every_method_trains_with_every_contrast(method: str, contrast: str, tiny: LabelledImages) -> None:
    config = config_of(method, contrast=contrast, forget_epochs=1, plus_epoch=1, queue_size=20)
    trained = method_on(tiny, config)
    for epoch in range(2):
        metrics = trained.train_epoch(epoch)
    assert metrics["phase"] == "train"
    assert ("negative_share" in metrics) == (contrast != "none")
    assert finite(trained)
    assert trained.verdict().label_score.shape == (60,)


@pytest.mark.parametrize("contrast", ["none", "plr-queue"])
@pytest.mark.parametrize("method", STEPWISE)
def test_state_goes_on_exactly(method: str, contrast: str, tiny: LabelledImages) -> None:
    config = config_of(method, contrast=contrast, forget_epochs=1, epochs=3, queue_size=20)
    straight, broken, resumed = (method_on(tiny, config) for _ in range(3))
    for epoch in range(2):
        straight.train_epoch(epoch)
        broken.train_epoch(epoch)
    resumed.load_state_dict(broken.state_dict())
    assert straight.train_epoch(2) == resumed.train_epoch(2)
    assert same_state(straight.state_dict(), resumed.state_dict())


@pytest.mark.parametrize("method", STEPWISE)
def test_what_can_be_learned_is_learned(method: str) -> None:
    data = arrays.from_arrays(blobs(wrong=0.0))
    adam = method in ("co-teaching", "co-teaching-plus", "jocor")
    config = config_of(method, epochs=20, lr=0.01 if adam else 0.1, lr_epochs=(15,), forget_rate=0.0, agreement=0.1)
    trained = method_on(data, replace(config, lr_schedule="steps"))
    for epoch in range(20):
        trained.train_epoch(epoch)
    assert (trained.logits(data.test_images).argmax(1) == data.test_labels).float().mean() > 0.85


def test_networks_that_share_a_backward_pass_move_by_one_scale_of_mixed_precision() -> None:
    """A step that overflows halves the scale; the other network's gradients still belong to the old one."""
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    fabric: Any = SimpleNamespace(strategy=SimpleNamespace(precision=SimpleNamespace(scaler=scaler)))
    weights = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    learners: Any = []
    for weight in weights:
        bare = torch.optim.SGD([weight], lr=1.0)
        optimizer = SimpleNamespace(optimizer=bare, step=bare.step, zero_grad=bare.zero_grad)
        learners.append(SimpleNamespace(optimizer=optimizer))
    scaler.scale(torch.stack(weights).sum()).backward()
    step_together(learners, fabric)
    assert [weight.item() for weight in weights] == [-1.0, -1.0]
    assert scaler.get_scale() == 8.0
