"""The loop around a method: evaluation, checkpoints, progress, devices and the run folder."""

from plremix.training.run import train

__all__ = ["train"]
