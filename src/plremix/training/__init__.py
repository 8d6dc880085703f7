"""The loop around a method: evaluation, checkpoints, progress, devices and the run folder."""

from plremix.training.distribution import is_first_process
from plremix.training.run import train

__all__ = ["is_first_process", "train"]
