"""A training step of PLReMix against the bare network passes that it needs, interleaved in one run.

    python benchmarks/step.py                              # PreAct ResNet-18: some minutes on two cores
    python benchmarks/step.py --network preact-resnet-small

A step (b = 64, 32x32) needs 384 images forward without gradient, twice 256 forward and backward, and one step of the
optimizer. The last line is the ratio: the whole step, views included, over those. Best of several rounds.
"""

from __future__ import annotations

import argparse
import time

import torch
from lightning_fabric import Fabric

from plremix.config import CoDivideConfig
from plremix.data.loading import Loader
from plremix.memory import keep_freed_memory
from plremix.methods.base import Averages
from plremix.methods.codivide import CoDivide
from plremix.methods.splits import Split
from plremix.networks import BACKBONES, Architecture

B, CLASSES, SIDE = 64, 10, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=list(BACKBONES), default="preact-resnet18")
    parser.add_argument("--rounds", type=int, default=None, help="default: 5, or 40 for the small network")
    chosen = parser.parse_args()
    keep_freed_memory()  # as the program does
    rounds = chosen.rounds or (5 if chosen.network == "preact-resnet18" else 40)
    method = build(chosen.network)
    split = halves()
    step(method, split)
    bare(method)
    best = [float("inf")] * 2
    for _ in range(rounds):
        for place, work in enumerate((lambda: step(method, split), lambda: bare(method))):
            began = time.perf_counter()
            work()
            best[place] = min(best[place], time.perf_counter() - began)
    print(f"{chosen.network}, b = {B}, {SIDE}x{SIDE}, {torch.get_num_threads()} threads, best of {rounds}")
    print(f"{'a step of PLReMix':24}{best[0]:8.3f} s")
    print(f"{'the bare passes':24}{best[1]:8.3f} s")
    print(f"ratio: {best[0] / best[1]:.3f}")


def build(network: str) -> CoDivide:
    """A method on noise images; what they show does not matter for time."""
    draws = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (2 * B, 3, SIDE, SIDE), dtype=torch.uint8, generator=draws)
    architecture = Architecture(**BACKBONES[network]._asdict(), channels=3, classes=CLASSES, embedding_size=128)
    config = CoDivideConfig(data="noise", recipe="benchmark", batch_size=B, epochs=100)
    fabric = Fabric(accelerator="cpu", devices=1)
    loader = Loader(images, torch.full((3,), 0.5), torch.full((3,), 0.25))
    return CoDivide(config, loader, torch.arange(2 * B) % CLASSES, architecture, fabric)


def halves() -> Split:
    """One batch of either side: an epoch is one step."""
    is_clean = torch.arange(2 * B) < B
    scores = torch.randn(2 * B, CLASSES, generator=torch.Generator().manual_seed(0))
    return Split(is_clean, is_clean.float(), scores, torch.zeros(2 * B, 2))


def step(method: CoDivide, split: Split) -> None:
    method._train(0, split, 50, Averages())


def bare(method: CoDivide) -> None:
    """The passes alone, on one batch that is there already."""
    learner, other = method.learners
    pixels = torch.randn(4 * B, 3, SIDE, SIDE).contiguous(memory_format=torch.channels_last)
    learner.guess(pixels, train_mode=True)
    other.guess(pixels[: 2 * B], train_mode=False)
    learner.add_gradient(learner.forward(pixels).logits.square().mean())
    learner.add_gradient(learner.forward(pixels, logits=False, embeddings=True).embeddings.square().mean())
    learner.step()


if __name__ == "__main__":
    main()
