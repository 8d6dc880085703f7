"""Plain cross-entropy learns clean labels."""

from __future__ import annotations

from helpers import blobs, method_on, small_cross_entropy

from plremix.data.sources import arrays


def test_it_learns_what_can_be_learned() -> None:
    data = arrays.from_arrays(blobs(wrong=0.0))
    method = method_on(data, small_cross_entropy(epochs=15, lr=0.1, lr_epochs=()))
    losses = [method.train_epoch(epoch)["loss"] for epoch in range(15)]
    assert losses[-1] < losses[0] / 2
    assert (method.logits(data.test_images).argmax(1) == data.test_labels).float().mean() > 0.9
    assert method.clean_samples() is None
    assert not method.verdict().is_label_issue.any()
