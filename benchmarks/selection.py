"""Scoring 50,000 images and splitting them, against the bare forward passes; the mixture for up to a million points;
and the memory of a run on 50,000 32x32 images.

    python benchmarks/selection.py

The last line is the ratio: both networks' scoring and splitting over their forward passes. Best of several rounds.
"""

from __future__ import annotations

import argparse
import time

import torch


def resident() -> int:
    """Bytes of this process in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


BEFORE = resident()  # torch is imported, nothing else of ours is

import resource

import numpy as np
from lightning_fabric import Fabric

from plremix.config import CoDivideConfig
from plremix.data.loading import Loader
from plremix.memory import keep_freed_memory
from plremix.methods.base import Averages
from plremix.methods.codivide import CoDivide
from plremix.methods.learner import CHUNK
from plremix.networks import BACKBONES, Architecture
from plremix.selection import fit_mixture

CLASSES, SIDE, STEPS = 10, 32, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=list(BACKBONES), default="preact-resnet-small")
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    keep_freed_memory()  # as the program does

    method = build(chosen.network, chosen.images)
    scoring = passes = float("inf")
    for _ in range(chosen.rounds):
        began = time.perf_counter()
        method.splits = method.divide(method._score(), method.labels, method.config, 50)
        between = time.perf_counter()
        bare(method, chosen.images)
        scoring, passes = min(scoring, between - began), min(passes, time.perf_counter() - between)
    print(f"{chosen.network}, {chosen.images:,} images, {torch.get_num_threads()} threads, best of {chosen.rounds}")
    print(f"{'score and split, both networks':36}{scoring:9.2f} s")
    print(f"{'the bare forward passes':36}{passes:9.2f} s")

    _train_a_little(method)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{'memory above the import of torch':36}{(peak - BEFORE) / 1e6:9.0f} MB")

    print(f"{'mixture on N x 2 points':36}{'seconds':>9}")
    for count in (10_000, 100_000, 1_000_000):
        points = losses(count)
        best = min(_timed(points) for _ in range(3))
        print(f"{count:>36,}{best:9.3f} s")
    print(f"ratio: {scoring / passes:.3f}")


def build(network: str, count: int) -> CoDivide:
    draws = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (count, 3, SIDE, SIDE), dtype=torch.uint8, generator=draws)
    labels = torch.randint(0, CLASSES, (count,), generator=draws)
    architecture = Architecture(**BACKBONES[network]._asdict(), channels=3, classes=CLASSES, embedding_size=128)
    config = CoDivideConfig(data="noise", recipe="benchmark", epochs=100)
    loader = Loader(images, torch.full((3,), 0.5), torch.full((3,), 0.25))
    return CoDivide(config, loader, labels, architecture, Fabric(accelerator="cpu", devices=1))


@torch.no_grad()
def bare(method: CoDivide, count: int) -> None:
    """As many images through both networks, in the same chunks, from a batch that is there already."""
    pixels = torch.randn(CHUNK, 3, SIDE, SIDE).contiguous(memory_format=torch.channels_last)
    for learner in method.learners:
        learner.network.eval()
        for start in range(0, count, CHUNK):
            learner.network(pixels[: min(CHUNK, count - start)], embeddings=True)


def _train_a_little(method: CoDivide) -> None:
    """A few real steps of the split, for the memory that training takes."""
    split = method.splits[1]
    few = torch.zeros_like(split.is_clean)
    few[: STEPS * method.config.batch_size] = True
    method._train(0, split._replace(is_clean=few), 50, Averages())


def losses(count: int) -> np.ndarray:
    """Two overlapping clouds, as losses of clean and wrong labels look."""
    draws = np.random.default_rng(0)
    wrong = draws.random(count) < 0.5
    return np.abs(draws.normal(np.where(wrong, 3.0, 0.3)[:, None], np.where(wrong, 1.0, 0.3)[:, None], (count, 2)))


def _timed(points: np.ndarray) -> float:
    began = time.perf_counter()
    fit_mixture(points)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
