"""Which operations an image gets, and how strong: AutoAugment, RandAugment and SimCLR's colours, drawn per image.

A policy draws a program for every image of a batch: operation codes (n, L) and values (n, L), see `operations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from plremix.data.augment.operations import Operation


class Program(NamedTuple):
    """What each image of a batch goes through, in order."""

    codes: Tensor  # int64 (n, L) of `Operation`
    values: Tensor  # float64 (n, L)


Policy = Callable[[int, int, torch.Generator], Program]  # count, side in pixels, generator


class Step(NamedTuple):
    """An operation of a sub-policy: applied with a probability, at one of ten magnitudes."""

    probability: float
    operation: Operation
    magnitude: int = 0  # 0 to 9


def _magnitudes(first: float, last: float) -> Tensor:
    return torch.linspace(first, last, 10, dtype=torch.float64)


# Ten evenly spaced magnitudes an operation, as the published code has them.
_ENHANCE = _magnitudes(0, 0.9)
MAGNITUDES: dict[Operation, Tensor] = {
    Operation.SHEAR_X: _magnitudes(0, 0.3),
    Operation.SHEAR_Y: _magnitudes(0, 0.3),
    Operation.TRANSLATE_X: _magnitudes(0, 150 / 331),
    Operation.TRANSLATE_Y: _magnitudes(0, 150 / 331),
    Operation.ROTATE: _magnitudes(0, 30),
    Operation.COLOR: _ENHANCE,
    Operation.CONTRAST: _ENHANCE,
    Operation.SHARPNESS: _ENHANCE,
    Operation.BRIGHTNESS: _ENHANCE,
    Operation.POSTERIZE: _magnitudes(8, 4).round(),
    Operation.SOLARIZE: _magnitudes(256, 0),
}
FACTORS = (Operation.COLOR, Operation.CONTRAST, Operation.SHARPNESS, Operation.BRIGHTNESS)  # 1 ± magnitude
SIGNED = (  # ± magnitude
    Operation.SHEAR_X,
    Operation.SHEAR_Y,
    Operation.TRANSLATE_X,
    Operation.TRANSLATE_Y,
    Operation.ROTATE,
)


def _sub_policies(text: str) -> tuple[tuple[Step, Step], ...]:
    """`.1 invert 7, .2 contrast 6 | ...` as steps: probability, operation, magnitude."""

    def step(words: list[str]) -> Step:
        return Step(float(words[0]), Operation[words[1].upper()], *(int(word) for word in words[2:]))

    pairs = [[step(part.split()) for part in pair.split(",")] for pair in text.split("|")]
    return tuple((first, second) for first, second in pairs)


CIFAR = _sub_policies("""
    .1 invert 7, .2 contrast 6      | .7 rotate 2, .3 translate_x 9      | .8 sharpness 1, .9 sharpness 3
    | .5 shear_y 8, .7 translate_y 9  | .5 autocontrast, .9 equalize       | .2 shear_y 7, .3 posterize 7
    | .4 color 3, .6 brightness 7     | .3 sharpness 9, .7 brightness 9    | .6 equalize, .5 equalize
    | .6 contrast 7, .6 sharpness 5   | .7 color 7, .5 translate_x 8       | .3 equalize, .4 autocontrast
    | .4 translate_y 3, .2 sharpness 6 | .9 brightness 6, .2 color 8       | .5 solarize 2, 0 invert
    | .2 equalize, .6 autocontrast    | .2 equalize, .6 equalize           | .9 color 9, .6 equalize
    | .8 autocontrast, .2 solarize 8  | .1 brightness 3, .7 color 0        | .4 solarize 5, .9 autocontrast
    | .9 translate_y 9, .7 translate_y 9 | .9 autocontrast, .8 solarize 3  | .8 equalize, .1 invert
    | .7 translate_y 9, .9 autocontrast
""")

IMAGENET = _sub_policies("""
    .4 posterize 8, .6 rotate 9       | .6 solarize 5, .6 autocontrast     | .8 equalize, .6 equalize
    | .6 posterize 7, .6 posterize 6  | .4 equalize, .2 solarize 4         | .4 equalize, .8 rotate 8
    | .6 solarize 3, .6 equalize      | .8 posterize 5, 1 equalize         | .2 rotate 3, .6 solarize 8
    | .6 equalize, .4 posterize 6     | .8 rotate 8, .4 color 0            | .4 rotate 9, .6 equalize
    | 0 equalize, .8 equalize         | .6 invert, 1 equalize              | .6 color 4, 1 contrast 8
    | .8 rotate 8, 1 color 2          | .8 color 8, .8 solarize 7          | .4 sharpness 7, .6 invert
    | .6 shear_x 5, 1 equalize        | .4 color 0, .6 equalize            | .4 equalize, .2 solarize 4
    | .6 solarize 5, .6 autocontrast  | .6 invert, 1 equalize              | .6 color 4, 1 contrast 8
    | .8 equalize, .6 equalize
""")


def auto_augment(sub_policies: tuple[tuple[Step, Step], ...]) -> Policy:
    """One of the sub-policies an image; each of its two steps happens with its own probability and a random sign."""
    codes = torch.tensor([[step.operation for step in pair] for pair in sub_policies])
    probabilities = torch.tensor([[step.probability for step in pair] for pair in sub_policies], dtype=torch.float64)
    plus, minus = (
        torch.stack([torch.stack([_value(step, sign) for step in pair]) for pair in sub_policies]) for sign in (1, -1)
    )

    def draw(count: int, side: int, generator: torch.Generator) -> Program:
        chosen = torch.randint(len(sub_policies), (count,), generator=generator)
        happens = torch.rand(count, 2, generator=generator, dtype=torch.float64) < probabilities[chosen]
        negative = torch.rand(count, 2, generator=generator) < 0.5
        values = torch.where(negative, minus[chosen], plus[chosen])
        return Program(torch.where(happens, codes[chosen], Operation.NONE), values)

    return draw


def _value(step: Step, sign: int) -> Tensor:
    if step.operation not in MAGNITUDES:
        return torch.zeros((), dtype=torch.float64)
    magnitude = MAGNITUDES[step.operation][step.magnitude]
    if step.operation in FACTORS:
        return 1 + sign * magnitude
    return sign * magnitude if step.operation in SIGNED else magnitude


RAND_AUGMENT = tuple(
    Operation[name]
    for name in [
        "NONE",
        "AUTOCONTRAST",
        "BRIGHTNESS",
        "COLOR",
        "CONTRAST",
        "EQUALIZE",
        "POSTERIZE",
        "ROTATE",
        "SHARPNESS",
        "SHEAR_X",
        "SHEAR_Y",
        "SOLARIZE",
        "TRANSLATE_X",
        "TRANSLATE_Y",
    ]
)


def rand_augment(steps: int = 4) -> Policy:
    """`steps` of fourteen operations an image, each at a magnitude anywhere in its range."""
    operations = torch.tensor(RAND_AUGMENT)
    lows, highs = torch.tensor([_range(operation) for operation in RAND_AUGMENT], dtype=torch.float64).unbind(1)

    def draw(count: int, side: int, generator: torch.Generator) -> Program:
        chosen = torch.randint(len(operations), (count, steps), generator=generator)
        where = torch.rand(count, steps, generator=generator, dtype=torch.float64)
        values = lows[chosen] + where * (highs - lows)[chosen]
        codes = operations[chosen]
        return Program(codes, torch.where(codes == Operation.POSTERIZE, values.round(), values))

    return draw


def _range(operation: Operation) -> tuple[float, float]:
    if operation not in MAGNITUDES:
        return 0.0, 0.0
    first, last = MAGNITUDES[operation][[0, -1]].tolist()
    if operation in FACTORS:
        return 1 - last, 1 + last
    return (-last, last) if operation in SIGNED else (min(first, last), max(first, last))


def simclr_colours(strength: float = 0.4, hue: float = 0.1) -> Policy:
    """Colour jitter in a random order (probability 0.8), greyscale (0.2), and blur (0.5) up to 2 pixels of 224."""
    jitter = torch.tensor([Operation.BRIGHTNESS, Operation.CONTRAST, Operation.COLOR, Operation.HUE])
    spread = torch.tensor([strength, strength, strength, hue], dtype=torch.float64)
    middle = torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=torch.float64)

    def draw(count: int, side: int, generator: torch.Generator) -> Program:
        def uniform(*shape: int) -> Tensor:
            return torch.rand(count, *shape, generator=generator, dtype=torch.float64)

        order = uniform(4).argsort(1)
        values = (middle + (2 * uniform(4) - 1) * spread).gather(1, order)
        codes = torch.where(uniform(1) < 0.8, jitter[order], Operation.NONE)
        grey = torch.where(uniform(1) < 0.2, Operation.COLOR, Operation.NONE)
        blur = torch.where(uniform(1) < 0.5, Operation.BLUR, Operation.NONE)
        radius = (0.1 + 1.9 * uniform(1)) * side / 224
        return Program(
            torch.cat([codes, grey, blur], dim=1), torch.cat([values, torch.zeros_like(radius), radius], dim=1)
        )

    return draw
