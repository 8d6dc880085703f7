"""How good it is: accuracy on the test set, the split against the truth, and wrong labels found."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from plremix.methods.base import ClassSets

TOP5_FROM = 10  # classes; below, the best five say nothing
LARGEST_SET = 6  # classes of a sample; counting takes 2^k passes


def accuracies(logits: Tensor, labels: Tensor, name: str = "test") -> dict[str, float]:
    """`test_accuracy`, and `test_top5` from ten classes up, as fractions of 1; `name`: of another set."""
    best = logits.topk(min(5, logits.shape[1]), dim=1).indices
    hit = best == labels[:, None].to(best.device)
    result = {f"{name}_accuracy": float(hit[:, 0].double().mean())}
    if logits.shape[1] >= TOP5_FROM:
        result[f"{name}_top5"] = float(hit.any(1).double().mean())
    return result


def split_quality(is_clean: Tensor, clean_probability: Tensor, is_right: Tensor) -> dict[str, float]:
    """`clean_precision`, `clean_recall`, `clean_auroc` of the networks' splits (n, N), on average over the networks.

    Samples that no split was made of (their probability is NaN) do not count. What has no meaning (no sample is clean,
    no label is right) is left out.
    """
    split = ~clean_probability.isnan().any(0).cpu()
    right = is_right.cpu()[split].numpy()
    networks = [_found(one, right) for one in is_clean.cpu()[:, split].numpy()]
    if 0 < right.sum() < len(right):
        for found, probability in zip(networks, clean_probability.cpu()[:, split].double().numpy(), strict=True):
            found["auroc"] = float(roc_auc_score(right, probability))
    names = [name for name in networks[0] if all(name in found for found in networks)]
    return {f"clean_{name}": float(np.mean([found[name] for found in networks])) for name in names}


def negative_quality(sets: list[ClassSets], classes: int, truth: Tensor | None) -> dict[str, float]:
    """`negative_selected`, the share of all pairs of samples that the contrast part pushes apart, and
    `negative_correct`, the share of those whose true classes differ, where the truth is known.

    On average over the networks; what has no meaning (no pair, sets too large to count) is left out.
    """
    found: dict[str, list[float]] = {}
    for rows, likely in sets:
        if likely.shape[1] > LARGEST_SET or len(rows) < 2:
            return {}
        members = _sets(likely, classes)
        selected = _disjoint_pairs(members, classes, np.zeros(len(rows), dtype=np.int64))
        found.setdefault("selected", []).append(selected / (len(rows) * (len(rows) - 1)))
        if truth is not None and selected:
            wrong = _disjoint_pairs(members, classes, truth[rows].numpy())  # same true class, and yet pushed apart
            found.setdefault("correct", []).append(1 - wrong / selected)
    return {f"negative_{name}": float(np.mean(values)) for name, values in found.items() if len(values) == len(sets)}


def _sets(likely: Tensor, classes: int) -> NDArray[np.int64]:
    """Rows in rising order without repetition; what is left over is filled up with the number after the last class."""
    members = np.sort(likely.cpu().numpy().astype(np.int64), axis=1)
    members[:, 1:][members[:, 1:] == members[:, :-1]] = classes
    return np.sort(members, axis=1)


def _disjoint_pairs(members: NDArray[np.int64], classes: int, group: NDArray[np.int64]) -> int:
    """Ordered pairs of different samples of one group whose sets have nothing in common, counted without any pair.

    Inclusion and exclusion: the pairs with nothing in common are the sum over all sets S of (-1)^|S| n(S)^2, where n(S)
    samples of the group have S among their classes. A set of k classes has 2^k such S, so this is linear in N.
    """
    width = members.shape[1]
    total = -len(members) if width == 0 else 0  # a sample is no pair with itself, and a set is never without itself
    for size in range(width + 1):
        codes = []
        for columns in itertools.combinations(range(width), size):
            chosen = members[:, columns]
            code = group.copy()
            for column in chosen.T:
                code = code * (classes + 1) + column
            codes.append(code[(chosen < classes).all(1)])
        counts = np.unique(np.concatenate(codes), return_counts=True)[1]
        total += (-1) ** size * int((counts.astype(np.int64) ** 2).sum())
    return total


def largest_predicted(logits: Tensor) -> float:
    """Share of the images that the most predicted class takes."""
    return float(torch.bincount(logits.argmax(1)).max() / len(logits))


def detection(
    label_score: NDArray[np.float64], is_label_issue: NDArray[np.bool_], is_wrong: NDArray[np.bool_]
) -> dict[str, float | None]:
    """How well wrong labels were found (positive = the given label is wrong)."""
    found = _found(is_label_issue, is_wrong)
    both = bool(0 < is_wrong.sum() < len(is_wrong))
    return {
        "auroc": float(roc_auc_score(is_wrong, -label_score)) if both else None,
        "average_precision": float(average_precision_score(is_wrong, -label_score)) if both else None,
        "precision": found.get("precision"),
        "recall": found.get("recall"),
    }


def last_accuracy(history: list[dict[str, object]]) -> float | None:
    """Mean over the last ten epochs after warm-up that were tested; where the run is all warm-up, over its last ten.

    Data with a validation set is tested once, after the last epoch: that is then both Best and Last.
    """
    tested = [epoch for epoch in history if "test_accuracy" in epoch]
    counted = [epoch for epoch in tested if epoch["phase"] != "warmup"] or tested
    return float(np.mean([epoch["test_accuracy"] for epoch in counted[-10:]])) if counted else None


def final_accuracy(history: list[dict[str, object]]) -> float | None:
    """Of the networks as they are in the end: of the last epoch that was tested."""
    tested = [float(epoch["test_accuracy"]) for epoch in history if "test_accuracy" in epoch]  # type: ignore[arg-type]
    return tested[-1] if tested else None


def best_accuracy(history: list[dict[str, object]]) -> float | None:
    """The best epoch's; chosen on the test set, as the field does."""
    tested = [float(epoch["test_accuracy"]) for epoch in history if "test_accuracy" in epoch]  # type: ignore[arg-type]
    return max(tested, default=None)


def _found(flagged: NDArray[np.bool_], positive: NDArray[np.bool_]) -> dict[str, float]:
    hits = float((flagged & positive).sum())
    quality = {}
    if flagged.any():
        quality["precision"] = hits / float(flagged.sum())
    if positive.any():
        quality["recall"] = hits / float(positive.sum())
    return quality


def is_right(given: Tensor, truth: Tensor | None) -> Tensor | None:
    """Which given labels are right (N,), where the truth is known."""
    return None if truth is None else torch.eq(given.cpu(), truth.cpu())
