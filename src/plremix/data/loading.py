"""Which samples a step takes, and their views. A split or an epoch's order is an index tensor, never a copy of data.

Images are either one uint8 tensor on the device, or files that workers decode a few steps ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plremix.data.augment import VIEWS, View, normalise
from plremix.data.files import ImageFiles, Images

AHEAD = 4  # batches of files under way while the networks are at work


def passes(indices: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` draws from `indices`: shuffled, and shuffled again as often as it takes; empty stays empty."""
    if not len(indices):
        return indices
    rounds = -(-count // len(indices))
    order = torch.cat([torch.randperm(len(indices), generator=generator) for _ in range(rounds)])
    return indices[order[:count]]


def draws(indices: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` draws from `indices` with replacement; empty stays empty."""
    if not len(indices):
        return indices
    return indices[torch.randint(len(indices), (count,), generator=generator)]


def class_wise(labels: Tensor, classes: int, count: int, generator: torch.Generator) -> Tensor:
    """Up to `count` rows, sorted, as many of every class: at most count / C of each, rounded up (published code)."""
    order = torch.randperm(len(labels), generator=generator)
    grouped = labels[order].argsort(stable=True)  # places in `order`, class by class
    sizes = labels.bincount(minlength=classes)
    place = torch.arange(len(labels)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    chosen = grouped[place < -(-count // classes)].sort().values[:count]
    return order[chosen].sort().values


def batches(order: Tensor, size: int, *, keep_last: bool = False) -> Iterator[Tensor]:
    """Batches of `size`; a set smaller than one batch comes as a single one, so that an epoch is never empty.

    What is left over at the end is dropped, or kept as a smaller batch; a single sample left over joins the batch
    before it, since batch norm cannot learn from one.
    """
    size = min(size, len(order))
    starts = list(range(0, len(order) - size + 1, size)) if size else []
    for start in starts:
        rest = len(order) - (start + size)
        if keep_last and start == starts[-1] and rest == 1:
            yield order[start:]
            return
        yield order[start : start + size]
    if keep_last and size and len(order) % size:
        yield order[starts[-1] + size :]


@dataclass(frozen=True)
class Loader:
    """How batches of images become views, ready for a network.

    `rank` of `ranks` processes: all is drawn for the whole batch, of which each process takes every ranks-th row.
    """

    images: Images  # uint8 (N, c, H, W)
    mean: Tensor  # (c,)
    std: Tensor  # (c,)
    rank: int = 0
    ranks: int = 1

    def __len__(self) -> int:
        return len(self.images)

    def share(self, indices: Tensor) -> Tensor:
        """This process's rows of a batch; a remainder that cannot be shared out evenly is dropped."""
        return indices[: len(indices) // self.ranks * self.ranks][self.rank :: self.ranks]

    def for_all(self, count: int) -> int:
        """`count` samples or a few more, so that every process gets as many."""
        return -(-count // self.ranks) * self.ranks

    def epoch(
        self, steps: Iterable[Tensor], views: Sequence[View], draws: Callable[[int], torch.Generator]
    ) -> Iterator[list[Tensor]]:
        """For each step's samples (a share), their views as floats (n, c, H, W); `draws(step)` is its generator."""
        return self._ahead(self._begin(mine, views, draws(step)) for step, mine in enumerate(steps))

    def plain(self, images: Images, rows: Tensor | range, size: int) -> Iterator[Tensor]:
        """`images[rows]` as they are, `size` at a time."""
        other = Loader(images, self.mean, self.std)
        chunks = (torch.as_tensor(rows[start : start + size]) for start in range(0, len(rows), size))
        begun = (other._begin(chunk, [VIEWS["plain"]], torch.Generator()) for chunk in chunks)
        return (views[0] for views in other._ahead(begun))

    def _ahead(self, begun: Iterator[Callable[[], list[Tensor]]]) -> Iterator[list[Tensor]]:
        """Finish the work in order, with a few batches of files under way."""
        waiting: deque[Callable[[], list[Tensor]]] = deque()
        most = AHEAD if isinstance(self.images, ImageFiles) else 0
        for finish in begun:
            waiting.append(finish)
            if len(waiting) > most:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()

    def _begin(self, mine: Tensor, views: Sequence[View], generator: torch.Generator) -> Callable[[], list[Tensor]]:
        """Draw; files start to be decoded. The call that is returned gives the views."""
        side = (self.images.shape[2], self.images.shape[3])
        drawn = [view.draw(len(mine), side, generator, rank=self.rank, ranks=self.ranks) for view in views]
        if isinstance(self.images, ImageFiles):
            pixels = self.images.cut(mine, [(view.cut, own[0]) for view, own in zip(views, drawn, strict=True)])
        else:
            images = self.images

            def pixels() -> list[Tensor]:
                return [view.cut.take(images, mine, own[0]) for view, own in zip(views, drawn, strict=True)]

        def finish() -> list[Tensor]:
            device = self.mean.device
            done = [view.finish(cut.to(device), own) for view, cut, own in zip(views, pixels(), drawn, strict=True)]
            return [normalise(view, self.mean, self.std) for view in done]

        return finish
