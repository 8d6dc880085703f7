"""Networks of timm by name, the weights that a backbone starts from, and what is said where that cannot work."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import blobs, method_on, small_config
from safetensors.torch import save_file

from plremix.errors import InputError
from plremix.networks import Architecture, build_network, load
from plremix.training import load_data, train


def shape(**changes: object) -> Architecture:
    values = {"channels": 3, "classes": 4, "embedding_size": 8, "timm": "test_resnet", **changes}
    return Architecture(**values)  # type: ignore[arg-type]


def own_images(folder: Path, side: int = 32) -> str:
    file = folder / "data.npz"
    np.savez(file, **blobs(side=side, channels=3))
    return str(file)


@pytest.mark.usefixtures("timm")
def test_a_timm_network_starts_from_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    first, again, other = (build_network(shape(), torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    states = [network.state_dict() for network in (first, again, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert any(not torch.equal(states[0][name], states[2][name]) for name in states[0])


@pytest.mark.usefixtures("timm")
def test_a_run_with_a_timm_network_leaves_a_model_that_loads(tmp_path: Path) -> None:
    config = small_config(data=own_images(tmp_path), network="test_resnet", epochs=2)
    summary = train(config, tmp_path / "run")
    assert summary["status"] == "done"
    model = load(tmp_path / "run")
    with np.load(tmp_path / "data.npz") as arrays:
        images = torch.from_numpy(arrays["x_test"]).permute(0, 3, 1, 2)
    probabilities = model(images)
    assert probabilities.shape == (len(images), 3)
    assert torch.allclose(probabilities.sum(1), torch.ones(len(images)), atol=1e-5)


@pytest.mark.usefixtures("timm")
def test_a_network_for_one_size_says_so(tmp_path: Path) -> None:
    config = small_config(data=own_images(tmp_path), network="vit_tiny_patch16_224")
    with pytest.raises(InputError, match="vit_tiny_patch16_224 cannot take images of 32x32"):
        train(config, tmp_path / "run")


@pytest.mark.usefixtures("timm")
def test_an_unknown_network_gets_a_proposal() -> None:
    with pytest.raises(InputError, match=r"timm has no network 'resnet5O'; perhaps resnet\d+"):
        build_network(shape(timm="resnet5O"), torch.Generator())


@pytest.mark.usefixtures("timm")
def test_pretrained_weights_are_not_fetched_unasked(tmp_path: Path) -> None:
    config = small_config(data=own_images(tmp_path), network="test_resnet", weights="pretrained")
    with pytest.raises(InputError, match="add --download, or give them by --weights FILE"):
        train(config, tmp_path / "run")


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"pip install 'plremix\[timm\]'"):
        build_network(shape(timm="resnet50"), torch.Generator())


# --- weights ---


def small_shape() -> Architecture:
    return Architecture(channels=3, classes=3, embedding_size=8, width=4, blocks=(1, 1, 1))


def test_both_networks_start_from_the_given_backbone(tmp_path: Path) -> None:
    source = build_network(small_shape(), torch.Generator().manual_seed(5))
    extra = {"fc.weight": torch.zeros(10, 16)}  # a classifier of other classes
    tensors = {k: v.contiguous() for k, v in source.backbone.state_dict().items()}
    save_file({**tensors, **extra}, tmp_path / "w", metadata={"architecture": "preact_resnet"})  # somebody else's words
    config = small_config(data=own_images(tmp_path, side=8), weights=str(tmp_path / "w"))
    method = method_on(load_data(config), config)
    for network in method.networks:
        for name, value in source.backbone.state_dict().items():
            assert torch.equal(network.backbone.state_dict()[name], value), name


def test_a_model_of_ours_can_be_started_from(tmp_path: Path) -> None:
    config = small_config(data=own_images(tmp_path, side=8), epochs=1)
    train(config, tmp_path / "first")
    again = replace(config, weights=str(tmp_path / "first" / "model.safetensors"))
    assert train(again, tmp_path / "second")["status"] == "done"
    other = replace(again, network="preact-resnet18", width=config.width, blocks=(1, 1, 1))  # the same tensors
    with pytest.raises(InputError, match="is of a network with other shortcuts"):
        train(other, tmp_path / "third")
    with pytest.raises(InputError, match=r"is not of this network: .* in the file, .* in the network"):
        train(replace(other, width=2 * config.width), tmp_path / "fourth")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read as a .safetensors file: No such file"),
        (b"PK\x03\x04 not safetensors", "cannot be read as a .safetensors file"),
        ({"other.weight": torch.zeros(3)}, "is not of this network: .* tensors are not in it"),
        ("wider", "is not of this network: .* in the file, .* in the network"),
    ],
)
def test_weights_that_do_not_fit_are_told(tmp_path: Path, content: object, message: str) -> None:
    file = tmp_path / "weights.safetensors"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif isinstance(content, dict):
        save_file(content, file)
    elif content == "wider":
        wider = build_network(replace(small_shape(), width=8), torch.Generator())
        save_file({k: v.contiguous() for k, v in wider.backbone.state_dict().items()}, file)
    config = small_config(data=own_images(tmp_path, side=8), weights=str(file))
    with pytest.raises(InputError, match=message):
        train(config, tmp_path / "run")


def test_pretrained_is_for_timm_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--weights pretrained is for timm's networks"):
        train(small_config(data=own_images(tmp_path, side=8), weights="pretrained"), tmp_path / "run")
