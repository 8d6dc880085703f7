"""The paper's recipes, each data set with each method, end to end on miniature copies in the official file formats."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import miniatures
import pytest
import torch
from helpers import contents

from plremix import recipes
from plremix.cli import main
from plremix.config import Config
from plremix.inference import predict_files
from plremix.networks import load
from plremix.paper import TABLES
from plremix.training import load_data, train
from plremix.training.progress import Silent

SMALL: dict[str, Any] = {
    "network": "preact-resnet-small",
    "weights": "",
    "width": 4,
    "batch_size": 8,
    "embedding_size": 8,
    "precision": "32-true",
    "device": "cpu",
}
# recipe: table, and what makes its images small
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "cifar10-sym-50": ("cifar", {}),
    "tiny-imagenet-sym-20": ("tiny-imagenet", {"image_size": 32}),
    "clothing1m": ("clothing1m", {"resize": 28, "image_size": 24, "epoch_images": 28}),
    "webvision": ("webvision", {"resize": 28, "image_size": 24, "first_classes": 3, "crop_sides": (16, 12)}),
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    miniatures.cifar10(root)
    miniatures.cifar100(root)
    miniatures.tiny_imagenet(root / "tiny-imagenet-200", train=8)
    miniatures.clothing1m(root / "clothing1m")
    miniatures.webvision(root / "webvision", imagenet=root)
    return root


def small(recipe: str, data_dir: Path, method: str | None = None, **changes: Any) -> Config:
    """The recipe at three epochs on a miniature, with all of its parts."""
    config = recipes.build(recipe, method, epochs=3)
    base = next((settings for name, (_, settings) in CELLS.items() if recipe.startswith(name)), {})
    wanted = {**SMALL, **base, "data_dir": data_dir, **changes}
    if not config.crop_sides:
        wanted.pop("crop_sides", None)
    known = {field.name for field in fields(config)}
    return replace(config, **{name: value for name, value in wanted.items() if name in known})


@pytest.mark.parametrize("method", recipes.METHODS)
@pytest.mark.parametrize("recipe", CELLS)
def test_every_data_set_trains_with_every_method(recipe: str, method: str, data_dir: Path, tmp_path: Path) -> None:
    config = small(recipe, data_dir, method)
    summary = train(config, tmp_path / "run")
    assert summary["status"] == "done"
    history = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(history) == 3
    assert 0 <= history[-1]["test_accuracy"] <= 1
    assert ("validation_accuracy" in history[0]) == (recipe == "clothing1m")
    assert ("ilsvrc12_accuracy" in history[0]) == (recipe == "webvision")
    if method == "plremix":
        assert [line["phase"] for line in history][-1] == "train"
    assert len(load(tmp_path / "run").classes) >= 3


def assert_goes_on_exactly(config: Config, folder: Path) -> None:
    """A run that is stopped after its second epoch ends with the files of one that never was."""

    class Stopped(Exception):
        pass

    class StopAfterTwo(Silent):
        def epoch(self, metrics: dict[str, Any]) -> None:
            if metrics["epoch"] == 1:
                raise Stopped

    train(config, folder / "runs" / "whole")
    with pytest.raises(Stopped):
        train(config, folder / "stopped", progress=StopAfterTwo)
    train(config, folder / "stopped", resume=True)
    names = ("metrics.jsonl", "labels.csv", "model.safetensors")
    assert contents(folder / "runs" / "whole", *names) == contents(folder / "stopped", *names)


@pytest.mark.parametrize(
    ("recipe", "method", "setting"),
    [
        ("cifar10-sym-90", "dividemix", {"loss_history": 5}),
        ("cifar100-sym-50", "elr-plus", {"reweight_labels": True}),
        ("cifar100-asym-40", "elr", {"lr_factor": 0.01}),
        ("clothing1m-pretrained", "dividemix", {"optimizer": "adamw"}),
    ],
)
def test_what_authors_do_in_some_cells_only_goes_on_exactly(
    recipe: str, method: str, setting: dict[str, Any], data_dir: Path, tmp_path: Path
) -> None:
    config = small(recipe, data_dir, method, warmup_epochs=1, pretrain_epochs=1, lambda_u=25.0)
    assert config.as_dict().items() >= setting.items()
    assert_goes_on_exactly(config, tmp_path)


@pytest.mark.parametrize("method", recipes.METHODS)
@pytest.mark.parametrize("recipe", CELLS)
def test_every_run_goes_on_exactly_and_stands_in_its_table(
    recipe: str, method: str, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_goes_on_exactly(small(recipe, data_dir, method, warmup_epochs=1), tmp_path)

    table = CELLS[recipe][0]
    assert main(["table", table, "--runs", str(tmp_path / "runs"), "--format", "csv"]) == 0
    shown = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    filled = [row for row in shown if row["ours"]]
    expected = [row for row in TABLES[table].rows if row.method == method and not row.suffix]
    assert len(filled) == len(expected) * (2 if recipe == "webvision" else 1)  # top-5 begins at ten classes
    assert all("epochs 3 instead of" in row["changed"] for row in filled)


@pytest.mark.parametrize(
    "recipe",
    [
        *("cifar100-asym-40", "cifar10-asym-40", "cifar10-sym-80-mixture1d", "tiny-imagenet-asym-45"),
        *("cifar10-sym-50-plr", "cifar10-sym-50-simclr", "cifar10-sym-50-scl", "cifar10-sym-80-only-y"),
        *("cifar10-sym-20-co-teaching-plus-plr", "cifar10-asym-40-jocor-simclr", "clothing1m-pretrained"),
    ],
)
def test_rows_of_the_other_tables_train(recipe: str, data_dir: Path, tmp_path: Path) -> None:
    config = small(recipe, data_dir, epochs=2, warmup_epochs=1, pretrain_epochs=1)
    assert train(config, tmp_path / "run")["status"] == "done"


def test_new_images_are_cut_out_as_the_test_images_were(data_dir: Path, tmp_path: Path) -> None:
    config = small("webvision", data_dir, "cross-entropy", epochs=1)
    train(config, tmp_path / "run")
    images = load_data(config).test_images
    assert images is not None
    expected = load(tmp_path / "run")(images[:])
    text = predict_files(tmp_path / "run", data_dir / "webvision" / "val_images_256", proba=True)
    rows = list(csv.reader(io.StringIO(text)))[1 : 1 + len(expected)]  # those of the first classes
    assert torch.tensor([[float(value) for value in row[3:]] for row in rows]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("clothing1m", {"resize": 72, "image_size": 64, "epoch_images": 28}),
        ("webvision", {"resize": 88, "image_size": 80, "first_classes": 3, "crop_sides": (80, 76), "small_crops": 2}),
    ],
)
def test_the_papers_big_networks_train_too(
    recipe: str, changes: dict[str, Any], data_dir: Path, tmp_path: Path
) -> None:
    network = recipes.build(recipe).network
    config = small(recipe, data_dir, **{**changes, "network": network, "width": None, "epochs": 2, "warmup_epochs": 1})
    assert train(config, tmp_path / "run")["status"] == "done"
    assert load(tmp_path / "run").networks[0].architecture.timm == network


@pytest.mark.slow
def test_preact_resnet18_trains_at_64_pixels(data_dir: Path, tmp_path: Path) -> None:
    changes = {"network": "preact-resnet18", "width": None, "image_size": 64, "epochs": 2, "warmup_epochs": 1}
    assert train(small("tiny-imagenet-sym-20", data_dir, **changes), tmp_path / "run")["status"] == "done"
