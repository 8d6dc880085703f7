"""The run folder: every file that a run leaves behind is written and read here, each in one step."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import itertools
import json
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from plremix.config import SCHEMA_VERSION, Config, read_config
from plremix.data.dataset import LabelledImages
from plremix.data.sheets import csv_text
from plremix.errors import InputError
from plremix.methods.base import Arrays
from plremix.networks import MODEL_FILE, Ensemble, model_bytes
from plremix.selection import Verdict
from plremix.training import snapshots
from plremix.training.files import write_bytes, write_text

WHERE_IT_RUNS = (
    "device",
    "devices",
    "nodes",
    "log",
    "data_dir",
    "cache_dir",
    "download",
)  # may change when a run goes on
SURE = 0.5  # more probable than all other classes together; below, a person should look at the proposal


class RunFolder:
    """Names and contents of the files of a run (the promises are in the README)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.noise = path / "noise.json"
        self.metrics = path / "metrics.jsonl"
        self.timing = path / "timing.jsonl"
        self.summary = path / "summary.json"
        self.labels = path / "labels.csv"
        self.corrected = path / "labels_corrected.csv"
        self.split = path / "split.npz"
        self.skipped = path / "skipped.csv"
        self.model = path / MODEL_FILE
        self.checkpoint = path / "checkpoint" / "last.pt"
        self.report = path / "report.html"
        self.snapshots = path / "snapshots"
        self.analysis = path / "analysis"

    def open(self, config: Config, resume: bool) -> None:
        """Make the folder for this config, or check that it is the folder of this config."""
        self.check_free(resume)
        if self.config.exists():
            self.check_same(config)
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            packages = ("plremix", "torch", "numpy", "scikit-learn")
            versions = {name: importlib.metadata.version(name) for name in packages}
            content = {"schema_version": SCHEMA_VERSION, "versions": versions, **config.as_dict()}
            write_text(self.config, json.dumps(content, indent=2) + "\n")
        except OSError as error:
            raise InputError(f"the folder {self.path} cannot be written: {error.strerror or error}") from error

    def leave_unless_begun(self) -> None:
        """A run that could not even begin leaves nothing that would stand in the way of the next one."""
        if self.checkpoint.exists() or self.summary.exists():
            return
        for place in (self.config, self.noise, self.skipped):
            place.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody else's files are in it
            self.path.rmdir()

    def check_free(self, resume: bool) -> None:
        """A folder that holds a run is not for another one, and files of somebody else's are not overwritten."""
        if self.config.exists() and not resume:
            raise InputError(
                f"{self.path} holds a run already; go on with it by --resume, choose another --out, or delete it"
            )
        ours = [place for place in vars(self).values() if place != self.path]
        if not self.config.exists() and (there := [place.name for place in ours if place.exists()]):
            raise InputError(
                f"{self.path} holds no run, but files that a run would overwrite ({', '.join(there)}); "
                "choose another --out"
            )

    def check_same(self, config: Config) -> None:
        """Going on needs the settings that the run began with."""
        if differing := differences(read_config(self.config).as_dict(), config.as_dict()):
            raise InputError(f"{self.path} belongs to a run with other settings: {differing}")

    def is_done(self) -> bool:
        """Whether the run has come to its end; a summary that cannot be read counts as none."""
        try:
            return bool(self.read_summary()["status"] == "done")
        except (OSError, ValueError, LookupError, TypeError):
            return False

    # --- written during the run ---

    def keep_noise(self, labels: list[int], resume: bool) -> None:
        """Write the labels that are trained on; a run that goes on must have the same."""
        text = json.dumps(labels) + "\n"
        if resume and self.noise.exists() and self.noise.read_bytes() != text.encode():
            raise InputError(f"the labels have changed since this run began: they differ from those in {self.noise}")
        write_text(self.noise, text)

    def write_history(self, history: list[dict[str, Any]], seconds: list[float]) -> None:
        """Both logs from the start, as far as the checkpoint goes; later lines are appended."""
        write_text(self.metrics, "".join(_line(epoch) for epoch in history))
        write_text(self.timing, "".join(_line({"epoch": k, "seconds": value}) for k, value in enumerate(seconds)))

    def append(self, metrics: dict[str, Any], seconds: float) -> None:
        with open(self.metrics, "a", encoding="utf-8") as file:
            file.write(_line(metrics))
        with open(self.timing, "a", encoding="utf-8") as file:
            file.write(_line({"epoch": metrics["epoch"], "seconds": seconds}))

    def write_snapshot(self, epoch: int, arrays: Arrays) -> None:
        """Numbered as people count: `epoch011.npz` is what the eleventh epoch began with."""
        self.snapshots.mkdir(exist_ok=True)
        _write_arrays(self.snapshots / f"epoch{epoch + 1:03d}.npz", arrays)

    def read_snapshots(self) -> dict[int, Arrays]:
        """By epoch, counted from 1; a file that cannot be read, or is another one, is left out."""
        found = {}
        for path in sorted(self.snapshots.glob("epoch*.npz")):
            with contextlib.suppress(OSError, ValueError, LookupError, zipfile.BadZipFile):
                archive = np.load(path, allow_pickle=False)
                found[int(path.stem.removeprefix("epoch"))] = {name: archive[name] for name in snapshots.ARRAYS}
        return dict(sorted(found.items()))

    # --- written at the end ---

    def write_summary(self, summary: dict[str, Any]) -> None:
        write_text(self.summary, json.dumps(summary, indent=2) + "\n")

    def read_summary(self) -> dict[str, Any]:
        return dict(json.loads(self.summary.read_text(encoding="utf-8")))

    def write_model(self, model: Ensemble) -> None:
        write_bytes(self.model, model_bytes(model))

    def write_split(self, details: Arrays) -> None:
        if details:
            _write_arrays(self.split, details)

    def write_skipped(self, data: LabelledImages) -> None:
        if data.skipped:
            write_text(self.skipped, csv_text(["id", "reason"], data.skipped))

    def write_labels(self, data: LabelledImages, verdict: Verdict, *, trusted: bool = True) -> None:
        """`labels.csv` and, from it, the proposed corrections: where networks are not to be trusted, all for review."""
        names = data.classes
        given = [names[label] for label in data.given_labels.tolist()]
        predicted = [names[label] for label in verdict.predicted.tolist()]
        rows = zip(data.ids, given, predicted, *(column.tolist() for column in _columns(verdict)), strict=True)
        header = ["id", "given_label", "predicted_label", "is_label_issue", "label_score", "confidence"]
        write_text(self.labels, csv_text(header, rows))

        corrected = verdict.corrected(data.given_labels.numpy())
        sure = (verdict.confidence >= SURE) & (corrected != data.given_labels.numpy()) & trusted
        action = np.where(verdict.is_label_issue, np.where(sure, "relabel", "review"), "keep").tolist()
        header = ["id", "given_label", "corrected_label", "action"]
        proposed = [names[label] for label in corrected.tolist()]
        write_text(self.corrected, csv_text(header, zip(data.ids, given, proposed, action, strict=True)))


def free_folder(path: Path) -> Path:
    """`path`, or where something is in it the first of `path`-2, `path`-3, ... where nothing is."""
    return next(place for place in _numbered(path) if not (place.is_dir() and any(place.iterdir())))


def last_folder(path: Path) -> Path:
    """The last of those that `free_folder` gave out; `path` itself where there is none."""
    return [path, *itertools.takewhile(Path.is_dir, _numbered(path))][-1]


def _numbered(path: Path) -> Iterator[Path]:
    return itertools.chain([path], (path.with_name(f"{path.name}-{number}") for number in itertools.count(2)))


def differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The settings that differ, for people; where a run runs may change."""
    listed = [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in sorted(set(before) | set(now))
        if before.get(name) != now.get(name) and name not in WHERE_IT_RUNS
    ]
    return "; ".join(listed)


def _columns(verdict: Verdict) -> tuple[np.ndarray, ...]:
    return verdict.is_label_issue, verdict.label_score, verdict.confidence


def _write_arrays(path: Path, arrays: Arrays) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_bytes(path, buffer.getvalue())


def _line(values: dict[str, Any]) -> str:
    """JSON has no word for what is not a number: null."""
    finite = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }
    return json.dumps(finite, allow_nan=False) + "\n"
