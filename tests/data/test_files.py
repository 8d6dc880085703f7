"""Image files of every kind: shown as a person would see them, or left out with a reason; never a crash."""

from __future__ import annotations

import csv
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import blobs, small_config
from PIL import Image

from plremix.data.augment import VIEWS, multi_crop
from plremix.data.files import ImageFiles, check_files, open_image
from plremix.data.loading import Loader
from plremix.data.sources import own
from plremix.errors import InputError
from plremix.randomness import generator
from plremix.training import train

RED = (200, 30, 40)


def two_halves(size: tuple[int, int] = (40, 20)) -> Image.Image:
    """Red on the left, black on the right."""
    picture = Image.new("RGB", size)
    picture.paste(RED, (0, 0, size[0] // 2, size[1]))
    return picture


def _cmyk(path: Path) -> None:
    two_halves().convert("CMYK").save(path.with_suffix(".jpg"), quality=100, subsampling=0)


def _palette(path: Path) -> None:
    two_halves().quantize(4).save(path.with_suffix(".png"))


def _transparent_palette(path: Path) -> None:
    picture = Image.new("P", (40, 20))
    picture.putpalette([*RED, 0, 0, 0, 9, 9, 9])
    picture.paste(2, (20, 0, 40, 20))
    picture.save(path.with_suffix(".png"), transparency=2)


def _transparent(path: Path) -> None:
    picture = two_halves().convert("RGBA")
    picture.paste((0, 0, 0, 0), (20, 0, 40, 20))
    picture.save(path.with_suffix(".png"))


def _animated(path: Path) -> None:
    two_halves().save(path.with_suffix(".gif"), save_all=True, append_images=[Image.new("RGB", (40, 20), "blue")])


def _turned_by_exif(path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # shown upright, it must be turned clockwise
    two_halves().transpose(Image.Transpose.ROTATE_90).save(path.with_suffix(".jpg"), exif=exif, quality=100)


def _sixteen_bits(path: Path) -> None:
    levels = np.zeros((20, 40), np.uint16)
    levels[:, :20] = 30_000
    Image.fromarray(levels).save(path.with_suffix(".png"))


WHITE, BLACK, MIDDLE = (255,) * 3, (0,) * 3, (117,) * 3  # 30,000 of 65,535
KINDS: dict[str, tuple[Callable[[Path], None], tuple[int, ...], tuple[int, ...]]] = {  # left and right colour
    "cmyk": (_cmyk, RED, BLACK),
    "palette": (_palette, RED, BLACK),
    "transparent palette": (_transparent_palette, RED, WHITE),
    "transparent": (_transparent, RED, WHITE),
    "animated": (_animated, RED, BLACK),
    "turned by EXIF": (_turned_by_exif, RED, BLACK),
    "16 bits": (_sixteen_bits, MIDDLE, BLACK),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_file_is_shown_as_a_person_would_see_it(kind: str, tmp_path: Path) -> None:
    write, left, right = KINDS[kind]
    write(tmp_path / "image")
    (path,) = tmp_path.iterdir()
    image = open_image(path)
    assert image.mode == "RGB"
    assert image.size == (40, 20)
    pixels = np.asarray(image).astype(int)
    assert abs(pixels[10, 5] - left).max() < 12
    assert abs(pixels[10, 35] - right).max() < 12
    assert open_image(path, channels=1).mode == "L"


def write_tree(root: Path, count: int = 24) -> None:
    """Readable images of three classes."""
    data = blobs(count, channels=3, side=16, wrong=0.0)
    for index, (pixels, label) in enumerate(zip(data["x_train"], data["y_train"], strict=True)):
        target = root / f"class {label}"
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).resize((24 + index, 20)).save(target / f"{index:03}.png")


def break_some(root: Path) -> dict[str, str]:
    """Files that cannot be read, and a word of the reason for each."""
    first = root / "class 0"
    (first / "empty.png").write_bytes(b"")
    (first / "text.jpg").write_text("not an image")
    whole = (first / "000.png").read_bytes()
    (first / "cut off.png").write_bytes(whole[: len(whole) // 2])
    (first / "gone.png").symlink_to(root / "nowhere.png")
    return {"empty.png": "not an image", "text.jpg": "not an image", "cut off.png": "", "gone.png": "does not exist"}


def test_unreadable_files_are_left_out_with_a_reason(tmp_path: Path) -> None:
    write_tree(tmp_path)
    broken = break_some(tmp_path)
    data = own.load(tmp_path, 16, 3)
    assert len(data) == 24
    assert data.classes == ("class 0", "class 1", "class 2")
    for name, reason in broken.items():
        assert reason in dict(data.skipped)[f"class 0/{name}"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_what_is_no_regular_file_is_left_out_and_never_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path)
    os.mkfifo(tmp_path / "class 0" / "000 pipe.png")
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("class 1/socket.png")
    (tmp_path / "class 2" / "device.png").symlink_to(os.devnull)
    assert own.look(tmp_path)[0].images == 27
    skipped = dict(own.load(tmp_path, 16, 3).skipped)
    assert skipped.keys() == {"class 0/000 pipe.png", "class 1/socket.png", "class 2/device.png"}
    assert all(reason.startswith("not a regular file") for reason in skipped.values())


def test_unreadable_test_images_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("images", "test"):
        write_tree(tmp_path / name)
    break_some(tmp_path / "test")
    with caplog.at_level(logging.WARNING, logger="plremix"):
        own.load(tmp_path / "images", 16, 3, test=tmp_path / "test")
    assert [record.getMessage().split("(")[0] for record in caplog.records] == [
        f"left out of --test {tmp_path / 'test'}: 4 "
    ]


def test_a_run_lists_what_it_left_out_and_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_tree(tmp_path / "images")
    broken = break_some(tmp_path / "images")
    config = small_config(data=str(tmp_path / "images"), image_size=16, stream="always", epochs=2)
    with caplog.at_level(logging.WARNING, logger="plremix"):
        summary = train(config, tmp_path / "run")
    assert summary["status"] == "done"
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.startswith(f"left out, listed in {tmp_path / 'run' / 'skipped.csv'}: 4 (")
    assert all(f"class 0/{name}: " in message for name in broken)
    with open(tmp_path / "run" / "skipped.csv", newline="") as file:
        assert {row["id"] for row in csv.DictReader(file)} == {f"class 0/{name}" for name in broken}
    with open(tmp_path / "run" / "labels.csv", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    assert len(ids) == 24
    assert ids[0] == "class 0/000.png"


def test_all_unreadable_is_an_error(tmp_path: Path) -> None:
    paths = [tmp_path / f"{index}.png" for index in range(3)]
    for path in paths:
        path.write_bytes(b"x")
    with pytest.raises(InputError, match=r"none of the 3 image files can be read: 0\.png: not an image"):
        check_files(paths, [path.name for path in paths])


def test_a_file_that_goes_bad_during_the_run_becomes_grey(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    two_halves().save(tmp_path / "a.png")
    two_halves().save(tmp_path / "b.png")
    files = ImageFiles([tmp_path / "a.png", tmp_path / "b.png"], 16)
    (tmp_path / "b.png").write_bytes(b"")
    with caplog.at_level(logging.WARNING, logger="plremix"):
        for _ in range(3):
            pixels = files[:]
    assert pixels.shape == (2, 3, 16, 16)
    assert (pixels[1] == 128).all()
    assert not (pixels[0] == 128).all()
    assert len(caplog.records) == 1, "told once, not at every step"


def test_a_decompression_bomb_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_halves().save(tmp_path / "fine.png")
    two_halves((400, 300)).save(tmp_path / "huge.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    usable, skipped = check_files([tmp_path / "fine.png", tmp_path / "huge.png"], ["fine.png", "huge.png"])
    assert usable == [0]
    assert "decompression bomb" in skipped[0][1]


# --- the loader gives the same batches from files as from memory ---


@pytest.fixture
def square_files(tmp_path: Path) -> tuple[ImageFiles, torch.Tensor]:
    """The same sixteen images, as files and as a tensor."""
    draws = np.random.default_rng(0)
    pixels = draws.integers(0, 256, (16, 20, 20, 3)).astype(np.uint8)
    for index, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{index}.png")
    files = ImageFiles([tmp_path / f"{index}.png" for index in range(16)], 20)
    return files, torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def loaders(both: tuple[ImageFiles, torch.Tensor], **options: int) -> list[Loader]:
    return [Loader(images, torch.full((3,), 0.5), torch.full((3,), 0.25), **options) for images in both]


@pytest.mark.parametrize("name", ["plain", "flip", "resized-crop", "simclr", "distort"])
def test_views_of_files_are_those_of_the_same_images_in_memory(
    square_files: tuple[ImageFiles, torch.Tensor], name: str
) -> None:
    steps = [torch.tensor([3, 1, 4]), torch.tensor([15, 9])]
    seen = []
    for loader in loaders(square_files):
        views = loader.epoch(steps, [VIEWS[name]] * 2, lambda step: generator(0, "views", step))
        seen.append([view for step in views for view in step])
    for from_file, from_memory in zip(*seen, strict=True):
        assert from_file.shape == from_memory.shape
        off = (from_file - from_memory).abs() > 1.5 / (255 * 0.25)
        assert off.float().mean() < (0.02 if name == "simclr" else 0.01)


def test_files_give_shifted_views_of_what_is_really_there(tmp_path: Path) -> None:
    two_halves((64, 64)).save(tmp_path / "a.png")
    files = ImageFiles([tmp_path / "a.png"], 28, resize=32)
    loader = Loader(files, torch.zeros(3), torch.ones(3))
    for (view,) in loader.epoch([torch.zeros(20, dtype=torch.long)], [VIEWS["crop"]], lambda step: generator(0, "v")):
        assert view.shape == (20, 3, 28, 28)
        red = (view[:, 0, 14] > 0.3).sum(1)
        assert 9 <= red.min() < red.max() <= 16, "the border between the halves moves; no black comes in"


@pytest.mark.parametrize("size", [(60, 60), (90, 60), (60, 130)])
def test_scoring_sees_the_middle_of_the_resized_file(tmp_path: Path, size: tuple[int, int]) -> None:
    picture = Image.effect_noise(size, 60).resize((size[0] // 6, size[1] // 6)).resize(size, Image.Resampling.BICUBIC)
    picture.convert("RGB").save(tmp_path / "a.png")
    width, height = (round(side * 32 / min(size)) for side in size)  # the shorter side to 32, then the middle 28x28
    resized = picture.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - 28) / 2, (height - 28) / 2
    expected = resized.crop((int(left), int(top), int(left) + 28, int(top) + 28))
    seen = ImageFiles([tmp_path / "a.png"], 28, resize=32)[0].permute(1, 2, 0).numpy().astype(int)
    assert abs(seen - np.asarray(expected).astype(int)).mean() < 2


def test_files_that_are_cut_anew_are_never_kept_in_memory(tmp_path: Path) -> None:
    write_tree(tmp_path)
    assert isinstance(own.load(tmp_path, 14, 3, resize=16).images, ImageFiles)
    assert isinstance(own.load(tmp_path, 14, 3).images, torch.Tensor)
    with pytest.raises(InputError, match="--stream never keeps pixels in memory, but --resize"):
        own.load(tmp_path, 14, 3, resize=16, stream="never")


def test_two_processes_together_see_what_one_would_have_seen(square_files: tuple[ImageFiles, torch.Tensor]) -> None:
    steps = [torch.arange(8), torch.arange(8, 16)]
    draws = lambda step: generator(0, "views", step)  # noqa: E731
    for place in (0, 1):
        whole = loaders(square_files)[place].epoch(steps, [VIEWS["simclr"]], draws)
        halves = []
        for rank in (0, 1):
            loader = loaders(square_files, rank=rank, ranks=2)[place]
            halves.append(loader.epoch([loader.share(step) for step in steps], [VIEWS["simclr"]], draws))
        for (full,), (first,), (second,) in zip(whole, *halves, strict=True):
            assert torch.equal(full[0::2], first)
            assert torch.equal(full[1::2], second)


def test_multi_crop_gives_two_large_and_six_small_views(square_files: tuple[ImageFiles, torch.Tensor]) -> None:
    views = multi_crop((), (16, 0.5, 1.0), (8, 0.1, 0.5))
    for loader in loaders(square_files):
        (seen,) = loader.epoch([torch.arange(5)], views, lambda step: generator(0, "views", step))
        assert [view.shape[-1] for view in seen] == [16, 16] + [8] * 6
        assert not torch.equal(seen[0], seen[1])


def test_scoring_sees_every_image_once_and_in_order(square_files: tuple[ImageFiles, torch.Tensor]) -> None:
    for loader in loaders(square_files):
        chunks = list(loader.plain(loader.images, range(2, 16), 5))
        assert [len(chunk) for chunk in chunks] == [5, 5, 4]
        pixels = (torch.cat(chunks) * 0.25 + 0.5) * 255
        assert (pixels - square_files[1][2:].float()).abs().max() < 0.01
