"""What a backbone starts from: a safetensors file, or the weights that timm has for it."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from plremix.errors import InputError
from plremix.networks import timm_models
from plremix.networks.files import load
from plremix.networks.network import Network

PRETRAINED = "pretrained"


def starting_weights(weights: str, network: Network, *, fetch: bool) -> dict[str, Tensor]:
    """The backbone's weights by name: of a file (a backbone's, or a model of ours), or timm's own."""
    if weights == PRETRAINED:
        architecture = network.architecture
        if not architecture.timm:
            raise InputError("--weights pretrained is for timm's networks; for this one give a .safetensors file")
        return timm_models.pretrained_weights(architecture.timm, architecture.channels, fetch=fetch)
    try:
        tensors = load_file(weights)
    except (OSError, SafetensorError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
        raise InputError(f"--weights {weights} cannot be read as a .safetensors file: {reason}") from error
    if not any(name.startswith("networks.0.backbone.") for name in tensors):
        return tensors
    source = load(weights).networks[0]
    assert isinstance(source, Network)
    tensors = source.backbone.state_dict()
    _check_fits(network, tensors, weights)
    if source.architecture.active_shortcuts != network.architecture.active_shortcuts:  # by their tensors they are alike
        raise InputError(
            f"--weights {weights} is of a network with other shortcuts (preact-resnet-small, or preact-resnet18 of an "
            "earlier version): give a file that was trained with this --network"
        )
    return tensors


def load_backbone(network: Network, tensors: dict[str, Tensor], source: str) -> None:
    """Set the backbone; a classifier in the file is left out, anything else that does not fit is told."""
    _check_fits(network, tensors, source)
    wanted = network.backbone.state_dict()
    network.backbone.load_state_dict({name: tensors.get(name, value) for name, value in wanted.items()})


def _check_fits(network: Network, tensors: dict[str, Tensor], source: str) -> None:
    wanted = network.backbone.state_dict()
    fixed = {name for name in wanted if not name.endswith("num_batches_tracked")}  # some files leave counters out
    if missing := sorted(fixed - tensors.keys()):
        raise InputError(
            f"{Path(source).name} is not of this network: {len(missing)} of its {len(fixed)} tensors are not in it, "
            f"{missing[0]} for one"
        )
    for name in sorted(wanted.keys() & tensors.keys()):
        if wanted[name].shape != tensors[name].shape:
            shapes = f"{tuple(tensors[name].shape)} in the file, {tuple(wanted[name].shape)} in the network"
            raise InputError(f"{Path(source).name} is not of this network: {name} is {shapes}")
