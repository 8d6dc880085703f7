"""Recipes resolve for every method, and their schedules follow the length of the run."""

from __future__ import annotations

import pytest

from plremix.config import CoDivideConfig
from plremix.errors import InputError
from plremix.recipes import METHODS, RECIPES, build, scaled


@pytest.mark.parametrize("name", list(RECIPES))
@pytest.mark.parametrize("method", METHODS)
def test_every_recipe_resolves(name: str, method: str) -> None:
    config = build(name, method)
    assert config.recipe == name
    assert config.method == method


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
