"""What the paper's runs cost on a GPU: hours and memory, counted, not measured.

    python benchmarks/hours.py [--tflops 14]

A step's passes are counted from the algorithm (below), an image's pass by PyTorch's own counter of operations; a
backward pass is two forward passes. `--tflops` is what the GPU really does: 14 is 40 % of the 35 that a card such as
the RTX 3090 names for float32. Memory is what one step keeps for its backward pass, plus weights, gradients and
momentum of both networks; images and libraries come on top. The share of samples on the clean side is the true one.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from plremix import recipes
from plremix.config import CoDivideConfig, Config
from plremix.networks import BACKBONES, Architecture, Network, Shape

IMAGES = {"cifar10": 50_000, "cifar100": 50_000, "tiny-imagenet": 100_000, "clothing1m": 64_000, "webvision": 65_944}
TEST = {"cifar10": 10_000, "cifar100": 10_000, "tiny-imagenet": 10_000, "clothing1m": 14_313, "webvision": 5_000}
CLASSES = {"cifar10": 10, "cifar100": 100, "tiny-imagenet": 200, "clothing1m": 14, "webvision": 50}
SIDE = {"cifar10": 32, "cifar100": 32, "tiny-imagenet": 64, "clothing1m": 224, "webvision": 299}
CLEAN = {"clothing1m": 0.6, "webvision": 0.8}  # about, by the data sets' authors
BACKWARD = 2  # forward passes


@dataclass(frozen=True)
class Cost:
    """Image passes of a whole run in units of a forward pass, and the images that a step learns from at once."""

    forward: float
    at_once: float


def cost(config: Config, clean: float) -> Cost:
    count = config.epoch_images or IMAGES[config.data]
    large, small = ((side / SIDE[config.data]) ** 2 for side in config.crop_sides or (SIDE[config.data], 0))
    views = 2 * large + (config.small_crops * small)  # of an image, as many whole ones
    evaluation = TEST[config.data] * config.epochs
    learn = 1 + BACKWARD
    # pre-training: two views of each image, of the size that the data has
    before = config.pretrain_epochs * count * 2 * learn if config.pretrain != "none" else 0
    if not isinstance(config, CoDivideConfig):
        nets = 1 if config.method in ("cross-entropy", "mixup", "elr") else 2
        contrast = 2 * learn if config.contrast != "none" else 0
        an_image = learn + contrast + (1 if contrast else 0) + (1 if config.method == "elr-plus" else 0)
        total = nets * (before + count * an_image * config.epochs + evaluation)
        return Cost(total, config.batch_size * (1 + contrast / 3))
    contrast = 0.0 if config.contrast == "none" else views
    warm = (config.warmup_images or count) * (1 + (contrast if config.warmup_contrast else 0)) * learn
    noisy = min(1 / (2 * clean), 4) if config.noisy_batch == "by-share" else 1  # samples of that side for a clean one
    # two weak views of each are guessed by the network, the noisy ones by the other, too; two are mixed; the contrast's
    guessed = 2 + 4 * noisy
    mixed = 2 * large * (1 + (noisy if config.learn_noisy else 0))
    contrasted = contrast * (noisy + (1 if config.contrast_side == "all" else 0))
    scored = count * (2 if config.divide_anew else 1)
    train = scored + clean * count * (guessed + (mixed + contrasted) * learn)
    epochs = config.epochs - config.warmup_epochs
    total = 2 * (before + config.warmup_epochs * warm + epochs * train + evaluation)
    return Cost(total, config.batch_size * (1 + noisy) * max(2 * large, views))


def architecture(config: Config) -> Architecture:
    ours = config.network in BACKBONES
    shape = BACKBONES[config.network] if ours else Shape()
    return Architecture(
        channels=3,
        classes=CLASSES[config.data],
        embedding_size=128,
        timm="" if ours else config.network,
        pool_grid=config.pool_grid,
        **shape._asdict(),
    )


def of_an_image(config: Config) -> tuple[float, float, float]:
    """Operations of a forward pass, bytes kept for its backward pass, and bytes of the weights."""
    with torch.device("meta"):
        network = Network(architecture(config))
        images = torch.zeros(2, 3, SIDE[config.data], SIDE[config.data])
    kept: dict[int, float] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept[id(tensor)] = tensor.numel() * tensor.element_size()
        return tensor

    with FlopCounterMode(display=False) as counter, torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        network(images, embeddings=True)
    weights = sum(parameter.numel() * 4 for parameter in network.parameters())
    half = 0.5 if config.precision != "32-true" else 1.0
    return counter.get_total_flops() / 2, (sum(kept.values()) - weights) / 2 * half, weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tflops", type=float, default=14.0)
    chosen = parser.parse_args()
    print("| recipe | method | epochs | operations (1e15) | hours | memory GB |\n|---|---|---|---|---|---|")
    passes: dict[str, tuple[float, float, float]] = {}
    for name, method in rows():
        config = recipes.build(name, method)
        if config.data not in passes:
            passes[config.data] = of_an_image(config)
        operations, kept, weights = passes[config.data]
        known = CLEAN.get(config.data, 1 - _wrong(config))
        run = cost(config, known)
        total = run.forward * operations
        memory = run.at_once * kept + 2 * 3 * weights
        hours = total / (chosen.tflops * 1e12) / 3600 / (2 if config.precision != "32-true" else 1)
        print(f"| {name} | {config.method} | {config.epochs} | {total / 1e15:.0f} | {hours:.0f} | {memory / 1e9:.1f} |")


def _wrong(config: Config) -> float:
    if config.noise == "symmetric":
        return config.noise_ratio * (1 - 1 / CLASSES[config.data])
    return config.noise_ratio / (2 if config.data == "cifar10" else 1)


def rows() -> list[tuple[str, str]]:
    tables = ("cifar", "tiny-imagenet", "clothing1m", "webvision")
    mine = [name for name, recipe in recipes.RECIPES.items() if recipe.table in tables and not recipe.changes]
    others = [("cifar10-sym-50", method) for method in recipes.METHODS if method != "plremix"]
    others += [(name, method) for name in ("clothing1m", "webvision") for method in ("dividemix", "elr-plus", "unicon")]
    others += [("clothing1m-pretrained", "dividemix")]
    plugged = [("cifar10-sym-50-co-teaching-plus-plr", "co-teaching-plus"), ("cifar10-sym-50-jocor-plr", "jocor")]
    return [(name, "plremix") for name in mine] + others + plugged


if __name__ == "__main__":
    main()
