"""A learner's running mean of weights is that mean, and it is what predicts, is saved and goes on after a stop."""

from __future__ import annotations

import torch
from helpers import method_on, same_state, small_config

from plremix.data.dataset import LabelledImages


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
