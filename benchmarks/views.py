"""Views a second: ours against one image at a time with Pillow, one thread each, the same images, interleaved.

    python benchmarks/views.py

Best of several rounds. The last line is the ratio for strong 32x32 views (crop, flip, AutoAugment, normalise).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from sklearn.datasets import load_sample_images
from torch import Tensor

from plremix.data.augment import VIEWS, batched, compiled, engines, normalise, policies
from plremix.data.augment.operations import GREY, Operation
from plremix.memory import keep_freed_memory

ROUNDS = 15
REPEATS = 5  # of either side a round, so that both are timed over milliseconds
BATCH = 128  # what a step takes: 2b
MEAN, STD = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2023, 0.1994, 0.2010])


def photographs(side: int, count: int) -> Tensor:
    """Random windows of two photographs."""
    draws, windows = np.random.default_rng(0), []
    pictures = load_sample_images().images
    for index in range(count):
        picture = pictures[index % 2]
        top, left = (int(draws.integers(0, size - side + 1)) for size in picture.shape[:2])
        windows.append(picture[top : top + side, left : left + side])
    return torch.from_numpy(np.stack(windows)).permute(0, 3, 1, 2).contiguous()


# --- the pipeline that a script has today: one image after the other ---


def _affine(image: Image.Image, matrix: tuple[float, ...], resample: Image.Resampling) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix, resample, fillcolor=(GREY,) * 3)


NEAREST, BICUBIC = Image.Resampling.NEAREST, Image.Resampling.BICUBIC
PILLOW: dict[int, Callable[[Image.Image, float], Image.Image]] = {
    Operation.SHEAR_X: lambda im, v: _affine(im, (1, v, 0, 0, 1, 0), BICUBIC),
    Operation.SHEAR_Y: lambda im, v: _affine(im, (1, 0, 0, v, 1, 0), BICUBIC),
    Operation.TRANSLATE_X: lambda im, v: _affine(im, (1, 0, v * im.width, 0, 1, 0), NEAREST),
    Operation.TRANSLATE_Y: lambda im, v: _affine(im, (1, 0, 0, 0, 1, v * im.height), NEAREST),
    Operation.ROTATE: lambda im, v: im.rotate(v, fillcolor=(GREY,) * 3),
    Operation.COLOR: lambda im, v: ImageEnhance.Color(im).enhance(v),
    Operation.CONTRAST: lambda im, v: ImageEnhance.Contrast(im).enhance(v),
    Operation.SHARPNESS: lambda im, v: ImageEnhance.Sharpness(im).enhance(v),
    Operation.BRIGHTNESS: lambda im, v: ImageEnhance.Brightness(im).enhance(v),
    Operation.POSTERIZE: lambda im, v: ImageOps.posterize(im, int(v)),
    Operation.SOLARIZE: lambda im, v: ImageOps.solarize(im, v),
    Operation.AUTOCONTRAST: lambda im, v: ImageOps.autocontrast(im),
    Operation.EQUALIZE: lambda im, v: ImageOps.equalize(im),
    Operation.INVERT: lambda im, v: ImageOps.invert(im),
}


def one_by_one(
    images: list[Image.Image], pad: int, steps: tuple[tuple[policies.Step, policies.Step], ...]
) -> list[Tensor]:
    """Crop, flip, perhaps AutoAugment, to a tensor, normalise."""
    draws, views = np.random.default_rng(0), []
    values = {  # drawn beforehand: the script's own Python for that is not counted
        pair: [float(policies._value(step, 1)) for step in pair] for pair in steps
    }
    mean, std = MEAN.view(3, 1, 1), STD.view(3, 1, 1)
    for image in images:
        width, height = image.size
        left, top = draws.integers(0, 2 * pad + 1, 2)
        view = ImageOps.expand(image, pad).crop((left, top, left + width, top + height))
        if draws.random() < 0.5:
            view = view.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if steps:
            pair = steps[draws.integers(len(steps))]
            for step, value in zip(pair, values[pair], strict=True):
                if draws.random() < step.probability:
                    view = PILLOW[step.operation](view, value)
        pixels = torch.from_numpy(np.array(view)).permute(2, 0, 1).contiguous()
        views.append(pixels.float().div_(255).sub_(mean).div_(std))
    return views


def batched_here(name: str, images: Tensor, engine: object) -> Callable[[], Tensor]:
    """Our views of a whole batch, by one of the engines."""
    view = VIEWS[name]

    def work() -> Tensor:
        engines.compiled = engine  # type: ignore[assignment]
        try:
            return normalise(view(images, torch.Generator().manual_seed(0)), MEAN, STD)
        finally:
            engines.compiled = compiled

    return work


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()  # as the program does
    small, large = photographs(32, BATCH), photographs(224, BATCH // 4)
    rows = [  # what, images, our view, the policy that Pillow runs, target
        ("32x32 strong (AutoAugment CIFAR)", small, "autoaugment-cifar", policies.CIFAR, compiled, 12),
        ("32x32 weak (crop, flip)", small, "crop-flip", (), compiled, 15),
        ("224x224 strong (AutoAugment ImageNet)", large, "autoaugment-imagenet", policies.IMAGENET, compiled, 2),
        ("32x32 strong, torch engine on CPU", small, "autoaugment-cifar", policies.CIFAR, batched, 1),
    ]
    print(f"{'views a second, one thread':42}{'Pillow':>10}{'ours':>10}{'ratio':>8}{'target':>8}")
    ratios = []
    for what, images, name, steps, engine, target in rows:
        pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images]
        ours, side = batched_here(name, images, engine), images.shape[-1]
        ours()  # compiled here, once
        theirs_best = ours_best = float("inf")
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for _ in range(REPEATS):
                one_by_one(pictures, side // 8, steps)
            between = time.perf_counter()
            for _ in range(REPEATS):
                ours()
            ended = time.perf_counter()
            theirs_best = min(theirs_best, (between - began) / REPEATS)
            ours_best = min(ours_best, (ended - between) / REPEATS)
        ratios.append(theirs_best / ours_best)
        speeds = [len(images) / seconds for seconds in (theirs_best, ours_best)]
        print(f"{what:42}{speeds[0]:10,.0f}{speeds[1]:10,.0f}{ratios[-1]:8.1f}{target:8}")
    print(f"ratio: {ratios[0]:.1f}")


if __name__ == "__main__":
    main()
