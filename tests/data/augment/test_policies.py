"""The policies hold what the paper's code has, and draw it as often as they should."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import torch

from plremix.data.augment import policies
from plremix.data.augment.operations import Operation

# As AutoAugment was published: (probability, operation, magnitude index); "x2": it stands in the list twice.
CIFAR = """.1 invert 7, .2 contrast 6 | .7 rotate 2, .3 translateX 9 | .8 sharpness 1, .9 sharpness 3 | .5 shearY 8,
.7 translateY 9 | .5 autocontrast, .9 equalize | .2 shearY 7, .3 posterize 7 | .4 color 3, .6 brightness 7 |
.3 sharpness 9, .7 brightness 9 | .6 equalize, .5 equalize | .6 contrast 7, .6 sharpness 5 |
.7 color 7, .5 translateX 8 |
.3 equalize, .4 autocontrast | .4 translateY 3, .2 sharpness 6 | .9 brightness 6, .2 color 8 | .5 solarize 2, 0 invert |
.2 equalize, .6 autocontrast | .2 equalize, .6 equalize | .9 color 9, .6 equalize | .8 autocontrast, .2 solarize 8 |
.1 brightness 3, .7 color 0 | .4 solarize 5, .9 autocontrast | .9 translateY 9, .7 translateY 9 |
.9 autocontrast, .8 solarize 3 | .8 equalize, .1 invert | .7 translateY 9, .9 autocontrast"""
IMAGENET = """.4 posterize 8, .6 rotate 9 | .6 solarize 5, .6 autocontrast x2 | .8 equalize, .6 equalize x2 |
.6 posterize 7, .6 posterize 6 | .4 equalize, .2 solarize 4 x2 | .4 equalize, .8 rotate 8 | .6 solarize 3, .6 equalize |
.8 posterize 5, 1 equalize | .2 rotate 3, .6 solarize 8 | .6 equalize, .4 posterize 6 | .8 rotate 8, .4 color 0 |
.4 rotate 9, .6 equalize | 0 equalize, .8 equalize | .6 invert, 1 equalize x2 | .6 color 4, 1 contrast 8 x2 |
.8 rotate 8, 1 color 2 | .8 color 8, .8 solarize 7 | .4 sharpness 7, .6 invert | .6 shearX 5, 1 equalize |
.4 color 0, .6 equalize"""
TABLES = {"cifar": (policies.CIFAR, CIFAR), "imagenet": (policies.IMAGENET, IMAGENET)}


def listed(text: str) -> Counter[tuple[tuple[float, str, int], ...]]:
    found: Counter[tuple[tuple[float, str, int], ...]] = Counter()
    for pair in text.replace("\n", " ").split("|"):
        twice = pair.rstrip().endswith("x2")
        steps = re.findall(r"(\d?\.?\d+) ([a-zA-Z]+)(?: (\d+))?", pair.replace("x2", ""))
        found[tuple((float(p), name.upper(), int(index or 0)) for p, name, index in steps)] += 2 if twice else 1
    return found


@pytest.mark.parametrize("name", list(TABLES))
def test_the_sub_policies_are_the_published_ones(name: str) -> None:
    ours, text = TABLES[name]
    named = Counter(
        tuple((step.probability, step.operation.name.replace("_", ""), step.magnitude) for step in pair)
        for pair in ours
    )
    assert named == listed(text)
    assert len(ours) == 25


@pytest.mark.parametrize("name", list(TABLES))
def test_operations_come_as_often_as_their_probabilities_say(name: str) -> None:
    sub_policies, count = TABLES[name][0], 10_000
    codes, _ = policies.auto_augment(sub_policies)(count, 32, torch.Generator().manual_seed(0))
    for place in (0, 1):
        expected = Counter[int]()
        for pair in sub_policies:
            expected[pair[place].operation] += pair[place].probability / len(sub_policies)
        for operation, share in expected.items():
            seen = (codes[:, place] == operation).float().mean().item()
            deviation = (share * (1 - share) / count) ** 0.5
            assert abs(seen - share) <= 4.5 * deviation + 1e-9, f"{Operation(operation).name}: {seen} for {share}"


def test_magnitudes_and_signs_are_the_published_ones() -> None:
    steps = {
        Operation.SHEAR_X: (0.3 * 5 / 9, "either sign"),
        Operation.TRANSLATE_Y: (150 / 331 * 5 / 9, "either sign"),
        Operation.ROTATE: (30 * 5 / 9, "either sign"),
        Operation.POSTERIZE: (6, "as it is"),
        Operation.SOLARIZE: (256 * 4 / 9, "as it is"),
        Operation.COLOR: (0.5, "around 1"),
    }
    for operation, (magnitude, sign) in steps.items():
        step = policies.Step(1.0, operation, 5)
        _, values = policies.auto_augment(((step, step),))(200, 32, torch.Generator().manual_seed(0))
        expected = {"either sign": (-magnitude, magnitude), "as it is": (magnitude,), "around 1": (0.5, 1.5)}[sign]
        assert sorted({round(value, 6) for value in values.flatten().tolist()}) == pytest.approx(expected, abs=1e-5)


def test_rand_augment_draws_four_of_fourteen_within_their_ranges() -> None:
    codes, values = policies.rand_augment()(10_000, 32, torch.Generator().manual_seed(0))
    assert codes.shape == (10_000, 4)
    counts = torch.bincount(codes.flatten(), minlength=len(Operation))
    assert int((counts > 0).sum()) == 14
    assert counts[counts > 0].float().div(40_000).sub(1 / 14).abs().max() < 0.01
    rotations = values[codes == Operation.ROTATE]
    assert -30 <= rotations.min() < -25
    assert 25 < rotations.max() <= 30
    assert set(values[codes == Operation.POSTERIZE].tolist()) == {4.0, 5.0, 6.0, 7.0, 8.0}


def test_simclr_jitters_in_any_order_and_greys_a_fifth() -> None:
    codes, values = policies.simclr_colours()(10_000, 224, torch.Generator().manual_seed(0))
    jittered = codes[:, 0] != Operation.NONE
    assert jittered.float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert len({tuple(row) for row in codes[jittered, :4].tolist()}) == 24
    assert (codes[:, 4] == Operation.COLOR).float().mean().item() == pytest.approx(0.2, abs=0.02)
    assert (codes[:, 5] == Operation.BLUR).float().mean().item() == pytest.approx(0.5, abs=0.02)
    hues = values[:, :4][codes[:, :4] == Operation.HUE]
    assert hues.abs().max() <= 0.1
    assert values[:, 5].max() <= 2.0
