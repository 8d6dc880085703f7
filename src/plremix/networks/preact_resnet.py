"""The PreAct ResNet family in the published form (stem with batch norm and ReLU, shortcut after the first
activation, no batch norm or ReLU after the last block), with width, depth, input channels and shortcuts as settings."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

# Channels below which images stay in the plain memory layout: torch 2.13's channels-last passes on a CPU write past the
# end of their memory where 64x64 images meet eight channels or fewer.
NARROW = 16


class PreActBlock(nn.Module):
    """Two 3x3 convolutions, each after batch norm and ReLU.

    The shortcut is taken after the first activation: in the published networks always (`active_shortcuts`), otherwise
    where it is a convolution, and where it changes nothing it is the input itself (He et al. 2016).
    """

    def __init__(self, channels_in: int, channels_out: int, stride: int, *, active_shortcuts: bool = True) -> None:
        super().__init__()
        self.active_shortcuts = active_shortcuts
        self.bn1 = nn.BatchNorm2d(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = F.relu(self.bn1(x))
        shortcut = active if self.active_shortcuts else x
        if self.shortcut is not None:
            shortcut = self.shortcut(active)
        residual: Tensor = self.conv2(F.relu(self.bn2(self.conv1(active))))
        return residual + shortcut


class PreActResNet(nn.Module):
    """Images (b, channels, H, W) to features (b, features).

    blocks: how many blocks each stage has; every stage after the first halves the size and doubles the channels.
    pool_grid: the last map is averaged to this many cells a side (1: one cell; 2: the paper's Tiny-ImageNet network,
    whose 8x8 map is averaged in 4x4 windows).
    """

    def __init__(
        self,
        channels: int = 3,
        width: int = 64,
        blocks: tuple[int, ...] = (2, 2, 2, 2),
        pool_grid: int = 1,
        *,
        active_shortcuts: bool = True,
    ) -> None:
        super().__init__()
        self.narrow = width < NARROW
        self.stem = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        stages: list[nn.Module] = []
        size = width
        for stage, count in enumerate(blocks):
            for block in range(count):
                channels_out = width * 2**stage
                stride = 2 if stage and not block else 1
                stages.append(PreActBlock(size, channels_out, stride, active_shortcuts=active_shortcuts))
                size = channels_out
        self.stages = nn.Sequential(*stages)
        self.pool_grid = pool_grid
        self.features = size * pool_grid**2

    def forward(self, images: Tensor) -> Tensor:
        if self.narrow:
            images = images.contiguous()
        return F.adaptive_avg_pool2d(self.stages(self.stem(images)), self.pool_grid).flatten(1)
