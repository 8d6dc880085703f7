"""A loss over gathered rows has, after averaging over processes, the gradient of the loss over the whole batch; and
after an epoch all processes have the same statistics."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from plremix.losses import contrastive_loss
from plremix.methods.gathering import gather_rows, share_statistics


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
