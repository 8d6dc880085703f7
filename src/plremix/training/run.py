"""The loop: epochs, evaluation, checkpoints, logs. What happens inside an epoch is the method's affair."""

from __future__ import annotations

import builtins
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from torch.multiprocessing.spawn import ProcessRaisedException

from plremix.config import Config, config_class
from plremix.data.dataset import LabelledImages
from plremix.data.files import ImageFiles, warn_of_left_out
from plremix.doctor import ONE_CLASS, Facts, examine
from plremix.errors import InputError
from plremix.methods.base import Method, Metrics
from plremix.methods.pretraining import pretrain
from plremix.networks import Ensemble
from plremix.report import write_report
from plremix.training import evaluation, snapshots
from plremix.training.checkpoint import load_checkpoint, put_back, save_checkpoint
from plremix.training.distribution import make_fabric, started_outside
from plremix.training.folder import RunFolder, differences
from plremix.training.loggers import check_logger, make_logger
from plremix.training.progress import Silent
from plremix.training.setup import build_method, load_data, on_device

log = logging.getLogger("plremix")

UNNAMED = 0.02  # share of labels that are probably wrong but not sure enough to be flagged, from which on it is told


def train(
    config: Config,
    out: Path | str,
    *,
    resume: bool = False,
    progress: type[Silent] = Silent,
    data: LabelledImages | None = None,
) -> dict[str, Any]:
    """Run a config from start to end, or on from where it stopped; returns what `summary.json` holds.

    `data` is what `load_data(config)` gives, for who has it already.
    """
    fabric = make_fabric(config)
    check_logger(config)
    out = Path(out)
    folder = RunFolder(out)
    if resume and folder.is_done():
        folder.check_same(config)
        log.info("%s is finished already", out)
        return folder.read_summary()
    run = partial(_run, config=config, out=out, resume=resume, progress=progress)
    new = not folder.config.exists()
    try:
        if started_outside(config):
            fabric.launch()
            if fabric.is_global_zero:
                _prepare(config, folder, resume)
            fabric.barrier()
            run(fabric)
            fabric.barrier()
        elif config.devices == 1:
            run(fabric, data=_prepare(config, folder, resume, data))
        else:
            _prepare(config, folder, resume)
            _launch(fabric, run)
    except Exception:
        if new and folder.config.exists() and fabric.is_global_zero:
            folder.leave_unless_begun()
        raise
    return folder.read_summary()


def _prepare(config: Config, folder: RunFolder, resume: bool, data: LabelledImages | None = None) -> LabelledImages:
    """All that can be wrong is told here, before the first step and by one process."""
    data = load_data(config) if data is None else data
    folder.open(config, resume)
    folder.keep_noise(data.given_labels.tolist(), resume)
    folder.write_skipped(data)
    warn_of_left_out(data.skipped, f", listed in {folder.skipped}")
    if resume and folder.checkpoint.exists():
        saved = load_checkpoint(folder.checkpoint)["config"]
        unsaid = config_class(config.method)(method=config.method).as_dict()  # what earlier versions had no flag for
        if differing := differences({**unsaid, **saved}, config.as_dict()):
            raise InputError(f"{folder.checkpoint} belongs to a run with other settings: {differing}")
    return data


def _launch(fabric: Fabric, run: Callable[[Fabric], Any]) -> None:
    """Start the processes; what a person can correct comes back from them as such and not as a traceback."""
    try:
        fabric.launch(run)
    except ProcessRaisedException as error:
        kind, _, message = str(error).strip().splitlines()[-1].partition(": ")
        name = kind.rpartition(".")[2]
        known = getattr(builtins, name, None)
        if name == "InputError" or (isinstance(known, type) and issubclass(known, OSError)):
            raise InputError(message) from error
        if name in ("RuntimeError", "MemoryError", "OutOfMemoryError"):  # perhaps too little memory: the caller looks
            raise RuntimeError(message) from error
        raise


def _run(
    fabric: Fabric, config: Config, out: Path, resume: bool, progress: type[Silent], data: LabelledImages | None = None
) -> None:
    """One process of a run; the first one writes the files."""
    if fabric.world_size > 1 and fabric.device.type == "cpu":
        torch.set_num_threads(max(1, torch.get_num_threads() // config.devices))
    first = fabric.is_global_zero
    _Run(fabric, config, RunFolder(out), data or load_data(config), progress() if first else Silent()).go(resume)


def facts_of(data: LabelledImages) -> Facts:
    """What the doctor wants to know of the data."""
    largest = float(torch.bincount(data.given_labels).max() / len(data))
    return Facts(images=len(data), classes=len(data.classes), largest_given=largest)


class _Run:
    def __init__(
        self, fabric: Fabric, config: Config, folder: RunFolder, data: LabelledImages, progress: Silent
    ) -> None:
        self.fabric, self.config, self.folder, self.data, self.progress = fabric, config, folder, data, progress
        self.method: Method = build_method(config, data, fabric)
        self.method.on_step = progress.step
        self.history: list[dict[str, Any]] = []
        self.seconds: list[float] = []
        self.pretrain_seconds, self.pretrained = 0.0, 0  # epochs
        self.first = fabric.is_global_zero

    def go(self, resume: bool) -> None:
        if resume and self.folder.checkpoint.exists():
            self._restore()
        costs = [self.config.epoch_cost(epoch) for epoch in range(self.config.epochs)]
        self.logger = make_logger(replace(self.config, log=self.config.log if self.first else "none"), self.folder.path)
        status = "failed"
        try:
            if self.first:
                self.folder.write_history(self.history, self.seconds)
            self.progress.start(self.config.recipe, costs, len(self.history))
            if self.config.pretrain != "none" and not self.history:
                self._pretrain()
            for epoch in range(len(self.history), self.config.epochs):
                self._epoch(epoch)
            self._finish()
            status = "done"
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        finally:
            self.progress.stop()
            self.logger.close()
            if self.first and status != "done":
                self.folder.write_summary(self._summary(status))

    def _epoch(self, epoch: int) -> None:
        began = time.perf_counter()
        metrics: dict[str, Any] = {"epoch": epoch, **self.method.train_epoch(epoch), **self._evaluate(epoch)}
        self.history.append(metrics)
        self.seconds.append(round(time.perf_counter() - began, 4))
        if self.first:
            self.folder.append(metrics, self.seconds[-1])
            self._keep_snapshot(epoch)
            self._save()
        self.progress.epoch(metrics)
        self.logger.log(metrics)

    def _keep_snapshot(self, epoch: int) -> None:
        """What the split saw, for the figures of `plremix analyze`; before the checkpoint, so that none is missed."""
        pairs, split = self.method.loss_pairs(), self.method.clean_samples()
        if pairs is None or split is None or not snapshots.is_kept(self.config, epoch):
            return
        right = evaluation.is_right(self.data.given_labels, self.data.true_labels)
        self.folder.write_snapshot(epoch, snapshots.of_losses(pairs[0], split[0][0], right))

    def _pretrain(self) -> None:
        """Each of its epochs ends with a checkpoint, so that a run that goes on does not do it again."""
        for epoch in range(self.pretrained, self.config.pretrain_epochs):
            began = time.perf_counter()
            loss = pretrain(self.method, epoch)
            self.pretrain_seconds = round(self.pretrain_seconds + time.perf_counter() - began, 4)
            self.pretrained = epoch + 1
            if self.first:
                self._save()
            self.fabric.barrier()
            self.progress.pretrain(epoch, loss)

    def _save(self) -> None:
        save_checkpoint(
            self.folder.checkpoint,
            {
                "config": self.config.as_dict(),
                "history": self.history,
                "seconds": self.seconds,
                "pretrain_seconds": self.pretrain_seconds,
                "pretrained": self.pretrained,
                "precision": self.fabric.strategy.precision.state_dict(),
                "active_shortcuts": self.method.networks[0].architecture.active_shortcuts,
                "method": self.method.state_dict(),
            },
        )

    def _restore(self) -> None:
        saved = load_checkpoint(self.folder.checkpoint)
        put_back(self.method, saved, self.folder.checkpoint)
        try:
            self.history, self.seconds = saved["history"], saved["seconds"]
            self.pretrain_seconds, self.pretrained = saved["pretrain_seconds"], saved["pretrained"]
            self.fabric.strategy.precision.load_state_dict(saved["precision"])
        except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"the checkpoint {self.folder.checkpoint} does not fit this run: {reason}") from error

    def _evaluate(self, epoch: int) -> Metrics:
        """Accuracy on every set that there is for it, and split and negatives against the truth where that is known."""
        metrics: Metrics = {}
        for name, (images, labels) in self.data.measured_on(last=epoch + 1 == self.config.epochs).items():
            logits = self.method.logits(on_device(images, self.fabric))
            metrics.update(evaluation.accuracies(logits, labels, name))
            metrics.setdefault("largest_predicted", evaluation.largest_predicted(logits))
        split = self.method.clean_samples()
        right = evaluation.is_right(self.data.given_labels, self.data.true_labels)
        if split is not None and right is not None:
            metrics.update(evaluation.split_quality(*split, right))
        sets = self.method.negative_sets(epoch)
        metrics.update(evaluation.negative_quality(sets, len(self.data.classes), self.data.true_labels))
        return metrics

    def _finish(self) -> None:
        """After the last epoch: the verdict on every label, the model, the report."""
        verdict, details = self.method.verdict(), self.method.split_details()  # all processes take part
        if not self.first:
            return
        judged = float(verdict.is_label_issue.mean())
        rate = self.method.noise_rate_estimate(judged)
        verdict = verdict.at_strictness(self.config.strictness)
        found: dict[str, Any] = {}
        mean, std = self.data.statistics()
        networks = [network.cpu() for network in self.method.networks]
        resize = self.config.resize if isinstance(self.data.images, ImageFiles) else 0
        self.folder.write_model(Ensemble(networks, self.data.classes, self.data.side, mean, std, resize))
        self.folder.write_split(details)
        if self.data.true_labels is not None:
            wrong = (self.data.given_labels != self.data.true_labels).numpy()
            corrected = verdict.corrected(self.data.given_labels.numpy())
            found["corrected_accuracy"] = float((corrected == self.data.true_labels.numpy()).mean())
            found["detection"] = evaluation.detection(verdict.label_score, verdict.is_label_issue, wrong)
        found["images"], found["flagged"] = len(self.data), int(verdict.is_label_issue.sum())
        largest = float(np.bincount(verdict.predicted).max() / len(self.data))
        doubts = getattr(self.config, "benefit_of_doubt", False)  # others name whom they speak against
        found["unnamed"] = rate - judged if doubts and rate - judged >= UNNAMED else 0.0
        found["contrasted"] = any("loss_contrast" in line for line in self.history)
        sure = min(rate, judged)  # early networks know little, late ones may contradict too many: the doctor asks both
        summary = {**self._summary("done", largest, sure), "noise_rate_estimate": rate, **found}
        collapsed = largest >= ONE_CLASS > facts_of(self.data).largest_given
        self.folder.write_labels(self.data, verdict, trusted=not collapsed)
        write_report(self.folder.report, self.config.as_dict(), summary, self.history, self.data, verdict, details)
        self.folder.write_summary(summary)

    def _summary(
        self, status: str, largest_predicted: float | None = None, noise_rate_estimate: float | None = None
    ) -> dict[str, Any]:
        facts = facts_of(self.data)._replace(
            largest_predicted=largest_predicted, noise_rate_estimate=noise_rate_estimate
        )
        right = evaluation.is_right(self.data.given_labels, self.data.true_labels)
        return {
            "status": status,
            "method": self.config.method,
            "recipe": self.config.recipe,
            "seed": self.config.seed,
            "epochs_done": len(self.history),
            "best": evaluation.best_accuracy(self.history),
            "last": evaluation.last_accuracy(self.history),
            "final": evaluation.final_accuracy(self.history),
            "seconds": round(self.pretrain_seconds + sum(self.seconds), 3),
            "noise_rate_estimate": noise_rate_estimate,
            **({} if right is None else {"noise_rate": float((~right).double().mean())}),
            "findings": [finding._asdict() for finding in examine(self.config.as_dict(), self.history, facts)],
        }
