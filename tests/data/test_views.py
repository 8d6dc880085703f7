"""Views: the same generator gives the same views, digits are never mirrored, and processes share one draw."""

from __future__ import annotations

import pytest
import torch

from plremix.data.augment import VIEWS, normalise
from plremix.data.loading import Loader, batches, draws, passes
from plremix.data.sources import digits
from plremix.randomness import generator


def images(channels: int = 1, side: int = 16, count: int = 32) -> torch.Tensor:
    draws = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, side, side), dtype=torch.uint8, generator=draws)


@pytest.mark.parametrize("name", list(VIEWS))
@pytest.mark.parametrize("channels", [1, 3])
def test_a_view_is_a_function_of_images_and_generator(name: str, channels: int) -> None:
    view, batch = VIEWS[name], images(channels)
    first, again, other = (view(batch, generator(seed, "views")) for seed in (0, 0, 1))
    assert first.shape == batch.shape
    assert first.dtype == torch.uint8
    assert torch.equal(first, again)
    assert name == "plain" or not torch.equal(first, other)
    assert view(batch[:0], generator(0, "views")).shape == (0, channels, 16, 16)


@pytest.mark.parametrize("name", list(VIEWS))
def test_two_processes_together_see_what_one_would_have_seen(name: str) -> None:
    view, batch = VIEWS[name], images()
    whole = view(batch, generator(0, "views"))
    shares = [view(batch[rank::2], generator(0, "views"), rank=rank, ranks=2) for rank in (0, 1)]
    assert torch.equal(torch.stack(shares, dim=1).flatten(0, 1), whole)


def test_a_crop_moves_the_picture_and_lets_black_in() -> None:
    batch = torch.full((200, 1, 8, 8), 200, dtype=torch.uint8)
    moved = VIEWS["crop"](batch, generator(0, "views"))
    rows = (moved[:, 0].float().mean(2) > 0).sum(1)
    assert set(rows.tolist()) == {7, 8}, "8 pixels are padded by one"


@pytest.mark.parametrize(("name", "mirrors"), [("crop", False), ("distort", False), ("crop-flip", True)])
def test_only_views_that_say_so_mirror(name: str, mirrors: bool) -> None:
    ramp = torch.arange(0, 256, 16, dtype=torch.uint8).expand(500, 1, 16, 16)  # dark left, bright right
    seen = VIEWS[name](ramp.contiguous(), generator(0, "views")).float()
    brighter_left = (seen[:, 0, :, 2:6].mean((1, 2)) > seen[:, 0, :, 10:14].mean((1, 2))).float().mean().item()
    assert brighter_left == pytest.approx(0.5 if mirrors else 0.0, abs=0.08)


def test_a_strong_view_still_shows_the_digit() -> None:
    data = digits.load()
    seen = VIEWS["distort"](data.images[:500], generator(0, "views")).float().flatten(1)
    plain = data.images[:500].float().flatten(1)
    centre = lambda rows: rows - rows.mean(1, keepdim=True)  # noqa: E731
    own = torch.cosine_similarity(centre(seen), centre(plain)).mean()
    others = torch.cosine_similarity(centre(seen), centre(plain.roll(1, 0))).mean()
    assert own > 0.5
    assert own > others + 0.15


def test_normalised_pixels_have_mean_0_and_deviation_1() -> None:
    data = digits.load()
    pixels = normalise(data.images, *data.statistics())
    assert pixels.mean().item() == pytest.approx(0, abs=1e-4)
    assert pixels.std().item() == pytest.approx(1, abs=1e-3)


def test_passes_repeat_a_short_side_evenly() -> None:
    side = torch.tensor([4, 7, 9])
    drawn = passes(side, 10, generator(0, "order"))
    assert len(drawn) == 10
    assert sorted(drawn[:3].tolist()) == [4, 7, 9]
    counts = [int((drawn == value).sum()) for value in side]
    assert max(counts) - min(counts) <= 1
    assert len(passes(side[:0], 10, generator(0, "order"))) == 0


def test_batches_are_full_and_a_small_set_is_one_batch() -> None:
    assert [len(batch) for batch in batches(torch.arange(10), 4)] == [4, 4]
    assert [len(batch) for batch in batches(torch.arange(3), 4)] == [3]
    assert list(batches(torch.arange(0), 4)) == []


def test_the_last_batch_may_be_kept_but_is_never_one_sample() -> None:
    sizes = {count: [len(batch) for batch in batches(torch.arange(count), 4, keep_last=True)] for count in range(2, 10)}
    assert sizes == {2: [2], 3: [3], 4: [4], 5: [5], 6: [4, 2], 7: [4, 3], 8: [4, 4], 9: [4, 5]}
    for count in range(2, 10):
        kept = torch.cat(list(batches(torch.arange(count), 4, keep_last=True)))
        assert kept.tolist() == list(range(count))


def test_draws_with_replacement_take_any_of_them() -> None:
    side = torch.tensor([4, 7, 9])
    drawn = draws(side, 300, generator(0, "order"))
    assert set(drawn.tolist()) == {4, 7, 9}
    assert drawn[:3].tolist() != drawn[3:6].tolist()
    assert len(draws(side[:0], 10, generator(0, "order"))) == 0


def test_a_share_is_the_same_size_on_every_process() -> None:
    shares = [Loader(images(), torch.zeros(1), torch.ones(1), rank, 3).share(torch.arange(10)) for rank in range(3)]
    assert [len(share) for share in shares] == [3, 3, 3]
    assert sorted(torch.cat(shares).tolist()) == list(range(9))
