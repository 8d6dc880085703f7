"""Small images decoded once into a file that is mapped into memory, so that the next start takes seconds.

A source says what its pixels depend on (`fingerprint`), how many bytes there are, and how to fill them:

    tensor = cached(folder, "tiny-imagenet", fingerprint(root, files, side), (count, 3, 64, 64), fill)

where `fill(array)` writes a uint8 array of that shape; `kept` and `keep` are its two halves, for a source that knows
the shape only after decoding. A file that is damaged, cut off, of other images or not ours at all is made anew; where
no file can be written, the pixels stay in memory. The tensor is a private mapping: processes share the file's pages,
which are no memory of their own, and what is written to the tensor never reaches the file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import secrets
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

log = logging.getLogger("plremix")

VERSION = 1  # of the file's form; raise it when the form or the decoding changes
MAGIC = b"plremix pixels\n"
HEAD = 4096  # bytes before the pixels: the magic words, then a line of JSON, then zeros
PAGE = 4096  # bytes that are added up for the checksum
PIECE = 1 << 23  # zeros that are written at a time where a file cannot be given its size at once
ABANDONED = 86400  # seconds after which a half-written file is no longer anybody's

Pixels = NDArray[np.uint8]


def fingerprint(root: Path, files: Iterable[Path], *settings: object) -> str:
    """What the pixels depend on: name below `root`, size and time of each file, and the settings of the decoding."""
    digest = hashlib.sha256(repr((VERSION, settings)).encode())
    for file in files:
        found = file.stat()
        name = file.relative_to(root).as_posix()
        digest.update(repr((name, found.st_size, found.st_mtime_ns)).encode())
    return digest.hexdigest()


def cached(folder: Path, name: str, key: str, shape: tuple[int, ...], fill: Callable[[Pixels], None]) -> Tensor:
    """uint8 `shape` from `folder/name.pixels` if that was made for `key`; else `fill` makes it, and it is kept."""
    pixels = kept(folder, name, key)
    if pixels is None or pixels.shape != shape:
        return keep(folder, name, key, shape, fill)
    return pixels


def kept(folder: Path, name: str, key: str) -> Tensor | None:
    """What was kept for `key`, if the file is whole; every byte is checked."""
    path = _path(folder, name)
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
            size = os.fstat(file.fileno()).st_size
        if not head.startswith(MAGIC):
            return None
        facts = json.loads(head[len(MAGIC) :].rstrip(b"\0"))
        shape, checksum = tuple(facts["shape"]), facts["checksum"]
        if head != _head(key, shape, checksum) or size != HEAD + math.prod(shape):
            return None
        pixels = _mapped(path, shape)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if _checksum(pixels) != checksum:
        log.warning("%s is damaged and is made anew", path)
        return None
    return torch.from_numpy(pixels)


def keep(folder: Path, name: str, key: str, shape: tuple[int, ...], fill: Callable[[Pixels], None]) -> Tensor:
    """Have `fill` make the pixels, and keep them for the next time where that is possible."""
    path = _path(folder, name)
    try:
        temporary = _room_beside(path, HEAD + math.prod(shape))
    except OSError as error:
        log.warning(
            "images are decoded again at the next start: %s cannot be written (%s); --cache-dir names another place",
            path,
            error.strerror or error,
        )
        pixels = np.empty(shape, np.uint8)
        fill(pixels)
        return torch.from_numpy(pixels)
    try:
        written = np.memmap(temporary, np.uint8, "r+", offset=HEAD, shape=shape)
        fill(written)
        head = _head(key, shape, _checksum(written))
        written.flush()
        del written
        with open(temporary, "r+b") as file:
            file.write(head)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return torch.from_numpy(_mapped(path, shape))


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.pixels"


def _mapped(path: Path, shape: tuple[int, ...]) -> Pixels:
    return np.memmap(path, np.uint8, "c", offset=HEAD, shape=shape)


def _head(key: str, shape: tuple[int, ...], checksum: int) -> bytes:
    facts = {"version": VERSION, "fingerprint": key, "shape": list(shape), "checksum": checksum}
    return (MAGIC + json.dumps(facts).encode()).ljust(HEAD, b"\0")


def _checksum(pixels: Pixels) -> int:
    """CRC-32 of the sums of all pages: as sure to see damage as the CRC of everything, at the speed of the memory."""
    flat = pixels.reshape(-1)
    whole = len(flat) // PAGE * PAGE
    sums = flat[:whole].view(np.uint64).reshape(-1, PAGE // 8).sum(axis=1)
    return zlib.crc32(flat[whole:].tobytes(), zlib.crc32(sums.tobytes()))


def _room_beside(path: Path, size: int) -> Path:
    """A new file of `size` bytes to write into.

    A full disk is told here: writing to a mapping that has no room behind it would end the program.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.writing")
    try:
        with open(temporary, "xb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                for start in range(0, size, PIECE):
                    file.write(bytes(min(PIECE, size - start)))
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _sweep(path: Path) -> None:
    """Half-written files of processes that were killed."""
    for left in path.parent.glob(f"{path.name}.*.writing"):
        if time.time() - left.stat().st_mtime > ABANDONED:
            left.unlink(missing_ok=True)
