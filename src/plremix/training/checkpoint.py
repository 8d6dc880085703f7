"""The checkpoint: all that resume needs, replaced in one step, so that a kill at any moment leaves a good one."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import torch

from plremix.errors import InputError
from plremix.methods.base import Method
from plremix.training.files import write_bytes

FORMAT = 1
PARTS: dict[str, type | tuple[type, ...]] = {  # what `_Run._save` puts into it
    "config": dict,
    "history": list,
    "seconds": list,
    "pretrain_seconds": (int, float),
    "pretrained": int,
    "precision": dict,
    "method": dict,
}


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Put together in memory first: a full disk then breaks off before anything is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **content}, buffer)
    write_bytes(path, buffer.getbuffer())


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read it without running anything in it; a damaged or foreign file is an error that says so."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch itself does not look at the checksums
        if damaged is not None:
            raise ValueError(f"the checksum of {damaged} is wrong")
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can break the reader anywhere
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"the checkpoint {path} is damaged or not ours: {reason}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is not a checkpoint of plremix (format {FORMAT})")
    if strange := [name for name, kind in PARTS.items() if not isinstance(content.get(name), kind)]:
        raise InputError(f"the checkpoint {path} is damaged or not ours: no {', '.join(strange)} in it")
    history, seconds = content["history"], content["seconds"]
    if not all(isinstance(line, dict) and "epoch" in line and "phase" in line for line in history):
        raise InputError(f"the checkpoint {path} is damaged or not ours: its history is not one")
    if len(seconds) != len(history) or not all(isinstance(each, (int, float)) for each in seconds):
        raise InputError(f"the checkpoint {path} is damaged or not ours: its times are not those of its history")
    return content


def put_back(method: Method, saved: dict[str, Any], path: Path) -> None:
    """The checkpoint's state into the method; what was begun with other networks is told."""
    if saved.get("active_shortcuts", False) != method.networks[0].architecture.active_shortcuts:
        raise InputError(
            f"the checkpoint {path} was written by an earlier version, whose preact-resnet18 had other shortcuts: "
            "start the run anew (its model, if it is finished, can still be used)"
        )
    try:
        method.load_state_dict(saved["method"])
    except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the checkpoint {path} does not fit this run: {reason}") from error
