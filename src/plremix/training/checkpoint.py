"""The checkpoint: all that resume needs, replaced in one step, so that a kill at any moment leaves a good one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch

from plremix.errors import InputError
from plremix.training.files import write_bytes

FORMAT = 1


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Put together in memory first: a full disk then breaks off before anything is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **content}, buffer)
    write_bytes(path, buffer.getbuffer())


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read it without running anything in it; a damaged or foreign file is an error that says so."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can break the reader anywhere
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"the checkpoint {path} is damaged or not ours: {reason}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is not a checkpoint of plremix (format {FORMAT})")
    return content
