"""How long a run will take here, from a few real passes; and how many epochs fit into a time."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import torch

from plremix.config import CoDivideConfig, Config
from plremix.data.dataset import LabelledImages
from plremix.errors import InputError
from plremix.methods.base import Method
from plremix.training.distribution import make_fabric
from plremix.training.setup import build_method

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SMALLEST = 3  # epochs


def parse_time(text: str) -> float:
    """`90s`, `30m`, `1h30m`, `2d` in seconds; a bare number is minutes."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return 60 * float(text)
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise InputError(f"--time-budget must look like 90s, 30m, 1h30m or 2d, got {text!r}")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def expected_seconds(config: Config, data: LabelledImages) -> float:
    """The whole run, from the time of a real step of a method that is thrown away afterwards."""
    fabric = make_fabric(replace(config, devices=1, nodes=1))
    few = min(len(data), 2 * config.batch_size)
    sample = replace(
        data,
        images=data.images[torch.arange(few)],
        given_labels=data.given_labels[:few],
        true_labels=None,
        test_images=None,
        test_labels=None,
        ids=data.ids[:few],
    )
    # An epoch of the sample without warm-up is the shortest real thing: scoring, splitting, and a few steps.
    trial = replace(config, warmup_epochs=0, epoch_length="data") if isinstance(config, CoDivideConfig) else config
    method = build_method(trial, sample, fabric)
    _timed(method)  # compilation and first touches are not counted
    step = min(_timed(method) for _ in range(2)) / max(1, few // config.batch_size)
    images = min(len(data), config.epoch_images or len(data))
    return step * max(1, images // config.batch_size) * config.epochs


def epochs_within(config: Config, expected: float, budget: float) -> int:
    """As many epochs as the budget has room for, if the config's own number takes `expected` seconds."""
    return max(SMALLEST, int(config.epochs * budget / max(expected, 1e-9)))


def _timed(method: Method) -> float:
    began = time.perf_counter()
    method.train_epoch(0)
    return time.perf_counter() - began
