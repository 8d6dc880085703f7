"""The contrastive losses equal the authors' figures and a naive loop over pairs, and never give NaN."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.losses import PLRLoss, contrastive_loss, reliable_negatives

TOLERANCE = 1e-5


def naive_loss(
    embeddings: Tensor,
    negatives: Tensor,
    flat: bool,
    temperature: float,
    positives: Tensor | None = None,
    keys: Tensor | None = None,
) -> float:
    """One anchor, one pair at a time."""
    samples, views, _ = embeddings.shape
    unit = F.normalize(embeddings, dim=2)
    terms = []
    for i in range(samples):
        for a in range(views):
            attracted, repelled = [], []
            for j in range(samples):
                for c in range(views):
                    similarity = float(unit[i, a] @ unit[j, c]) / temperature
                    if i == j and a == c:
                        continue
                    if i == j or (positives is not None and positives[i, j]):
                        attracted.append(similarity)
                    elif negatives[i, j]:
                        repelled.append(similarity)
            if keys is not None:
                for k, key in enumerate(F.normalize(keys, dim=1)):
                    if negatives[i, samples + k]:
                        repelled.append(float(unit[i, a] @ key) / temperature)
            if not attracted:
                continue
            if flat:
                if repelled:
                    terms.append(math.log(sum(math.exp(s - sum(attracted)) for s in repelled)))
            else:
                total = sum(math.exp(s) for s in attracted + repelled)
                terms.append(-sum(math.log(math.exp(s) / total) for s in attracted) / len(attracted))
    return sum(terms) / len(terms)


def numeric_gradient(function, point: Tensor, step: float = 1e-6) -> Tensor:
    gradient = torch.zeros_like(point)
    for index in range(point.numel()):
        shift = torch.zeros_like(point).view(-1)
        shift[index] = step
        shift = shift.view_as(point)
        gradient.view(-1)[index] = (function(point + shift) - function(point - shift)) / (2 * step)
    return gradient


@pytest.mark.parametrize("case", range(48))
def test_plr_equals_the_published_figures_in_value_and_gradient(parity: dict[str, Tensor], case: int) -> None:
    get = lambda name: parity[f"plr{case:02d}_{name}"]  # noqa: E731
    embeddings = get("features").clone().requires_grad_()
    negatives = reliable_negatives(get("logits"), int(get("kappa")), get("labels"))
    assert torch.equal(negatives, get("negatives"))
    flat, temperature = bool(get("flat")), float(get("temperature"))
    loss = PLRLoss(int(get("kappa")), flat, temperature)(embeddings, get("logits"), get("labels"))
    loss.backward()
    assert abs(loss.item() - float(get("loss"))) < TOLERANCE
    assert (embeddings.grad - get("grad")).abs().max() < TOLERANCE


@pytest.mark.parametrize("case", range(5))
def test_warmup_contrast_equals_the_published_figures(parity: dict[str, Tensor], case: int) -> None:
    get = lambda name: parity[f"nce{case:02d}_{name}"]  # noqa: E731
    features = get("features").clone().requires_grad_()
    embeddings = features.view(int(get("n_views")), -1, features.shape[1]).transpose(0, 1)
    loss = contrastive_loss(embeddings, flat=bool(get("flat")), temperature=float(get("temperature")))
    loss.backward()
    assert abs(loss.item() - float(get("loss"))) < TOLERANCE
    assert (features.grad - get("grad")).abs().max() < TOLERANCE


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("views", [2, 8])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_infonce_equals_a_loop_over_pairs(dtype: torch.dtype, views: int, temperature: float) -> None:
    draws = torch.Generator().manual_seed(views)
    embeddings = torch.randn(6, views, 5, generator=draws, dtype=dtype)
    negatives = torch.rand(6, 6, generator=draws) < 0.5
    loss = contrastive_loss(embeddings, negatives, temperature=temperature)
    assert loss.dtype == dtype
    expected = naive_loss(embeddings.double(), negatives, False, temperature)
    assert abs(loss.item() - expected) < (1e-4 if dtype == torch.float32 else 1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("views", [2, 8])
def test_flatnce_is_one_and_has_the_gradient_of_the_naive_log_sum(dtype: torch.dtype, views: int) -> None:
    draws = torch.Generator().manual_seed(views)
    embeddings = torch.randn(4, views, 3, generator=draws, dtype=torch.float64)
    negatives = (torch.rand(4, 4, generator=draws) < 0.6) | torch.eye(4).roll(1, 0).bool()
    expected = numeric_gradient(lambda point: naive_loss(point, negatives, True, 0.5), embeddings)
    point = embeddings.to(dtype).requires_grad_()
    loss = contrastive_loss(point, negatives, flat=True, temperature=0.5)
    loss.backward()
    assert loss.item() == pytest.approx(1.0, abs=1e-6)
    assert torch.allclose(point.grad.double(), expected, atol=1e-4 if dtype == torch.float32 else 1e-7)


@pytest.mark.parametrize("views", [2, 8])
def test_further_positives_and_a_queue_equal_a_loop_over_pairs(views: int) -> None:
    draws = torch.Generator().manual_seed(views)
    embeddings = torch.randn(5, views, 4, generator=draws, dtype=torch.float64)
    keys = torch.randn(7, 4, generator=draws, dtype=torch.float64)
    positives = torch.zeros(5, 5, dtype=torch.bool)
    positives[0, 1] = positives[1, 0] = True
    negatives = torch.rand(5, 12, generator=draws) < 0.5
    loss = contrastive_loss(embeddings, negatives, positives=positives, keys=keys, temperature=0.7)
    assert loss.item() == pytest.approx(naive_loss(embeddings, negatives, False, 0.7, positives, keys), abs=1e-10)


def test_without_negatives_given_every_other_sample_repels() -> None:
    embeddings = torch.randn(5, 2, 4, generator=torch.Generator().manual_seed(0))
    everyone = ~torch.eye(5, dtype=torch.bool)
    assert torch.equal(contrastive_loss(embeddings), contrastive_loss(embeddings, everyone))


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("views", [2, 8])
def test_a_batch_without_negatives_costs_exactly_nothing(flat: bool, views: int) -> None:
    embeddings = torch.randn(4, views, 3, requires_grad=True)
    loss = contrastive_loss(embeddings, torch.zeros(4, 4, dtype=torch.bool), flat=flat)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(embeddings.grad, torch.zeros_like(embeddings))


def test_a_flat_anchor_without_negatives_is_left_out_of_the_mean() -> None:
    negatives = torch.tensor([[0, 1, 0], [1, 0, 0], [0, 0, 0]]).bool()
    embeddings = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    alone = embeddings[:2].clone().requires_grad_()
    together = embeddings.clone().requires_grad_()
    contrastive_loss(alone, negatives[:2, :2], flat=True).backward()
    contrastive_loss(together, negatives, flat=True).backward()
    assert torch.allclose(together.grad[:2], alone.grad)
    assert torch.equal(together.grad[2], torch.zeros(2, 4, dtype=torch.float64))


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("classes", [2, 3, 4, 5, 6, 10])
def test_plr_with_kappa_3_trains_with_any_number_of_classes(flat: bool, classes: int) -> None:
    draws = torch.Generator().manual_seed(classes)
    embeddings = torch.randn(16, 2, 8, generator=draws).requires_grad_()
    logits = torch.randn(16, classes, generator=draws)
    loss_of = PLRLoss(kappa=3, flat=flat)
    loss_of(embeddings, logits, logits.argmax(1)).backward()
    assert torch.isfinite(embeddings.grad).all()
    assert loss_of.stats["negative_share"] > 0, "kappa is capped so that negatives can exist"
    assert embeddings.grad.abs().max() > 0


def test_negatives_are_the_pairs_with_disjoint_sets() -> None:
    draws = torch.Generator().manual_seed(3)
    logits, labels = torch.randn(20, 10, generator=draws), torch.randint(0, 10, (20,), generator=draws)
    for kappa in (0, 1, 2, 3, 9):
        cap = min(kappa, 4)
        sets = [
            {*row.argsort(descending=True)[:cap].tolist(), int(label)}
            for row, label in zip(logits, labels, strict=True)
        ]
        naive = torch.tensor([[not (one & other) for other in sets] for one in sets])
        assert torch.equal(reliable_negatives(logits, kappa, labels), naive)


def test_kappa_0_needs_labels_and_a_negative_kappa_is_refused() -> None:
    with pytest.raises(ValueError, match="labels are needed"):
        reliable_negatives(torch.randn(4, 3), 0)
    with pytest.raises(ValueError, match="0 or more"):
        PLRLoss(kappa=-1)


def test_stats_say_what_the_loss_saw() -> None:
    embeddings = torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(0))
    logits = torch.eye(6)  # six classes, one sample each
    loss = PLRLoss(kappa=1, flat=True)
    loss(embeddings, logits)
    assert loss.stats["anchors_used"] == 12
    assert loss.stats["negative_share"] == 1.0
    negatives = ~torch.eye(6, dtype=torch.bool)
    assert loss.stats["log_negatives"] == pytest.approx(naive_loss(embeddings, negatives, True, 1.0), abs=1e-5)


@pytest.mark.parametrize("kinds", [(torch.float32, torch.float64), (torch.float64, torch.float32), (torch.half,) * 2])
def test_queued_keys_may_be_of_another_precision(kinds: tuple[torch.dtype, torch.dtype]) -> None:
    embeddings, keys = torch.randn(4, 2, 8), torch.randn(3, 8)
    expected = contrastive_loss(embeddings, keys=keys)
    mixed = contrastive_loss(embeddings.to(kinds[0]), keys=keys.to(kinds[1]))
    assert mixed.item() == pytest.approx(expected.item(), abs=1e-2 if torch.half in kinds else 1e-5)


def test_half_precision_embeddings_do_not_overflow() -> None:
    embeddings = (torch.randn(8, 2, 16) * 1000).half().requires_grad_()
    for flat in (True, False):
        loss = contrastive_loss(embeddings, flat=flat, temperature=0.01)
        assert loss.dtype == torch.float32
        assert torch.isfinite(loss)


@pytest.mark.parametrize("flat", [True, False])
def test_inside_autocast_the_loss_is_that_of_full_precision(flat: bool) -> None:
    embeddings = torch.randn(8, 2, 16, generator=torch.Generator().manual_seed(0))
    keys = torch.randn(4, 16, generator=torch.Generator().manual_seed(1))
    negatives = torch.ones(8, 12, dtype=torch.bool) & ~torch.eye(8, 12, dtype=torch.bool)
    losses, gradients = [], []
    for mixed in (False, True):
        own = embeddings.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.float16, enabled=mixed):
            loss = contrastive_loss(own, negatives, keys=keys, flat=flat, temperature=0.05)
        loss.backward()
        losses.append(loss.detach())
        gradients.append(own.grad)
    assert torch.equal(losses[0], losses[1])
    assert torch.equal(gradients[0], gradients[1])


def test_negatives_of_a_wrong_shape_are_told() -> None:
    with pytest.raises(ValueError, match=r"negatives must be a bool tensor \(4, 6\)"):
        contrastive_loss(torch.randn(4, 2, 3), torch.ones(4, 4, dtype=torch.bool), keys=torch.randn(2, 3))


@pytest.mark.parametrize("flat", [True, False])
def test_without_logits_every_other_sample_repels(flat: bool) -> None:
    embeddings = torch.randn(6, 2, 8, generator=torch.Generator().manual_seed(0))
    loss = PLRLoss(kappa=1, flat=flat, temperature=0.5)
    expected = contrastive_loss(embeddings, flat=flat, temperature=0.5)
    assert loss(embeddings).item() == pytest.approx(expected.item())
    assert loss.stats["negative_share"] == 1.0


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_that_makes_no_sense_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature must be above 0"):
        contrastive_loss(torch.randn(4, 2, 3), temperature=temperature)
    with pytest.raises(ValueError, match="temperature must be above 0"):
        PLRLoss(temperature=temperature)


def test_masks_that_are_none_are_refused() -> None:
    embeddings, pairs = torch.randn(4, 2, 3), torch.ones(4, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"negatives must be a bool tensor \(4, 4\)"):
        contrastive_loss(embeddings, pairs.long())
    with pytest.raises(ValueError, match=r"positives must be a bool tensor \(4, 4\)"):
        contrastive_loss(embeddings, pairs, positives=pairs[:3])
