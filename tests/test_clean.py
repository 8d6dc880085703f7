"""Own images, from the command to the corrected tree: any form, any names, bad input told, originals untouched."""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import blobs, small_cross_entropy
from PIL import Image

from plremix import recipes
from plremix.cli import main
from plremix.config import CoDivideConfig, parse_time
from plremix.data.dataset import LabelledImages
from plremix.data.files import ImageFiles
from plremix.data.sheets import FORMULA, csv_text, harmless, plain_cell
from plremix.data.sources import arrays, listed, own, table
from plremix.errors import InputError
from plremix.selection import Verdict
from plremix.training import budget
from plremix.training.budget import epochs_within, expected_seconds
from plremix.training.checkpoint import load_checkpoint, save_checkpoint
from plremix.training.folder import RunFolder

QUICK = ["--epochs", "2", "--width", "4", "--embedding-size", "8", "--device", "cpu", "--quiet"]
ODD_NAMES = [
    *("with space", 'quote " and , comma', "<script>alert(1)</script>".replace("/", "\u2215"), "классы", "=1+1"),
    *("two\nlines", "'=1+1", "long " * 40),
]


def write_images(root: Path, names: list[str], count: int = 60, side: int = 16, channels: int = 3) -> None:
    data = blobs(count, classes=len(names), channels=channels, side=side, wrong=0.2)
    for index, (pixels, label) in enumerate(zip(data["x_train"], data["y_train"], strict=True)):
        target = root / names[label]
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.squeeze()).save(target / f"{index:03}.png")


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tree_hash(root: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() + str(path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_a_folder_becomes_labels_a_model_a_report_and_a_corrected_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out, tree = tmp_path / "my images", tmp_path / "run", tmp_path / "corrected"
    write_images(source, ODD_NAMES, 64)
    write_images(tmp_path / "test", ODD_NAMES, 24)
    before = tree_hash(source)
    flags = ["--test", str(tmp_path / "test"), "--export-folder", str(tree), *QUICK[:-1]]
    assert main(["clean", str(source), "--out", str(out), *flags]) == 0
    said = capsys.readouterr().out
    assert "64 images of 8 classes, colour, at 16x16 pixels" in said
    assert "this takes about" in said
    assert "labels look wrong" in said
    rows = rows_of(out / "labels.csv")
    assert len(rows) == 64
    assert {plain_cell(row["given_label"]) for row in rows} == set(ODD_NAMES)
    assert all(not row["given_label"].startswith("=") for row in rows), "nothing runs in a spreadsheet"
    assert {plain_cell(row["id"]).split("/")[0] for row in rows} == set(ODD_NAMES)
    assert json.loads((out / "summary.json").read_text())["last"] is not None

    links = [path for path in tree.rglob("*") if path.is_symlink()]
    assert len(links) == 64
    corrected = {
        plain_cell(row["id"]): plain_cell(row["corrected_label"]) for row in rows_of(out / "labels_corrected.csv")
    }
    for link in links:
        name = link.resolve(strict=True).relative_to(source.resolve()).as_posix()
        assert link.parent.name == corrected[name].replace("\n", "_").strip()

    # new images, with the model that came out of it
    assert main(["predict", str(out), str(tmp_path / "test"), "--proba"]) == 0
    predicted = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(predicted) == 24
    assert all(not row[name].startswith("=") for row in predicted for name in ("id", "predicted_label"))
    assert list(predicted[0])[:3] == ["id", "predicted_label", "confidence"]
    shares = [float(predicted[0][f"proba_{name}"]) for name in sorted(ODD_NAMES)]
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    assert float(predicted[0]["confidence"]) == pytest.approx(max(shares))
    one = tmp_path / "one.csv"
    image = next((tmp_path / "test").rglob("*.png"))
    assert main(["predict", str(out / "model.safetensors"), str(image), "--model", "one", "--out", str(one)]) == 0
    assert [row["id"] for row in rows_of(one)] == [image.name]
    assert main(["predict", str(out), str(image), "--out", str(tmp_path / "nowhere" / "one.csv")]) == 2
    assert "--resume" not in capsys.readouterr().err, "which predict does not have"

    assert main(["analyze", str(out), "--batches", "1"]) == 0
    assert main(["export", str(out), "--out", str(tmp_path / "model.onnx")]) == 0
    assert tree_hash(source) == before, "after everything the originals are as they were"


def test_a_table_of_images_is_cleaned_too(tmp_path: Path) -> None:
    write_images(tmp_path / "images", ["a", "b"], 40, channels=1)
    files = sorted((tmp_path / "images").rglob("*.png"))
    lines = ["Split,File,Kind", *(f"x,images/{file.parent.name}/{file.name},{file.parent.name}" for file in files)]
    lines += ["", "x,images/a/nothing.png,a", f"x,./{lines[1].split(',')[1]},b", "x,,a", "x,images/a/000.png,"]
    (tmp_path / "list.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    flags = ["--label-column", "Kind", "--out", str(tmp_path / "r"), *QUICK]
    assert main(["clean", str(tmp_path / "list.csv"), *flags]) == 0
    config = json.loads((tmp_path / "r" / "config.json").read_text())
    assert config["channels"] == 1, "grey images are read as grey"
    assert config["strong_view"] == "distort", "and never mirrored"
    assert len(rows_of(tmp_path / "r" / "labels.csv")) == 40
    skipped = rows_of(tmp_path / "r" / "skipped.csv")
    assert f"line {1 + lines.index('x,,a')}" in [row["id"] for row in skipped]
    reasons = [row["reason"] for row in skipped]
    assert sorted(reason.split(" with")[0].split(";")[0] for reason in reasons) == sorted(
        ["the row comes", "the row has no image", "the row has no label", "the file does not exist"]
    )


def test_an_npz_file_is_cleaned_too(tmp_path: Path, tiny_file: Path) -> None:
    assert main(["clean", str(tiny_file), "--out", str(tmp_path / "run"), *QUICK]) == 0
    assert len(rows_of(tmp_path / "run" / "labels.csv")) == 60


BAD = {
    "missing": "does not exist",
    "no images": "has no images in sub-folders",
    "one class": "all readable images are of one class",
    "wrong columns": "has no column named image, image_path",
    "unknown column": "has no column 'nope'",
    "empty table": "has no row with an image and a label",
    "another kind": "is neither a folder",
    "arrays of one class": "are of one class",
    "run folder inside": "lies inside",
    "pixels to export": "it holds the pixels themselves",
    "full export folder": "exists and is not empty",
    "export folder inside": "must not be changed",
}


@pytest.mark.parametrize("kind", list(BAD))
def test_bad_input_is_told_in_one_line(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, more = tmp_path / "in", []
    if kind == "no images":
        (path / "a").mkdir(parents=True)
    elif kind == "one class":
        write_images(path, ["a"], 10)
    elif kind in ("wrong columns", "unknown column", "empty table"):
        path = tmp_path / "in.csv"
        header = {"wrong columns": "x,y", "unknown column": "image,label", "empty table": "image,label"}[kind]
        path.write_text(header + "\n" + ("" if kind == "empty table" else "1,2\n"))
        more = ["--label-column", "nope"] if kind == "unknown column" else []
    elif kind == "another kind":
        path = tmp_path / "in.doc"
        path.write_text("x")
    elif kind in ("arrays of one class", "pixels to export"):
        path, arrays = tmp_path / "in.npz", {**blobs(), "classes": np.array(["a", "b", "c"])}
        np.savez(path, **(arrays if kind == "pixels to export" else {**arrays, "y_train": np.zeros(60, dtype=int)}))
        more = ["--export-folder", str(tmp_path / "tree")]
    elif kind != "missing":
        write_images(path, ["a", "b"], 20)
        full = {"full export folder": path / "a", "export folder inside": path / "new"}
        more = ["--export-folder", str(full[kind])] if kind in full else ["--out", str(path / "run")]
    place = [] if "--out" in more else ["--out", str(tmp_path / "run")]
    assert main(["clean", str(path), *more, *place, *QUICK]) == 2
    assert not list(tmp_path.rglob("checkpoint")), "told before anything is trained"
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert BAD[kind] in error
    assert error.count("\n") == 1


def test_odd_trees_are_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Nested folders, an empty class, a class with one image, mixed sizes, links in a circle or to other classes,
    unreadable files, names that are no text."""
    write_images(tmp_path / "in", ["a", "b"], 30)
    deep = tmp_path / "in" / "a" / "deeper" / "still"
    deep.mkdir(parents=True)
    Image.new("RGB", (50, 90), "red").save(deep / "large.jpg")
    (tmp_path / "in" / "empty").mkdir()
    (tmp_path / "in" / "single").mkdir()
    Image.new("RGB", (9, 12), "blue").save(tmp_path / "in" / "single" / "only.png")
    (tmp_path / "in" / "b" / "circle").symlink_to(tmp_path / "in" / "b", target_is_directory=True)
    (tmp_path / "in" / "b" / "up").symlink_to(tmp_path / "in", target_is_directory=True)
    (tmp_path / "in" / "b" / "beside").symlink_to(tmp_path / "in" / "a", target_is_directory=True)
    (tmp_path / "in" / "b" / "broken.png").write_bytes(b"no")
    with contextlib.suppress(OSError):  # some file systems take only text
        os.link(deep / "large.jpg", os.fsencode(tmp_path) + b"/in/a/caf\xe9.jpg")
    assert main(["clean", str(tmp_path / "in"), "--out", str(tmp_path / "run"), *QUICK[:-1]]) == 0
    said = capsys.readouterr().out
    assert "1 class has a single image, from which little can be learned: single" in said
    (told,) = (record.getMessage() for record in caplog.records)
    assert told.startswith("left out, listed in ")
    assert "empty/: the class folder has no images" in told
    assert "broken.png" not in said, "told once"
    ids = [row["id"] for row in rows_of(tmp_path / "run" / "labels.csv")]
    assert "a/deeper/still/large.jpg" in ids
    assert "single/only.png" in ids
    assert len(ids) == len(set(ids)) == 32
    skipped = {row["id"]: row["reason"] for row in rows_of(tmp_path / "run" / "skipped.csv")}
    assert skipped.keys() - {"a/caf\\udce9.jpg"} == {"empty/", "b/broken.png"}


def test_a_link_to_a_class_folder_is_no_class_of_its_own(tmp_path: Path) -> None:
    write_images(tmp_path / "in", ["b", "c"], 30)
    write_images(tmp_path / "elsewhere", ["d"], 10)
    for link, target in [("a", "b"), ("all", "."), ("d", "../elsewhere/d"), ("e", "../elsewhere/d")]:
        (tmp_path / "in" / link).symlink_to(target, target_is_directory=True)
    found = own.load(tmp_path / "in", 16, 3)
    assert found.classes == ("b", "c", "d"), "a link to a folder outside is a class like any other"
    assert len(found) == 40
    assert dict(found.skipped) == {
        name: f"it is a link to what is {real}/ already, where its images count"
        for name, real in [("a/", "b"), ("all/", "."), ("e/", "d")]
    }


def test_folders_that_cannot_be_read_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_images(tmp_path, ["a", "b"], 30)
    for name in ("a/closed", "shut"):
        (tmp_path / name).mkdir()
    real = os.scandir

    def scandir(place: Any) -> Any:  # to the user that runs tests no folder may be closed
        if Path(place).name in ("closed", "shut"):
            raise PermissionError(errno.EACCES, "Permission denied", str(place))
        return real(place)

    monkeypatch.setattr(os, "scandir", scandir)
    skipped = dict(own.load(tmp_path, 16, 3).skipped)
    assert skipped.keys() == {"a/closed/", "shut/"}
    assert all("cannot be read" in reason for reason in skipped.values())


def test_labels_never_share_a_folder_of_the_corrected_tree(tmp_path: Path) -> None:
    from plremix.training import export_tree

    labels = [
        "a/b",
        "a_b",
        "a\nb",
        "x" * 150 + "1" + "x" * 100,
        "x" * 150 + "2" + "x" * 100,
        "\U0001f600" * 63,
        "..",
        "",
    ]
    rows = []
    for index, label in enumerate(labels):
        (tmp_path / f"{index}.png").write_bytes(b"image")
        rows.append([f"{index}.png", label, label, "keep"])
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.corrected.write_text(csv_text(["id", "given_label", "corrected_label", "action"], rows), encoding="utf-8")
    assert export_tree(run, tmp_path / "list.csv", tmp_path / "tree") == len(labels)
    folders = list((tmp_path / "tree").iterdir())
    assert len(folders) == len(labels)
    assert all(len(list(folder.iterdir())) == 1 for folder in folders)


def test_a_table_of_ours_can_be_cleaned_again(tmp_path: Path) -> None:
    """Apostrophes before what looks like a formula are no part of a name, unless there is a file that is called so."""
    source = tmp_path / "images"
    write_images(source, ODD_NAMES, 64)
    first = own.listed_files(source)
    rows = zip(first.names, first.labels, strict=True)
    (source / "again.csv").write_text(csv_text(["id", "corrected_label"], rows), encoding="utf-8")
    second = own.listed_files(source / "again.csv", "id", "corrected_label")
    assert not second.skipped
    assert list(map(os.path.realpath, second.paths)) == list(map(os.path.realpath, first.paths))
    assert [label.strip() for label in first.labels] == second.labels


def test_names_come_back_from_a_sheet_as_they_were() -> None:
    for name in ("=1+1", "'=1+1", "''-x", "'plain'", "", "'", "@a", "a=b", "\tx"):
        cell = harmless(name)
        assert isinstance(cell, str)
        assert cell[:1] not in FORMULA
        assert plain_cell(cell) == name
    assert harmless(-1.5) == -1.5
    for number in ("-1", "+1", "-2.5e-3"):
        assert plain_cell(harmless(number)) == harmless(number) == number, "a number is no formula"
    for name in ("'-1", "-1+2", "-1 ", "-A1"):
        assert harmless(name) == f"'{name}"
        assert plain_cell(f"'{name}") == name
    assert plain_cell("'-1") == "-1", "as older files have it"


def test_export_refuses_to_write_where_something_is(tmp_path: Path, tiny_file: Path) -> None:
    from plremix.training import export_tree
    from plremix.training.folder import RunFolder

    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(InputError, match="exists and is not empty"):
        export_tree(RunFolder(tmp_path), tiny_file.parent, tmp_path / "full")
    with pytest.raises(InputError, match="must not be changed"):
        export_tree(RunFolder(tmp_path), tmp_path, tmp_path / "inside")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["x"]


def test_settings_follow_the_data() -> None:
    small = recipes.for_own_images(images=60, classes=2, side=300, channels=3, gpu=False)
    assert small["batch_size"] == 8
    assert small["image_size"] == 64
    assert small["weak_view"] == "crop-flip"
    large = recipes.for_own_images(images=50_000, classes=100, side=500, channels=1, gpu=True)
    assert (large["network"], large["image_size"], large["batch_size"]) == ("preact-resnet18", 128, 64)
    assert large["strong_view"] == "distort"
    config = recipes.own(Path("x"), small)
    assert isinstance(config, CoDivideConfig)
    assert (config.warmup_epochs, config.finish_epochs, config.epochs) == (
        150,
        60,
        310,
    )  # small sets are looked at often, but not for ever
    some = recipes.own(Path("x"), recipes.for_own_images(images=400, classes=4, side=32, channels=3, gpu=False))
    assert isinstance(some, CoDivideConfig)
    assert some.warmup_epochs * 400 >= recipes.STEPS["warmup"] * 2 * 8  # enough steps, however few images
    assert (some.epochs - some.finish_epochs - some.warmup_epochs) * 400 >= recipes.STEPS["train"] * 8
    short = recipes.own(Path("x"), small, epochs=30)
    assert isinstance(short, CoDivideConfig)
    assert short.warmup_epochs / 30 == pytest.approx(config.warmup_epochs / config.epochs, abs=0.02)
    assert config.benefit_of_doubt
    assert not recipes.build("digits-sym-80").benefit_of_doubt  # type: ignore[attr-defined]


def test_the_schedule_of_own_images_has_the_digits_shares() -> None:
    as_digits = recipes._schedule(recipes.OWN["epochs"] + 5, recipes.OWN["warmup_epochs"], finish_epochs=5)
    for name in ("warmup_epochs", "kappa_epochs", "ramp_epochs"):
        assert as_digits[name] == recipes.OWN[name]
    for images in (60, 999, 5000, 1_000_000):
        config = recipes.own(Path("x"), recipes.for_own_images(images, 5, 32, 3, gpu=False))
        assert isinstance(config, CoDivideConfig)
        times = (0, config.warmup_epochs, *config.kappa_epochs, config.epochs - config.finish_epochs, config.epochs)
        assert list(times) == sorted(set(times))
        assert config.trust_in_networks(config.epochs - config.finish_epochs) == 0.5
        assert config.learning_rate(config.epochs - config.finish_epochs) == pytest.approx(0.3 * config.lr)
        assert config.learning_rate(config.epochs - 1) < 0.2 * config.lr
    for length in range(1, 30):  # however short, and warm-up and co-training go before the end
        short = recipes.scaled(config, length)
        assert isinstance(short, CoDivideConfig)
        assert short.warmup_epochs >= 1
        assert short.finish_epochs <= 0.3 * length


def test_the_expected_time_counts_the_reading_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / f"{index}.png" for index in range(40)]
    for index, path in enumerate(paths):
        Image.fromarray(np.full((8, 8), 6 * index, dtype=np.uint8)).save(path)
    files = ImageFiles(paths, 8, channels=1)
    labels = torch.arange(40) % 2
    data = LabelledImages(files, labels, None, files, labels, ("a", "b"), tuple(map(str, paths)))
    read = []
    cut = ImageFiles.cut
    monkeypatch.setattr(ImageFiles, "cut", lambda self, rows, views: read.append(len(rows)) or cut(self, rows, views))
    assert expected_seconds(small_cross_entropy(batch_size=8, epochs=2), data) > 0
    assert sum(read) >= 3 * 16 + 3 * 16  # three trials of two batches, and three looks at as many test images


def test_the_expected_time_counts_contrast_as_if_it_were_needed() -> None:
    config = CoDivideConfig(epochs=40, warmup_epochs=9, finish_epochs=4, kappa_epochs=(10, 20), contrast_above=0.2)
    parts = [(epochs, trial) for epochs, trial in budget._phases(config) if isinstance(trial, CoDivideConfig)]
    assert [epochs for epochs, _ in parts] == [5, 4, 27, 4]  # contrast is decided on before epoch 5
    assert [trial.warmup_contrast for _, trial in parts] == [False, True, True, True]
    assert all(not trial.contrast_above for _, trial in parts)
    costs = [config.epoch_cost(epoch) for epoch in range(40)]
    assert costs[4] < costs[5] < costs[9] > costs[36]


def test_a_time_budget_sets_the_number_of_epochs() -> None:
    assert [parse_time(text) for text in ("90s", "30m", "1h30m", "2d", "0.5h")] == [90, 1800, 5400, 172_800, 1800]
    for text in ("soon", "30x", "m", "-5m", "30", "0", "nan", ""):
        with pytest.raises(InputError, match="--time-budget must look like 90s, 30m, 1h30m or 2h"):
            parse_time(text)
    for text in ("0s", "0h0m", "9" * 400 + "d"):
        with pytest.raises(InputError, match="--time-budget must be a time above 0"):
            parse_time(text)
    config = CoDivideConfig(epochs=40, kappa_epochs=(10, 20))
    assert epochs_within(config, expected=400.0, budget=200.0) == 20
    assert epochs_within(config, expected=400.0, budget=200.0, most=7) == 7
    assert epochs_within(config, expected=400.0, budget=200.0, most=30) == 20
    assert epochs_within(config, expected=400.0, budget=0.1) == 3


def test_a_budget_that_is_too_short_for_any_run_is_told(caplog: pytest.LogCaptureFixture) -> None:
    config = CoDivideConfig(epochs=40, kappa_epochs=(10, 20))
    epochs_within(config, expected=400.0, budget=30.0)
    assert not caplog.records
    epochs_within(config, expected=400.0, budget=0.5)
    (told,) = (record.getMessage() for record in caplog.records)
    assert told == "the time budget (0.5 s) is too short: even the smallest run takes about 30 seconds"
    assert [budget.duration(seconds) for seconds in (0.1, 1.6, 91, 7200)] == [
        *("1 second", "2 seconds", "2 minutes", "2.0 hours")
    ]


def test_epochs_are_the_most_that_a_time_budget_may_take(
    tmp_path: Path, tiny_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["clean", str(tiny_file), "--out", str(tmp_path / "run"), *QUICK[2:-1], "--epochs", "1"]
    assert main([*words, "--time-budget", "2h"]) == 0
    assert json.loads((tmp_path / "run" / "config.json").read_text())["epochs"] == 1
    assert "batches of 8, 1 epoch (" in capsys.readouterr().out
    assert main([*words, "--resume", "--time-budget", "2h"]) == 0, "the same command with --resume always goes on"
    assert "keeps its length (1 epoch): --time-budget is for a new one" in capsys.readouterr().err


def test_strictness_flags_fewer_or_more_by_score() -> None:
    score = np.linspace(0, 1, 100)
    verdict = Verdict(score, score < 0.2, np.zeros(100, dtype=np.int64), np.ones(100))
    assert [int(verdict.at_strictness(value).is_label_issue.sum()) for value in (0, 0.25, 0.5, 0.75, 1)] == [
        *(0, 10, 20, 35, 50)
    ]
    assert verdict.at_strictness(0.25).is_label_issue[:10].all()


def test_number_labels_are_sorted_by_value(tmp_path: Path) -> None:
    write_images(tmp_path / "in", ["10", "9", "2"], 30)
    assert own.load(tmp_path / "in", 16, 3).classes == ("2", "9", "10")


def test_a_resumed_run_keeps_its_settings_and_says_if_other_ones_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos, out = tmp_path / "photos", tmp_path / "run"
    write_images(photos, ["a", "b"])
    write_images(tmp_path / "others", ["a", "b"])
    go = ["--out", str(out), "--resume"]
    assert main(["clean", str(photos), "--out", str(out), *QUICK]) == 0
    assert main(["clean", str(photos), *go, "--quiet"]) == 0
    assert main(["clean", str(photos), *go, *QUICK]) == 0
    capsys.readouterr()
    for words, told in [
        ([str(photos), *go, "--epochs", "9"], "epochs was 2 and is 9"),
        ([str(photos), *go, "--strictness", "0.9"], "strictness was 0.5 and is 0.9"),
        ([str(tmp_path / "others"), *go], "holds a run on"),
        ([str(photos), "--out", str(out)], "holds a run already"),
        ([str(photos), "--out", str(tmp_path / "new"), "--test", "nowhere"], "--test nowhere does not exist"),
    ]:
        assert main(["clean", *words]) == 2
        assert told in capsys.readouterr().err


def test_a_run_goes_on_and_is_looked_at_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_images(tmp_path / "photos", ["a", "b"])
    write_images(tmp_path / "trusted", ["a", "b"], 10)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["clean", "photos", "--test", "trusted", *QUICK]) == 0
    out, go = tmp_path / "runs" / "clean-photos", ["--resume", "--quiet"]
    config = json.loads((out / "config.json").read_text())
    assert (config["data"], config["test"]) == (str(tmp_path / "photos"), str(tmp_path / "trusted"))
    assert main(["clean", "photos", "--test", "./trusted", *go]) == 0
    (tmp_path / "link").symlink_to("photos", target_is_directory=True)
    monkeypatch.chdir(tmp_path / "other")
    (out / "summary.json").unlink()
    assert main(["clean", "../link", "--out", "../runs/clean-photos", *go]) == 0
    assert main(["analyze", "../runs/clean-photos", "--batches", "1"]) == 0


@pytest.mark.parametrize("command", ["clean", "train"])
def test_a_run_whose_config_has_a_relative_path_goes_on_where_it_began(
    command: str, tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [command, tiny_file.name, "--out", "run", *QUICK]
    assert main(words) == 0
    file, checkpoint = tmp_path / "run" / "config.json", tmp_path / "run" / "checkpoint" / "last.pt"
    config = json.loads(file.read_text())
    assert config["data"] == str(tiny_file)
    file.write_text(json.dumps({**config, "data": tiny_file.name}))  # as earlier versions wrote it
    saved = load_checkpoint(checkpoint)
    saved["config"]["data"] = tiny_file.name
    save_checkpoint(checkpoint, saved)
    (tmp_path / "run" / "summary.json").unlink()
    assert main([*words, "--resume"]) == 0


def test_images_without_a_class_are_told_and_hidden_ones_passed_over(tmp_path: Path) -> None:
    write_images(tmp_path / "photos", ["a", "b"])
    for place in ("stray.png", ".hidden.png", "a/.thumbnails/small.png"):
        (tmp_path / "photos" / place).parent.mkdir(exist_ok=True)
        Image.new("RGB", (16, 16)).save(tmp_path / "photos" / place)
    found = own.load(tmp_path / "photos", 16, 3)
    assert len(found) == 60
    assert [name for name, _ in found.skipped] == ["stray.png"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_tables_come_with_any_usual_separator(tmp_path: Path, separator: str) -> None:
    write_images(tmp_path, ["a", "b"])
    rows = [separator.join(["file", "kind of thing"])]
    rows += [separator.join([f"{path.parent.name}/{path.name}", path.parent.name]) for path in tmp_path.glob("*/*.png")]
    (tmp_path / "list.csv").write_text("\n".join(rows))
    assert len(own.load(tmp_path / "list.csv", 16, 3, label_column="kind of thing")) == 60


def test_a_table_names_a_file_once_and_as_it_is(tmp_path: Path) -> None:
    write_images(tmp_path, ["a", "b"], 20)
    spaced = tmp_path / "a" / " spaced .png "
    (tmp_path / "a" / "000.png").rename(spaced)
    (tmp_path / "link").symlink_to("b", target_is_directory=True)
    files = [(f"{path.parent.name}/{path.name}", path.parent.name) for path in sorted(tmp_path.glob("[ab]/*.png"))]
    rows = [*files, ("a/ spaced .png ", "a"), (f" {files[0][0]} ", "a"), (str(tmp_path / files[1][0]), "a")]
    rows += [(f"link/{Path(files[-1][0]).name}", "b")]
    (tmp_path / "list.csv").write_text("image,label\n" + "\n".join(map(",".join, rows)))
    found = own.load(tmp_path / "list.csv", 16, 3)
    assert sorted(found.ids) == sorted([*(name for name, _ in files), "a/ spaced .png "])
    assert [name for name, reason in found.skipped if reason == "the row comes again"] == [
        files[0][0],
        str(tmp_path / files[1][0]),
        f"link/{Path(files[-1][0]).name}",
    ]


def test_a_name_that_no_file_can_have_is_left_out(tmp_path: Path) -> None:
    write_images(tmp_path, ["a", "b"], 20)
    rows = [(f"{path.parent.name}/{path.name}", path.parent.name) for path in tmp_path.glob("*/*.png")]
    strange = [("x\0.png", "a"), ("x" * 5000, "a"), (" " + "y" * 5000, "a")]
    found = table._listed(tmp_path / "list.csv", [(1, *row) for row in [*rows, *strange]])
    assert len(found.paths) == 23
    assert len(listed.load(found, 16).skipped) == 3


def test_labels_that_may_be_a_mistake_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = blobs(120, classes=2)
    np.savez(tmp_path / "gaps.npz", x_train=values["x_train"], y_train=np.array([10, 100])[values["y_train"]])
    np.savez(tmp_path / "nan.npz", x_train=values["x_train"], y_train=np.array(["NaN", "dog"])[values["y_train"]])
    quick = [*QUICK[2:-1], "--epochs", "1"]
    assert main(["clean", str(tmp_path / "gaps.npz"), "--out", str(tmp_path / "gaps"), *quick]) == 0
    assert "99 of 101 classes have no image; if 10, 100 are all there are" in capsys.readouterr().out
    assert {row["given_label"] for row in rows_of(tmp_path / "gaps" / "labels.csv")} == {"10", "100"}
    assert main(["clean", str(tmp_path / "nan.npz"), "--out", str(tmp_path / "nan"), *quick]) == 0
    said = capsys.readouterr().out
    assert "a class is called NaN: if that means no label, leave those images out" in said
    assert "have no image" not in said
    assert {row["given_label"] for row in rows_of(tmp_path / "nan" / "labels.csv")} == {"NaN", "dog"}


def test_several_files_and_folders_are_predicted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path / "photos", ["a", "b"], 20)
    write_images(tmp_path / "new", ["a", "b"], 2)
    assert main(["clean", "photos", "--out", "run", *QUICK]) == 0

    def ids(*words: str) -> list[str]:
        assert main(["predict", *words]) == 0
        return [row["id"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]

    new = sorted(path.relative_to(tmp_path).as_posix() for path in (tmp_path / "new").rglob("*.png"))
    assert ids("run", "new") == [name.removeprefix("new/") for name in new]
    assert ids("run", new[0]) == [Path(new[0]).name]
    first = next((tmp_path / "photos" / "a").glob("*.png"))
    given = [first.relative_to(tmp_path).as_posix(), str(first)]
    assert ids("--model", "one", "run", *given, "--proba", "new", new[0]) == [*given, *new]
    os.link(tmp_path / new[0], os.fsencode(tmp_path / "new") + b"/\xff.png")
    assert main(["predict", "run", "new", "--out", "new.csv"]) == 0
    assert [row["id"] for row in rows_of(tmp_path / "new.csv")] == [name.removeprefix("new/") for name in new]
    os.mkfifo("pipe.png")
    for path, told in [("nowhere", "nowhere does not exist"), ("pipe.png", "is neither an image file nor a folder")]:
        assert main(["predict", "run", "new", path]) == 2
        assert told in capsys.readouterr().err
    assert main(["predict", "--proba", "run"]) == 2
    assert "plremix predict RUN PATH" in capsys.readouterr().err


@pytest.mark.parametrize(("trusted", "action"), [(True, "relabel"), (False, "review")])
def test_networks_that_collapsed_do_not_relabel(tmp_path: Path, trusted: bool, action: str) -> None:
    data = arrays.from_arrays(blobs(6, classes=2, wrong=0.0))
    flagged = data.given_labels.numpy() == 1
    sure = np.full(6, 0.9)
    verdict = Verdict(np.where(flagged, 0.1, 0.9), flagged, np.zeros(6, np.int64), sure)
    RunFolder(tmp_path).write_labels(data, verdict, trusted=trusted)
    assert [row["action"] for row in rows_of(tmp_path / "labels_corrected.csv")] == ["keep", action] * 3


def test_the_short_help_names_flags_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--help"]) == 0
    short = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["clean", "--help-all"])
    every = re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out)
    named = set(re.findall(r"^  (--[a-z-]+)", short, flags=re.MULTILINE))
    assert {"--test", "--time-budget", "--strictness", "--export-folder", "--resume"} <= named <= set(every)
    assert len(short.splitlines()) < 40


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epoch", "6"], "perhaps --epochs"),
        (["--strictnes=1"], "perhaps --strictness"),
        (["--epochs", "six"], "--epochs must be a number, got 'six'"),
        (["--xyzzy", "1"], "Unrecognized options: --xyzzy"),
        (["--recipe", "digits-sym-80"], "a recipe stands first"),
    ],
)
def test_slips_of_the_keyboard_are_understood(
    words: list[str], message: str, tiny_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clean", str(tiny_file), *words]) == 2
    assert message in capsys.readouterr().err
