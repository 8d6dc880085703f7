"""How a run shows that it is alive: a bar with accuracy and time left on a terminal, a line an epoch elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn


class Silent:
    """Says nothing; the shape that the loop talks to."""

    def start(self, title: str, costs: Sequence[float], done: int) -> None:
        """A run begins, or goes on after `done` epochs; what each epoch costs, in any unit."""

    def pretrain(self, epoch: int, loss: float) -> None:
        """An epoch of pre-training is over."""

    def step(self, share: float) -> None:
        """This share of the running epoch is done."""

    def epoch(self, metrics: dict[str, Any]) -> None:
        """An epoch is over."""

    def stop(self) -> None:
        """No more will come."""


class Lines(Silent):
    """One plain line an epoch, for logs and pipes."""

    def start(self, title: str, costs: Sequence[float], done: int) -> None:
        self._costs, self._first, self._began = costs, done, time.monotonic()
        print(f"{title}: epoch {done} of {len(costs)}", flush=True)

    def pretrain(self, epoch: int, loss: float) -> None:
        print(f"pre-training epoch {epoch + 1}  loss {loss:.3f}", flush=True)
        self._began = time.monotonic()  # the time left is told by the epochs of the run itself

    def epoch(self, metrics: dict[str, Any]) -> None:
        done = metrics["epoch"] + 1
        left = (time.monotonic() - self._began) / sum(self._costs[self._first : done]) * sum(self._costs[done:])
        print(f"epoch {done}/{len(self._costs)}  {describe(metrics)}  {_clock(left)} left", flush=True)


class Bar(Silent):
    """A bar that fills up over the whole run."""

    def start(self, title: str, costs: Sequence[float], done: int) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._costs, self._done = costs, done
        self._task = self._bar.add_task(title, total=sum(costs), note="")
        self._bar.update(self._task, completed=sum(costs[:done]))
        self._bar.start()

    def pretrain(self, epoch: int, loss: float) -> None:
        self._bar.update(self._task, note=f"pre-training epoch {epoch + 1}  loss {loss:.3f}")

    def step(self, share: float) -> None:
        running = sum(self._costs[self._done : self._done + 1])
        self._bar.update(self._task, completed=sum(self._costs[: self._done]) + share * running)

    def epoch(self, metrics: dict[str, Any]) -> None:
        self._done = metrics["epoch"] + 1
        self._bar.update(
            self._task, completed=sum(self._costs[: self._done]), note=f"epoch {self._done}  {describe(metrics)}"
        )

    def stop(self) -> None:
        if hasattr(self, "_bar"):
            self._bar.stop()


def describe(metrics: dict[str, Any]) -> str:
    """What a person wants to see of an epoch."""
    parts = [str(metrics["phase"])]
    measured = [name for name in metrics if name.endswith("_accuracy")]
    parts += [f"{name.removesuffix('_accuracy')} {metrics[name]:.1%}" for name in measured]
    if "clean_count" in metrics:
        parts.append(f"clean {metrics['clean_count']}")
    return "  ".join(parts)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
