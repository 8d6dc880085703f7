"""The model file: both networks and all that is needed to use them, in safetensors (which cannot run code)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from plremix.errors import InputError
from plremix.networks.network import Architecture, Network, build_network

MODEL_FILE = "model.safetensors"


class Ensemble(nn.Module):
    """The networks of a run as one classifier: uint8 images (n, c, H, W) in, class probabilities (n, C) out."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        networks: Sequence[Network],
        classes: Sequence[str],
        side: Sequence[int],
        mean: Tensor,
        std: Tensor,
        resize: int = 0,
    ):
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.classes = tuple(classes)
        self.side = tuple(side)  # height and width that it was trained on
        self.resize = resize  # short side of the files that this was cut out of; 0: no cut
        self.register_buffer("mean", mean.detach().clone().float().cpu(), persistent=False)
        self.register_buffer("std", std.detach().clone().float().cpu(), persistent=False)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        channels = len(self.mean)
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] != channels:
            raise ValueError(
                f"expected uint8 images (n, {channels}, height, width), got {images.dtype} {tuple(images.shape)}"
            )
        pixels = (images / 255 - self.mean.view(-1, 1, 1)) / self.std.view(-1, 1, 1)
        pixels = pixels.contiguous(memory_format=torch.channels_last)
        return F.softmax(torch.stack([network(pixels).logits for network in self.networks]).mean(0), dim=1)


def model_bytes(model: Ensemble) -> bytes:
    """The file's content: the weights (`networks.0.*`, ...) and, as metadata, everything else."""
    first = model.networks[0]
    assert isinstance(first, Network)
    metadata = {
        "classes": list(model.classes),
        "architecture": asdict(first.architecture),
        "input_size": list(model.side),
        "resize": model.resize,
        "mean": model.mean.tolist(),
        "std": model.std.tolist(),
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    return _in_order(save(tensors, {name: json.dumps(value) for name, value in metadata.items()}))


def _in_order(content: bytes) -> bytes:
    """The same file with its metadata in alphabetical order: safetensors shuffles it; equal models are equal files."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of eight bytes
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def load(path: str | Path) -> Ensemble:
    """The classifier of a run folder or of a model.safetensors file, in eval mode."""
    file = Path(path)
    if file.is_dir():
        file = file / MODEL_FILE
    if not file.is_file():
        raise InputError(f"there is no model at {file}; a finished run has one")
    try:
        with safe_open(file, framework="pt") as archive:
            raw = archive.metadata() or {}
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118 (not a dict)
        model = _from_metadata({name: json.loads(value) for name, value in raw.items()}, tensors)
        model.load_state_dict(tensors)
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError, RuntimeError, OSError) as error:
        raise InputError(f"{file} is not a model of plremix, or is damaged: {str(error).splitlines()[0]}") from error
    return model.eval()


def _from_metadata(metadata: dict[str, Any], tensors: dict[str, Tensor]) -> Ensemble:
    settings = metadata["architecture"]
    architecture = Architecture(**{**settings, "blocks": tuple(settings["blocks"])})
    count = 1 + max(int(name.split(".")[1]) for name in tensors)
    if not 1 <= count <= 16:
        raise ValueError(f"it claims to hold {count} networks")
    networks = [build_network(architecture, torch.Generator()) for _ in range(count)]
    mean, std = torch.tensor(metadata["mean"]), torch.tensor(metadata["std"])
    resize, side, classes = int(metadata.get("resize", 0)), metadata["input_size"], metadata["classes"]
    fits = {
        "classes": len(classes) == architecture.classes and all(isinstance(name, str) for name in classes),
        "input_size": len(side) == 2 and all(isinstance(length, int) and length >= 1 for length in side),
        "mean": mean.shape == (architecture.channels,) and bool(mean.isfinite().all()),
        "std": std.shape == (architecture.channels,) and bool((std.isfinite() & (std > 0)).all()),
    }
    if wrong := [name for name, good in fits.items() if not good]:
        raise ValueError(f"its {', '.join(wrong)} cannot be right")
    return Ensemble(networks, classes, side, mean, std, resize)
