"""The model file is enough by itself, and a bad one gives a clear error."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

import plremix
from plremix.errors import InputError
from plremix.networks import Architecture, Ensemble, build_network, model_bytes


def ensemble() -> Ensemble:
    shape = Architecture(width=4, blocks=(1, 1), channels=1, classes=3, embedding_size=8)
    networks = [build_network(shape, torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    return Ensemble(networks, ("cat", "dog", "Kuh"), (8, 8), torch.tensor([0.3]), torch.tensor([0.2])).eval()


def images() -> Tensor:
    return torch.randint(0, 256, (5, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_a_model_comes_back_from_its_file_alone(tmp_path: Path) -> None:
    model = ensemble()
    (tmp_path / "model.safetensors").write_bytes(model_bytes(model))
    for place in (tmp_path, tmp_path / "model.safetensors", str(tmp_path)):
        loaded = plremix.load(place)
        assert loaded.classes == ("cat", "dog", "Kuh")
        assert not loaded.training
        assert torch.equal(loaded(images()), model(images()))
    assert torch.allclose(loaded(images()).sum(1), torch.ones(5))


def test_the_file_names_both_networks_and_says_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(model_bytes(ensemble()))
    with safe_open(tmp_path / "model.safetensors", framework="pt") as archive:
        names, metadata = list(archive.keys()), archive.metadata()
    assert all(name.startswith(("networks.0.", "networks.1.")) for name in names)
    assert json.loads(metadata["input_size"]) == [8, 8]
    assert json.loads(metadata["mean"]) == pytest.approx([0.3])


def test_the_networks_predict_by_their_summed_logits() -> None:
    model = ensemble()
    pixels = (images() / 255 - 0.3) / 0.2
    summed = sum(network(pixels).logits for network in model.networks)
    assert torch.equal(model(images()).argmax(1), summed.argmax(1))


@pytest.mark.parametrize("content", [b"", b"junk" * 100, pickle.dumps({"a": 1})])
def test_a_damaged_or_foreign_file_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="not a model of plremix"):
        plremix.load(tmp_path)


def test_a_file_of_somebody_else_is_told(tmp_path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="not a model of plremix"):
        plremix.load(tmp_path)
    with pytest.raises(InputError, match="there is no model"):
        plremix.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("classes", ["cat"]),
        ("classes", [1, 2, 3]),
        ("input_size", [0, 0]),
        ("input_size", [8]),
        ("mean", [0.3, 0.3, 0.3]),
        ("std", [0.0]),
        ("std", [float("nan")]),
    ],
)
def test_words_of_a_file_that_do_not_fit_its_weights_are_told(tmp_path: Path, name: str, value: object) -> None:
    (tmp_path / "good.safetensors").write_bytes(model_bytes(ensemble()))
    with safe_open(tmp_path / "good.safetensors", framework="pt") as archive:
        tensors = {key: archive.get_tensor(key) for key in archive.keys()}  # noqa: SIM118 (not a dict)
        metadata = archive.metadata()
    save_file(tensors, tmp_path / "model.safetensors", {**metadata, name: json.dumps(value)})
    with pytest.raises(InputError, match=f"its {name} cannot be right"):
        plremix.load(tmp_path)


def test_images_of_the_wrong_kind_are_told() -> None:
    with pytest.raises(ValueError, match=r"expected uint8 images \(n, 1, height, width\)"):
        ensemble()(images().float())
