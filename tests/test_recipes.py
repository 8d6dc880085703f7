"""Recipes resolve for every method, and their schedules follow the length of the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plremix.config import CoDivideConfig, config_class
from plremix.errors import InputError
from plremix.recipes import METHODS, RECIPES, build, for_own_images, own, scaled


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
    for row in ("plr", "flatplr", "kappa-2", "only-y"):
        for method in ("cross-entropy", "co-teaching-plus", "dividemix", "unicon", "plremix"):
            assert build(f"digits-sym-80-{row}", method).contrast == "plr", (row, method)
    assert build("cifar10-sym-80-plr", "jocor").contrast == "plr"
    assert build("digits-sym-80", "jocor").kappa == (1,), "by its trials"
    assert build("digits-sym-80-flatplr", "jocor").kappa == (3, 2, 1)


def test_what_is_contrasted_is_seen_in_strong_views_in_every_method() -> None:
    strong = {"distort", "autoaugment-cifar", "autoaugment-imagenet", "flip-autoaugment-imagenet"}
    for name in RECIPES:
        assert {build(name, method).strong_view for method in METHODS} <= strong, name
    colour = for_own_images(5000, 10, 32, 3, gpu=False)
    assert {own(Path("x.npz"), colour, method).strong_view for method in METHODS} == {"autoaugment-cifar"}


def test_forget_rates_are_the_share_that_is_really_wrong() -> None:
    assert build("cifar10-sym-50", "co-teaching").as_dict()["forget_rate"] == 0.45
    assert build("cifar10-asym-40", "jocor").as_dict()["forget_rate"] == 0.2
    assert build("cifar100-asym-40", "co-teaching-plus").as_dict()["forget_rate"] == 0.4
    assert build("cifar100-asym-40", "jocor").as_dict()["forget_rate"] == 0.2, "JoCoR's authors take half"


# What the authors' papers and code say of each method on each data set; what is not here is the paper's own.
_ADAM = {"optimizer": "adam", "lr": 0.001, "weight_decay": 0.0, "batch_size": 128, "epochs": 200, "forget_epochs": 10}
_ADAM |= {"lr_schedule": "linear", "late_beta1": 0.1}
_ELR = {"optimizer": "sgd", "lr": 0.02, "weight_decay": 1e-3, "batch_size": 128}
_ELR_PLUS = {"lr": 0.02, "weight_decay": 5e-4, "batch_size": 128, "lr_schedule": "steps", "lr_factor": 0.1}
_DIVIDEMIX = {"lr": 0.02, "weight_decay": 5e-4, "batch_size": 64, "epochs": 300, "lr_epochs": (150,), "beta": 4.0}
_DIVIDEMIX |= {
    "split": "mixture1d",
    "contrast": "none",
    "sharpen": 0.5,
    "learned_view": "guessed",
    "divide_anew": False,
}
_UNICON = {"lr": 0.02, "weight_decay": 5e-4, "batch_size": 64, "epochs": 350, "lr_schedule": "cosine", "lr_period": 280}
_UNICON |= {"lr_floor": 0.01, "lambda_u": 30.0, "contrast_weight": 0.025, "temperature": 0.05, "divide_anew": True}
_UNICON |= {"split": "class-balanced", "noisy_batch": "by-share", "beta": 4.0}
_BIG = {"beta": 0.5, "sharpen": 0.5, "lambda_u": 0.0}
AUTHORS: list[tuple[str, str, dict[str, Any]]] = [
    ("cifar10-sym-50", "cross-entropy", {"lr": 0.1, "weight_decay": 1e-4, "batch_size": 128, "lr_epochs": (100, 250)}),
    ("cifar100-sym-50", "mixup", {"lr": 0.1, "weight_decay": 1e-4, "epochs": 300, "mixup_alpha": 32.0}),
    ("cifar10-sym-50", "co-teaching", {**_ADAM, "lr_epochs": (80,), "plus_epoch": None}),
    ("cifar100-sym-50", "co-teaching", {**_ADAM, "lr_epochs": (100,)}),
    ("cifar10-sym-50", "co-teaching-plus", {**_ADAM, "lr_epochs": (80,), "plus_epoch": 20}),
    ("cifar100-sym-50", "co-teaching-plus", {**_ADAM, "lr_epochs": (80,), "plus_epoch": 5}),
    ("tiny-imagenet-sym-50", "co-teaching-plus", {**_ADAM, "lr_epochs": (80,), "plus_epoch": 100}),
    ("cifar10-sym-20", "jocor", {**_ADAM, "lr_epochs": (80,), "agreement": 0.9}),
    ("cifar10-sym-80", "jocor", {**_ADAM, "agreement": 0.65}),
    ("cifar100-sym-80", "jocor", {**_ADAM, "lr_epochs": (100,), "agreement": 0.85}),
    ("cifar10-sym-50", "elr", {**_ELR, "epochs": 150, "lr_schedule": "restarts", "lr_period": 10, "lr_floor": 0.05}),
    ("cifar10-sym-50", "elr", {"elr_weight": 3.0, "elr_momentum": 0.7}),
    ("cifar10-asym-40", "elr", {**_ELR, "epochs": 120, "lr_schedule": "steps", "lr_epochs": (40, 80)}),
    ("cifar10-asym-40", "elr", {"lr_factor": 0.01, "elr_weight": 1.0, "elr_momentum": 0.9}),
    ("cifar100-sym-50", "elr", {**_ELR, "epochs": 150, "lr_schedule": "steps", "lr_epochs": (80, 120)}),
    ("cifar100-sym-50", "elr", {"lr_factor": 0.01, "elr_weight": 7.0, "elr_momentum": 0.9}),
    ("cifar10-sym-50", "elr-plus", {**_ELR_PLUS, "epochs": 200, "lr_epochs": (150,), "elr_weight": 3.0}),
    ("cifar10-sym-50", "elr-plus", {"ema": 0.997, "ema_epochs": 114, "elr_epochs": 0, "reweight_labels": False}),
    ("cifar10-asym-40", "elr-plus", {**_ELR_PLUS, "elr_weight": 1.0, "elr_momentum": 0.9}),
    ("cifar100-sym-50", "elr-plus", {**_ELR_PLUS, "epochs": 250, "lr_epochs": (200,), "elr_weight": 7.0}),
    ("cifar100-sym-50", "elr-plus", {"ema_epochs": 114, "elr_epochs": 114, "reweight_labels": True}),
    ("clothing1m", "elr-plus", {"lr": 0.002, "weight_decay": 1e-3, "epochs": 15, "lr_epochs": (7,), "batch_size": 64}),
    ("clothing1m", "elr-plus", {"epoch_images": 64 * 3000, "ema": 0.9999, "ema_epochs": 0, "reweight_labels": False}),
    ("webvision", "elr-plus", {"lr": 0.02, "weight_decay": 5e-4, "epochs": 100, "lr_epochs": (50,), "batch_size": 32}),
    ("webvision", "elr-plus", {"mixup_alpha": 1.5, "ema": 0.997, "ema_epochs": 0}),
    ("cifar10-sym-20", "dividemix", {**_DIVIDEMIX, "warmup_epochs": 10, "lambda_u": 0.0, "loss_history": 1}),
    ("cifar10-sym-90", "dividemix", {**_DIVIDEMIX, "lambda_u": 50.0, "clean_threshold": 0.6, "loss_history": 5}),
    ("cifar100-sym-20", "dividemix", {**_DIVIDEMIX, "warmup_epochs": 30, "lambda_u": 25.0, "clean_threshold": 0.5}),
    ("cifar100-sym-90", "dividemix", {"lambda_u": 150.0, "clean_threshold": 0.6, "loss_history": 5}),
    ("clothing1m", "dividemix", {**_BIG, "lr": 0.002, "weight_decay": 1e-3, "batch_size": 32, "lr_epochs": (40,)}),
    ("clothing1m", "dividemix", {"epochs": 80, "epoch_images": 32_000, "warmup_images": 64_000, "learn_noisy": False}),
    ("webvision", "dividemix", {**_BIG, "lr": 0.01, "weight_decay": 5e-4, "batch_size": 32, "lr_epochs": (40,)}),
    ("webvision", "dividemix", {"epochs": 80, "warmup_epochs": 1, "learn_noisy": False}),
    ("clothing1m-pretrained", "dividemix", {"optimizer": "adamw", "lr": 0.002, "weight_decay": 1e-3, "batch_size": 32}),
    ("clothing1m-pretrained", "dividemix", {"clean_threshold": 0.7, "warmup_epochs": 5, "epochs": 120}),
    ("clothing1m-pretrained", "dividemix", {"warmup_clip": 1.0, "lr_epochs": (40,), "pretrain": "simclr"}),
    ("cifar10-sym-90", "unicon", {**_UNICON, "warmup_epochs": 10}),
    ("cifar100-sym-20", "unicon", {**_UNICON, "warmup_epochs": 30}),
    ("tiny-imagenet-sym-50", "unicon", {"lr": 0.005, "weight_decay": 5e-4, "batch_size": 64, "warmup_epochs": 15}),
    ("tiny-imagenet-sym-50", "unicon", {"epochs": 500, "lr_schedule": "steps", "lr_epochs": (199, 399), "beta": 0.5}),
    ("tiny-imagenet-sym-50", "unicon", {"lambda_u": 50.0, "noisy_batch": "same"}),
    ("clothing1m", "unicon", {**_BIG, "lr": 0.005, "weight_decay": 1e-3, "batch_size": 32, "warmup_epochs": 0}),
    ("clothing1m", "unicon", {"epochs": 200, "lr_schedule": "cosine", "lr_period": 100, "lr_floor": 0.002}),
    ("webvision", "unicon", {**_BIG, "lr": 0.01, "weight_decay": 1e-4, "batch_size": 24, "warmup_epochs": 2}),
    ("webvision", "unicon", {"epochs": 120, "lr_schedule": "steps", "lr_epochs": (60,)}),
]


@pytest.mark.parametrize(("recipe", "method", "settings"), AUTHORS)
def test_the_compared_methods_have_their_authors_settings(recipe: str, method: str, settings: dict[str, Any]) -> None:
    built = build(recipe, method).as_dict()
    assert {name: built[name] for name in settings} == settings


def test_the_authors_extras_stay_out_of_the_digits_and_of_plremix() -> None:
    extras = ("lr_factor", "lr_period", "late_beta1", "elr_epochs", "ema_epochs", "reweight_labels", "divide_anew")
    extras += ("loss_history", "mixture_steps", "warmup_images", "warmup_clip", "learned_view", "noisy_batch")
    for name, recipe in RECIPES.items():
        for method in METHODS if recipe.table.startswith("digits") else ("plremix",):
            if name == "clothing1m-pretrained":
                continue
            built, usual = build(name, method).as_dict(), config_class(method)().as_dict()
            mine = ("learned_view",) if method == "dividemix" else ()
            wrong = [extra for extra in extras if extra in built and built[extra] != usual[extra]]
            assert set(wrong) <= set(mine), name


def test_own_images_keep_the_shape_of_their_schedules() -> None:
    settings = for_own_images(5000, 10, 32, 3, gpu=False)
    config = own(Path("x.npz"), settings)
    before = config.epochs - config.finish_epochs
    assert config.learning_rate(before - 1) == pytest.approx(config.learning_rate(before), rel=0.02)  # no jump
    without = replace(config, finish_epochs=0)  # the rate then falls to the end, and does not rise again
    rates = [without.learning_rate(epoch) for epoch in range(without.epochs)]
    assert rates == sorted(rates, reverse=True)
    short = own(Path("x.npz"), settings, epochs=2)
    assert not short.finish_epochs
    assert short.lr_floor < 0.1 < config.lr_floor  # nothing comes after where it ends
    teaching = own(Path("x.npz"), settings, "co-teaching")
    assert teaching.warmup_epochs == teaching.epochs // 2


def test_dividemix_and_unicon_on_own_images_go_by_them() -> None:
    colour, grey = (for_own_images(5000, 10, 32, channels, gpu=False) for channels in (3, 1))
    for settings, view in ((colour, "crop-flip"), (grey, "crop")):
        config = own(Path("x.npz"), settings, "dividemix")
        assert (config.weak_view, config.learned_view) == (view, "weak"), "it learns from what it guesses from"
    assert own(Path("x.npz"), colour, "unicon").learned_view == "strong"
    for method in ("plremix", "dividemix", "unicon"):
        assert own(Path("x.npz"), colour, method).lambda_u == "auto"
        assert build("digits-sym-80", method).lambda_u == "auto", "nothing about the noise is told"


def test_small_sets_are_contrasted_before_their_labels_are_learned_by_heart() -> None:
    waits = {
        images: own(Path("x.npz"), for_own_images(images, 10, 32, 3, gpu=False)).waits_with_contrast
        for images in (60, 400, 2000, 5000, 50_000)
    }
    assert waits == {60: False, 400: False, 2000: False, 5000: True, 50_000: True}
    assert not own(Path("x.npz"), for_own_images(5000, 10, 32, 3, gpu=False), epochs=100).waits_with_contrast


def test_multi_crop_is_plremix_on_webvision_only() -> None:
    assert build("webvision").crop_sides == (224, 128)
    assert build("webvision", "dividemix").crop_sides == ()


def test_a_folder_of_the_same_name_does_not_hide_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "webvision").mkdir()
    monkeypatch.chdir(tmp_path)
    assert build("webvision").recipe == "webvision"
    assert build("./webvision").recipe == "own"


def test_the_papers_parts_are_compared_without_our_votes_of_neighbours() -> None:
    rows = [name for name, recipe in RECIPES.items() if recipe.table == "digits ablation"]
    assert len(rows) == 11
    assert {build(name).neighbour_votes for name in rows} == {0.0}
    assert build("digits-sym-80").neighbour_votes == 0.5
    assert own(Path("x.npz"), for_own_images(1000, 10, 8, 1, gpu=False)).neighbour_votes == 0.5
