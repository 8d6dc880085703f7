"""Contrastive losses (paper, sec. 3.3): InfoNCE and FlatNCE over any negatives, and the pseudo-label relaxed PLR.

Shapes: b samples, v views of each, d embedding size, C classes, K queued keys.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def reliable_negatives(logits: Tensor, kappa: int, labels: Tensor | None = None) -> Tensor:
    """Pairs (b, b) whose sets of likely classes are disjoint: the only pairs that PLR pushes apart.

    A sample's set is its `kappa` most probable classes plus its given label (paper, eq. 9). `logits` may be any scores
    that rank the classes. `kappa` is capped so that two sets can be disjoint at all; `kappa = 0` leaves the given
    label alone (the paper's "only y").
    """
    likely = torch.zeros_like(logits, dtype=torch.float32)  # multi-hot rows
    likely.scatter_(1, likely_classes(logits, kappa, labels), 1.0)
    return (likely @ likely.T) == 0


def likely_classes(logits: Tensor, kappa: int, labels: Tensor | None = None) -> Tensor:
    """The sets behind `reliable_negatives` as class numbers (b, kappa + 1); the given label may stand there twice."""
    if kappa < 0:
        raise ValueError(f"kappa must be 0 or more, got {kappa}")
    if kappa == 0 and labels is None:
        raise ValueError("kappa = 0 takes the given labels alone, so labels are needed")
    likely = logits.topk(min(kappa, max(1, logits.shape[1] // 2 - 1)), dim=1).indices
    return likely if labels is None else torch.cat([likely, labels.view(-1, 1)], dim=1)


def contrastive_loss(
    embeddings: Tensor,
    negatives: Tensor | None = None,
    *,
    positives: Tensor | None = None,
    keys: Tensor | None = None,
    flat: bool = False,
    temperature: float = 1.0,
) -> Tensor:
    """Contrast every view of `embeddings` (b, v, d; normalised inside) with its positives and negatives.

    negatives (b, b) or, with `keys` (K, d), (b, b + K): which samples and keys repel each other; None: all others.
    positives (b, b): samples that attract each other besides a sample's own views (supervised contrast).
    flat: FlatNCE, whose value is 1 and whose gradient counts; otherwise InfoNCE.
    Anchors without a positive or (flat) without a negative are left out; with no anchor left the loss is an exact 0
    that still has a gradient path.
    """
    return contrast_with_stats(
        embeddings, negatives, positives=positives, keys=keys, flat=flat, temperature=temperature
    )[0]


class PLRLoss(nn.Module):
    """The pseudo-label relaxed contrastive loss, for any training loop: `PLRLoss()(embeddings, logits, labels)`.

    embeddings (b, v, d) of two or more views of each sample; logits (b, C) rank the classes of each sample; labels (b,)
    are the given, perhaps wrong, ones. Without logits every other sample repels: as long as a network knows nothing, it
    ranks the classes of all samples alike, and hardly a pair would be left to contrast. After a call `.stats` says what
    it saw (the flat form's own value is always 1): log_negatives, mean over anchors of log sum_j exp((s_ij -
    s_i,positives) / tau), which falls as training goes on; negative_share, of all pairs of different samples;
    anchors_used, views that had something to contrast with.
    """

    def __init__(self, kappa: int = 3, flat: bool = True, temperature: float = 1.0) -> None:
        super().__init__()
        if kappa < 0:
            raise ValueError(f"kappa must be 0 or more, got {kappa}")
        _check_temperature(temperature)
        self.kappa = kappa
        self.flat = flat
        self.temperature = temperature
        self.stats: dict[str, float] = {}

    def forward(self, embeddings: Tensor, logits: Tensor | None = None, labels: Tensor | None = None) -> Tensor:
        negatives = None if logits is None else reliable_negatives(logits.detach(), self.kappa, labels)
        loss, stats = contrast_with_stats(embeddings, negatives, flat=self.flat, temperature=self.temperature)
        self.stats = {name: value.item() for name, value in stats.items()}
        return loss

    def extra_repr(self) -> str:
        return f"kappa={self.kappa}, flat={self.flat}, temperature={self.temperature}"


def contrast_with_stats(
    embeddings: Tensor,
    negatives: Tensor | None = None,
    *,
    positives: Tensor | None = None,
    keys: Tensor | None = None,
    flat: bool = False,
    temperature: float = 1.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """`contrastive_loss`, and what it saw: log_negatives, negative_share, anchors_used (see PLRLoss), as tensors."""
    _check_temperature(temperature)
    samples, views, _ = embeddings.shape
    with torch.autocast(embeddings.device.type, enabled=False):  # half precision overflows exp(s / tau)
        normalised = F.normalize(_full(embeddings).flatten(0, 1), dim=1)  # (bv, d)
        candidates = normalised
        if keys is not None:
            candidates = torch.cat([normalised, F.normalize(keys.to(normalised.dtype), dim=1)])
        similarity = normalised @ candidates.T / temperature  # (bv, bv + K)

        attract, repel = _pair_masks(samples, views, negatives, positives, keys, similarity.device)
        minus_infinity = torch.finfo(similarity.dtype).min
        log_repulsion = similarity.masked_fill(~repel, minus_infinity).logsumexp(1)
        if flat:
            # v_i = log sum_j exp((s_ij - sum of positive s_i) / tau); exp(v - stop_gradient(v)) is 1 with v's gradient.
            log_negatives = log_repulsion - (similarity * attract).sum(1)
            used = attract.any(1) & repel.any(1)
            per_anchor = torch.where(used, log_negatives - log_negatives.detach(), 0.0).exp()
        else:
            # -mean over positives of log(exp(s_pos / tau) / sum over positives and negatives of exp(s / tau))
            pulled = (similarity * attract).sum(1) / attract.sum(1).clamp(min=1)
            log_negatives = log_repulsion - pulled
            log_attraction = similarity.masked_fill(~attract, minus_infinity).logsumexp(1)
            used = attract.any(1) & repel.any()  # a batch without a single negative teaches nothing
            per_anchor = torch.logaddexp(log_attraction, log_repulsion) - pulled
        loss = torch.where(used, per_anchor, 0.0).sum() / used.sum().clamp(min=1)

        contrasted = attract.any(1) & repel.any(1)
        stats = {
            "log_negatives": torch.where(contrasted, log_negatives.detach(), 0.0).sum() / contrasted.sum().clamp(min=1),
            "negative_share": repel.sum() / max(1, repel.numel() - samples * views * views),
            "anchors_used": contrasted.sum(),
        }
        return loss, stats


def _pair_masks(
    samples: int,
    views: int,
    negatives: Tensor | None,
    positives: Tensor | None,
    keys: Tensor | None,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Sample-level relations spread over views: who attracts (bv, bv + K) and who repels (bv, bv + K) each anchor."""
    queued = 0 if keys is None else len(keys)
    itself = torch.eye(samples, dtype=torch.bool, device=device)
    if negatives is None:
        negatives = torch.ones(samples, samples + queued, dtype=torch.bool, device=device)
    _check_mask(negatives, (samples, samples + queued), "negatives", "sample or key")
    if positives is not None:
        _check_mask(positives, (samples, samples), "positives", "sample")
    attracting = itself if positives is None else itself | positives
    negatives = negatives & ~F.pad(attracting, (0, queued), value=False)
    attract = attracting.repeat_interleave(views, 0).repeat_interleave(views, 1)
    attract &= ~torch.eye(samples * views, dtype=torch.bool, device=device)  # a view is not its own positive
    between = negatives[:, :samples].repeat_interleave(views, 0).repeat_interleave(views, 1)
    to_keys = negatives[:, samples:].repeat_interleave(views, 0)
    return F.pad(attract, (0, queued), value=False), torch.cat([between, to_keys], dim=1)


def _check_mask(mask: Tensor, shape: tuple[int, int], name: str, column: str) -> None:
    if mask.shape != shape or mask.dtype != torch.bool:
        raise ValueError(
            f"{name} must be a bool tensor {shape}: a row a sample, a column a {column}; "
            f"got {mask.dtype} {tuple(mask.shape)}"
        )


def _check_temperature(temperature: float) -> None:
    if not temperature > 0:  # nor NaN
        raise ValueError(f"temperature must be above 0, got {temperature}")


def _full(tensor: Tensor) -> Tensor:
    """Half precision goes up to float32; float64 stays."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
