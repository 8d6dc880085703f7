"""Label noise has the rates of its definition, and noise files are read with care."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from plremix.data import noise
from plremix.errors import InputError
from plremix.randomness import generator

LABELS = torch.arange(10).repeat(5000)


@pytest.mark.parametrize(
    ("ratio", "wrong"), [(0.0, 0.0), (0.2, 0.18), (0.5, 0.45), (0.8, 0.72), (0.9, 0.81), (1.0, 0.9)]
)
def test_symmetric_noise_may_draw_the_true_class_again(ratio: float, wrong: float) -> None:
    noisy = noise.symmetric(LABELS, 10, ratio, generator(0, "noise"))
    assert (noisy != LABELS).float().mean().item() == pytest.approx(wrong, abs=0.005)
    changed = noisy[noisy != LABELS]
    if len(changed):
        assert torch.bincount(changed, minlength=10).min() > 0.9 * len(changed) / 10


def test_asymmetric_noise_goes_to_the_next_class_or_through_the_map() -> None:
    noisy = noise.asymmetric(LABELS, 10, 0.4, generator(0, "noise"))
    moved = noisy != LABELS
    assert moved.float().mean().item() == pytest.approx(0.4, abs=1e-4)
    assert torch.equal(noisy[moved], (LABELS[moved] + 1) % 10)
    cifar = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}
    noisy = noise.asymmetric(LABELS, 10, 0.4, generator(0, "noise"), cifar)
    moved = noisy != LABELS
    assert moved.float().mean().item() == pytest.approx(0.2, abs=0.005)
    assert all(cifar[int(a)] == int(b) for a, b in zip(LABELS[moved], noisy[moved], strict=True))


GROUPS = [(0, 3, 7), (1, 2, 8), (4, 5, 6)]


def test_noise_inside_a_group_goes_to_its_next_class_with_the_probability() -> None:
    labels = torch.arange(9).repeat(4000)
    noisy = noise.next_in_group(labels, GROUPS, 0.4, generator(0, "noise"))
    moved = noisy != labels
    after = {group[place]: group[(place + 1) % 3] for group in GROUPS for place in range(3)}
    assert all(after[int(a)] == int(b) for a, b in zip(labels[moved], noisy[moved], strict=True))
    shares = torch.stack([moved[labels == number].double().mean() for number in range(9)])
    assert torch.all((shares - 0.4).abs() < 0.03)
    assert moved.sum() != round(0.4 * len(labels))  # each sample for itself, not a fixed share of all


def test_noise_inside_a_group_at_random_takes_every_other_class_alike() -> None:
    labels = torch.arange(9).repeat(4000)
    noisy = noise.random_in_group(labels, GROUPS, 0.5, generator(0, "noise"))
    pairs = torch.bincount(labels * 9 + noisy, minlength=81).view(9, 9)
    of_class = {member: group for group in GROUPS for member in group}
    for source in range(9):
        others = [target for target in of_class[source] if target != source]
        assert pairs[source].nonzero().flatten().tolist() == sorted(of_class[source])
        assert pairs[source, others].tolist() == pytest.approx([1000, 1000], abs=120)
    assert (noisy != labels).sum() == len(labels) // 2


def test_blocks_are_consecutive_classes() -> None:
    assert [list(block) for block in noise.blocks(10, 5)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    labels = torch.arange(100)
    moved = noise.next_in_group(labels, noise.blocks(100, 5), 1.0, generator(0, "noise"))
    assert (moved[19], moved[11]) == (15, 12)
    with pytest.raises(InputError, match="multiple of 5"):
        noise.blocks(12, 5)


def test_no_noise_inside_a_group_leaves_all_as_it_is() -> None:
    labels = torch.arange(9).repeat(10)
    for draw in (noise.next_in_group, noise.random_in_group):
        assert torch.equal(draw(labels, GROUPS, 0.0, generator(0, "noise")), labels)


def test_the_same_seed_gives_the_same_noise_and_another_another() -> None:
    draw = lambda seed: noise.symmetric(LABELS, 10, 0.5, generator(seed, "noise"))  # noqa: E731
    assert torch.equal(draw(0), draw(0))
    assert not torch.equal(draw(0), draw(1))


def test_a_map_outside_the_classes_is_told() -> None:
    with pytest.raises(InputError, match="the classes are 0 to 9"):
        noise.asymmetric(LABELS, 10, 0.4, generator(0, "noise"), {3: 10})


def test_a_noise_file_comes_back(tmp_path: Path) -> None:
    (tmp_path / "noise.json").write_text(json.dumps([2, 0, 1]))
    assert noise.read_noise_file(tmp_path / "noise.json", 3, 3).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([0, 1], "list of 3 labels"),
        ({"labels": [0, 1, 2]}, "no list"),
        ([0, 1, "2"], "'2'"),
        ([0, 1, 3], "from 0 to 2"),
        ([0, 1, -1], "from 0 to 2"),
        ([0, 1, 1.5], "from 0 to 2"),
        ([0, 1, True], "found True"),
        ("[0, 1", "not JSON"),
        (None, "cannot be read"),
    ],
)
def test_a_noise_file_that_cannot_be_right_is_told(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "noise.json"
    if content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError, match=message):
        noise.read_noise_file(path, 3, 3)
