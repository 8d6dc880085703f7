"""Gradient conflict: against finite differences, on the weights as they are, and the figures of two gradients."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from helpers import method_on, same_state, small_config

from plremix.analysis import gradients
from plremix.data import loading
from plremix.data.dataset import LabelledImages


def trained(data: LabelledImages, **changes: Any) -> Any:
    """A method after warm-up and one epoch; three classes leave negatives with kappa 1."""
    method = method_on(data, small_config(kappa=(1,), temperature=0.5, **changes))
    for epoch in range(2):
        method.train_epoch(epoch)
    return method


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in double precision, and activations without a kink that a small step could cross."""
    real = loading.normalise
    monkeypatch.setattr(loading, "normalise", lambda *given: real(*given).double())
    monkeypatch.setattr(torch.nn.functional, "relu", torch.nn.functional.softplus)
    monkeypatch.setattr(torch.nn.ReLU, "forward", lambda self, x: torch.nn.functional.softplus(x))


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("loss", ["sst", "simclr", "plr"])
def test_gradients_equal_finite_differences(tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    method = method_on(tiny, small_config(kappa=(1,), flat=False, temperature=0.5, ramp_epochs=1))
    for network in method.networks:
        network.double()
        gradients.freeze_statistics(network)
    scores = torch.randn(60, 3, generator=torch.Generator().manual_seed(2))  # so that there are negatives to learn from
    split = method.next_splits(2)[1]._replace(class_scores=scores)
    guessed = torch.softmax(torch.randn(16, 3, generator=torch.Generator().manual_seed(0)).double(), dim=1)
    monkeypatch.setattr(method, "_targets", lambda *given: guessed)  # targets have no gradient: they stand still
    parameters = list(method.networks[0].backbone.parameters())

    def value() -> torch.Tensor:
        return next(gradients.step_losses(method, 0, split, 2))[loss]

    found = torch.autograd.grad(value(), parameters)
    draws = torch.Generator().manual_seed(1)
    for _ in range(3):
        direction = [torch.randn(one.shape, generator=draws, dtype=torch.float64) for one in parameters]
        values = []
        for step in (1e-5, -2e-5, 1e-5):
            with torch.no_grad():
                for parameter, part in zip(parameters, direction, strict=True):
                    parameter.add_(step * part)
            values.append(value().item())
        slope = (values[0] - values[1]) / 2e-5
        expected = sum((one * part).sum().item() for one, part in zip(found, direction, strict=True))
        assert slope == pytest.approx(expected, rel=1e-4, abs=1e-7)
        assert expected != 0


def test_entanglement_and_ratio_of_two_gradients() -> None:
    first, second = torch.tensor([3.0, 4.0]), torch.tensor([-2.0, 0.0])
    assert gradients.entanglement_and_ratio(first, second) == pytest.approx((-6 / 4, 5 / 2))
    assert gradients.entanglement_and_ratio(second, first) == pytest.approx((-6 / 25, 2 / 5))
    assert all(value != value for value in gradients.entanglement_and_ratio(first, torch.zeros(2)))


def test_measuring_changes_nothing_and_comes_out_the_same_again(tiny: LabelledImages) -> None:
    method = trained(tiny)
    before = copy.deepcopy(
        {name: value for name, value in method.networks[0].state_dict().items() if "num_" not in name}
    )
    first = gradients.measure(method, 2, batches=9)
    after = {name: value for name, value in method.networks[0].state_dict().items() if "num_" not in name}
    assert same_state(before, after)
    again = trained(tiny)
    assert gradients.measure(again, 2, batches=9) == first
    assert {(one.network, one.step) for one in first} == {(m, k) for m in (0, 1) for k in range(9)}, "7 an epoch"


def test_layers_together_make_the_backbone(tiny: LabelledImages) -> None:
    method = trained(tiny)
    found = gradients.measure(method, 2, batches=1, per_layer=True)
    layers = {one.layer for one in found} - {gradients.WHOLE}
    assert {"stem.0", "stages.0.conv1"} <= layers
    numbers = gradients.summary(found, method.config, 2)
    assert set(numbers["layers"]) == layers
    whole = [one for one in found if one.layer == gradients.WHOLE and one.contrast == "plr" and one.network == 0]
    parts = [one for one in found if one.layer != gradients.WHOLE and one.contrast == "plr" and one.network == 0]
    assert min(one.ratio for one in parts) <= whole[0].ratio <= max(one.ratio for one in parts)


def test_plr_and_simclr_agree_where_every_pair_is_reliable(tiny: LabelledImages) -> None:
    method = trained(tiny, flat=False)
    one_each = torch.eye(3)[torch.arange(60) % 3]
    method.labels = torch.arange(60) % 3
    split = method.next_splits(2)[1]._replace(class_scores=one_each)
    few = torch.tensor([0, 1, 2])  # one sample of each class: all sets are disjoint
    step = next(method.steps(0, split, 2, contrasts=True))
    monkey = [step._replace(mine=few, strong=[view[:3] for view in step.strong])]
    method.steps = lambda *given, contrasts: iter(monkey)  # type: ignore[method-assign]
    losses = next(gradients.step_losses(method, 0, split, 2))
    assert losses["plr"].item() == pytest.approx(losses["simclr"].item())


def test_a_run_that_guesses_once_an_epoch_is_measured_after_it_was_loaded(tiny: LabelledImages) -> None:
    before = trained(tiny, guess="epoch", learned_view="guessed", averaging=0.5)
    again = method_on(tiny, before.config)
    again.load_state_dict(before.state_dict())
    found = gradients.measure(again, 2, batches=1)
    assert len(found) == 4  # two networks, two contrasts
    assert all(math.isfinite(conflict.entanglement * conflict.ratio) for conflict in found)


def test_contrasts_are_measured_on_strong_views_where_the_run_itself_has_none(tiny: LabelledImages) -> None:
    method = trained(tiny, guess="epoch", learned_view="guessed", contrast="none")
    first, second = next(method.steps(0, method.next_splits(2)[1], 2, contrasts=True)).strong
    assert not torch.equal(first, second)
