"""A million images (32x32, colour) from the mapped cache: time to the first step, memory of our own, split and order.

    python benchmarks/million.py FOLDER [IMAGES]

Writes 3 GB of synthetic pixels to FOLDER once; a second process then starts as a run would. RssAnon is the memory that
the process really owns; pages of the mapped file come and go as the system sees fit.
"""

from __future__ import annotations

import time

START = time.perf_counter()

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric

from plremix.config import CoDivideConfig
from plremix.data import cache, noise
from plremix.data.dataset import LabelledImages
from plremix.memory import keep_freed_memory
from plremix.methods.splits import Scores
from plremix.randomness import generator
from plremix.training.setup import build_method

CLASSES, PIECE = 10, 10_000
PREDICTED, STEPS = 20_000, 200


def fill(pixels: np.ndarray) -> None:
    """Noise with a bright bar whose place is the class."""
    draws = np.random.default_rng(0)
    patch = draws.integers(0, 120, (PIECE, *pixels.shape[1:]), dtype=np.uint8)
    for start in range(0, len(pixels), PIECE):
        some = pixels[start : start + PIECE]
        some[:] = patch[draws.permutation(PIECE)[: len(some)]]
        for label in range(CLASSES):
            some[label::CLASSES, :, :, 3 * label : 3 * label + 3] += 120


def load(folder: Path, count: int) -> LabelledImages:
    truth = torch.arange(count) % CLASSES
    return LabelledImages(
        images=cache.cached(folder, "million", f"synthetic {count}", (count, 3, 32, 32), fill),
        given_labels=noise.symmetric(truth, CLASSES, 0.5, generator(0, "noise")),
        true_labels=truth,
        test_images=None,
        test_labels=None,
        classes=tuple(str(label) for label in range(CLASSES)),
        ids=tuple(str(index) for index in range(count)),
        pixel_statistics=((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
    )


def own_memory() -> float:
    """RssAnon in GB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1e6


class Peak(threading.Thread):
    """The largest RssAnon since the last question."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.highest = 0.0
        self.start()

    def run(self) -> None:
        while True:
            self.highest = max(self.highest, own_memory())
            time.sleep(0.01)

    def taken(self) -> float:
        highest, self.highest = max(self.highest, own_memory()), 0.0
        return highest


def measure(folder: Path, count: int) -> None:
    keep_freed_memory()
    peak = Peak()
    data = load(folder, count)
    config = CoDivideConfig(network="preact-resnet-small", width=4, blocks=(1, 1, 1), split="mixture2d", device="cpu")
    method = build_method(config, data, Fabric(accelerator="cpu", devices=1))
    report(f"start ({time.process_time():.1f} s at work)", START, peak)

    begun = time.perf_counter()
    method.learners[0].predict(data.images[:PREDICTED], method.loader)
    report(f"scores of {PREDICTED:,} images", begun, peak)

    scores = [made_up_scores(data.given_labels, config.embedding_size, network) for network in (0, 1)]
    peak.taken()
    begun = time.perf_counter()
    splits = method.divide(scores, method.labels, config, 0)
    report(f"split ({config.split}), all images", begun, peak)

    begun = time.perf_counter()
    sides = method._draw_epoch(splits[0], 0, 0)
    report("order of an epoch, all images", begun, peak)

    begun = time.perf_counter()
    steps = [torch.cat(both) for both in sides[:STEPS]]
    for _ in method.loader.epoch(steps, [method.weak, method.strong[0]], lambda at: generator(0, "views", at)):
        pass
    report(f"views of {STEPS} steps", begun, peak)


def report(name: str, begun: float, peak: Peak) -> None:
    print(f"{name:34} {time.perf_counter() - begun:6.1f} s   RssAnon at most {peak.taken():.2f} GB", flush=True)


def made_up_scores(labels: torch.Tensor, width: int, network: int) -> Scores:
    """As both networks would give them after hours: random, with a hint of the label."""
    draws = generator(0, "scores", network)
    logits = torch.randn(len(labels), CLASSES, generator=draws)
    logits[torch.arange(len(labels)), labels] += 2
    return Scores(
        logits,
        torch.randn(len(labels), width, generator=draws),
        torch.nn.functional.normalize(torch.randn(CLASSES, width, generator=draws)),
    )


if __name__ == "__main__":
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    if "--measure" in sys.argv:
        measure(folder, count)
    else:
        begun = time.perf_counter()
        load(folder, count)
        size = (folder / "million.pixels").stat().st_size
        print(f"cache of {count:,} images, {size / 1e9:.2f} GB: {time.perf_counter() - begun:.1f} s", flush=True)
        subprocess.run([sys.executable, __file__, str(folder), str(count), "--measure"], check=True)
