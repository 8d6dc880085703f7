"""Rows of all processes in each process, so that a loss over pairs sees the whole batch and not a share of it."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def gather_rows(mine: Tensor) -> Tensor:
    """The rows of all processes, first process first; of one process, just its own.

    Every process is expected to compute the same loss from them. The gradient that comes back is the one that, after
    the processes' gradients are averaged, equals the gradient of that loss.
    """
    if not _several():
        return mine
    gathered: Tensor = _GatherRows.apply(mine)  # type: ignore[no-untyped-call]
    return gathered


def same_everywhere(decided: Tensor) -> Tensor:
    """What the first process decided. Sums on a GPU come in no fixed order: two processes might differ in a sample at
    the border, then in the number of steps, and wait for each other for ever."""
    if _several():
        number = decided.to(torch.uint8 if decided.dtype == torch.bool else decided.dtype, copy=True).contiguous()
        dist.broadcast(number, src=0)
        return number.to(decided.dtype)
    return decided


def share_statistics(network: nn.Module) -> None:
    """Batch-norm statistics were gathered on each process's own share: all go on with the first one's."""
    if _several():
        for buffer in network.buffers():
            dist.broadcast(buffer, src=0)


def _several() -> bool:
    return dist.is_available() and dist.is_initialized()


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mine: Tensor) -> Tensor:
        ctx.rows = len(mine)
        parts = [torch.empty_like(mine, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, mine.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        start = dist.get_rank() * ctx.rows
        return gradient[start : start + ctx.rows] * dist.get_world_size()
