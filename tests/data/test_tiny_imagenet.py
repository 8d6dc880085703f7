"""Tiny-ImageNet in its official tree and with sorted validation pictures: numbering, pixels, cache, what is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import miniatures
import numpy as np
import pytest
import torch
from helpers import small_config
from PIL import Image

from plremix.data.sources import tiny_imagenet
from plremix.errors import InputError
from plremix.training import train

ROOT = "tiny-imagenet-200"


@pytest.mark.parametrize("sorted_val", [None, "", "images"])
def test_classes_and_pictures_are_numbered_in_sorted_order(tmp_path: Path, sorted_val: str | None) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT, train=11, sorted_val=sorted_val)
    data = tiny_imagenet.load(tmp_path)
    assert data.classes == ("n05000000 thing 5", "n06000000 thing 6", "n07000000 thing 7")
    assert data.given_labels.tolist() == [0] * 11 + [1] * 11 + [2] * 11
    assert data.true_labels is not None
    assert torch.equal(data.true_labels, data.given_labels)
    assert data.ids[:3] == tuple(f"train/n05000000/images/n05000000_{index}.JPEG" for index in (0, 1, 10))
    for row in (0, 2, 32):
        expected = np.asarray(Image.open(tmp_path / ROOT / data.ids[row])).transpose(2, 0, 1)
        assert np.array_equal(data.images[row].numpy(), expected)
    assert data.test_images is not None
    assert data.test_images.shape == (6, 3, 64, 64)
    assert data.test_labels is not None
    assert miniatures.shown(data.test_images[:], 3) == data.test_labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.statistics()[0].tolist() == pytest.approx([0.485, 0.456, 0.406])


def test_the_folder_itself_will_do_and_words_are_not_needed(tmp_path: Path) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT)
    (tmp_path / ROOT / "words.txt").unlink()
    (tmp_path / ROOT / "wnids.txt").unlink()
    assert tiny_imagenet.load(tmp_path / ROOT).classes == ("n05000000", "n06000000", "n07000000")


def test_grey_pictures_are_read_in_colour(tmp_path: Path) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT)
    path = tmp_path / ROOT / "train/n05000000/images/n05000000_0.JPEG"
    Image.open(path).convert("L").save(path)
    first = tiny_imagenet.load(tmp_path).images[0]
    assert isinstance(first, torch.Tensor)
    assert torch.equal(first[0], first[1])
    assert torch.equal(first[0], first[2])


def test_the_second_start_opens_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT)
    first = tiny_imagenet.load(tmp_path, cache_dir=tmp_path / "cache")
    assert {path.parent.name for path in tmp_path.rglob("*.pixels")} == {"cache"}
    monkeypatch.delattr(tiny_imagenet, "open_image")
    again = tiny_imagenet.load(tmp_path, cache_dir=tmp_path / "cache")
    for mine, other in ((first.images, again.images), (first.test_images, again.test_images)):
        assert isinstance(mine, torch.Tensor)
        assert isinstance(other, torch.Tensor)
        assert torch.equal(mine, other)


def test_a_missing_data_set_says_where_it_was_looked_for(tmp_path: Path) -> None:
    told = r"not found: looked for train in .*tiny-imagenet-200, .*--data-dir .*; --download fetches it"
    with pytest.raises(InputError, match=told):
        tiny_imagenet.load(tmp_path)


def test_the_official_archive_is_unpacked_by_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    miniatures.tiny_imagenet(tmp_path / "made" / ROOT)
    packed = Path(shutil.make_archive(str(tmp_path / "data" / ROOT), "zip", tmp_path / "made", ROOT))
    digest = hashlib.md5(packed.read_bytes(), usedforsecurity=False).hexdigest()
    archive = replace(tiny_imagenet.ARCHIVES["tiny-imagenet"], md5=digest)
    monkeypatch.setitem(tiny_imagenet.ARCHIVES, "tiny-imagenet", archive)
    assert len(tiny_imagenet.load(tmp_path / "data", download=True)) == 12
    shutil.rmtree(tmp_path / "data" / ROOT / "train" / "n06000000")  # half of it is lost: made whole again
    assert len(tiny_imagenet.load(tmp_path / "data", download=True)) == 12


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ("val", r"not whole: val is missing"),
        ("val/val_annotations.txt", r"val_annotations\.txt is missing"),
        ("val/images", r"validation images of 3 classes"),
        ("train/n06000000", r"no training images of 1 classes \(n06000000\)"),
    ],
)
def test_a_half_unpacked_tree_says_what_is_missing(tmp_path: Path, gone: str, told: str) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT)
    path = tmp_path / ROOT / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(InputError, match=told):
        tiny_imagenet.load(tmp_path)


def test_pictures_that_a_list_names_but_nobody_has_are_left_out(tmp_path: Path) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT)
    gone = ["train/n06000000/images/n06000000_2.JPEG", "val/images/val_3.JPEG"]
    for name in gone:
        (tmp_path / ROOT / name).unlink()
    data = tiny_imagenet.load(tmp_path)
    assert [name for name, _ in data.skipped] == gone
    assert len(data) == 11
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [0, 0, 1, 2, 2]
    for wnid in ("n05000000", "n06000000"):
        shutil.rmtree(tmp_path / ROOT / "train" / wnid / "images")
    with pytest.raises(InputError, match=r"8 of the 12 images .* are missing in .*tiny-imagenet-200, the first one"):
        tiny_imagenet.load(tmp_path)


def test_a_damaged_picture_is_told_and_nothing_is_kept(tmp_path: Path) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT)
    path = tmp_path / ROOT / "train/n06000000/images/n06000000_2.JPEG"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match=r"n06000000_2\.JPEG cannot be read"):
        tiny_imagenet.load(tmp_path)
    assert not list(tmp_path.rglob("*.pixels*"))


@pytest.mark.parametrize("name", ["../../secret.JPEG", "/etc/secret.JPEG", "..", "a\\b.JPEG"])
def test_lists_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT)
    lists = ["val/val_annotations.txt", "train/n05000000/n05000000_boxes.txt", "wnids.txt"]
    for place in lists:
        path = tmp_path / ROOT / place
        before = path.read_text()
        path.write_text(f"{name}\tn05000000\t0\t0\t1\t1\n" if "wnids" not in place else f"{name}\n")
        with pytest.raises(InputError, match=r"line 1 of .* without a folder"):
            tiny_imagenet.load(tmp_path)
        path.write_text(before)


def test_a_run_on_it_from_warm_up_to_the_verdict(tmp_path: Path) -> None:
    miniatures.tiny_imagenet(tmp_path / ROOT, train=8)
    config = small_config(
        data="tiny-imagenet", data_dir=tmp_path, image_size=16, weak_view="flip", noise="symmetric", noise_ratio=0.3
    )
    summary = train(config, tmp_path / "run")
    assert summary["status"] == "done"
    assert summary["images"] == 24
    history = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["phase"] for line in history] == ["warmup", "train", "train"]
    assert all("test_accuracy" in line for line in history)
