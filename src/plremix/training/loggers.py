"""Metrics for other eyes: TensorBoard event files in the run folder, or Weights & Biases; both are extras."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Protocol

from plremix.config import Config
from plremix.errors import InputError


class Logger(Protocol):
    """Told every epoch's metrics once."""

    def log(self, metrics: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


class _Nowhere:
    def log(self, metrics: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(folder / "tensorboard")  # type: ignore[no-untyped-call]

    def log(self, metrics: dict[str, Any]) -> None:
        for name, value in _numbers(metrics).items():
            self.writer.add_scalar(name, value, metrics["epoch"])
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class _WeightsAndBiases:
    def __init__(self, config: Config, folder: Path) -> None:
        wandb: Any = importlib.import_module("wandb")
        name = f"{config.recipe}-{config.method}-seed{config.seed}"
        self.run = wandb.init(project="plremix", name=name, dir=folder, config=config.as_dict())

    def log(self, metrics: dict[str, Any]) -> None:
        self.run.log(_numbers(metrics), step=metrics["epoch"])

    def close(self) -> None:
        self.run.finish()


def check_logger(config: Config) -> None:
    """Tell before the run what would be missing in it."""
    if config.log == "none":
        return
    try:
        importlib.import_module(config.log)
    except ImportError:
        raise InputError(
            f"--log {config.log} needs the package {config.log}: pip install 'plremix[{config.log}]'"
        ) from None


def make_logger(config: Config, folder: Path) -> Logger:
    """The logger that `--log` asks for."""
    if config.log == "tensorboard":
        return _TensorBoard(folder)
    if config.log == "wandb":
        return _WeightsAndBiases(config, folder)
    return _Nowhere()


def _numbers(metrics: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if isinstance(value, int | float) and name != "epoch"}
