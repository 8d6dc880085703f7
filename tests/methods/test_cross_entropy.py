"""Plain cross-entropy is what it says, and learns clean labels."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from helpers import blobs, method_on, small_cross_entropy

from plremix.data.dataset import LabelledImages
from plremix.data.sources import arrays


def test_its_loss_is_minus_the_mean_log_probability_of_the_given_labels(tiny: LabelledImages) -> None:
    method = method_on(tiny, small_cross_entropy())
    logits, mine = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([7, 1, 30, 2, 59])
    method.learners[0].forward = lambda images: SimpleNamespace(logits=logits)
    naive = 0.0
    for row, sample in zip(logits.tolist(), mine.tolist(), strict=True):
        given = int(tiny.given_labels[sample])
        naive -= math.log(math.exp(row[given]) / sum(map(math.exp, row))) / 5
    losses = method.losses(mine, torch.zeros(5, 1, 8, 8), 0, 0, 1)
    assert {name: loss.item() for name, loss in losses.items()} == {"loss": pytest.approx(naive, abs=1e-6)}


def test_it_learns_what_can_be_learned() -> None:
    data = arrays.from_arrays(blobs(wrong=0.0))
    method = method_on(data, small_cross_entropy(epochs=15, lr=0.1, lr_epochs=()))
    losses = [method.train_epoch(epoch)["loss"] for epoch in range(15)]
    assert losses[-1] < losses[0] / 2
    assert (method.logits(data.test_images).argmax(1) == data.test_labels).float().mean() > 0.9
    assert method.clean_samples() is None
    assert not method.verdict().is_label_issue.any()
