"""Network = backbone + classifier + projector (paper, sec. 3.1), and how it starts from a generator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from plremix.networks import timm_models
from plremix.networks.preact_resnet import PreActResNet


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """All that is needed to build a network again; stored in the model file."""

    channels: int
    classes: int
    embedding_size: int  # 0: no projector
    timm: str = ""  # name of a timm model; empty: a PreAct ResNet of this
    width: int = 0
    blocks: tuple[int, ...] = ()
    pool_grid: int = 1
    active_shortcuts: bool = False  # see PreActBlock; model files of older versions have networks without


class Shape(NamedTuple):
    """What makes a PreAct ResNet."""

    width: int = 0
    blocks: tuple[int, ...] = ()  # of each stage
    active_shortcuts: bool = False


BACKBONES: dict[str, Shape] = {
    "preact-resnet18": Shape(64, (2, 2, 2, 2), active_shortcuts=True),  # paper, sec. 4.1; published code
    "preact-resnet-small": Shape(16, (1, 1, 1)),  # ours: 8x8 to 32x32 on a CPU
}


class Outputs(NamedTuple):
    """What a forward pass was asked for; the rest is None."""

    logits: Tensor | None  # (b, C)
    embeddings: Tensor | None  # (b, d), unit length


class Network(nn.Module):
    """One forward gives class logits, projected embeddings, or both from the same features."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.backbone: nn.Module
        if architecture.timm:
            self.backbone = timm_models.build_backbone(architecture.timm, architecture.channels)
            features = timm_models.feature_count(self.backbone)
        else:
            self.backbone = PreActResNet(
                architecture.channels,
                architecture.width,
                architecture.blocks,
                architecture.pool_grid,
                active_shortcuts=architecture.active_shortcuts,
            )
            features = self.backbone.features
        self.classifier = nn.Linear(features, architecture.classes)
        self.projector: nn.Sequential | None = None
        if architecture.embedding_size:
            self.projector = nn.Sequential(
                nn.Linear(features, features), nn.ReLU(), nn.Linear(features, architecture.embedding_size)
            )

    def forward(self, images: Tensor, *, logits: bool = True, embeddings: bool = False) -> Outputs:
        features = self.backbone(images)
        embedded = None
        if embeddings:
            if self.projector is None:
                raise ValueError("this network was built without a projector, so it has no embeddings")
            embedded = F.normalize(self.projector(features), dim=1)
        return Outputs(self.classifier(features) if logits else None, embedded)


def build_network(architecture: Architecture, generator: torch.Generator) -> Network:
    """A network whose start is drawn from `generator` alone; channels last in memory, if it is not narrow."""
    if architecture.timm:
        with torch.random.fork_rng(devices=[]):  # each of timm's models knows best how it starts
            torch.default_generator.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            network = Network(architecture)
    else:
        with torch.device("meta"):  # no draw from the global generator
            network = Network(architecture)
        network = network.to_empty(device="cpu")
        for module in network.modules():
            _initialise(module, generator)
    if not getattr(network.backbone, "narrow", False):
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def _initialise(module: nn.Module, generator: torch.Generator) -> None:
    """PyTorch's own defaults (uniform within 1 / sqrt(fan in)), with a generator that we own."""
    if isinstance(module, nn.BatchNorm2d):
        module.reset_running_stats()
        nn.init.ones_(module.weight)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Conv2d | nn.Linear):
        bound = 1 / math.sqrt(module.weight[0].numel())
        nn.init.uniform_(module.weight, -bound, bound, generator=generator)
        if module.bias is not None:
            nn.init.uniform_(module.bias, -bound, bound, generator=generator)
