"""Training: the loop, and around it evaluation, checkpoints, the run folder, progress and distribution."""

from plremix.training.distribution import is_first_process
from plremix.training.exporting import check_target, export_tree
from plremix.training.run import train
from plremix.training.setup import has_gpu, load_data, look_at

__all__ = ["check_target", "export_tree", "has_gpu", "is_first_process", "load_data", "look_at", "train"]
