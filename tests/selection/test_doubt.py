"""A label is believed for as much as labels are worth: the share of wrong ones is read off, and Bayes does the rest."""

from __future__ import annotations

import math

import pytest
import torch

from plremix.selection import (
    calibrate,
    foretells,
    judge_together,
    rate_by_count,
    rate_by_quotas,
    shares_by_count,
    weigh_labels,
    weigh_votes,
)
from plremix.selection.doubt import confident_joint, likeliest_shares, shares_alike, wrong_share


def images_and_labels(
    count: int, wrong: float, hardness: float, classes: int = 10, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Posteriors (N, C) as sure as they are right, from which the truth is drawn; given labels; the truth."""
    draws = torch.Generator().manual_seed(seed)
    posterior = (torch.randn(count, classes, generator=draws) / hardness).softmax(1)
    truth = torch.multinomial(posterior, 1, generator=draws)[:, 0]
    moved = (truth + torch.randint(1, classes, (count,), generator=draws)) % classes
    given = torch.where(torch.rand(count, generator=draws) < wrong, moved, truth)
    return posterior, given, truth


@pytest.mark.parametrize("wrong", [0.05, 0.3, 0.7])
@pytest.mark.parametrize("flatness", [1, 3])
def test_the_share_of_wrong_labels_and_the_sharpness_are_found(wrong: float, flatness: int) -> None:
    posterior, given, _ = images_and_labels(20_000, wrong, hardness=0.25)
    flat = (posterior.log() / flatness).softmax(1)
    sharp, found = calibrate(flat, given)
    assert found == pytest.approx(wrong, abs=0.03)
    assert (sharp - posterior).abs().mean() < 0.02


def test_the_share_is_the_likeliest_one() -> None:
    posterior, given, _ = images_and_labels(2000, 0.3, hardness=0.5, classes=4)
    believed = posterior.gather(1, given[:, None])[:, 0].double()
    found, likelihood = wrong_share(believed, 4)

    def naive(share: float) -> float:
        return float(torch.log(believed * (1 - share) + (1 - believed) * share / 3).mean())

    best = max((step / 1000 for step in range(1, 750)), key=naive)
    assert found == pytest.approx(best, abs=2e-3)
    assert likelihood == pytest.approx(naive(best), abs=1e-4)


def test_labels_are_weighed_by_bayes_rule() -> None:
    posterior, labels = torch.tensor([[0.6, 0.3, 0.1], [0.98, 0.01, 0.01]]), torch.tensor([1, 2])
    known = weigh_labels(posterior, labels, shares_alike(0.2, 3))
    for row, label in enumerate(labels.tolist()):
        joint = [float(posterior[row, k]) * (0.8 if k == label else 0.1) for k in range(3)]
        assert known[row].tolist() == pytest.approx([value / sum(joint) for value in joint])
    assert known.argmax(1).tolist() == [1, 0]  # a doubt of 2 to 1 does not overrule the label, one of 98 to 1 does


def test_votes_are_weighed_as_that_many_labels_each_for_a_part() -> None:
    posterior = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
    votes = torch.tensor([[1.0, 4.0, 0.0], [0.5, 0.0, 2.0]])
    shares = torch.tensor([[0.7, 0.3, 0.0], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    known = weigh_votes(posterior, votes, shares, 0.5)
    for row in range(2):
        joint = [
            float(posterior[row, k])
            * math.prod(max(float(shares[k, label]), 0.01) ** (0.5 * float(votes[row, label])) for label in range(3))
            for k in range(3)
        ]
        assert known[row].tolist() == pytest.approx([value / sum(joint) for value in joint], rel=1e-5)
    assert known.argmax(1).tolist() == [1, 2]
    sure = weigh_votes(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 30.0, 0.0]]), shares, 0.5)
    assert sure.argmax() == 1  # who is too sure can still be convinced


@pytest.mark.parametrize("wrong", [0.1, 0.7])
def test_on_hard_images_corrections_do_more_good_than_harm(wrong: float) -> None:
    posterior, given, truth = images_and_labels(5000, wrong, hardness=0.7)
    assert (posterior.argmax(1) == truth).float().mean() < 0.6
    sharp, found = calibrate(posterior, given)
    corrected = weigh_labels(sharp, given, shares_alike(found, 10)).argmax(1)
    assert (corrected == truth).float().mean() >= (given == truth).float().mean()
    assert (corrected == truth).float().mean() > (posterior.argmax(1) == truth).float().mean()


@pytest.mark.parametrize("classes", [2, 3])
def test_degenerate_posteriors_stay_finite(classes: int) -> None:
    labels = torch.arange(8) % classes
    for posterior in (
        torch.full((8, classes), 1 / classes),
        torch.eye(classes)[labels],
        torch.eye(classes)[1 - labels.clamp(max=1)],
    ):
        sharp, found = calibrate(posterior, labels)
        assert weigh_labels(sharp, labels, likeliest_shares(sharp, labels, found)).isfinite().all()
        assert 0 <= found < 1


def test_the_confident_joint_counts_who_is_as_sure_as_usual() -> None:
    posterior, given, _ = images_and_labels(300, 0.3, hardness=0.5, classes=3)
    counts = [[0.0] * 3 for _ in range(3)]
    usual = [float(posterior[given == label, label].mean()) for label in range(3)]
    for row, label in zip(posterior.tolist(), given.tolist(), strict=True):
        sure = [(row[true], true) for true in range(3) if row[true] >= usual[true]]
        if sure:
            counts[max(sure)[1]][label] += 1
    for label in range(3):
        counts[label][label] += 0.5
        total = sum(counts[true][label] for true in range(3))
        for true in range(3):
            counts[true][label] *= int((given == label).sum()) / total
    torch.testing.assert_close(confident_joint(posterior, given), torch.tensor(counts), rtol=1e-4, atol=1e-3)


def test_noise_of_one_pair_is_known_for_what_it_is() -> None:
    draws = torch.Generator().manual_seed(0)
    truth = torch.randint(0, 4, (4000,), generator=draws)
    moved = (truth == 2) & (torch.rand(4000, generator=draws) < 0.4)
    given = torch.where(moved, 3, truth)
    posterior = (2 * torch.nn.functional.one_hot(truth, 4) + torch.randn(4000, 4, generator=draws)).softmax(1)
    joint = confident_joint(posterior, given)
    assert float(joint[2, 3] / joint[2].sum()) == pytest.approx(0.4, abs=0.12)
    known = weigh_labels(posterior, given, shares_by_count(posterior, given))
    believed = known.gather(1, given[:, None])[:, 0]
    assert believed[moved].mean() < 0.4 < 0.9 < believed[~moved & (given != 3)].mean()


def test_a_class_without_labels_is_no_ones() -> None:
    posterior, given, _ = images_and_labels(100, 0.2, hardness=0.5, classes=4)
    given[given == 1] = 0
    known = weigh_labels(posterior, given, shares_by_count(posterior, given))
    assert known.isfinite().all()
    assert not (known.argmax(1) == 1).any()


def test_labels_that_went_to_the_next_class_are_found_pair_by_pair() -> None:
    posterior, truth, _ = images_and_labels(5000, 0.0, hardness=0.2)
    moved = torch.rand(5000, generator=torch.Generator().manual_seed(1)) < 0.4
    given = torch.where(moved, (truth + 1) % 10, truth)
    learned = 0.6 * posterior + 0.4 * posterior.roll(1, 1)  # what labels like these teach
    _, wrong = calibrate(learned, given)
    assert wrong < 0.05  # taken alike, hardly one looks wrong
    shares = likeliest_shares(posterior, given, wrong)
    following = torch.stack([shares[label, (label + 1) % 10] for label in range(10)])
    assert (following - 0.4).abs().max() < 0.1
    corrected = weigh_labels(posterior, given, shares).argmax(1)
    assert (corrected == truth).float().mean() > 0.85


@pytest.mark.parametrize(("classes", "count"), [(10, 1000), (20, 2000), (50, 5000)])
def test_pairs_are_found_among_many_classes_and_few_images(classes: int, count: int) -> None:
    posterior, truth, _ = images_and_labels(count, 0.0, hardness=0.15, classes=classes)
    moved = torch.rand(count, generator=torch.Generator().manual_seed(1)) < 0.3
    given = torch.where(moved, (truth + 1) % classes, truth)
    corrected = weigh_labels(posterior, given, likeliest_shares(posterior, given, 0.001)).argmax(1)
    assert (corrected == truth).float().mean() > 0.85


@pytest.mark.parametrize("wrong", [0.05, 0.3, 0.7])
def test_noise_that_is_alike_is_taken_for_alike(wrong: float) -> None:
    posterior, given, _ = images_and_labels(3000, wrong, hardness=0.5)
    assert torch.equal(likeliest_shares(posterior, given, wrong), shares_alike(wrong, 10))


@pytest.mark.parametrize("wrong", [0.1, 0.4, 0.7])
def test_the_verdict_with_doubt_finds_wrong_labels(wrong: float) -> None:
    posterior, given, truth = images_and_labels(3000, wrong, hardness=0.12)
    draws = torch.Generator().manual_seed(1)
    logits = posterior.log() + 0.3 * torch.randn(2, 3000, 10, generator=draws)
    verdict = judge_together(logits.numpy(), posterior.numpy(), given.numpy(), wrong)
    is_wrong = (given != truth).numpy()
    assert (verdict.is_label_issue == is_wrong).mean() > 0.95
    assert (verdict.corrected(given.numpy()) == truth.numpy()).mean() > 1 - wrong
    assert verdict.label_score[is_wrong].mean() < 0.2 < 0.8 < verdict.label_score[~is_wrong].mean()
    assert ((verdict.label_score >= 0) & (verdict.label_score <= 1)).all()
    assert len(set(verdict.label_score.tolist())) > 2900


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_who_guesses_blindly_foretells_nothing(classes: int) -> None:
    draws = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (400,), generator=draws)
    blind = torch.rand(400, classes, generator=draws).softmax(1)
    right = torch.nn.functional.one_hot(labels, classes).double()
    knowing = (2 * right + 2 * torch.randn(400, classes, generator=draws)).softmax(1)
    assert not foretells(blind, labels)
    assert not foretells(torch.full((400, classes), 1 / classes), labels)
    assert foretells(knowing, labels)
    assert rate_by_count(blind, labels) <= 1 - 1 / classes
    assert rate_by_count(right, labels) < 0.02


@pytest.mark.parametrize("favour", [0.0, 6.0])
def test_the_rate_by_quotas_is_exact_even_where_all_rows_favour_one_class(favour: float) -> None:
    truth = torch.arange(60) % 3
    given = truth.clone()
    for one in range(0, 15, 3):  # five pairs of labels are exchanged: every class keeps its number
        given[one], given[one + 1] = truth[one + 1], truth[one]
    favours = torch.tensor([0.0, 0.0, favour])
    posterior = (3 * torch.nn.functional.one_hot(truth, 3) + favours).softmax(1)
    assert not favour or (posterior.argmax(1) == 2).all()
    assert rate_by_quotas(posterior, given) == pytest.approx(10 / 60)
    assert rate_by_quotas(posterior, truth) == 0.0
    assert rate_by_quotas(posterior, (truth + 1) % 3) == 1.0


def test_by_quotas_rows_that_say_nothing_are_of_the_most_frequent_class() -> None:
    given = torch.tensor([0, 0, 1, 2, 2, 2, 2, 2])
    assert rate_by_quotas(torch.full((8, 3), 1 / 3), given) == pytest.approx(3 / 8)
