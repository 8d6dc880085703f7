"""The checkpoint: all that resume needs, replaced in one step, so that a kill at any moment leaves a good one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from plremix.errors import InputError

FORMAT = 1


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write beside, flush to the disk, then replace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".writing")
    with open(temporary, "wb") as file:
        torch.save({"format": FORMAT, **content}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _flush_folder(path.parent)


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


def _flush_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):  # not on Windows, where a folder cannot be opened
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
