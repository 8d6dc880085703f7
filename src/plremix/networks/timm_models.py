"""Backbones of timm (an extra), by name: ResNet-50 and Inception-ResNet v2 are the paper's; any other works too."""

from __future__ import annotations

import difflib
from typing import Any

import torch
from torch import nn

from plremix.errors import InputError


def build_backbone(name: str, channels: int) -> nn.Module:
    """The model without its classifier: images (b, channels, H, W) to features (b, `num_features`)."""
    timm = _timm(name)
    known = timm.list_models()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; perhaps {near[0]}?" if near else ""
        raise InputError(f"timm has no network {name!r}{hint}")
    model: nn.Module = timm.create_model(name, pretrained=False, in_chans=channels, num_classes=0)
    return model


def feature_count(backbone: nn.Module) -> int:
    """Features that a model without its classifier gives: some keep a layer in front of it."""
    return int(getattr(backbone, "head_hidden_size", None) or backbone.num_features)  # type: ignore[arg-type]


def pretrained_weights(name: str, channels: int, *, fetch: bool) -> dict[str, torch.Tensor]:
    """timm's own weights of a backbone; only those already on this machine unless they may be fetched."""
    timm = _timm(name)
    place = {} if fetch else {"pretrained_cfg_overlay": {"file": _on_this_machine(timm, name)}}
    try:
        model = timm.create_model(name, pretrained=True, in_chans=channels, num_classes=0, **place)
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the weights of {name!r} cannot be had: {reason}; give them by --weights FILE") from error
    return dict(model.state_dict())


def _on_this_machine(timm: Any, name: str) -> str:
    """The file that an earlier download left."""
    from huggingface_hub import try_to_load_from_cache

    source = getattr(timm.get_pretrained_cfg(name), "hf_hub_id", None)
    found = try_to_load_from_cache(source, "model.safetensors") if source else None
    if not isinstance(found, str):
        raise InputError(
            f"the weights of {name!r} are not on this machine: add --download, or give them by --weights FILE"
        )
    return found


def _timm(name: str) -> Any:
    try:
        import timm
    except ImportError as error:
        raise InputError(
            f"the network {name!r} is none of ours; timm's need the extra: pip install 'plremix[timm]'"
        ) from error
    except RuntimeError as error:  # torchvision of another torch
        raise InputError(
            f"the network {name!r} is none of ours, and timm cannot be loaded ({str(error).splitlines()[0]}): "
            "install the torchvision that belongs to this torch, or take preact-resnet18 or preact-resnet-small"
        ) from error
    return timm
