"""Recipes resolve for every method, and their schedules follow the length of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from plremix.config import CoDivideConfig
from plremix.errors import InputError
from plremix.recipes import METHODS, RECIPES, build, scaled


@pytest.mark.parametrize("method", METHODS)
def test_every_recipe_resolves(method: str) -> None:
    for name in RECIPES:
        config = build(name, method)
        assert (config.recipe, config.method) == (name, method)


def test_the_promised_digits_recipes_are_there() -> None:
    promised = {"digits-sym-20", "digits-sym-50", "digits-sym-80", "digits-sym-90", "digits-asym-40"}
    assert promised <= RECIPES.keys()
    assert build("digits-sym-80").noise_ratio == 0.8
    assert build("digits-asym-40").noise == "asymmetric"


def test_schedules_scale_with_the_length() -> None:
    paper = CoDivideConfig()
    half = scaled(paper, 200)
    assert isinstance(half, CoDivideConfig)
    assert half.lr_epochs == (100,)
    assert half.warmup_epochs == 5
    assert half.kappa_epochs == (20, 35)
    assert half.ramp_epochs == 8
    assert half.prototype_momentum == pytest.approx(0.99**2)


@pytest.mark.parametrize("epochs", [1, 2, 3, 1000])
def test_any_length_is_a_valid_run(epochs: int) -> None:
    for name in RECIPES:
        assert build(name, epochs=epochs).epochs == epochs


def test_no_warm_up_stays_no_warm_up() -> None:
    assert scaled(CoDivideConfig(warmup_epochs=0), 10).warmup_epochs == 0


def test_an_unknown_recipe_is_told() -> None:
    with pytest.raises(InputError, match="there is no recipe 'mnist'"):
        build("mnist")


def test_the_papers_cells_are_there_with_their_hidden_weight() -> None:
    promised = {"cifar10-sym-50", "cifar100-asym-40", "tiny-imagenet-sym-20", "clothing1m", "webvision"}
    assert promised <= RECIPES.keys()
    weights = {name: build(name).as_dict()["lambda_u"] for name in ("cifar10-sym-90", "cifar100-sym-80", "clothing1m")}
    assert weights == {"cifar10-sym-90": 50.0, "cifar100-sym-80": 150.0, "clothing1m": 0.0}
    for name in promised:
        assert build(name).as_dict()["split"] == "mixture2d"


def test_a_row_keeps_its_change_whatever_the_method() -> None:
    assert build("cifar10-sym-80-mixture1d").as_dict()["split"] == "mixture1d"
    plugged = build("cifar10-sym-20-jocor-plr")
    assert (plugged.method, plugged.contrast) == ("jocor", "plr")
    assert build("cifar10-sym-20", "jocor").contrast == "none"


def test_forget_rates_are_the_share_that_is_really_wrong() -> None:
    assert build("cifar10-sym-50", "co-teaching").as_dict()["forget_rate"] == 0.45
    assert build("cifar10-asym-40", "jocor").as_dict()["forget_rate"] == 0.2
    assert build("cifar100-asym-40", "jocor").as_dict()["forget_rate"] == 0.4


def test_multi_crop_is_plremix_on_webvision_only() -> None:
    assert build("webvision").crop_sides == (224, 128)
    assert build("webvision", "dividemix").crop_sides == ()


def test_a_folder_of_the_same_name_does_not_hide_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "webvision").mkdir()
    monkeypatch.chdir(tmp_path)
    assert build("webvision").recipe == "webvision"
    assert build("./webvision").recipe == "own"
