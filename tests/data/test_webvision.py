"""WebVision in its official layout: first classes, either subset, ILSVRC12 as a second test set, and a whole run."""

from __future__ import annotations

import csv
import json
import logging
import shutil
from pathlib import Path

import miniatures
import pytest

from plremix.cli import main
from plremix.data.sources import webvision
from plremix.errors import InputError


def test_the_lists_say_which_images_and_labels(tmp_path: Path) -> None:
    miniatures.webvision(tmp_path, imagenet=tmp_path)
    data = webvision.load(tmp_path, 16)
    listed = [line.split() for line in (tmp_path / "info/train_filelist_google.txt").read_text().splitlines()]
    assert list(data.ids) == [name for name, _ in listed]
    assert data.given_labels.tolist() == [int(label) for _, label in listed]
    assert data.classes == tuple(f"n0{number}440764 crane" for number in (9, 8, 7, 6)), "in the order of synsets.txt"
    assert data.true_labels is None
    assert data.statistics()[0].tolist() == pytest.approx([0.485, 0.456, 0.406])


def test_the_first_classes_alone_and_the_images_of_both_engines(tmp_path: Path) -> None:
    miniatures.webvision(tmp_path, imagenet=tmp_path)
    few = webvision.load(tmp_path, 16, first_classes=3, subset="all")
    assert len(few.classes) == 3
    assert few.given_labels.bincount().tolist() == [12, 12, 12]
    assert sum(name.startswith("flickr/") for name in few.ids) == 18
    assert few.test_labels is not None
    assert few.test_labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert few.other_tests["ilsvrc12"].labels.tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(InputError, match=r"--first-classes 5: WebVision .* has only 4 classes"):
        webvision.load(tmp_path, 16, first_classes=5)


def test_every_label_belongs_to_its_picture(tmp_path: Path) -> None:
    miniatures.webvision(tmp_path, imagenet=tmp_path)
    data = webvision.load(tmp_path, 16)
    assert data.test_images is not None
    assert data.test_labels is not None
    sets = [(data.images, data.given_labels), (data.test_images, data.test_labels), data.other_tests["ilsvrc12"]]
    for images, labels in sets:
        assert miniatures.shown(images[:], 4) == labels.tolist()


@pytest.mark.parametrize("beside", [False, True])
def test_ilsvrc12_may_lie_in_the_folder_or_beside_it(tmp_path: Path, beside: bool) -> None:
    root = tmp_path / "webvision"
    miniatures.webvision(root, imagenet=tmp_path if beside else root)
    assert list(webvision.load(tmp_path, 16).measured_on(last=False)) == ["test", "ilsvrc12"]
    assert list(webvision.load(root, 16).measured_on(last=False)) == ["test", "ilsvrc12"]


def test_without_ilsvrc12_there_is_a_word_on_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    miniatures.webvision(tmp_path / "webvision")
    with caplog.at_level(logging.WARNING, logger="plremix"):
        data = webvision.load(tmp_path, 16)
    assert list(data.measured_on(last=False)) == ["test"]
    assert "no test on ILSVRC12" in caplog.text
    assert str(tmp_path / "webvision/imagenet/val") in caplog.text


def test_ilsvrc12_without_some_classes_is_refused(tmp_path: Path) -> None:
    miniatures.webvision(tmp_path, imagenet=tmp_path)
    shutil.rmtree(tmp_path / "imagenet/val/n08440764")
    with pytest.raises(InputError, match=r"no images of 1 of the 4 classes \(n08440764\)"):
        webvision.load(tmp_path, 16)


def test_without_synsets_classes_are_numbers(tmp_path: Path) -> None:
    miniatures.webvision(tmp_path, imagenet=tmp_path)
    (tmp_path / "info/synsets.txt").unlink()
    data = webvision.load(tmp_path, 16)
    assert data.classes == ("0", "1", "2", "3")
    assert not data.other_tests


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ("info/train_filelist_google.txt", r"info/train_filelist_google\.txt is missing"),
        ("info/val_filelist.txt", r"info/val_filelist\.txt is missing"),
        ("val_images_256", "val_images_256 is missing"),
        ("google", r"24 of the 24 images that .*train_filelist_google\.txt lists are missing in"),
    ],
)
def test_a_half_unpacked_data_set_says_what_is_missing(tmp_path: Path, gone: str, told: str) -> None:
    miniatures.webvision(tmp_path)
    path = tmp_path / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(InputError, match=told):
        webvision.load(tmp_path, 16)


def test_lists_that_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    miniatures.webvision(tmp_path)
    for name in ("info/train_filelist_google.txt", "info/val_filelist.txt"):
        before = (tmp_path / name).read_text()
        (tmp_path / name).write_text(before + "../../secret.jpg 1\n")
        with pytest.raises(InputError, match=r"line \d+ of .* leads out of the data set"):
            webvision.load(tmp_path, 16)
        (tmp_path / name).write_text(before)
    (tmp_path / "info/synsets.txt").write_text("../../secret tench\nn01440764 tench\n")
    with pytest.raises(InputError, match=r"synsets\.txt must start with a name without a folder"):
        webvision.load(tmp_path, 16)


def test_a_whole_run_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    miniatures.webvision(tmp_path / "data", classes=11, train=4, test=1, imagenet=tmp_path / "data")
    (tmp_path / "data/google/q0002/google1.jpg").unlink()
    words = (
        "train digits-sym-80 --data webvision --first-classes 10 --image-size 14 --resize 16 --noise none --epochs 3"
    )
    words += " --weak-view crop-flip --strong-view autoaugment-imagenet --network preact-resnet-small --width 4"
    words += " --batch-size 8 --no-flat --split mixture2d --lambda-u 0 --device cpu --quiet"
    status = main([*words.split(), "--data-dir", str(tmp_path / "data"), "--out", str(tmp_path / "run")])
    assert status == 0, capsys.readouterr().err
    history = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    measured = {"test_accuracy", "test_top5", "ilsvrc12_accuracy", "ilsvrc12_top5"}
    assert len(history) == 3
    assert all(measured <= line.keys() for line in history)
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["best"] == max(line["test_accuracy"] for line in history)
    assert summary["images"] == 39
    with open(tmp_path / "run/skipped.csv", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["google/q0002/google1.jpg"]
    assert "ilsvrc12 accuracy" in (tmp_path / "run/report.html").read_text()
