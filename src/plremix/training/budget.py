"""How long a run will take here, from a few real passes; and how many epochs fit into a time."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from plremix.config import CoDivideConfig, Config
from plremix.data.dataset import LabelledImages
from plremix.data.files import ImageFiles, Images
from plremix.training.distribution import make_fabric
from plremix.training.setup import build_method, on_device

log = logging.getLogger("plremix")

SMALLEST = 3  # epochs


def duration(seconds: float) -> str:
    """For people."""
    if seconds < 90:
        whole = max(1, round(seconds))
        return f"{whole} second{'s' if whole > 1 else ''}"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def expected_seconds(config: Config, data: LabelledImages) -> float:
    """The whole run, from the time of real steps of a method that is thrown away afterwards.

    Warm-up and what follows it are timed each for themselves, and so is a look at the test images.
    """
    fabric = make_fabric(replace(config, devices=1, nodes=1))
    few = min(len(data), 2 * config.batch_size)
    sample = replace(
        data,
        images=_first(data.images, few),
        given_labels=data.given_labels[:few],
        true_labels=None,
        test_images=None,
        test_labels=None,
        ids=data.ids[:few],
    )
    images = min(len(data), config.epoch_images or len(data))
    seconds = 0.0
    for epochs, trial in _phases(config):
        method = build_method(trial, sample, fabric)
        seconds += epochs * images / few * _best_of(3, partial(method.train_epoch, 0))
    if data.test_images is not None:
        seen = _first(data.test_images, few)
        look = _best_of(3, partial(method.logits, on_device(seen, fabric)))
        seconds += config.epochs * len(data.test_images) / len(seen) * look
    return seconds


def _first(images: Images, count: int) -> Images:
    """The first ones; files stay files, so that reading them counts."""
    return images.subset(range(min(count, len(images)))) if isinstance(images, ImageFiles) else images[:count]


def _phases(config: Config) -> list[tuple[int, Config]]:
    """How many epochs each part of a run has, and the same run with such an epoch as its first.

    Where contrast depends on the labels, it counts as if they were bad: then a run takes no longer than it was given.
    """
    if not isinstance(config, CoDivideConfig):
        return [(config.epochs, config)]
    plain = replace(config, warmup_epochs=0, finish_epochs=0, epoch_length="data", contrast_above=0.0)
    trained = config.epochs - config.warmup_epochs - config.finish_epochs
    waiting = (config.warmup_epochs + 1) // 2 if config.waits_with_contrast else 0
    parts: list[tuple[int, Config]] = [
        (waiting, replace(plain, warmup_epochs=1, warmup_contrast=False)),
        (config.warmup_epochs - waiting, replace(plain, warmup_epochs=1)),
        (trained, plain),
        (config.finish_epochs, replace(plain, finish_epochs=config.epochs)),
    ]
    return [(epochs, trial) for epochs, trial in parts if epochs]


def epochs_within(config: Config, expected: float, budget: float, most: int | None = None) -> int:
    """As many epochs as the budget has room for, if the config's own number takes `expected` seconds, and not above
    `most`; if even the fewest take longer, a warning says so."""
    fitting = int(config.epochs * budget / max(expected, 1e-9))
    epochs = min(max(SMALLEST, fitting), most or math.inf)
    if fitting < epochs:
        needed = duration(expected * epochs / config.epochs)
        log.warning("the time budget (%g s) is too short: even the smallest run takes about %s", budget, needed)
    return int(epochs)


def _best_of(times: int, work: Callable[[], object]) -> float:
    """Seconds; the first go, with compilation and first touches, does not count."""
    work()
    return min(_timed(work) for _ in range(times - 1))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    if torch.cuda.is_available():  # what a GPU has been asked for is not yet done
        torch.cuda.synchronize()
    return time.perf_counter() - began
