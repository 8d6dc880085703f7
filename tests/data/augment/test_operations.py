"""Every operation gives what Pillow gives for the same value, on photographs, in both engines."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from sklearn.datasets import load_sample_images
from torch import Tensor

from plremix.data.augment import batched, compiled
from plremix.data.augment.operations import GREY, Operation

ENGINES = [pytest.param(compiled, id="compiled"), pytest.param(batched, id="batched")]
SIDE = 32


def photographs(count: int = 60, channels: int = 3) -> Tensor:
    """Windows of the two photographs that scikit-learn carries, at two sizes of detail."""
    draws, windows = np.random.default_rng(0), []
    for picture in load_sample_images().images:
        for side in (SIDE, 4 * SIDE):
            for _ in range(count // 4):
                top, left = (int(draws.integers(0, size - side)) for size in picture.shape[:2])
                window = Image.fromarray(picture[top : top + side, left : left + side]).resize((SIDE, SIDE))
                windows.append(np.asarray(window))
    images = torch.from_numpy(np.stack(windows)).permute(0, 3, 1, 2).contiguous()
    return images if channels == 3 else images[:, :1].contiguous()


def as_picture(image: Tensor) -> Image.Image:
    return Image.fromarray(image.permute(1, 2, 0).squeeze(2).numpy())


def as_tensor(picture: Image.Image) -> Tensor:
    pixels = torch.from_numpy(np.array(picture))
    return pixels[None] if pixels.dim() == 2 else pixels.permute(2, 0, 1)


def moved(picture: Image.Image, matrix: tuple[float, ...], resample: Image.Resampling) -> Image.Image:
    grey = (GREY,) * 3 if picture.mode == "RGB" else GREY
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, resample, fillcolor=grey)


def turned(picture: Image.Image, value: float) -> Image.Image:
    hue, saturation, brightness = picture.convert("HSV").split()
    levels = ((np.asarray(hue).astype(int) + int(value * 255)) & 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(levels), saturation, brightness)).convert("RGB")


NEAREST, BICUBIC = Image.Resampling.NEAREST, Image.Resampling.BICUBIC
PILLOW: dict[Operation, tuple[tuple[float, ...], Callable[[Image.Image, float], Image.Image]]] = {
    Operation.SHEAR_X: ((0.1, -0.3, 0.27), lambda im, v: moved(im, (1, v, 0, 0, 1, 0), BICUBIC)),
    Operation.SHEAR_Y: ((0.1, -0.3), lambda im, v: moved(im, (1, 0, 0, v, 1, 0), BICUBIC)),
    Operation.TRANSLATE_X: ((0.1, -0.45, 150 / 331), lambda im, v: moved(im, (1, 0, v * SIDE, 0, 1, 0), NEAREST)),
    Operation.TRANSLATE_Y: ((0.2, -0.4), lambda im, v: moved(im, (1, 0, 0, 0, 1, v * SIDE), NEAREST)),
    Operation.ROTATE: (
        (0, 10, -30, 10 / 3),
        lambda im, v: im.rotate(v, fillcolor=(GREY,) * 3 if im.mode == "RGB" else GREY),
    ),
    Operation.COLOR: ((0, 0.1, 0.7, 1, 1.9), lambda im, v: ImageEnhance.Color(im).enhance(v)),
    Operation.CONTRAST: ((0, 0.1, 1.3, 1.9), lambda im, v: ImageEnhance.Contrast(im).enhance(v)),
    Operation.SHARPNESS: ((0, 0.1, 1.3, 1.9), lambda im, v: ImageEnhance.Sharpness(im).enhance(v)),
    Operation.BRIGHTNESS: ((0, 0.1, 1.3, 1.9), lambda im, v: ImageEnhance.Brightness(im).enhance(v)),
    Operation.POSTERIZE: ((4, 5, 7, 8), lambda im, v: ImageOps.posterize(im, int(v))),
    Operation.SOLARIZE: ((0, 256 / 9, 128, 256), lambda im, v: ImageOps.solarize(im, v)),
    Operation.AUTOCONTRAST: ((0,), lambda im, v: ImageOps.autocontrast(im)),
    Operation.EQUALIZE: ((0,), lambda im, v: ImageOps.equalize(im)),
    Operation.INVERT: ((0,), lambda im, v: ImageOps.invert(im)),
    Operation.HUE: ((0.1, -0.1, 0.02, 0.5), turned),
    Operation.BLUR: ((0.1, 0.5, 1.3, 2.0), lambda im, v: im.filter(ImageFilter.GaussianBlur(v))),
}
INTERPOLATING = (Operation.SHEAR_X, Operation.SHEAR_Y, Operation.BLUR)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("operation", list(PILLOW), ids=lambda operation: operation.name.lower())
def test_an_operation_is_pillows(operation: Operation, channels: int, engine: ModuleType) -> None:
    if channels == 1 and operation == Operation.HUE:
        pytest.skip("grey has no hue")
    values, reference = PILLOW[operation]
    for value in values:
        images = photographs(channels=channels)
        expected = torch.stack([as_tensor(reference(as_picture(image), value)) for image in images])
        codes = torch.full((len(images), 1), int(operation))
        found = engine.operate(images, codes, torch.full((len(images), 1), value, dtype=torch.float64))
        if operation in INTERPOLATING:
            far = ((found.int() - expected.int()).abs() > 1).float().mean().item()
            assert far < 0.01, f"{operation.name} {value}: {far:.2%} of the pixels are off by more than a level"
        else:
            assert torch.equal(found, expected), f"{operation.name} {value}"


@pytest.mark.parametrize("engine", ENGINES)
def test_flat_images_come_through_every_operation(engine: ModuleType) -> None:
    images = torch.tensor([0, 7, 255], dtype=torch.uint8).view(3, 1, 1, 1).expand(3, 3, 8, 8).contiguous()
    for operation in (Operation.AUTOCONTRAST, Operation.EQUALIZE, Operation.BLUR, Operation.SHARPNESS):
        codes, values = torch.full((3, 1), int(operation)), torch.ones(3, 1, dtype=torch.float64)
        assert torch.equal(engine.operate(images.clone(), codes, values), images), operation.name


def test_the_engines_run_a_whole_program_alike() -> None:
    images, draws = photographs(200), torch.Generator().manual_seed(0)
    codes = torch.randint(0, len(Operation), (len(images), 3), generator=draws)
    values = torch.rand(len(images), 3, generator=draws, dtype=torch.float64) * 0.3
    values = torch.where(codes == Operation.POSTERIZE, 5.0, values)
    one, other = (engine.operate(images.clone(), codes, values) for engine in (compiled, batched))
    assert (one != other).float().mean() < 1e-3
    assert torch.equal(compiled.operate(images.clone(), torch.zeros_like(codes), values), images)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("side", [(32, 32), (8, 8), (48, 20)])
def test_a_box_is_resized_as_pillow_does_it(engine: ModuleType, side: tuple[int, int]) -> None:
    images, draws = photographs(), torch.Generator().manual_seed(0)
    corner = torch.rand(len(images), 2, generator=draws, dtype=torch.float64) * 16
    size = 4 + torch.rand(len(images), 2, generator=draws, dtype=torch.float64) * (SIDE - corner - 4)
    boxes, nobody = torch.cat([corner, corner + size], dim=1), torch.zeros(len(images), dtype=torch.bool)
    found = engine.resize(images, torch.arange(len(images)), boxes, nobody, side)
    expected = torch.stack(
        [
            as_tensor(as_picture(image).resize(side[::-1], Image.Resampling.BILINEAR, box=tuple(box.tolist())))
            for image, box in zip(images, boxes, strict=True)
        ]
    )
    assert ((found.int() - expected.int()).abs() > 1).float().mean() < 0.01
    mirrored = engine.resize(images, torch.arange(len(images)), boxes, ~nobody, side)
    assert torch.equal(mirrored, found.flip(3))


def test_the_engines_shift_cover_and_normalise_alike() -> None:
    images, draws = photographs(), torch.Generator().manual_seed(0)
    rows = torch.randint(len(images), (40,), generator=draws)
    offsets = torch.randint(-4, 5, (40, 2), generator=draws)
    flip = torch.randint(2, (40,), generator=draws, dtype=torch.bool)
    holes = torch.randint(0, SIDE, (40, 4), generator=draws)
    scale, shift = torch.rand(3, generator=draws), torch.rand(3, generator=draws)
    seen = []
    for engine in (compiled, batched):
        views = engine.cover(engine.shift(images, rows, offsets, flip), holes)
        seen.append((views, engine.normalise(views, scale, shift)))
    assert torch.equal(seen[0][0], seen[1][0])
    assert torch.equal(seen[0][1], seen[1][1])
    assert seen[0][1].is_contiguous(memory_format=torch.channels_last)
    down, right = offsets[0].tolist()
    plain = images[rows[0]].flip(2) if flip[0] else images[rows[0]]
    expected = torch.zeros_like(plain)
    expected[:, max(down, 0) : SIDE + min(down, 0), max(right, 0) : SIDE + min(right, 0)] = plain[
        :, max(-down, 0) : SIDE - max(down, 0), max(-right, 0) : SIDE - max(right, 0)
    ]
    assert torch.equal(compiled.shift(images, rows, offsets, flip)[0], expected)
