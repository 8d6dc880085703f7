"""The methods that go batch by batch: each one's core against a naive computation, and all of them train."""

from __future__ import annotations

import copy
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
from plremix.methods import elr
from plremix.methods.contrasts import Contrast
from plremix.methods.coteaching import disagreeing, exchange
from plremix.methods.elr import ELR, ELRPlus, bounded, early_learning
from plremix.methods.forgetting import estimated_rate, kept_share, smallest
from plremix.methods.jocor import joint_loss
from plremix.methods.learner import Predictions, step_together
from plremix.methods.pretraining import pretrain
from plremix.randomness import beta, generator

STEPWISE = [name for name in CONFIGS if name not in ("plremix", "dividemix", "unicon")]


def config_of(method: str, **changes: Any) -> Config:
    kind = config_class(method)
    known = set(kind.__dataclass_fields__)
    plus = {"plus_epoch": 1} if method == "co-teaching-plus" else {}
    return kind(**{key: value for key, value in {**SMALL, "method": method, **plus, **changes}.items() if key in known})


def finite(method: Any) -> bool:
    return all(torch.isfinite(value).all() for network in method.networks for value in network.state_dict().values())


class Linear(torch.nn.Module):
    """A network without batch norm: what it says of an image does not depend on who else is in the batch."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.weight = 0.2 * torch.randn(64, 3, generator=torch.Generator().manual_seed(seed))

    def forward(self, images: torch.Tensor) -> Any:
        return SimpleNamespace(logits=images.flatten(1) @ self.weight)


def logits_of_a_batch(method: Any, count: int) -> list[torch.Tensor]:
    """Random logits (b, 3) for each network, which it then says of whatever batch it is shown."""
    draws = torch.Generator().manual_seed(0)
    logits = [torch.randn(count, 3, generator=draws) for _ in method.learners]
    for learner, one in zip(method.learners, logits, strict=True):
        learner.forward = lambda images, one=one: SimpleNamespace(logits=one)
    return logits


def test_the_kept_share_falls_to_one_minus_the_rate() -> None:
    assert [kept_share(0.4, epoch, 0, 5) for epoch in (0, 2, 4, 9)] == pytest.approx([1.0, 0.8, 0.6, 0.6])
    assert [kept_share(0.4, epoch, 3, 5) for epoch in (0, 3, 5, 7, 9)] == pytest.approx([1.0, 1.0, 0.8, 0.6, 0.6])


def test_the_smallest_losses_are_kept() -> None:
    losses = torch.tensor([3.0, 1.0, 2.0, 5.0, 4.0])
    assert smallest(losses, 0.6).tolist() == [1, 2, 0]
    assert smallest(losses, 0.0).tolist() == [1], "a batch is never empty"


def test_mixup_learns_from_blended_images_with_blended_labels(tiny: LabelledImages) -> None:
    method = method_on(tiny, config_of("mixup"))
    mine = torch.arange(6)
    weak = torch.randn(6, *tiny.images.shape[1:], generator=torch.Generator().manual_seed(0))
    method.learners[0].network.eval()  # batch norm does not depend on who is in the batch
    loss = method.losses(mine, weak, epoch=2, step=3, steps=9)["loss"]
    share = beta(method.config.mixup_alpha, generator(0, "share", 2, 3))
    partners = torch.randperm(6, generator=generator(0, "mixup", 2, 3, 0)).tolist()
    assert 0 < share < 1
    naive = 0.0
    for one, other in enumerate(partners):
        blended = share * weak[one] + (1 - share) * weak[other]
        scores = method.learners[0].network(blended[None]).logits[0].detach().log_softmax(0)
        naive -= float(share * scores[tiny.given_labels[one]] + (1 - share) * scores[tiny.given_labels[other]]) / 6
    assert float(loss.detach()) == pytest.approx(naive, abs=1e-5)


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


def test_networks_that_agree_on_a_whole_batch_teach_each_other_nothing_in_co_teaching_plus(
    tiny: LabelledImages,
) -> None:
    method = method_on(tiny, config_of("co-teaching-plus", plus_epoch=0, forget_rate=0.2))
    same = torch.randn(6, 3, requires_grad=True)
    for learner in method.learners:
        learner.forward = lambda images: SimpleNamespace(logits=same)
    losses = method.losses(torch.arange(6), torch.zeros(6, 1, 8, 8), 0, 0, 1)
    torch.stack(list(losses.values())).sum().backward()
    assert [loss.item() for loss in losses.values()] == [0, 0]
    assert torch.equal(same.grad, torch.zeros(6, 3))


@pytest.mark.parametrize("plus_epoch", [None, 1, 2])
def test_co_teaching_learns_the_others_small_losses_and_plus_among_disagreements(
    plus_epoch: int | None, tiny: LabelledImages
) -> None:
    method = method_on(tiny, config_of("co-teaching", forget_rate=0.5, forget_epochs=1, plus_epoch=plus_epoch))
    logits, mine = logits_of_a_batch(method, 20), torch.arange(20, 40)
    method.start_epoch(1)
    losses = method.losses(mine, torch.zeros(20, 1, 8, 8), epoch=1, step=0, steps=1)
    cost = [[-math.log(one[i].softmax(0)[tiny.given_labels[20 + i]]) for i in range(20)] for one in logits]
    candidates = list(range(20))
    if plus_epoch == 1:
        candidates = [i for i in candidates if logits[0][i].argmax() != logits[1][i].argmax()]
        assert 4 < len(candidates) < 16
    for index in (0, 1):
        easy = sorted(candidates, key=lambda i: cost[1 - index][i])[: len(candidates) // 2]
        expected = sum(cost[index][i] for i in easy) / len(easy)
        assert losses[f"loss_{index}"].item() == pytest.approx(expected, abs=1e-5)


def naive_joint(first: torch.Tensor, second: torch.Tensor, label: int, agreement: float) -> float:
    """JoCoR's loss of one sample."""
    p, q = first.softmax(0).tolist(), second.softmax(0).tolist()
    apart = sum(a * math.log(a / b) + b * math.log(b / a) for a, b in zip(p, q, strict=True))
    return (1 - agreement) * -(math.log(p[label]) + math.log(q[label])) + agreement * apart


@pytest.mark.parametrize("agreement", [0.2, 0.7])
def test_jocor_learns_what_both_networks_find_easiest(agreement: float, tiny: LabelledImages) -> None:
    method = method_on(tiny, config_of("jocor", forget_rate=0.4, forget_epochs=1, agreement=agreement))
    logits, mine = logits_of_a_batch(method, 10), torch.arange(20, 30)
    method.start_epoch(1)
    loss = method.losses(mine, torch.zeros(10, 1, 8, 8), epoch=1, step=0, steps=1)["loss"]
    labels = tiny.given_labels[mine].tolist()
    joint = [naive_joint(logits[0][i], logits[1][i], labels[i], agreement) for i in range(10)]
    assert loss.item() == pytest.approx(sum(sorted(joint)[:6]) / 6, abs=1e-5)


def test_jocors_joint_loss_is_the_papers_formula() -> None:
    draws = torch.Generator().manual_seed(0)
    logits = [torch.randn(6, 4, generator=draws) for _ in range(2)]
    labels = torch.randint(4, (6,), generator=draws)
    found = joint_loss(logits, labels, 0.3)
    for i in range(6):
        assert found[i].item() == pytest.approx(naive_joint(logits[0][i], logits[1][i], int(labels[i]), 0.3), abs=1e-5)


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
    momentum = ELRConfig().elr_momentum
    assert torch.allclose(moved, (1 - momentum**2) * seen / seen.sum(1, keepdim=True), atol=1e-6)
    assert method.targets[0, [0, 1]].abs().sum() == 0


def test_elr_learns_labels_and_targets_that_have_just_moved(tiny: LabelledImages) -> None:
    method: ELR = method_on(tiny, config_of("elr", elr_weight=2.0, elr_momentum=0.6))
    (logits,), mine = logits_of_a_batch(method, 5), torch.tensor([7, 3, 20, 21, 59])
    method.targets[0] = torch.rand(60, 3, generator=torch.Generator().manual_seed(1)).softmax(1)
    before = method.targets[0].tolist()
    losses = method.losses(mine, torch.zeros(5, 1, 8, 8), epoch=0, step=0, steps=1)
    classifier = regulariser = 0.0
    for row, sample in enumerate(mine.tolist()):
        said = logits[row].softmax(0).tolist()
        target = [0.6 * old + 0.4 * now for old, now in zip(before[sample], said, strict=True)]
        classifier -= math.log(said[tiny.given_labels[sample]]) / 5
        regulariser += math.log(1 - sum(t * p for t, p in zip(target, said, strict=True))) / 5
    assert losses["loss_classifier"].item() == pytest.approx(classifier, abs=1e-5)
    assert losses["loss_elr"].item() == pytest.approx(2 * regulariser, abs=1e-5)


def test_elr_plus_learns_blended_labels_and_blended_targets(tiny: LabelledImages) -> None:
    settings = {"elr_weight": 2.0, "elr_momentum": 0.6, "mixup_alpha": 8.0}
    method: Any = method_on(tiny, config_of("elr-plus", **settings))
    networks, slow = [Linear(0), Linear(1)], [Linear(2), Linear(3)]
    method.followers = slow
    for learner, network in zip(method.learners, networks, strict=True):
        learner.forward = network
    draws, mine = torch.Generator().manual_seed(4), torch.tensor([7, 3, 20, 21, 59])
    method.targets = torch.rand(2, 60, 3, generator=draws).softmax(2)
    before, images = method.targets.clone(), torch.randn(5, 1, 8, 8, generator=draws)
    losses = method.losses(mine, images, epoch=1, step=2, steps=9)
    labels = torch.eye(3)[tiny.given_labels[mine]]
    for index in (0, 1):
        said = slow[1 - index](images).logits.softmax(1)
        targets = [0.6 * before[index, sample] + 0.4 * said[row] for row, sample in enumerate(mine.tolist())]
        share = beta(8.0, generator(0, "share", index, 1, 2))
        share = max(share, 1 - share)
        assert share < 0.9, "hardly blended"
        partners = torch.randperm(5, generator=generator(0, "mixup", index, 1, 2, 0)).tolist()
        assert partners != list(range(5))
        classifier = regulariser = 0.0
        for one, other in enumerate(partners):
            image, label, target = (share * what[one] + (1 - share) * what[other] for what in (images, labels, targets))
            found = networks[index](image[None]).logits[0].softmax(0)
            classifier -= float((label * found.log()).sum()) / 5
            regulariser += math.log(1 - float((target * found).sum())) / 5
        assert losses[f"loss_classifier_{index}"].item() == pytest.approx(classifier, abs=1e-5)
        assert losses[f"loss_elr_{index}"].item() == pytest.approx(2 * regulariser, abs=1e-5)


@pytest.mark.parametrize("method", list(CONFIGS))
def test_every_method_can_be_pre_trained_by_contrast(method: str, tiny: LabelledImages) -> None:
    trained = method_on(tiny, config_of(method, pretrain="simclr", pretrain_epochs=1))
    before = [copy.deepcopy(learner.network.backbone.state_dict()) for learner in trained.learners]
    assert math.isfinite(pretrain(trained, 0))
    for old, learner in zip(before, trained.learners, strict=True):
        assert not same_state(old, learner.network.backbone.state_dict())
    trained.train_epoch(0)
    assert finite(trained)


def test_elr_plus_starts_its_slow_copies_where_pre_training_ended(tiny: LabelledImages) -> None:
    method: ELRPlus = method_on(tiny, config_of("elr-plus", pretrain="simclr", pretrain_epochs=2))
    for epoch in range(2):
        pretrain(method, epoch)
        for follower, learner in zip(method.followers, method.learners, strict=True):
            assert same_state(follower.state_dict(), learner.network.state_dict()) == (epoch == 1)


def test_elr_plus_targets_come_from_the_other_networks_slow_copy(tiny: LabelledImages) -> None:
    method: ELRPlus = method_on(tiny, config_of("elr-plus", ema=0.9))
    with torch.no_grad():
        for parameter in method.followers[1].parameters():
            parameter.zero_()
    weak = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    method.losses(torch.arange(4), weak, 0, 0, 9)
    blank = torch.full((4, 3), (1 - method.config.elr_momentum) / 3)
    assert torch.allclose(method.targets[0, :4], blank, atol=1e-5), "a blank network"
    assert not torch.allclose(method.targets[1, :4], blank, atol=1e-3)
    before = next(method.followers[0].parameters()).clone()
    with torch.no_grad():
        for parameter in method.networks[0].parameters():
            parameter.add_(1.0)
    method.after_step(2, 8, 9)  # by the last step they are as slow as they get
    first, second = (next(follower.parameters()) for follower in method.followers)
    assert torch.allclose(first, before + 0.1, atol=1e-5), "a tenth of the way"
    assert torch.allclose(second, 0.1 * next(method.networks[1].parameters()), atol=1e-5), "its own network"


def test_elr_plus_weighs_blended_labels_by_the_targets(tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Published code on CIFAR-100: label times target, brought back to a sum of 1."""
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    monkeypatch.setattr(elr, "soft_cross_entropy", lambda logits, labels: seen.append(labels) or logits.sum())
    weak = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    for reweight in (False, True):
        method: ELRPlus = method_on(tiny, config_of("elr-plus", reweight_labels=reweight))
        method.losses(torch.arange(4), weak, 0, 0, 9)
    config, targets = method.config, method.targets
    for index in (0, 1):
        share = beta(config.mixup_alpha, generator(config.seed, "share", index, 0, 0))
        share = max(share, 1 - share)
        partners = torch.randperm(4, generator=generator(config.seed, "mixup", index, 0, 0, 0)).tolist()
        for row, partner in enumerate(partners):
            label, other = (torch.eye(3)[tiny.given_labels[i]] for i in (row, partner))
            blended = share * label + (1 - share) * other
            assert torch.allclose(seen[index][row], blended, atol=1e-6), "not by default"
            weighed = blended * (share * targets[index, row] + (1 - share) * targets[index, partner])
            assert torch.allclose(seen[2 + index][row], weighed / weighed.sum(), atol=1e-6)


def test_elr_plus_reaches_its_weight_and_its_slowness_bit_by_bit(tiny: LabelledImages) -> None:
    weak = torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    at_once, slowly = (
        method_on(tiny, config_of("elr-plus", epochs=10, elr_epochs=epochs)).losses(torch.arange(8), weak, 2, 4, 10)
        for epochs in (0, 5)
    )
    steps, full = 2 * 10 + 5, 5 * 10  # done with this step, and until the weight is whole
    weight = math.exp(-5 * (1 - steps / full) ** 2)
    assert slowly["loss_elr_0"].item() == pytest.approx(weight * at_once["loss_elr_0"].item(), rel=1e-5)
    assert slowly["loss_classifier_1"].item() == at_once["loss_classifier_1"].item()

    by_epochs: ELRPlus = method_on(tiny, config_of("elr-plus", epochs=10, ema_epochs=5, ema=0.9))
    assert by_epochs._momentum(2, 4, 10) == pytest.approx(0.9 * weight)
    assert by_epochs._momentum(7, 0, 10) == 0.9
    by_steps: ELRPlus = method_on(tiny, config_of("elr-plus", epochs=10, ema_epochs=0, ema=0.9))
    assert [by_steps._momentum(0, step, 10) for step in (0, 1, 2)] == pytest.approx([0, 1 / 2, 2 / 3])
    assert by_steps._momentum(1, 5, 10) == 0.9
    usual: ELRPlus = method_on(tiny, config_of("elr-plus", epochs=200))
    assert usual._momentum(113, 9, 10) == pytest.approx(0.997)
    assert usual._momentum(50, 0, 10) == pytest.approx(0.997 * math.exp(-5 * (1 - 50.1 / 114) ** 2))


@pytest.mark.parametrize("method", ["co-teaching", "co-teaching-plus", "jocor"])
def test_adams_first_momentum_is_small_where_the_learning_rate_falls(method: str, tiny: LabelledImages) -> None:
    trained = method_on(tiny, config_of(method, epochs=4, lr_epochs=(2,), late_beta1=0.1, forget_rate=0.2))
    momenta: list[set[float]] = []
    for epoch in range(4):
        trained.train_epoch(epoch)
        momenta.append({group["betas"][0] for one in trained.learners for group in one.optimizer.param_groups})
    assert momenta == [{0.9}, {0.9}, {0.1}, {0.1}]

    weight = next(trained.networks[0].parameters())
    old, state = weight.detach().clone(), trained.learners[0].optimizer.state[weight]
    before = {name: value.clone() for name, value in state.items()}
    trained.learners[0].descend(weight.square().sum())
    mean = 0.1 * before["exp_avg"] + 0.9 * 2 * old
    square = 0.999 * before["exp_avg_sq"] + 0.001 * (2 * old) ** 2
    count = float(before["step"]) + 1
    rate = trained.config.learning_rate(3)
    moved = rate * mean / (1 - 0.1**count) / ((square / (1 - 0.999**count)).sqrt() + 1e-8)
    assert torch.allclose(weight, old - moved, atol=1e-6)


def test_adamw_decays_weights_beside_the_step(tiny: LabelledImages) -> None:
    """Without a gradient Adam's own decay would become a step of full length; AdamW's is lr times decay."""
    learner = method_on(tiny, config_of("cross-entropy", optimizer="adamw", lr=0.1, weight_decay=0.5)).learners[0]
    weight = next(learner.network.parameters())
    before = weight.detach().clone()
    learner.descend(0 * torch.stack([one.sum() for one in learner.network.parameters()]).sum())
    assert torch.allclose(weight, before * (1 - 0.1 * 0.5), atol=1e-6)


def test_a_gradient_is_shortened_where_a_bound_is_given(tiny: LabelledImages) -> None:
    for longest, expected in ((0.0, 1.0), (0.25, 0.25), (5.0, 1.0)):
        learner = method_on(tiny, config_of("cross-entropy", lr=1.0, weight_decay=0.0, momentum=0.0)).learners[0]
        weight = next(learner.network.parameters())
        before = weight.detach().clone()
        learner.descend(weight.flatten()[0] * 1.0, longest)
        assert (weight - before).norm().item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("favour", [0.0, 3.0])
def test_the_noise_rate_is_read_from_the_networks(favour: float) -> None:
    """Even where both of them favour the first class, as networks do that have learned little."""
    draws = torch.Generator().manual_seed(0)
    truth = torch.randint(5, (2000,), generator=draws)
    wrong = torch.rand(2000, generator=draws) < 0.4
    given = torch.where(wrong, (truth + 1) % 5, truth)
    logits = [4 * F.one_hot(truth, 5) + torch.randn(2000, 5, generator=draws) for _ in range(2)]
    for one in logits:
        one[:, 0] += favour
    assert estimated_rate(logits, given) == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize("method", ["co-teaching", "co-teaching-plus", "jocor"])
def test_the_estimate_is_what_was_forgotten_by_unless_that_was_told(method: str, tiny: LabelledImages) -> None:
    trained = method_on(tiny, config_of(method, forget_epochs=1))
    assert trained.noise_rate_estimate(0.3) == 0.3, "nothing is known before the first epoch"
    forgotten = [trained.train_epoch(epoch)["forget_rate"] for epoch in range(2)]
    assert trained.noise_rate_estimate(0.99) == forgotten[-1] != 0.99
    told = method_on(tiny, config_of(method, forget_epochs=1, forget_rate=0.5))
    assert [told.train_epoch(epoch)["forget_rate"] for epoch in range(2)] == [0.5, 0.5]
    assert told.noise_rate_estimate(0.99) not in (0.5, 0.99), "an estimate all the same"


@pytest.mark.parametrize("method", ["co-teaching", "co-teaching-plus", "jocor"])
def test_as_much_is_forgotten_as_the_networks_speak_against(method: str, tiny: LabelledImages) -> None:
    trained = method_on(tiny, config_of(method, forget_epochs=1))
    assert tiny.true_labels is not None
    knowing = Predictions(10 * F.one_hot(tiny.true_labels, 3).float(), torch.zeros(60, 0))
    for learner in trained.learners:
        learner.predict = lambda *given: knowing
    wrong = sum(int(true != given) for true, given in zip(tiny.true_labels, tiny.given_labels, strict=True))
    assert 0 < wrong < 30
    assert trained.start_epoch(0)["forget_rate"] == 0.0, "nothing is known before the first epoch"
    assert trained.start_epoch(1)["forget_rate"] == pytest.approx(wrong / 60)
    assert trained.noise_rate_estimate(0.99) == pytest.approx(wrong / 60)


@pytest.mark.parametrize("method", ["cross-entropy", "mixup", "elr", "elr-plus"])
def test_the_noise_rate_is_read_after_warm_up_and_kept(method: str, tiny: LabelledImages) -> None:
    """From what networks say in five epochs together: who is mistaken in two of them is right in the other three."""
    trained = method_on(tiny, config_of(method, warmup_epochs=2))
    assert tiny.true_labels is not None
    truth = tiny.true_labels
    for epoch in range(2):
        assert "noise_rate_after_warmup" not in trained.train_epoch(epoch)
    assert trained.noise_rate_estimate(0.3) == 0.3, "nothing is known before"

    def says(method: Any, classes: torch.Tensor) -> float | None:
        for learner in method.learners:
            learner.predict = lambda *given: Predictions(10 * F.one_hot(classes, 3).float(), torch.zeros(60, 0))
        return method.start_epoch(method.epoch).get("noise_rate_after_warmup")

    wrong = float((truth != tiny.given_labels).float().mean())
    assert wrong < 0.5
    halfway = None
    for trained.epoch in range(2, 7):
        rate = says(trained, (truth + 1) % 3 if trained.epoch in (2, 4) else truth)
        assert rate == trained.noise_rate_estimate(0.99)
        if trained.epoch == 4:
            halfway = trained.state_dict()
            assert rate != pytest.approx(wrong), "mistaken in two of three"
    assert trained.noise_rate_estimate(0.99) == pytest.approx(wrong)
    trained.epoch = 7
    assert says(trained, (truth + 1) % 3) is None, "nobody is asked any more"
    assert trained.noise_rate_estimate(0.99) == pytest.approx(wrong)
    assert trained.state_dict()["opinions"] is None

    resumed = method_on(tiny, config_of(method, warmup_epochs=2))
    assert halfway is not None
    resumed.load_state_dict(halfway)
    for resumed.epoch in (5, 6):
        says(resumed, truth)
    assert resumed.noise_rate_estimate(0.99) == pytest.approx(wrong)


def test_the_noise_rate_is_of_those_samples_that_were_seen(tiny: LabelledImages) -> None:
    trained = method_on(tiny, config_of("mixup", warmup_epochs=1))
    assert tiny.true_labels is not None
    right, wrong = ((tiny.true_labels == tiny.given_labels) == same for same in (True, False))
    trained.rows = torch.cat([right.nonzero()[:20, 0], wrong.nonzero()[:5, 0]])
    seen = Predictions(10 * F.one_hot(tiny.true_labels[trained.rows], 3).float(), torch.zeros(25, 0))
    trained.learners[0].predict = lambda *given: seen
    trained.start_epoch(1)
    assert trained.noise_rate_estimate(0.99) == pytest.approx(5 / 25)


@pytest.mark.parametrize("method", ["co-teaching", "jocor", "elr-plus"])
def test_two_networks_predict_together_and_both_are_contrasted(method: str, tiny: LabelledImages) -> None:
    trained = method_on(tiny, config_of(method, contrast="simclr", flat=False))
    before = [learner.network.projector[0].weight.detach().clone() for learner in trained.learners]
    trained.train_epoch(0)
    for learner, weight in zip(trained.learners, before, strict=True):
        assert not torch.allclose(learner.network.projector[0].weight, weight, atol=1e-5)
    apart = [learner.predict(trained.loader.images, trained.loader).logits for learner in trained.learners]
    assert torch.allclose(trained.logits(trained.loader.images), apart[0] + apart[1], atol=1e-5)
    assert not torch.allclose(apart[0], apart[1], atol=1e-3)


def test_networks_that_have_learned_nothing_are_not_asked_how_many_labels_are_wrong(tiny: LabelledImages) -> None:
    trained = method_on(tiny, config_of("cross-entropy", warmup_epochs=0))
    assert "noise_rate_after_warmup" not in trained.train_epoch(0)
    assert "noise_rate_after_warmup" in trained.train_epoch(1)


def test_a_networks_contrast_goes_by_what_the_other_network_predicted(
    tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = method_on(tiny, config_of("co-teaching", contrast="plr", forget_rate=0.2))
    predicted = [learner.predict(method.loader.images, method.loader).logits for learner in method.learners]
    assert not torch.allclose(predicted[0], predicted[1], atol=0.01)
    seen: list[int] = []
    real = Contrast.__call__

    def watched(self: Contrast, strong: Any, mine: torch.Tensor, table: torch.Tensor, epoch: int) -> Any:
        index = method.contrasts.index(self)
        assert torch.equal(table, predicted[1 - index])
        seen.append(index)
        return real(self, strong, mine, table, epoch)

    monkeypatch.setattr(Contrast, "__call__", watched)
    method.train_epoch(0)
    assert set(seen) == {0, 1}


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
    more = {"late_beta1": 0.1, "ema_epochs": 0, "elr_epochs": 2, "reweight_labels": True}
    config = config_of(method, contrast=contrast, forget_epochs=1, epochs=3, queue_size=20, **more)
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
        learners.append(SimpleNamespace(optimizer=optimizer, follow=lambda: None))
    scaler.scale(torch.stack(weights).sum()).backward()
    step_together(learners, fabric)
    assert [weight.item() for weight in weights] == [-1.0, -1.0]
    assert scaler.get_scale() == 8.0


@pytest.mark.parametrize("name", STEPWISE)
def test_averaged_weights_follow_in_every_method(name: str, tiny: LabelledImages) -> None:
    method = method_on(tiny, config_of(name, averaging=0.5))
    start = [{key: value.clone() for key, value in network.state_dict().items()} for network in method.networks]
    method.train_epoch(0)
    for learner, shown, before in zip(method.learners, method.networks, start, strict=True):
        assert shown is learner.shown
        assert not same_state(shown.state_dict(), before)
        assert not same_state(shown.state_dict(), learner.network.state_dict())
