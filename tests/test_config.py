"""Settings: every impossible value has a message for people, and config.json comes back as it was."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from plremix.config import (
    CONFIGS,
    CoDivideConfig,
    CoTeachingConfig,
    CrossEntropyConfig,
    config_class,
    from_dict,
    read_config,
)
from plremix.errors import InputError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise_ratio": 1.5}, "--noise-ratio must be a share from 0 to 1, got 1.5"),
        ({"noise_ratio": -0.1}, "--noise-ratio"),
        ({"noise_ratio": float("nan")}, "--noise-ratio"),
        ({"kappa": (-1,)}, "--kappa must be 0 or more, got -1"),
        ({"kappa": ()}, "--kappa must be one or more numbers"),
        ({"kappa": (3, 1)}, "--kappa-epochs must be one epoch for each change of --kappa 3,1, so 1 in all"),
        ({"kappa_epochs": (70, 40)}, "--kappa-epochs must be rising"),
        ({"batch_size": 1}, "--batch-size must be at least 2, got 1"),
        ({"epochs": 0}, "--epochs must be at least 1, got 0"),
        ({"epochs": 5}, "--warmup-epochs must be at most the 5 epochs, got 10"),
        ({"lr": 0.0}, "--lr must be above 0"),
        ({"lr": float("inf")}, "--lr must be above 0"),
        ({"temperature": 0.0}, "--temperature must be above 0"),
        ({"lambda_u": -1.0}, "--lambda-u must be 0 or more"),
        ({"momentum": 1.0}, "--momentum"),
        ({"noise_map": "3>5"}, "--noise-map must look like 3:5,5:3"),
        ({"split": "magic"}, "--split must be one of mixture1d, mixture2d, neighbours"),
        ({"kappa": (3, 2, 0), "given_label_epochs": 5}, "--given-label-epochs must be left out where --kappa is 0"),
        ({"given_label_epochs": -1}, "--given-label-epochs must be 0 or more"),
        ({"weight_decay": float("inf")}, "--weight-decay must be 0 or more"),
        ({"devices": 0}, "--devices must be at least 1"),
        ({"devices": 128}, "--batch-size must be at least one sample for each of the 128 processes"),
        ({"seed": -1}, "--seed must be 0 or more"),
        ({"lr_factor": 0.0}, "--lr-factor must be above 0 and up to 1"),
        ({"lr_period": 0}, "--lr-period must be at least 1"),
        ({"lr_floor": 1.5}, "--lr-floor must be from 0 to 1"),
        ({"loss_history": 0}, "--loss-history must be at least 1"),
        ({"loss_history": 5, "split": "neighbours"}, "--loss-history must be 1 with --split neighbours"),
        ({"loss_history": 5, "epoch_images": 100}, "--loss-history must be 1 with --epoch-images"),
        ({"warmup_clip": -1.0}, "--warmup-clip must be 0 or more"),
    ],
)
def test_impossible_values_are_told(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(".", r"\.")):
        CoDivideConfig(**changes)


def test_kappa_falls_at_its_epochs_or_stays() -> None:
    config = CoDivideConfig()
    assert [config.kappa_at(epoch) for epoch in (0, 39, 40, 69, 70, 399)] == [3, 3, 2, 2, 1, 1]
    fixed = CoDivideConfig(kappa=(0,))
    assert fixed.kappa_at(300) == 0


def test_the_learning_rate_falls_tenfold_at_its_epochs() -> None:
    config = CrossEntropyConfig(lr=0.1, lr_epochs=(5, 8), epochs=10)
    assert [config.learning_rate(epoch) for epoch in (0, 4, 5, 8)] == pytest.approx([0.1, 0.1, 0.01, 0.001])


def test_the_step_can_be_another() -> None:
    config = CrossEntropyConfig(lr=0.1, lr_epochs=(5, 8), lr_factor=0.01, epochs=10)
    assert [config.learning_rate(epoch) for epoch in (4, 5, 8)] == pytest.approx([0.1, 0.001, 0.00001])


def test_the_cosines_are_those_of_pytorch() -> None:
    """UNICON's falls for 280 epochs of 350 and climbs again; ELR's begins anew every ten epochs."""
    unicon = CrossEntropyConfig(lr=0.02, epochs=350, lr_schedule="cosine", lr_period=280)
    elr = CrossEntropyConfig(lr=0.02, epochs=150, lr_schedule="restarts", lr_period=10, lr_floor=0.05)
    for config, kind, settings in (
        (unicon, torch.optim.lr_scheduler.CosineAnnealingLR, {"T_max": 280, "eta_min": 2e-4}),
        (elr, torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, {"T_0": 10, "eta_min": 0.001}),
    ):
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.02)
        schedule = kind(optimizer, **settings)
        for epoch in range(config.epochs):
            assert config.learning_rate(epoch) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-8)
            optimizer.step()
            schedule.step()
    whole = CrossEntropyConfig(lr=0.02, epochs=40, lr_schedule="cosine")
    assert [whole.learning_rate(epoch) for epoch in (0, 20, 40)] == pytest.approx([0.02, 0.0101, 0.0002])


def test_co_teaching_plus_by_its_name_alone_is_not_plain_co_teaching() -> None:
    def begins(**settings: Any) -> list[bool]:
        config = from_dict(settings)
        assert isinstance(config, CoTeachingConfig)
        return [config.teaches_disagreements(epoch) for epoch in (0, 5, 19, 20)]

    assert begins(method="co-teaching-plus") == [False, False, False, True]
    assert begins(method="co-teaching-plus", plus_epoch=5) == [False, True, True, True]
    assert begins(method="co-teaching-plus", plus_epoch=0) == [True] * 4
    assert begins(method="co-teaching") == [False] * 4


def test_adams_first_momentum_falls_with_the_learning_rate() -> None:
    config = CoTeachingConfig(epochs=200, lr_epochs=(80,), late_beta1=0.1)
    assert [config.beta1(epoch) for epoch in (0, 79, 80, 199)] == [0.9, 0.9, 0.1, 0.1]
    assert CoTeachingConfig(lr_epochs=(80,)).beta1(199) == 0.9
    with pytest.raises(InputError, match="--late-beta1 must be left out with --optimizer sgd"):
        CoTeachingConfig(optimizer="sgd", late_beta1=0.1)
    with pytest.raises(InputError, match="--late-beta1 must be from 0 to below 1"):
        CoTeachingConfig(late_beta1=1.0)


@pytest.mark.parametrize("config", [CoDivideConfig(noise_file=Path("a b.json"), width=8), CrossEntropyConfig(seed=3)])
def test_a_config_survives_json(config: Any) -> None:
    assert from_dict(json.loads(json.dumps(config.as_dict()))) == config


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a config.json"),
        ('{"schema_version": 99, "method": "plremix"}', "not a config.json"),
        ('{"schema_version": 1, "method": "magic"}', "no method 'magic'"),
        ('{"schema_version": 1, "method": "plremix", "bogus": 1}', "unknown settings .* bogus"),
        ('{"schema_version": 1, "method": "plremix", "epochs": "ten"}', "'epochs' cannot be 'ten'"),
        ('{"schema_version": 1, "method": "plremix", "kappa": [1, "2"]}', "'kappa' cannot be"),
        ('{"schema_version": 1, "method": "plremix", "lr": -1}', "--lr must be above 0"),
    ],
)
def test_a_config_file_that_cannot_be_right_is_told(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_config(tmp_path / "config.json")


def test_every_setting_says_what_it_is() -> None:
    """The help of a flag is the string below its field, and the source of a default the comment beside it."""
    source = (Path(__file__).parents[1] / "src" / "plremix" / "config.py").read_text(encoding="utf-8")
    for name in {field.name for kind in CONFIGS.values() for field in fields(kind)} - {"method"}:
        lines = source.splitlines()
        at = next(index for index, line in enumerate(lines) if line.startswith(f"    {name}: "))
        assert lines[at + 1].startswith('    """'), f"{name} has no description"


def test_an_unknown_method_is_told() -> None:
    with pytest.raises(InputError, match="there is no method 'magic'; choose one of cross-entropy, mixup"):
        config_class("magic")
