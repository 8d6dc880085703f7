"""A loss over gathered rows has, after averaging over processes, the gradient of the loss over the whole batch; and
after an epoch all processes have the same state, whatever the method."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from helpers import SMALL, blobs, same_state
from lightning_fabric import Fabric

from plremix.config import config_class
from plremix.data.sources import arrays
from plremix.losses import contrastive_loss
from plremix.methods.gathering import gather_rows, share_statistics
from plremix.training.distribution import make_fabric
from plremix.training.setup import build_method

QUEUE = {"contrast": "plr-queue", "queue_size": 20}
RUNS = {
    "elr-plus": QUEUE,
    "jocor": {"contrast": "plr", "forget_epochs": 1},
    "unicon": {"split": "class-balanced", "contrast": "simclr", "contrast_side": "noisy", "noisy_batch": "by-share"},
    "plremix": QUEUE,
}


def rows() -> torch.Tensor:
    return torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def work(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    scale = torch.ones(4, dtype=torch.float64, requires_grad=True)  # stands for a network's weights
    loss = contrastive_loss(gather_rows(rows()[rank * 3 : rank * 3 + 3] * scale))
    loss.backward()
    dist.all_reduce(scale.grad)
    norm = torch.nn.BatchNorm2d(2)
    norm(torch.full((3, 2, 1, 1), 10.0 * rank + 10))
    share_statistics(norm)
    if rank == 1:
        torch.save(norm.state_dict(), f"{folder}/norm.pt")
    if rank == 0:
        torch.save({"loss": loss.detach(), "gradient": scale.grad / 2}, f"{folder}/result.pt")
    dist.destroy_process_group()


def test_two_processes_give_the_gradient_of_one(tmp_path: Path) -> None:
    mp.start_processes(work, (str(tmp_path),), nprocs=2, start_method="spawn")
    result = torch.load(tmp_path / "result.pt", weights_only=True)
    scale = torch.ones(4, dtype=torch.float64, requires_grad=True)
    loss = contrastive_loss(rows() * scale)
    loss.backward()
    assert torch.allclose(result["loss"], loss)
    assert torch.allclose(result["gradient"], scale.grad)
    norm = torch.load(tmp_path / "norm.pt", weights_only=True)
    assert norm["running_mean"].tolist() == [1.0, 1.0], "a tenth of what the first process saw"


def test_one_process_gets_its_own_rows_back() -> None:
    mine = rows()
    assert gather_rows(mine) is mine


def train(fabric: Fabric, folder: str) -> None:
    torch.set_num_threads(1)
    data, states = arrays.from_arrays(blobs()), {}
    for name, settings in RUNS.items():
        kind = config_class(name)
        known = {**SMALL, "method": name, "devices": 2, **settings}
        method = build_method(kind(**{k: v for k, v in known.items() if k in kind.__dataclass_fields__}), data, fabric)
        for epoch in range(2):
            method.train_epoch(epoch)
        states[name] = method.state_dict()
        if name == "elr-plus":  # slow copies learn in training mode; their statistics are each process's, and not read
            for follower in states[name]["followers"]:
                for statistic in [key for key in follower if "running" in key]:
                    del follower[statistic]
    torch.save(states, f"{folder}/{fabric.global_rank}.pt")


def test_two_processes_end_an_epoch_with_the_same_state(tmp_path: Path) -> None:
    config = config_class("plremix")(**{**SMALL, "devices": 2})
    make_fabric(config).launch(train, str(tmp_path))
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1))
    for name in RUNS:
        assert same_state(first[name], second[name]), name
