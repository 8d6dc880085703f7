"""Prototypes and confidence thresholds equal the authors' figures."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.selection import (
    ConfidenceThresholds,
    initial_prototypes,
    prototype_logits,
    soft_pseudo_labels,
    update_prototypes,
    update_prototypes_one_by_one,
)


def test_prototypes_equal_the_published_figures(parity: dict[str, Tensor]) -> None:
    start = initial_prototypes(parity["proto_embeddings"], parity["proto_labels"], 6)
    assert (start - parity["proto_init"]).abs().max() < 1e-5
    moved = update_prototypes(start, parity["proto_update_embeddings"], parity["proto_update_labels"])
    assert (moved - parity["proto_updated"]).abs().max() < 1e-5
    assert torch.equal(moved[5], start[5]), "a class without a confident sample keeps its prototype"


def test_thresholds_and_confident_samples_equal_the_published_figures(parity: dict[str, Tensor]) -> None:
    thresholds = ConfidenceThresholds(parity["conf_tau_g_start"], parity["conf_p_model_start"])
    for case in range(3):
        progress = float(parity[f"conf{case}_epoch"]) / 400
        labels = soft_pseudo_labels(parity["conf_proto_logits"][case], parity["conf_cls_logits"][case], progress)
        thresholds = thresholds.updated(labels)
        assert abs(thresholds.global_threshold - parity[f"conf{case}_tau_g"]) < 1e-5
        assert (thresholds.class_means - parity[f"conf{case}_p_model"]).abs().max() < 1e-5
        assert torch.equal(thresholds.confident(labels), parity[f"conf{case}_mask"])


def test_a_class_that_nobody_was_given_gets_a_harmless_prototype() -> None:
    embeddings = F.normalize(torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    prototypes = initial_prototypes(embeddings, torch.tensor([0, 0, 0, 2, 2, 2]), 3)
    assert torch.equal(prototypes[1], torch.zeros(4))
    assert torch.isfinite(prototype_logits(embeddings, prototypes)).all()
    moved = update_prototypes(prototypes, embeddings[:2], torch.tensor([1, 1]))
    assert torch.allclose(moved[1].norm(), torch.tensor(1.0))


def test_the_papers_update_goes_one_sample_at_a_time() -> None:
    prototypes = torch.eye(2)
    embeddings = torch.tensor([[0.0, 2.0], [0.0, 1.0]])
    expected = prototypes[0]
    for _ in range(2):
        expected = F.normalize(0.9 * expected + 0.1 * torch.tensor([0.0, 1.0]), dim=0)
    moved = update_prototypes_one_by_one(prototypes, embeddings, torch.tensor([0, 0]), 0.9)
    assert torch.allclose(moved[0], expected)
    assert torch.equal(moved[1], prototypes[1])
