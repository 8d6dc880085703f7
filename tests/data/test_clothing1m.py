"""Clothing1M in its official layout: lists, clean sets, missing files, and epochs of images that are drawn anew."""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path
from typing import Any

import miniatures
import pytest
import torch
from helpers import contents, small_config, small_cross_entropy

from plremix.config import Config
from plremix.data.files import ImageFiles
from plremix.data.sources import clothing1m
from plremix.errors import InputError
from plremix.training import run as run_module
from plremix.training import train

EXACT = ("metrics.jsonl", "labels.csv", "noise.json", "model.safetensors")
SETTINGS: dict[str, Any] = {
    "data": "clothing1m",
    "image_size": 14,
    "resize": 16,
    "epoch_images": 28,
    "kappa": (3, 2, 1),
    "weak_view": "crop-flip",
    "strong_view": "autoaugment-imagenet",
    "warmup_entropy": True,
    "beta": 0.5,
    "flat": False,
    "lambda_u": 0.0,
    "split": "mixture2d",
}


@pytest.mark.parametrize("lists", ["", "annotations"])
@pytest.mark.parametrize("folder", ["", "Clothing1M"])
def test_the_lists_say_which_images_and_labels(tmp_path: Path, lists: str, folder: str) -> None:
    root = tmp_path / folder
    miniatures.clothing1m(root, lists=lists)
    data = clothing1m.load(tmp_path, 14, 16)
    noisy = dict(line.split() for line in (root / lists / "noisy_label_kv.txt").read_text().splitlines())
    assert list(data.ids) == (root / lists / "noisy_train_key_list.txt").read_text().split()
    assert data.given_labels.tolist() == [int(noisy[name]) for name in data.ids]
    assert data.true_labels is None
    assert len(data.classes) == 14
    assert data.classes[8] == "Down Coat"
    assert isinstance(data.images, ImageFiles)
    assert data.validation is not None
    assert data.validation.labels.tolist() == list(range(14))
    assert data.test_labels is not None
    assert data.test_labels.tolist() == list(range(14))
    assert data.test_images is not None
    assert not torch.equal(data.test_images[:], data.validation.images[:])
    whole = clothing1m.load(tmp_path, 42)
    assert whole.test_images is not None
    assert miniatures.shown(whole.test_images[:], 14) == list(range(14))
    assert data.statistics()[1].tolist() == pytest.approx([0.3113, 0.3192, 0.3214])


def test_the_test_set_is_kept_for_the_last_epoch(tmp_path: Path) -> None:
    miniatures.clothing1m(tmp_path)
    data = clothing1m.load(tmp_path, 14)
    assert list(data.measured_on(last=False)) == ["validation"]
    assert list(data.measured_on(last=True)) == ["validation", "test"]


def test_missing_files_are_left_out_and_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    miniatures.clothing1m(tmp_path)
    gone = ["images/0/03/3,0.jpg", "images/1/05/5,1.jpg"]
    for name in gone:
        (tmp_path / name).unlink()
    with open(tmp_path / "noisy_train_key_list.txt", "a") as file:
        file.write("images/0/00/unheard-of.jpg\n")
    with caplog.at_level(logging.WARNING, logger="plremix"):
        data = clothing1m.load(tmp_path, 14)
    assert len(data) == len(data.ids) == len(data.given_labels) == 58
    assert dict(data.skipped) == {
        "images/0/00/unheard-of.jpg": "it has no label in noisy_label_kv.txt",
        **dict.fromkeys(gone, "the file does not exist"),
    }
    assert len(caplog.records) == 1
    assert all(name in caplog.records[0].getMessage() for name in gone)


def test_nothing_is_opened_before_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    miniatures.clothing1m(tmp_path)
    monkeypatch.setattr("plremix.data.files.open_image", lambda *_: pytest.fail("an image was opened"))
    clothing1m.load(tmp_path, 14, 16).statistics()


def test_most_files_missing_says_where_they_were_looked_for(tmp_path: Path) -> None:
    miniatures.clothing1m(tmp_path)
    (tmp_path / "images").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="not whole: images is missing there"):
        clothing1m.load(tmp_path, 14)
    (tmp_path / "images").mkdir()
    with pytest.raises(InputError, match=rf"60 of the 60 images .* are missing in {tmp_path}.* is Clothing1M unpacked"):
        clothing1m.load(tmp_path, 14)


@pytest.mark.parametrize("name", ["noisy_label_kv.txt", "clean_test_key_list.txt"])
def test_a_missing_list_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"Clothing1M was not found: looked for noisy_train_key_list\.txt in"):
        clothing1m.load(tmp_path, 14)
    miniatures.clothing1m(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=f"{name} is missing"):
        clothing1m.load(tmp_path, 14)


@pytest.mark.parametrize(
    ("name", "line", "told"),
    [
        ("noisy_train_key_list.txt", "../secret.jpg", "leads out of the data set"),
        ("noisy_train_key_list.txt", "images/../../secret.jpg", "leads out of the data set"),
        ("noisy_label_kv.txt", "/etc/secret.jpg 3", "leads out of the data set"),
        ("noisy_label_kv.txt", "C:\\secret.jpg 3", "leads out of the data set"),
        ("clean_label_kv.txt", "images/0/00/a.jpg shirt", "a path and a class number"),
        ("clean_label_kv.txt", "images/0/00/a.jpg", "a path and a class number"),
        ("noisy_label_kv.txt", "images/0/00/a.jpg 14", "the class number 14, but the classes are 0 to 13"),
    ],
)
def test_lists_that_make_no_sense_are_refused(tmp_path: Path, name: str, line: str, told: str) -> None:
    miniatures.clothing1m(tmp_path)
    with open(tmp_path / name, "a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=told):
        clothing1m.load(tmp_path, 14)


# --- whole runs ---


def stop_before(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    real = run_module._Run._epoch

    def until(self: Any, number: int) -> None:
        if number == epoch:
            self.method.train_epoch(number)
            raise KeyboardInterrupt
        real(self, number)

    monkeypatch.setattr(run_module._Run, "_epoch", until)


def test_a_run_validates_every_epoch_tests_once_and_judges_every_label(tmp_path: Path) -> None:
    miniatures.clothing1m(tmp_path / "data")
    summary = train(small_config(**SETTINGS, data_dir=tmp_path / "data"), tmp_path / "run")
    history = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["phase"] for line in history] == ["warmup", "train", "train"]
    assert all({"validation_accuracy", "validation_top5"} <= line.keys() for line in history)
    assert ["test_accuracy" in line for line in history] == [False, False, True]
    assert summary["best"] == summary["last"] == history[-1]["test_accuracy"]
    with open(tmp_path / "run/labels.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 60, "the verdict is over all images, not over an epoch's"


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (small_config, {"epochs": 4}),
        (small_config, {"split": "neighbours", "contrast": "plr-queue", "queue_size": 20}),
        (small_cross_entropy, {"contrast": "plr"}),
    ],
)
def test_a_stopped_run_with_drawn_epochs_goes_on_as_if_nothing_had_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, changes: dict[str, Any]
) -> None:
    miniatures.clothing1m(tmp_path / "data", train=3)
    config: Config = make(**{**SETTINGS, **changes}, data_dir=tmp_path / "data")
    train(config, tmp_path / "straight")
    with monkeypatch.context() as patch:
        stop_before(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "broken")
    train(config, tmp_path / "broken", resume=True)
    assert contents(tmp_path / "straight", *EXACT) == contents(tmp_path / "broken", *EXACT)
