"""Files that are replaced in one step: a reader, or a kill, sees the old one or the new one, never a half."""

from __future__ import annotations

import os
from pathlib import Path


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Write beside, flush to the disk, then replace; if that fails, what was there stays and nothing else is left."""
    temporary = path.with_name(path.name + ".writing")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """In UTF-8; bytes of a path that are no text stand there as their numbers."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def _flush_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):  # not on Windows, where a folder cannot be opened
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
