"""A learner: one network with its optimizer, set up by Fabric for the device and the processes of the run."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor

from plremix.config import Config
from plremix.data.files import Images
from plremix.data.loading import Loader
from plremix.methods.gathering import gather_rows, share_statistics
from plremix.networks import Architecture, Network, build_network, load_backbone, starting_weights
from plremix.randomness import generator

CHUNK = 128  # images in a pass without gradient: on a CPU larger ones wait for fresh memory, at half the speed


def step_together(learners: Sequence[Learner], fabric: Fabric) -> None:
    """One step of each optimizer after a backward pass that they share: mixed precision may change its scale only once
    all have moved.
    """
    scaler = getattr(fabric.strategy.precision, "scaler", None)
    for learner in learners:
        if scaler is None:
            learner.optimizer.step()
        else:
            scaler.step(learner.optimizer.optimizer)
        learner.optimizer.zero_grad()
        learner.follow()
    if scaler is not None:
        scaler.update()


class Predictions(NamedTuple):
    """What a network says of a whole set of images."""

    logits: Tensor  # (N, C)
    embeddings: Tensor  # (N, d); d = 0 without a projector


class Learner:
    """`forward` is the wrapped pass, for gradients; `network` the bare module; `shown` what predicts: that module, or
    a copy whose weights are the running mean of its weights.
    """

    def __init__(
        self, config: Config, architecture: Architecture, index: int, fabric: Fabric, *, train_projector: bool = True
    ) -> None:
        self.fabric = fabric
        self.network = build_network(architecture, generator(config.seed, "network", index))
        if config.weights:
            start = starting_weights(config.weights, self.network, fetch=config.download)
            load_backbone(self.network, start, config.weights)
        if self.network.projector is not None:
            self.network.projector.requires_grad_(train_projector)  # several processes wait for every gradient
        parameters, decay = self.network.parameters(), config.weight_decay
        optimizer: torch.optim.Optimizer
        if config.optimizer == "sgd":
            optimizer = torch.optim.SGD(parameters, config.lr, momentum=config.momentum, weight_decay=decay)
        else:
            kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
            optimizer = kind(parameters, config.lr, weight_decay=decay)
        self.has_projector = self.network.projector is not None
        module: Any = torch.compile(self.network) if config.compile else self.network
        self.forward, self.optimizer = fabric.setup(module, optimizer)
        self.waiting: list[Tensor] = []  # terms of a step whose gradient is not taken yet
        self.unused: list[torch.nn.Module] = []  # heads that the epoch's losses leave out
        self.averaging, self.steps, self.shown = config.averaging, 0, self.network
        if self.averaging:
            self.shown = copy.deepcopy(self.network).requires_grad_(False)

    def embed(self, views: Sequence[Tensor]) -> Tensor:
        """(b, v, d) with gradient; views of one size, which come one after another, pass through together."""
        parts: list[Tensor] = []
        for _, same in groupby(views, key=lambda view: view.shape[-1]):
            group = list(same)
            out = self.forward(torch.cat(group), logits=False, embeddings=True)
            parts += out.embeddings.chunk(len(group))
        return torch.stack(parts, dim=1)

    def start_epoch(self, learning_rate: float, *, classifies: bool = True, projects: bool = True) -> None:
        """Which heads the epoch's losses use: the classifier, the projector."""
        self.network.train()
        heads = ((self.network.classifier, classifies), (self.network.projector, projects))
        self.unused = [head for head, used in heads if head is not None and not used]
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def set_beta1(self, momentum: float) -> None:
        """Adam's first momentum; plain SGD has none of that kind."""
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (momentum, group["betas"][1])

    def descend(self, loss: Tensor, longest: float = 0.0) -> None:
        """One step of the optimizer."""
        self.add_gradient(loss)
        self.step(longest)

    def add_gradient(self, loss: Tensor) -> None:
        """Of one of several terms. The memory of its pass is free again after this; but several processes gather all
        terms first, because they wait for every parameter's gradient in each backward pass.
        """
        if self.fabric.world_size == 1:
            self.fabric.backward(loss)
        else:
            self.waiting.append(loss)

    def nothing(self) -> Tensor:
        """0 with a gradient of 0 for every parameter: several processes wait for those that no loss uses, too."""
        if self.fabric.world_size == 1:
            return torch.zeros((), device=self.fabric.device)
        return 0 * torch.stack([one.sum() for one in self.network.parameters() if one.requires_grad]).sum()

    def leave_unused(self) -> None:
        """Weight decay moves whatever has a gradient, `nothing` included; with one process unused heads have none."""
        for head in self.unused:
            head.zero_grad(set_to_none=True)

    def step(self, longest: float = 0.0) -> None:
        """Move by the gradients added so far, shortened to `longest` if that is not 0."""
        if self.waiting:
            self.fabric.backward(torch.stack([*self.waiting, self.nothing()]).sum())
            self.waiting = []
            self.leave_unused()
        if longest:  # what overflows in mixed precision is no error: that step is left out
            self.fabric.clip_gradients(self.forward, self.optimizer, max_norm=longest, error_if_nonfinite=False)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.follow()

    @torch.no_grad()
    def follow(self) -> None:
        """Move the running mean of the weights; in the first steps, when there is little to remember, by more."""
        if self.shown is self.network:
            return
        self.steps += 1
        slow, fast = _floats(self.shown), _floats(self.network)
        torch._foreach_lerp_(slow, fast, 1 - min(self.averaging, self.steps / (self.steps + 10)))

    def forget_momentum(self) -> None:
        """Start the optimizer afresh: what it gathered belongs to another loss."""
        self.optimizer.state.clear()

    def finish_epoch(self) -> None:
        for network in dict.fromkeys((self.network, self.shown)):
            share_statistics(network)

    @torch.no_grad()
    def guess(self, images: Tensor, *, train_mode: bool) -> Tensor:
        """Logits (n, C) without gradient. In train mode batch norm uses (and learns from) this very batch."""
        self.network.train(train_mode)
        with self.fabric.autocast():
            logits: Tensor = self.network(images).logits
        self.network.train()
        return logits.float()

    @torch.no_grad()
    def predict(self, images: Images, loader: Loader, rows: Tensor | None = None) -> Predictions:
        """What the network says of uint8 images (or of `rows` of them) as they are; each process takes a part."""
        self.shown.eval()
        rows = torch.arange(len(images)) if rows is None else rows
        total, part = len(rows), -(-len(rows) // loader.ranks)
        starts = [
            min(rank * part, total - part) for rank in range(loader.ranks)
        ]  # parts may overlap: all are of one size
        mine = rows[starts[loader.rank] : starts[loader.rank] + part]
        # Filled in place: small results kept between large ones that come and go would tear the memory to pieces.
        width = self.network.architecture.embedding_size
        logits = torch.empty(part, self.network.architecture.classes, device=loader.mean.device)
        embeddings = torch.empty(part, width, device=loader.mean.device)
        start = 0
        for pixels in loader.plain(images, mine, CHUNK):
            with self.fabric.autocast():
                out = self.shown(pixels, embeddings=self.has_projector)
            here = slice(start, start + len(pixels))
            logits[here] = out.logits.float()
            if self.has_projector:
                embeddings[here] = out.embeddings.float()
            start = here.stop
        self.network.train()
        return Predictions(*(self._whole(mine_only, starts, total) for mine_only in (logits, embeddings)))

    def _whole(self, mine: Tensor, starts: list[int], total: int) -> Tensor:
        if len(starts) == 1:
            return mine
        whole = mine.new_empty(total, *mine.shape[1:])
        for start, part in zip(starts, gather_rows(mine).split(len(mine)), strict=True):  # type: ignore[no-untyped-call]
            whole[start : start + len(part)] = part
        return whole

    def state_dict(self) -> dict[str, Any]:
        slow = {} if self.shown is self.network else {"shown": self.shown.state_dict(), "steps": self.steps}
        return {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict(), **slow}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.shown is not self.network:
            self.shown.load_state_dict(state["shown"])
            self.steps = state["steps"]


def _floats(network: Network) -> list[Tensor]:
    """Weights and the statistics of batch norm."""
    return [*network.parameters(), *(buffer for buffer in network.buffers() if buffer.is_floating_point())]
