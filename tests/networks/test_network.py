"""Networks: the published shape, a start that is a function of the generator, and outputs asked for by name."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from plremix.networks import BACKBONES, Architecture, Network, build_network
from plremix.networks.preact_resnet import PreActResNet


def architecture(name: str = "preact-resnet-small", **changes: int) -> Architecture:
    settings = {**BACKBONES[name]._asdict(), "channels": 3, "classes": 10, "embedding_size": 128, **changes}
    return Architecture(**settings)


def test_preact_resnet18_has_the_published_parameters_and_feature_sizes() -> None:
    with torch.device("meta"):
        network = Network(architecture("preact-resnet18"))
        features = network.backbone(torch.zeros(1, 3, 32, 32))
        tiny_imagenet = PreActResNet(pool_grid=2)
        large = tiny_imagenet(torch.zeros(1, 3, 64, 64))
    assert features.shape == (1, 512)
    assert large.shape == (1, 4 * 512) == (1, tiny_imagenet.features)
    stem = 3 * 64 * 9
    stages = sum(
        9 * (before * size + 3 * size * size) for before, size in [(64, 64), (64, 128), (128, 256), (256, 512)]
    )
    shortcuts = 64 * 128 + 128 * 256 + 256 * 512
    assert sum(p.numel() for p in network.backbone.parameters() if p.ndim == 4) == stem + stages + shortcuts
    assert sum(p.numel() for p in network.classifier.parameters()) == 513 * 10
    assert sum(p.numel() for p in network.projector.parameters()) == 513 * 512 + 513 * 128


@torch.no_grad()
@pytest.mark.parametrize("name", BACKBONES)
def test_the_published_networks_shortcuts_are_taken_after_the_first_activation(name: str) -> None:
    network = build_network(architecture(name, width=16), torch.Generator().manual_seed(0)).eval()
    for part in network.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.uniform_(-1, 1)
            part.bias.uniform_(-1, 1)
    features = torch.randn(2, 16, 8, 8)
    for block in network.backbone.stages:
        active = F.relu(block.bn1(features))
        residual = block.conv2(F.relu(block.bn2(block.conv1(active))))
        before = active if name == "preact-resnet18" else features
        expected = residual + (before if block.shortcut is None else block.shortcut(active))
        assert torch.allclose(block(features), expected, atol=1e-6)
        features = expected
    assert not torch.allclose(features, F.relu(features))


@pytest.mark.parametrize(("channels", "side"), [(1, 8), (3, 8), (1, 28), (3, 32), (3, 17)])
def test_the_small_network_takes_grey_and_colour_of_any_size(channels: int, side: int) -> None:
    network = build_network(architecture(channels=channels), torch.Generator().manual_seed(0)).eval()
    out = network(torch.randn(2, channels, side, side), embeddings=True)
    assert out.logits.shape == (2, 10)
    assert out.embeddings.shape == (2, 128)
    assert torch.allclose(out.embeddings.norm(dim=1), torch.ones(2), atol=1e-5)


def test_only_what_is_asked_for_is_returned() -> None:
    network = build_network(architecture(), torch.Generator().manual_seed(0)).eval()
    images = torch.randn(2, 3, 8, 8)
    assert network(images).embeddings is None
    assert network(images, logits=False, embeddings=True).logits is None
    bare = build_network(architecture(embedding_size=0), torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="without a projector"):
        bare(images, embeddings=True)


def test_the_start_is_a_function_of_the_generator_and_leaves_the_global_one_alone() -> None:
    before = torch.get_rng_state()
    first, again, other = (build_network(architecture(), torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.classifier.weight, other.classifier.weight)
    assert first.backbone.stem[0].weight.is_contiguous(memory_format=torch.channels_last)


def test_the_start_has_the_spread_of_pytorchs_own() -> None:
    ours = build_network(architecture("preact-resnet18"), torch.Generator().manual_seed(0))
    torchs = torch.nn.Conv2d(256, 512, 3)
    mine = next(m for m in ours.modules() if isinstance(m, torch.nn.Conv2d) and m.weight.shape == torchs.weight.shape)
    assert mine.weight.std().item() == pytest.approx(torchs.weight.std().item(), rel=0.02)
    assert mine.weight.abs().max().item() == pytest.approx(torchs.weight.abs().max().item(), rel=0.02)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_narrow_networks_learn_from_large_images(width: int) -> None:
    """In a process of its own: what this guards against overruns memory and ends it."""
    code = f"""
import torch
from plremix.networks import Architecture, build_network
shape = Architecture(channels=3, classes=3, embedding_size=8, width={width}, blocks=(1, 1, 1))
network = build_network(shape, torch.Generator())
for _ in range(4):
    images = torch.randn(48, 3, 64, 64).contiguous(memory_format=torch.channels_last)
    network(images).logits.square().mean().backward()
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
