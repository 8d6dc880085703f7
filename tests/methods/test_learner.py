"""A learner's running mean of weights is that mean, and it is what predicts, is saved and goes on after a stop; what an
epoch has no use for stays as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers import method_on, same_state, small_config, small_cross_entropy
from lightning_fabric import Fabric

from plremix.config import Config
from plremix.data.dataset import LabelledImages
from plremix.methods.pretraining import pretrain


def test_without_averaging_what_learns_predicts(tiny: LabelledImages) -> None:
    learner = method_on(tiny, small_config()).learners[0]
    assert learner.shown is learner.network
    assert set(learner.state_dict()) == {"network", "optimizer"}


def test_shown_weights_are_the_running_mean_and_predict(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_config(averaging=0.6))
    learner = method.learners[0]
    mean = {name: value.clone() for name, value in learner.network.state_dict().items()}
    images = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    for step in range(1, 30):
        learner.descend(learner.forward(images).logits.square().sum() + learner.embed([images, images]).sum())
        kept = min(0.6, step / (step + 10))
        for name, value in learner.network.state_dict().items():
            if value.is_floating_point():
                mean[name] = kept * mean[name] + (1 - kept) * value
    for name, value in learner.shown.state_dict().items():
        assert not value.is_floating_point() or torch.allclose(value, mean[name], atol=1e-5), name
    assert not same_state(learner.shown.state_dict(), learner.network.state_dict())

    assert method.networks[0] is learner.shown
    said = learner.predict(method.loader.images, method.loader).logits
    pixels = next(method.loader.plain(method.loader.images, range(60), 60))
    assert torch.allclose(said, learner.shown.eval()(pixels).logits, atol=1e-5)

    again = method_on(tiny, small_config(averaging=0.6)).learners[0]
    again.load_state_dict(learner.state_dict())
    assert again.steps == learner.steps == 29
    assert same_state(again.shown.state_dict(), learner.shown.state_dict())


@pytest.mark.parametrize("make", [small_config, small_cross_entropy])
def test_among_several_processes_too_weight_decay_leaves_unused_heads_alone(
    tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Config]
) -> None:
    config = make(contrast="none", pretrain="simclr", pretrain_epochs=1, weight_decay=0.1, warmup_epochs=1)
    method = method_on(tiny, config)
    monkeypatch.setattr(Fabric, "world_size", 2)  # then every parameter gets a gradient, of 0 if no loss uses it
    network = method.networks[0]

    def heads() -> list[torch.Tensor]:
        return [network.classifier.weight.detach().clone(), network.projector[0].weight.detach().clone()]

    start = heads()
    pretrain(method, 0)
    before = heads()
    assert torch.equal(before[0], start[0])
    assert not torch.equal(before[1], start[1])
    method.train_epoch(0)
    after = heads()
    assert not torch.equal(after[0], before[0])
    assert torch.equal(after[1], before[1])
