"""Named recipes: the only place where the settings of a run are decided. `plremix recipes` shows them by table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from plremix.config import CONFIGS, FINISH_RATE, CoDivideConfig, Config, config_class
from plremix.errors import InputError

Settings = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """A cell of a table: settings for every method that has them, then the method's own, then the row's."""

    name: str
    table: str
    settings: Settings
    by_method: dict[str, Settings] = field(default_factory=dict)
    changes: Settings = field(default_factory=dict)  # what makes the row of an ablation
    method: str = "plremix"


# --- digits and own images ---


# Ours, for the 8x8 digits on a CPU. Chosen on 1,000 of the 1,400 training images by the other 400, seeds from 100
# up (README, "Figures"); the test images had no part in it.
DIGITS: Settings = {
    "data": "digits",
    "network": "preact-resnet-small",
    "weak_view": "crop",
    "strong_view": "distort",
    "epochs": 40,
    "lr": 0.05,
    "lr_epochs": (30,),
    "warmup_epochs": 10,
    "split": "neighbours",
    "neighbour_epochs": 30,
    "neighbour_votes": 0.5,  # 99.0 against 98.2 at 50 %, 98.0 against 97.5 at 80 %, seeds 100 to 103
    "kappa_epochs": (15, 25),
    "ramp_epochs": 8,
    "temperature": 0.2,
    "prototype_momentum": 0.9,
    "epoch_length": "data",
    "lambda_u": "auto",
}

# What each method wants otherwise: by `benchmarks/tuning.py`, 27 trials each, on the same 400 images. DivideMix and
# UNICON did best with a lambda_U of their own, which the benchmarks give them; here nothing about the noise is told.
# How PLR is plugged into four of them is by `benchmarks/tuning_plugged.py`: kappa 3 left few pairs to repel in small
# batches, and did harm in DivideMix. In Co-teaching's family it starts plain for longer: predictions of small losses
# alone are worth little before (docs/figures.md, "Parts swapped").
_ADAM: Settings = {"lr_epochs": (16,), "forget_epochs": 8, "warmup_epochs": 20}
_INFO_NCE: Settings = {"flat": False, "temperature": 0.5, "kappa": (1,)}
_UNICON: Settings = {
    "split": "class-balanced",
    "contrast": "simclr",
    "contrast_side": "noisy",
    "contrast_weight": 0.025,
    "temperature": 0.05,
    "flat": False,
    "warmup_contrast": False,
    "lambda_u": 30.0,
    "lr_schedule": "cosine",
}
BY_METHOD: dict[str, Settings] = {
    # better with distorted views, but then it is not the plain one
    "cross-entropy": {"lr": 0.005, "batch_size": 32, "kappa": (1,)},
    "mixup": {"lr": 0.05, "lr_schedule": "cosine", "mixup_alpha": 1.0, "weak_view": "distort"},
    "co-teaching": {**_ADAM, "lr": 0.0015, "batch_size": 32},
    "co-teaching-plus": {
        **_ADAM,
        "lr": 0.002,
        "lr_schedule": "steps",
        "plus_epoch": 16,
        "batch_size": 128,
        **_INFO_NCE,
    },
    "jocor": {**_ADAM, "lr": 0.002, "agreement": 0.65, "forget_epochs": 12, "averaging": 0.98, "kappa": (1,)},
    "dividemix": {  # here it learns from two further views, not from those that it guesses from
        "split": "mixture1d",
        "contrast": "none",
        "learned_view": "weak",
        "lr": 0.1,
        "batch_size": 32,
        "beta": 0.5,
        **_INFO_NCE,
    },
    "elr": {"lr": 0.02, "lr_schedule": "cosine", "weak_view": "distort", "elr_weight": 2.0},
    "elr-plus": {"lr": 0.05, "mixup_alpha": 0.3, "weak_view": "distort", "elr_weight": 2.0},
    # divides once an epoch, with batches of one size
    "unicon": {**_UNICON, "lr": 0.1, "beta": 0.5, "lambda_u": "auto"},
    "plremix": {"flat": False},  # 97.4 against 97.1 % at 80 % noise, 94.8 against 88.6 at 90 %, seeds 100 to 104
}

# --- the paper's data sets, with the settings of the published code (docs/reproducing.md) ---

# What is not listed is the default of `config.py`, which is PLReMix on CIFAR-10.
PAPER: dict[str, Settings] = {
    "cifar10": {"data": "cifar10", "split": "mixture2d"},
    "cifar100": {"data": "cifar100", "split": "mixture2d", "warmup_epochs": 30, "noise_model": "blocks5"},
    "tiny-imagenet": {
        "data": "tiny-imagenet",
        "split": "mixture2d",
        "noise_model": "next",
        "image_size": 64,
        "pool_grid": 2,
        "weak_view": "flip",
        "strong_view": "flip-autoaugment-imagenet",
    },
    "clothing1m": {
        "data": "clothing1m",
        "split": "mixture2d",
        "network": "resnet50",
        "weights": "pretrained",
        "resize": 256,
        "image_size": 224,
        "strong_view": "autoaugment-imagenet",
        "epoch_images": 64_000,
        "epochs": 100,
        "lr": 0.004,
        "lr_epochs": (40, 80),
        "weight_decay": 1e-3,
        "warmup_epochs": 1,
        "warmup_view": "strong",
        "warmup_entropy": True,
        "kappa_epochs": (15, 30),
        "lambda_u": 0.0,
        "beta": 0.5,
        "flat": False,
        "precision": "16-mixed",
    },
    "webvision": {
        "data": "webvision",
        "first_classes": 50,
        "split": "mixture2d",
        "network": "inception_resnet_v2",
        "resize": 320,
        "image_size": 299,
        "strong_view": "autoaugment-imagenet",
        "crop_sides": (224, 128),
        "crop_scales": (0.14, 1.0, 0.05, 0.14),
        "batch_size": 48,
        "epochs": 150,
        "lr": 0.015,
        "lr_epochs": (60, 120),
        "warmup_epochs": 2,
        "kappa_epochs": (15, 30),
        "lambda_u": 0.0,
        "beta": 0.5,
        "flat": False,
        "precision": "16-mixed",
    },
}
# The weight per noise level that other code hides: PLReMix's, then DivideMix's where it differs.
LAMBDA_U: dict[str, dict[str, float]] = {
    "cifar10": {"sym-20": 0, "sym-50": 25, "sym-80": 25, "sym-90": 50, "asym-40": 0},
    "cifar100": {"sym-20": 0, "sym-50": 150, "sym-80": 150, "sym-90": 150, "asym-40": 0},
    "tiny-imagenet": {"sym-0": 0, "sym-20": 30, "sym-50": 200, "sym-80": 300, "asym-45": 0},
}
DIVIDEMIX_LAMBDA_U = {"sym-20": 25.0, "asym-40": 150.0}  # CIFAR-100; asymmetric as C2D's authors tried it
CLASSES = {"cifar10": 10, "cifar100": 100, "tiny-imagenet": 200}

# What the methods' authors used on CIFAR-10; then what they changed elsewhere.
_PLAIN_SGD: Settings = {"lr": 0.1, "weight_decay": 1e-4, "batch_size": 128, "epochs": 300, "lr_epochs": (100, 250)}
_PLAIN_ADAM: Settings = {
    "lr": 0.001,
    "weight_decay": 0.0,
    "batch_size": 128,
    "epochs": 200,
    "lr_epochs": (80,),
    "late_beta1": 0.1,
}
# ELR+ counts in steps of 128 out of 45,000 images: 40,000 of them are 114 epochs
_PLAIN_ELR: Settings = {"batch_size": 128, "epochs": 200, "lr_epochs": (150,), "ema_epochs": 114}
AUTHORS: dict[str, Settings] = {
    "cross-entropy": _PLAIN_SGD,
    "mixup": {**_PLAIN_SGD, "mixup_alpha": 32.0},
    "co-teaching": _PLAIN_ADAM,
    "co-teaching-plus": {**_PLAIN_ADAM, "plus_epoch": 20},
    "jocor": {**_PLAIN_ADAM, "agreement": 0.9},
    "dividemix": {
        "split": "mixture1d",
        "contrast": "none",
        "learned_view": "guessed",
        "epochs": 300,
        "lr_epochs": (150,),
    },
    "elr": {
        "weight_decay": 1e-3,
        "batch_size": 128,
        "epochs": 150,
        "lr_schedule": "restarts",
        "lr_period": 10,
        "lr_floor": 0.05,
    },
    "elr-plus": _PLAIN_ELR,
    "unicon": {**_UNICON, "epochs": 350, "lr_period": 280, "divide_anew": True, "noisy_batch": "by-share"},
}
AUTHORS_ELSEWHERE: dict[str, dict[str, Settings]] = {
    "cifar100": {
        "co-teaching": {"lr_epochs": (100,)},
        "co-teaching-plus": {"plus_epoch": 5},
        "jocor": {"agreement": 0.85, "lr_epochs": (100,)},
        "elr": {
            "elr_weight": 7.0,
            "elr_momentum": 0.9,
            "lr_schedule": "steps",
            "lr_epochs": (80, 120),
            "lr_factor": 0.01,
        },
        "elr-plus": {
            "elr_weight": 7.0,
            "elr_momentum": 0.9,
            "elr_epochs": 114,
            "reweight_labels": True,
            "epochs": 250,
            "lr_epochs": (200,),
        },
    },
    "tiny-imagenet": {
        "co-teaching-plus": {"plus_epoch": 100},
        "unicon": {
            "lr": 0.005,
            "warmup_epochs": 15,
            "beta": 0.5,
            "lambda_u": 50.0,
            "epochs": 500,
            "lr_schedule": "steps",
            "lr_epochs": (199, 399),
            "noisy_batch": "same",
        },
    },
    "clothing1m": {
        # ours: DivideMix's, nobody says how it was run
        "cross-entropy": {"lr": 0.002, "weight_decay": 1e-3, "batch_size": 64, "epochs": 80, "lr_epochs": (40,)},
        "dividemix": {
            "lr": 0.002,
            "batch_size": 32,
            "epochs": 80,
            "lr_epochs": (40,),
            "warmup_view": "weak",
            "warmup_images": 64_000,
            "epoch_images": 32_000,
            "learn_noisy": False,
        },
        "elr-plus": {
            "lr": 0.002,
            "weight_decay": 1e-3,
            "batch_size": 64,
            "epochs": 15,
            "lr_epochs": (7,),
            "epoch_images": 192_000,
            "ema": 0.9999,
            "ema_epochs": 0,
        },
        "unicon": {
            "lr": 0.005,
            "batch_size": 32,
            "epochs": 200,
            "lr_period": 100,
            "lr_floor": 0.002,
            "warmup_epochs": 0,
            "beta": 0.5,
            "lambda_u": 0.0,
        },
    },
    "webvision": {
        "dividemix": {
            "lr": 0.01,
            "batch_size": 32,
            "epochs": 80,
            "lr_epochs": (40,),
            "warmup_epochs": 1,
            "learn_noisy": False,
        },
        "elr-plus": {
            "lr": 0.02,
            "batch_size": 32,
            "epochs": 100,
            "lr_epochs": (50,),
            "mixup_alpha": 1.5,
            "ema_epochs": 0,
        },
        "unicon": {
            "lr": 0.01,
            "weight_decay": 1e-4,
            "batch_size": 24,
            "epochs": 120,
            "lambda_u": 0.0,
            "lr_schedule": "steps",
            "lr_epochs": (60,),
        },
    },
}

# --- rows of the ablations: what differs from the recipe without the suffix ---

_CONTRAST_ROWS: dict[str, Settings] = {  # the paper's SimCLR and SCL are InfoNCE
    "plr": {"contrast": "plr", "flat": False},
    "simclr": {"contrast": "simclr", "flat": False},
    "scl": {"contrast": "scl", "flat": False},
}
_KAPPA_ROWS: dict[str, Settings] = {
    "kappa-3": {"contrast": "plr", "kappa": (3,)},
    "kappa-2": {"contrast": "plr", "kappa": (2,)},
    "kappa-1": {"contrast": "plr", "kappa": (1,)},
    "only-y": {"contrast": "plr", "kappa": (0,)},
}
_FLAT_ROWS: dict[str, Settings] = {  # parts of FlatPLR, the paper's own form, which the digits' default is not
    "flatplr": {"contrast": "plr"},
    "queue": {"contrast": "plr-queue"},
    "mixture2d": {"split": "mixture2d"},
    "mixture1d": {"split": "mixture1d"},
    **_KAPPA_ROWS,
}
# The paper's parts are compared without the votes of neighbours, which are ours.
_DIGIT_ROWS: dict[str, Settings] = {
    name: {"flat": True, "kappa": (3, 2, 1), **changes, "neighbour_votes": 0.0}
    for name, changes in {**_CONTRAST_ROWS, **_FLAT_ROWS}.items()
}
_PLUGGED_ROWS: dict[str, Settings] = {"": {}, "-simclr": {"contrast": "simclr"}, "-plr": {"contrast": "plr"}}


def _noise(name: str) -> Settings:
    """`sym-80`: symmetric noise of 80 %. Where noise has a direction, warm-up keeps predictions from being sure."""
    kind, ratio = name.split("-")
    if not int(ratio):
        return {}
    share = {"noise_ratio": int(ratio) / 100}
    if kind == "sym":
        return {"noise": "symmetric", **share}
    return {"noise": "asymmetric", **share, "warmup_entropy": True}


def _wrong(data: str, noise: str) -> float:
    """The share of labels that a noise of the paper makes wrong: what the authors' forget rates should be."""
    kind, ratio = noise.split("-")
    if kind == "asym":  # of CIFAR-10's classes half go over into another
        return int(ratio) / (200 if data == "cifar10" else 100)
    return round(int(ratio) / 100 * (1 - 1 / CLASSES[data]), 4)


def _authors(data: str, noise: str = "") -> dict[str, Settings]:
    """Each method's settings for one cell."""
    elsewhere = AUTHORS_ELSEWHERE.get(data, {})
    chosen = {method: {**settings, **elsewhere.get(method, {})} for method, settings in AUTHORS.items()}
    if noise:
        for method in ("co-teaching", "co-teaching-plus", "jocor"):
            chosen[method]["forget_rate"] = _wrong(data, noise)
        if noise.startswith("asym"):  # JoCoR's authors: half the rate, whatever the data
            chosen["jocor"]["forget_rate"] = int(noise.removeprefix("asym-")) / 200
    if data == "cifar10" and noise in ("sym-80", "sym-90"):
        chosen["jocor"]["agreement"] = 0.65
    if data == "cifar10" and noise == "asym-40":
        chosen["elr"] |= {"epochs": 120, "lr_schedule": "steps", "lr_epochs": (40, 80), "lr_factor": 0.01}
        chosen["elr"] |= {"elr_weight": 1.0, "elr_momentum": 0.9}
        chosen["elr-plus"] |= {"elr_weight": 1.0, "elr_momentum": 0.9}
    if data == "cifar100" and noise in DIVIDEMIX_LAMBDA_U:
        chosen["dividemix"]["lambda_u"] = DIVIDEMIX_LAMBDA_U[noise]
    if data == "webvision":  # multi-crop is PLReMix's
        chosen = {method: {**settings, "crop_sides": ()} for method, settings in chosen.items()}
    if noise == "sym-90":
        chosen["dividemix"] |= {"clean_threshold": 0.6, "loss_history": 5}
    return chosen


def _cells() -> list[Recipe]:
    """Every recipe, table by table."""
    cells = [
        Recipe(f"digits-{noise}", "digits", {**DIGITS, **_noise(noise)}, BY_METHOD)
        for noise in ("sym-20", "sym-50", "sym-80", "sym-90", "asym-40")
    ]
    digits = cells[2]
    cells += [_row(digits, suffix, "digits ablation", changes) for suffix, changes in _DIGIT_ROWS.items()]
    tables = {"cifar10": "cifar", "cifar100": "cifar", "tiny-imagenet": "tiny-imagenet"}
    paper = {
        f"{data}-{noise}": Recipe(
            f"{data}-{noise}",
            tables[data],
            {**PAPER[data], **_noise(noise), "lambda_u": float(weight)},
            _authors(data, noise),
        )
        for data, weights in LAMBDA_U.items()
        for noise, weight in weights.items()
    }
    cells += paper.values()
    cifar = [recipe for recipe in paper.values() if recipe.table == "cifar"]
    cells += [_row(recipe, "mixture1d", "cifar", {"split": "mixture1d"}) for recipe in cifar]
    cells += [Recipe(name, name, PAPER[name], _authors(name)) for name in ("clothing1m", "webvision")]
    c2d = {
        "weights": "",  # the authors' SimCLR starts from nothing, not from ImageNet
        "pretrain": "simclr",
        "warmup_epochs": 5,
        "warmup_clip": 1.0,
        "epochs": 120,
        "clean_threshold": 0.7,
        "mixture_steps": 200,
        "divide_anew": True,
        "optimizer": "adamw",
    }
    cells.append(_row(cells[-2], "pretrained", "clothing1m", c2d, "dividemix"))
    for noise in ("sym-20", "sym-50", "asym-40"):
        for method in ("co-teaching-plus", "jocor"):
            for suffix, changes in _PLUGGED_ROWS.items():
                cells.append(_row(paper[f"cifar10-{noise}"], method + suffix, "combination", changes, method))
    for data in ("cifar10", "cifar100"):
        for noise in ("sym-50", "sym-80", "sym-90"):
            for suffix, changes in _CONTRAST_ROWS.items():
                cells.append(_row(paper[f"{data}-{noise}"], suffix, "ablation", changes))
    cells += [_row(paper["cifar10-sym-80"], suffix, "kappa", changes) for suffix, changes in _KAPPA_ROWS.items()]
    for labels in ("aggre", "random1", "random2", "random3", "worst"):
        human = {**PAPER["cifar10"], "human_labels": labels, "lambda_u": "auto"}
        cells.append(Recipe(f"cifar10n-{labels}", "cifar-n", human, _authors("cifar10")))
    human = {**PAPER["cifar100"], "human_labels": "noisy", "lambda_u": "auto"}
    cells.append(Recipe("cifar100n-noisy", "cifar-n", human, _authors("cifar100")))
    return cells


def _row(of: Recipe, suffix: str, table: str, changes: Settings, method: str = "plremix") -> Recipe:
    return replace(of, name=f"{of.name}-{suffix}", table=table, changes=changes, method=method)


RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _cells()}

# Own images: as the digits, but they may be hard, and few labels wrong (docs/figures.md, "Hard images"); confirmed on
# emoji and MNIST (`benchmarks/tuning_own.py`), where the votes of neighbours are worth 0.8 points. In little time
# the number of steps decides, so passes that do not teach are saved: labels are guessed once an epoch, contrast is for
# sets with many wrong labels and must not crowd out the classes, and strong views are for it alone. A label has the
# benefit of the doubt, and a small noisy side takes no more than its share of a step.
OWN = DIGITS
_BY_IMAGES = ("batch_size", "weak_view")
_TRIED_ON_IMAGES = {"mixup": ("lr_schedule",), "co-teaching-plus": ("lr_schedule",)}  # and stayed as it was
OWN_BY_METHOD: dict[str, Settings] = {
    # all others as on the digits, but for what goes by the images, or was tried on some
    **{
        method: {
            name: settings[name] for name in settings if name not in (*_BY_IMAGES, *_TRIED_ON_IMAGES.get(method, ()))
        }
        for method, settings in BY_METHOD.items()
    },
    "plremix": {
        "flat": True,
        "averaging": 0.998,
        "guess": "epoch",
        "contrast_above": 0.2,
        "contrast_weight": 0.1,
        "contrast_every": 2,
        "cluster_vote": 0.0,
        "benefit_of_doubt": True,
        "noisy_batch": "proportional",
        "learned_view": "guessed",
        "beta": 0.5,
        "lr_schedule": "cosine",
        "lr_floor": FINISH_RATE,  # where the last epochs begin
        "neighbour_epochs": 54,  # in epoch 32 networks and neighbourhood count the same
        "finish_epochs": 8,
    },
}
# Steps of warm-up, co-training and the end that a network needs for hard images, however few; epochs, at least and at
# most.
STEPS = {"warmup": 3100, "train": 2800, "finish": 2500}
EPOCHS = {"warmup": (4, 150), "train": (8, 100), "finish": (4, 60)}


def for_own_images(images: int, classes: int, side: int, channels: int, gpu: bool) -> Settings:
    """Settings for own images by what they are like: how many, of how many classes, how large, grey or in colour.

    A CPU gets the small network and at most 64 pixels; small sets get smaller batches and more epochs, so that there
    are enough steps. Grey images (digits, documents, scans) are never mirrored.
    """
    largest = 128 if gpu else 64
    size = next((fitting for fitting in (16, 28, 32, 48, 64, 96, 128) if side <= fitting), 128)
    colour = channels == 3
    batch = 8 if images < 1000 else 64 if gpu else 16  # on a CPU small steps cost little more, and they are what counts
    length = {  # a step of co-training is a batch of either side
        phase: min(max(least, math.ceil(STEPS[phase] * (1 if phase == "train" else 2) * batch / images)), most)
        for phase, (least, most) in EPOCHS.items()
    }
    return {
        **OWN,
        "network": "preact-resnet18" if gpu and images >= 5000 else "preact-resnet-small",
        "image_size": min(size, largest),
        "channels": channels,
        "weak_view": "crop-flip" if colour else "crop",
        "strong_view": "autoaugment-cifar" if colour else "distort",
        "batch_size": batch,
        "warmup_epochs": length["warmup"],
        "finish_epochs": length["finish"],
        "epochs": sum(length.values()),
    }


METHODS = tuple(CONFIGS)


def build(name: str, method: str | None = None, epochs: int | None = None) -> Config:
    """The config of a recipe, or of own data, for one method; `epochs` scales its schedules."""
    if name in RECIPES:  # a folder of the same name is ./name
        recipe = RECIPES[name]
        method = method or recipe.method
        settings = {**recipe.settings, "recipe": name, **recipe.by_method.get(method, {}), **recipe.changes}
    elif name.endswith((".npz", ".csv")) or Path(name).is_dir():
        method = method or "plremix"
        settings = {**OWN, "recipe": "own", "data": name, **OWN_BY_METHOD.get(method, {})}
    else:
        raise InputError(
            f"there is no recipe {name!r}; `plremix recipes` lists them, and the path of an .npz or .csv file or of a "
            "folder with a sub-folder a class works too"
        )
    config = _config(method, settings)
    return config if epochs is None else scaled(config, epochs)


def own(path: Path, settings: Settings, method: str = "plremix", epochs: int | None = None) -> Config:
    """A run on own images: `settings` of `for_own_images`, schedules scaled to their number of epochs."""
    values = {**settings, **OWN_BY_METHOD.get(method, {}), "recipe": "own", "data": str(path)}
    phases = {name: settings[name] for name in ("epochs", "warmup_epochs", "finish_epochs")}
    usual = {name: OWN_BY_METHOD.get(method, {}).get(name, OWN.get(name, 0)) for name in phases}
    config = scaled(_config(method, {**values, **usual}), settings["epochs"])
    if method == "plremix":
        config = replace(config, **_schedule(**phases))
    return config if epochs is None else scaled(config, epochs)


def _schedule(epochs: int, warmup_epochs: int, finish_epochs: int) -> Settings:
    """What happens when between warm-up and the end: the same shares of it as on the digits."""
    start, end = OWN["warmup_epochs"], OWN["epochs"]
    last = epochs - finish_epochs

    def at(epoch: int) -> int:
        share: float = (epoch - start) / (end - start)
        return warmup_epochs + max(1, round(share * (last - warmup_epochs)))

    return {
        "epochs": epochs,
        "warmup_epochs": warmup_epochs,
        "finish_epochs": finish_epochs,
        "kappa_epochs": tuple(map(at, OWN["kappa_epochs"])),
        "ramp_epochs": at(start + OWN["ramp_epochs"]) - warmup_epochs,
        "neighbour_epochs": 2 * last - warmup_epochs,
    }


def _config(method: str, settings: Settings) -> Config:
    """A method takes the settings that it has."""
    kind = config_class(method)
    known = {field.name for field in fields(kind)}
    return kind(**{**{key: value for key, value in settings.items() if key in known}, "method": method})


def scaled(config: Config, epochs: int) -> Config:
    """The same recipe at another length: every schedule keeps its place in the run."""
    if epochs < 1:
        raise InputError(f"--epochs must be at least 1, got {epochs}")
    factor = epochs / config.epochs

    def moved(value: int | None) -> int | None:
        return value if not value else max(1, round(value * factor))

    changes: dict[str, Any] = {"epochs": epochs}
    for name in config.schedules:
        value = getattr(config, name)
        if name == "finish_epochs":  # the last to get an epoch, where there are few
            changes[name] = int(value * factor)
            continue
        changes[name] = tuple(map(moved, value)) if isinstance(value, tuple) else moved(value)
    if isinstance(config, CoDivideConfig):
        if config.finish_epochs and not changes["finish_epochs"]:  # then nothing comes after where the rate ends
            changes["lr_floor"] = CoDivideConfig.lr_floor
        changes["prototype_momentum"] = config.prototype_momentum ** (1 / factor)  # the same memory over the whole run
    return replace(config, **changes)
