"""The cache of decoded images gives back what was put in, and is made anew whenever it cannot be trusted."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from plremix.data import cache
from plremix.data.augment import VIEWS
from plremix.data.cache import cached, fingerprint, kept
from plremix.data.dataset import LabelledImages
from plremix.data.loading import Loader, batches, passes
from plremix.randomness import generator

SHAPE = (40, 3, 8, 8)
PIXELS = np.random.default_rng(0).integers(0, 256, SHAPE).astype(np.uint8)


class Filler:
    """Fills with known pixels and counts how often it had to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, array: np.ndarray) -> None:
        self.times += 1
        array[:] = PIXELS


def both_times(folder: Path, fill: Filler) -> torch.Tensor:
    return cached(folder, "set", "key", SHAPE, fill)


def test_the_second_time_nothing_is_decoded(tmp_path: Path) -> None:
    fill = Filler()
    for _ in range(2):
        assert np.array_equal(both_times(tmp_path / "new", fill).numpy(), PIXELS)
    assert fill.times == 1
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["set.pixels"]


def test_what_is_written_to_the_tensor_does_not_reach_the_file(tmp_path: Path) -> None:
    fill = Filler()
    both_times(tmp_path, fill).zero_()
    assert np.array_equal(both_times(tmp_path, fill).numpy(), PIXELS)
    assert fill.times == 1


def own_memory() -> int:
    """Bytes that this process alone holds, without pages of mapped files."""
    return 1024 * int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how memory is used")
def test_mapped_images_are_never_copied_as_a_whole(tmp_path: Path) -> None:
    """A scaled-down benchmarks/million.py: statistics, the order of an epoch and of a split, and views."""
    shape = (120_000, 3, 32, 32)  # 369 MB

    def use(images: torch.Tensor) -> None:
        labels = torch.zeros(len(images), dtype=torch.int64)
        data = LabelledImages(images, labels, None, None, None, ("a", "b"), ())
        loader = Loader(data.images, *data.statistics())
        order = passes(torch.arange(len(loader)), len(loader), generator(0, "order"))
        clean = (torch.arange(len(loader)) % 3 == 0).nonzero()[:, 0]
        for rows in (order, passes(clean, len(loader), generator(0, "clean"))):
            steps = list(batches(rows, 64))[:3]
            views = [VIEWS["crop-flip"], VIEWS["autoaugment-cifar"], VIEWS["resized-crop"]]
            assert len(list(loader.epoch(steps, views, lambda step: generator(0, "views", step)))) == 3
        assert len(list(loader.plain(images, range(len(images) - 500, len(images)), 250))) == 2

    use(torch.zeros(300, 3, 32, 32, dtype=torch.uint8))  # compiles the loops
    for _ in range(2):  # when it is made, and when it is there
        before = own_memory()
        images = cached(tmp_path, "large", "key", shape, lambda array: array.fill(7))
        use(images)
        assert own_memory() - before < images.numel() / 2  # a copy is all of it; what threads keep for later is less
        del images


def test_statistics_counted_in_pieces_are_those_of_all_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.from_numpy(PIXELS)
    data = LabelledImages(images, torch.zeros(len(images)), None, None, None, ("a", "b"), ())
    monkeypatch.setattr("plremix.data.dataset.COUNTED", 7)
    mean, deviation = data.statistics()
    scaled = images.double() / 255
    torch.testing.assert_close(mean.double(), scaled.mean((0, 2, 3)))
    torch.testing.assert_close(deviation.double(), scaled.std((0, 2, 3), correction=0))


@pytest.mark.parametrize("shape", [(3,), (4096,), (4097,), (100, 3073)])
def test_any_size_is_kept_and_any_single_byte_counts(tmp_path: Path, shape: tuple[int, ...]) -> None:
    made = cached(tmp_path, "set", "key", shape, lambda array: array.fill(5))
    assert made.shape == shape
    assert kept(tmp_path, "set", "key") is not None
    file = tmp_path / "set.pixels"
    content = bytearray(file.read_bytes())
    for place in (4096, 4096 + made.numel() // 2, len(content) - 1):
        content[place] ^= 1
        file.write_bytes(content)
        assert kept(tmp_path, "set", "key") is None
        content[place] ^= 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content[:3000],
        lambda content: b"",
        lambda content: b"\0" * len(content),
        lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
        lambda content: content[:-1] + bytes([content[-1] ^ 128]),
        lambda content: content.replace(b'"version": 1', b'"version": 0'),
        lambda content: content.replace(b"[40, 3, 8, 8]", b"[40, 8, 8, 3]"),
        lambda content: cache.MAGIC + b"[" * 4000 + content[4000 + len(cache.MAGIC) :],
        lambda content: cache.MAGIC + b"[1]".ljust(4096 - len(cache.MAGIC), b"\0") + content[4096:],
        lambda content: b"\x80\x04cos\nsystem\n." + content,
    ],
    ids=[
        "short",
        "long",
        "head-only",
        "empty",
        "zeros",
        "flipped",
        "last-flipped",
        "version",
        "shape",
        "nested",
        "list",
        "foreign",
    ],
)
def test_a_damaged_truncated_or_foreign_file_is_made_anew(tmp_path: Path, damage: object) -> None:
    fill = Filler()
    both_times(tmp_path, fill)
    file = tmp_path / "set.pixels"
    whole = file.read_bytes()
    file.write_bytes(damage(whole))  # type: ignore[operator]
    assert np.array_equal(both_times(tmp_path, fill).numpy(), PIXELS)
    assert fill.times == 2
    assert file.read_bytes() == whole


def test_another_fingerprint_or_shape_is_made_anew(tmp_path: Path) -> None:
    fill = Filler()
    both_times(tmp_path, fill)
    cached(tmp_path, "set", "other key", SHAPE, fill)
    both_times(tmp_path, fill)
    assert fill.times == 3


def test_the_fingerprint_follows_names_sizes_times_and_settings(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"12")
    second.write_bytes(b"34")
    before = fingerprint(tmp_path, [first, second], 32)
    assert fingerprint(tmp_path, [first, second], 32) == before
    assert fingerprint(tmp_path, [second, first], 32) != before
    assert fingerprint(tmp_path, [first, second], 64) != before
    os.utime(first, ns=(1, 1))
    touched = fingerprint(tmp_path, [first, second], 32)
    assert touched != before
    first.write_bytes(b"123")
    os.utime(first, ns=(1, 1))
    assert fingerprint(tmp_path, [first, second], 32) != touched


def test_where_nothing_can_be_written_the_pixels_stay_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    fill = Filler()
    with caplog.at_level(logging.WARNING, "plremix"):
        assert np.array_equal(both_times(tmp_path / "file" / "below", fill).numpy(), PIXELS)
    assert "cannot be written" in caplog.text
    assert "--cache-dir" in caplog.text


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    assert np.array_equal(both_times(tmp_path, Filler()).numpy(), PIXELS)
    assert list(tmp_path.iterdir()) == []


def test_a_filler_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(array: np.ndarray) -> None:
        raise OSError("the source cannot be read")

    with pytest.raises(OSError, match="the source"):
        cached(tmp_path, "set", "key", SHAPE, fail)
    assert list(tmp_path.iterdir()) == []


def test_files_of_killed_processes_are_swept_and_those_at_work_are_not(tmp_path: Path) -> None:
    old, new = tmp_path / "set.pixels.1.writing", tmp_path / "set.pixels.2.writing"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (1, 1))
    both_times(tmp_path, Filler())
    assert not old.exists()
    assert new.exists()
