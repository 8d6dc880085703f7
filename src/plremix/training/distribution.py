"""Where a run runs: devices, processes and precision, through Lightning Fabric; refused here if they cannot work."""

from __future__ import annotations

import inspect
import logging
import os

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.utilities.rank_zero import rank_zero_only
from torch.nn.parallel import DistributedDataParallel

from plremix.config import Config
from plremix.errors import InputError

# Here and not in a function: spawned processes say hello before any function of ours runs in them.
logging.getLogger("lightning_fabric").setLevel(logging.WARNING)


LAUNCHED = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "SLURM_NTASKS", "LSB_JOBID", "OMPI_COMM_WORLD_SIZE")  # one is set


def make_fabric(config: Config) -> Fabric:
    """The engine for a config, or an error that says what this machine lacks."""
    accelerator = _accelerator(config)
    if config.precision != "32-true" and accelerator == "cpu":
        raise InputError(f"--precision {config.precision} needs a GPU; on a CPU use --precision 32-true")
    if config.precision == "bf16-mixed" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise InputError("--precision bf16-mixed: this GPU has no bfloat16; use --precision 16-mixed or 32-true")
    if config.compile and accelerator == "cpu":
        raise InputError("--compile needs a GPU: on a CPU it costs more than it gives")
    if config.nodes > 1 and not any(name in os.environ for name in LAUNCHED):
        raise InputError(
            f"--nodes {config.nodes}: start the same command on each machine by torchrun or the cluster's launcher, "
            "which tell the machines of each other"
        )
    processes = config.devices * config.nodes
    strategy = "auto" if processes == 1 else _data_parallel(config)
    return Fabric(
        accelerator=accelerator,
        devices=config.devices,
        num_nodes=config.nodes,
        precision=config.precision,
        strategy=strategy,
    )


def started_outside(config: Config) -> bool:
    """Whether torchrun, a cluster manager or another machine has a hand in the processes; else they are our own."""
    return config.nodes > 1 or "TORCHELASTIC_RUN_ID" in os.environ


def is_first_process() -> bool:
    """Whether this process may speak: of several that were started from outside, only the first."""
    return int(getattr(rank_zero_only, "rank", 0) or 0) == 0


def _accelerator(config: Config) -> str:
    available = torch.cuda.device_count()
    if config.device == "cuda" and not available:
        raise InputError("--device cuda: no GPU was found; use --device cpu")
    if config.device == "cpu" or not available:
        return "cpu"
    if config.devices > available:
        raise InputError(f"--devices {config.devices}: only {available} GPUs were found")
    return "cuda"


def _data_parallel(config: Config) -> DDPStrategy:
    """Own processes on one machine; on several, those that torchrun or the cluster manager started.

    Batch-norm buffers are not broadcast at each pass: two passes before one backward would overwrite what the first
    one's backward needs. Learners level them once an epoch.
    """
    known = inspect.signature(DistributedDataParallel.__init__).parameters
    broadcast: str = (
        "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    )  # newer, older torch
    return DDPStrategy(start_method="popen" if started_outside(config) else "spawn", **{broadcast: False})  # type: ignore[arg-type]
