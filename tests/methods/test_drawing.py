"""Epochs of images that are drawn anew: as many of every class, the same again on a second look, nobody else seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import blobs, method_on, small_config, small_cross_entropy

from plremix.config import Config, CoTeachingConfig, ELRConfig
from plremix.data.dataset import LabelledImages
from plremix.data.loading import Loader, class_wise
from plremix.data.sources import arrays
from plremix.methods.drawing import rows_of, spread
from plremix.randomness import generator


def test_a_draw_is_what_the_published_loop_would_take() -> None:
    labels = torch.randint(0, 5, (200,), generator=generator(0, "labels"))
    labels[labels == 4] = 3
    labels[:3] = 4  # a class with fewer images than its share
    for count in (5, 33, 50, 52, 1000):
        order = torch.randperm(200, generator=generator(1, "draw"))
        taken: list[int] = []
        share = dict.fromkeys(range(5), 0)
        for row in order.tolist():
            if share[int(labels[row])] < count / 5 and len(taken) < count:
                taken.append(row)
                share[int(labels[row])] += 1
        assert class_wise(labels, 5, count, generator(1, "draw")).tolist() == sorted(taken)


def test_each_epoch_draws_its_own_and_always_the_same() -> None:
    labels = torch.arange(60) % 3
    config = small_config(epoch_images=12)
    first, second = rows_of(0, config, labels, 3), rows_of(1, config, labels, 3)
    assert torch.equal(first, rows_of(0, config, labels, 3))
    assert not torch.equal(first, second)
    assert labels[first].bincount().tolist() == [4, 4, 4]
    assert torch.equal(rows_of(5, small_config(), labels, 3), torch.arange(60))


def test_what_is_not_drawn_is_unknown() -> None:
    rows = torch.tensor([1, 3])
    assert spread(torch.tensor([True, True]), rows, 4).tolist() == [False, True, False, True]
    table = spread(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), rows, 4)
    assert torch.equal(table[rows], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert table[[0, 2]].isnan().all()


SETTINGS: dict[str, Any] = {"network": "preact-resnet-small", "width": 4, "weak_view": "crop", "strong_view": "distort"}
SETTINGS |= {"batch_size": 8, "embedding_size": 8, "device": "cpu", "epochs": 3}
MAKE: dict[str, Callable[..., Config]] = {
    "plremix": small_config,
    "plremix-queue": lambda **changes: small_config(contrast="plr-queue", queue_size=20, **changes),
    "plremix-neighbours": lambda **changes: small_config(split="neighbours", **changes),
    "dividemix": lambda **changes: small_config(method="dividemix", split="mixture1d", contrast="none", **changes),
    "cross-entropy": small_cross_entropy,
    "elr": lambda **changes: ELRConfig(**SETTINGS, **changes),
    "co-teaching": lambda **changes: CoTeachingConfig(**SETTINGS, forget_epochs=1, contrast="plr-queue", **changes),
}


@pytest.mark.parametrize("name", list(MAKE))
def test_an_epoch_sees_its_own_images_and_the_verdict_all(
    tiny: LabelledImages, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    seen: list[torch.Tensor] = []
    real = Loader._begin

    def begin(self: Loader, mine: torch.Tensor, *rest: Any) -> Any:
        seen.append(mine)
        return real(self, mine, *rest)

    monkeypatch.setattr(Loader, "_begin", begin)
    config = MAKE[name](epoch_images=18)
    method = method_on(tiny, config)
    for epoch in range(3):
        seen.clear()
        metrics = method.train_epoch(epoch)
        drawn = rows_of(epoch, config, tiny.given_labels, 3)
        assert set(torch.cat(seen).tolist()) <= set(drawn.tolist())
        assert len(set(torch.cat(seen).tolist())) >= 16, "all but what does not fill a batch"
        losses = [value for key, value in metrics.items() if key.startswith("loss")]
        assert torch.tensor(losses).isfinite().all()
        if (split := method.clean_samples()) is not None:
            outside = torch.ones(60, dtype=torch.bool)
            outside[drawn] = False
            assert not split[0][:, outside].any()
            assert split[1][:, outside].isnan().all()
            assert split[1][:, drawn].isfinite().all()
    assert len(method.verdict().label_score) == 60
    for network in method.networks:
        assert all(values.isfinite().all() for values in network.state_dict().values())


@pytest.mark.parametrize("name", ["plremix", "cross-entropy"])
def test_drawing_as_many_as_there_are_is_drawing_none(tiny: LabelledImages, name: str) -> None:
    states = []
    for count in (0, 600):
        method = method_on(tiny, MAKE[name](epoch_images=count))
        for epoch in range(2):
            method.train_epoch(epoch)
        states.append(method.networks[0].state_dict())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


@pytest.mark.parametrize("name", ["plremix", "elr"])
def test_what_can_be_learned_is_learned_from_drawn_images(name: str) -> None:
    data = arrays.from_arrays(blobs(count=90, wrong=0.2))
    more = {"warmup_epochs": 4, "lambda_u": 0.0} if name == "plremix" else {}
    config = replace(MAKE[name](epoch_images=45), epochs=12, lr=0.1, lr_epochs=(9,), **more)
    method = method_on(data, config)
    for epoch in range(config.epochs):
        method.train_epoch(epoch)
    assert (method.logits(data.test_images).argmax(1) == data.test_labels).float().mean() > 0.9
    verdict = method.verdict()
    wrong = (data.given_labels != data.true_labels).numpy()
    assert (verdict.is_label_issue == wrong).mean() > 0.85, "also of images that the last epochs did not draw"
