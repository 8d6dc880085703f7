"""The doctor for runs that go wrong: the metrics of a run in, what happened in plain words and what to try out.

Pure: it reads no file and imports nothing of ours. A healthy run has no findings.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

History = list[dict[str, Any]]

CROSS_ENTROPIES = ("loss_classifier", "loss_clean", "loss", "loss_0", "loss_1")  # terms that guessing makes ln C of
DIVERGED = 2.5  # times ln C; JoCoR, which adds two networks up, starts at 2
ONE_CLASS = 0.98  # share of the images in the most predicted class
MOST_NOISE = 0.95  # of the share that is wrong when labels are drawn blindly; 90 % symmetric noise is at 0.90
EMPTY = 0.01  # of the images
FEW_STEPS = 200  # of the optimizer, over the whole run; the digits take 840
CLIMB = 0.03  # of test accuracy, from one tenth of the run to the next
FORGOT = 0.05  # of test accuracy, lost within warm-up
FELL = 0.1  # of test accuracy, from the best epochs to the last
NO_PAIRS = 1e-3  # share of all pairs


class Finding(NamedTuple):
    """A sickness by name, what was seen, and what to try."""

    name: str
    what: str
    advice: str


class Facts(NamedTuple):
    """What the doctor knows of the data."""

    images: int
    classes: int
    largest_given: float  # share of the images in the largest class, by the given labels
    largest_predicted: float | None = None  # share of them in the most predicted class at the end of the run
    noise_rate_estimate: float | None = None  # share of the labels that seem wrong


def examine(config: dict[str, Any], history: History, facts: Facts) -> list[Finding]:
    """All that is wrong with a run, gravest first; where a cause is found, its consequences are not told as well."""
    if not history:
        return []
    for cause in (_learning_rate, _not_finite, _few_steps, _one_class):
        if finding := cause(config, history, facts):
            return [finding]
    others = (_clean_side, _no_negatives, _still_climbing, _warmup, _forgetting)
    found = [finding for sign in others if (finding := sign(config, history, facts))]
    noise = None if found else _noise(config, history, facts)  # labels are not blamed for what has another reason
    return [noise] if noise else found


# --- signs, one a sickness ---


def _not_finite(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    for line in history:
        names = [name for name, value in line.items() if name.startswith("loss") and not math.isfinite(value)]
        if names:
            return Finding(
                "losses not finite",
                f"The losses are not finite from epoch {_number(line)} on ({', '.join(names)}): the weights are lost.",
                f"a learning rate ten times smaller (--lr {config['lr'] / 10:g})"
                + ("" if config.get("precision") == "32-true" else ", or --precision 32-true")
                + "; the run has to start again.",
            )
    return None


def _learning_rate(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    guessing = math.log(max(2, facts.classes))
    for line in history:
        worst = max((line[name] for name in CROSS_ENTROPIES if name in line), default=0.0)
        if worst > DIVERGED * guessing:
            return Finding(
                "learning rate too high",
                f"In epoch {_number(line)} the loss on the training labels is {worst:.3g}; blind guessing has "
                f"{guessing:.2f}. The steps are too large: each one undoes what the last one learned.",
                f"a learning rate ten times smaller (--lr {config['lr'] / 10:g}).",
            )
    return None


def _one_class(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    share = history[-1].get("largest_predicted", facts.largest_predicted)
    if share is not None and share >= ONE_CLASS and facts.largest_given < 0.9 and facts.classes > 1:
        advice = f"a smaller learning rate (--lr {config['lr'] / 10:g})"
        if "warmup_entropy" in config:
            advice += ", a longer warm-up (--warmup-epochs), or --warmup-entropy where few classes look alike"
        return Finding(
            "one class",
            f"{share:.0%} of the images are predicted as one and the same class, although the largest class has "
            f"{facts.largest_given:.0%} of the labels: the networks have collapsed.",
            f"{advice}; and look whether the images differ at all after loading.",
        )
    return None


def _clean_side(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    counts = [(line, line["clean_count"]) for line in history if "clean_count" in line]
    images = _of_an_epoch(config, facts)
    if counts and counts[-1][1] < max(facts.classes, EMPTY * images):
        began = next(line for line, count in counts if count < max(facts.classes, EMPTY * images))
        return Finding(
            "clean side empty",
            f"From epoch {_number(began)} on only {counts[-1][1]:,} of {images:,} samples count as clean: there "
            "are hardly any labels left to learn from.",
            "a lower --clean-threshold, --split neighbours or class-balanced (which keeps some of every class), or a "
            "longer warm-up (--warmup-epochs).",
        )
    return None


def _noise(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    rate = facts.noise_rate_estimate
    if rate is None and "clean_count" in history[-1]:
        rate = 1 - history[-1]["clean_count"] / _of_an_epoch(config, facts)
    blind = 1 - 1 / facts.classes
    if rate is None or not MOST_NOISE * blind < rate < 1 - EMPTY:
        return None
    return Finding(
        "too much noise",
        f"{rate:.0%} of the labels look wrong; with {facts.classes} classes blind guessing is wrong for {blind:.0%}. "
        "Labels as noisy as that carry little: what was learned from them may be worth nothing.",
        "look at some of the images with their labels (is the order of the label file right?), and get a few "
        "hundred labels that can be trusted.",
    )


def _no_negatives(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    relaxed = [
        line for line in history if line.get("phase") == "train" and line["epoch"] >= config.get("warmup_epochs", 0)
    ]
    shares = [line["negative_selected"] for line in relaxed if "negative_selected" in line]
    if shares and max(shares) < NO_PAIRS:
        return Finding(
            "no negative pairs",
            f"At most {max(shares):.2%} of all pairs have disjoint likely classes: the contrastive loss has nothing to "
            "push apart.",
            "a smaller --kappa (1), or --given-label-epochs 0, which takes the given label out of the sets.",
        )
    return None


def _few_steps(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    each = max(1, _of_an_epoch(config, facts) // config["batch_size"])
    taken = each * config["epochs"]
    if taken >= FEW_STEPS or len(history) < config["epochs"]:
        return None
    return Finding(
        "too few steps",
        f"The run has taken about {taken} steps ({each} an epoch): too few to learn much.",
        _longer(config),
    )


def _still_climbing(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    tested = [line["test_accuracy"] for line in history if "test_accuracy" in line]
    part = max(2, len(tested) // 10)
    if len(history) < config["epochs"] or len(tested) < 3 * part:
        return None
    third, second, last = (_mean(tested[len(tested) - k * part :][:part]) for k in (3, 2, 1))
    if min(last - second, second - third) <= CLIMB or _forgetting(config, history, facts):
        return None  # where it has been higher before, more epochs are no cure
    return Finding(
        "too few steps",
        f"The test accuracy still climbs at the end, by {100 * (last - second):.1f} points in the last {part} epochs.",
        _longer(config),
    )


def _of_an_epoch(config: dict[str, Any], facts: Facts) -> int:
    """Images that an epoch sees: all, or those that are drawn for it."""
    return min(facts.images, config.get("epoch_images") or facts.images)


def _longer(config: dict[str, Any]) -> str:
    return f"more epochs (--epochs {2 * config['epochs']}) or smaller batches (--batch-size)."


def _warmup(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    tested = [line["test_accuracy"] for line in history if line.get("phase") == "warmup" and "test_accuracy" in line]
    ends = any(line.get("phase") == "train" for line in history)
    if len(tested) < 4 or not ends:
        return None
    best = max(range(1, len(tested)), key=lambda k: _mean(tested[k - 1 : k + 1]))  # two epochs: one may be luck
    peak, end = _mean(tested[best - 1 : best + 1]), _mean(tested[-2:])
    if peak - end > FORGOT:
        return Finding(
            "warm-up too long",
            f"Within warm-up the test accuracy fell from {peak:.1%} to {end:.1%}: the networks learned wrong labels by "
            "heart before the first split.",
            f"a shorter warm-up (--warmup-epochs {best + 1}) or a smaller learning rate (--lr).",
        )
    return None


def _forgetting(config: dict[str, Any], history: History, facts: Facts) -> Finding | None:
    tested = [line["test_accuracy"] for line in history if "test_accuracy" in line and line.get("phase") != "warmup"]
    part = max(2, len(tested) // 10)
    if len(tested) < 3 * part:
        return None
    means = [_mean(tested[k : k + part]) for k in range(len(tested) - part + 1)]
    if max(means) - means[-1] > FELL:
        by_split = any("clean_count" in line for line in history)
        return Finding(
            "accuracy fell",
            f"The test accuracy fell from {max(means):.1%} to {means[-1]:.1%} in the course of the run: "
            + ("the split confirms its own mistakes." if by_split else "wrong labels were learned by heart."),
            "a smaller --lambda-u or --split neighbours." if by_split else "--method plremix, or fewer epochs.",
        )
    return None


def _number(line: dict[str, Any]) -> int:
    """Epochs as people count them."""
    return int(line["epoch"]) + 1


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
