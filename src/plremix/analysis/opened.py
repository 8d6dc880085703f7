"""A run opened for looking at: its settings, its log, its data, and its method as the last checkpoint left it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plremix.config import Config, read_config
from plremix.data.dataset import LabelledImages
from plremix.errors import InputError
from plremix.methods.base import Method
from plremix.training.checkpoint import load_checkpoint, put_back
from plremix.training.distribution import make_fabric
from plremix.training.folder import RunFolder
from plremix.training.setup import build_method, load_data


class OpenedRun:
    """Nothing is read before it is asked for. A run may be finished, interrupted, or still going on."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        if not self.folder.config.is_file():
            raise InputError(f"{path} is not a run folder: it has no config.json")
        # One process is enough to look at it, wherever it was trained.
        self.config: Config = replace(read_config(self.folder.config), devices=1, nodes=1, device="auto")

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """The finished epochs; a line that is being written just now is left out."""
        lines = []
        if self.folder.metrics.exists():
            for text in self.folder.metrics.read_text(encoding="utf-8").splitlines():
                try:
                    line = json.loads(text)
                except ValueError:
                    break
                if not isinstance(line, dict):
                    break
                lines.append({name: math.nan if value is None else value for name, value in line.items()})
        return lines

    @property
    def has_checkpoint(self) -> bool:
        return self.folder.checkpoint.is_file()

    @cached_property
    def data(self) -> LabelledImages:
        """The data as it was trained on; that it still is the same is checked."""
        data = load_data(self.config)
        if self.folder.noise.exists() and self._noise() != data.given_labels.tolist():
            raise InputError(f"the labels have changed since this run began: they differ from {self.folder.noise}")
        return data

    def _noise(self) -> object:
        try:
            return json.loads(self.folder.noise.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{self.folder.noise} is damaged: {error}") from error

    @cached_property
    def is_wrong(self) -> NDArray[np.bool_] | None:
        """Which given labels are wrong (N,), where the truth is known."""
        if self.data.true_labels is None:
            return None
        wrong: NDArray[np.bool_] = (self.data.true_labels != self.data.given_labels).numpy()
        return wrong

    @cached_property
    def _checkpoint(self) -> dict[str, Any]:
        return load_checkpoint(self.folder.checkpoint)

    @property
    def epochs_done(self) -> int:
        """At the checkpoint; also the number of the epoch that would come next."""
        return len(self._checkpoint["history"])

    def method(self) -> Method:
        """A fresh one each time, with the checkpoint's weights: a figure may do with it what it likes."""
        # The checkpoint has the weights; what they once started from is not needed.
        here = replace(self.config, precision="32-true", compile=False, weights="", download=False)
        shortcuts = self._checkpoint.get("active_shortcuts", False)  # not in older files
        method = build_method(here, self.data, make_fabric(here), active_shortcuts=shortcuts)
        put_back(method, self._checkpoint, self.folder.checkpoint)
        return method
