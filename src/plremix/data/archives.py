"""Archives from strangers: single files read out of a tar, or all of a tar or zip unpacked without leaving its folder.

Only plain files and folders with plain names are taken; links, devices, absolute names and `..` are refused, and so is
what unpacks to more than was announced.
"""

from __future__ import annotations

import contextlib
import gzip
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Generator, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from plremix.errors import InputError

BROKEN = (OSError, ValueError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error)
PIECE = 1 << 20  # bytes that are copied at a time

Entry = tuple[PurePosixPath, IO[bytes] | None]  # a file's name and content; None: a folder


def read_tar(archive: Path, names: Collection[str], limit: int) -> dict[str, bytes]:
    """The content of the files `names` of a .tar.gz, without unpacking it; those that it does not hold are left out."""
    found = {}
    with _told(archive), contextlib.closing(_tar_entries(archive, limit)) as entries:
        for name, content in entries:
            if str(name) in names and content is not None:
                found[str(name)] = content.read()
                if len(found) == len(names):
                    break
    return found


def unpack(archive: Path, target: Path, limit: int) -> None:
    """Everything in a .tar.gz or .zip into the new folder `target`, `limit` bytes at most; all of it or nothing."""
    entries = (_zip_entries if archive.suffix == ".zip" else _tar_entries)(archive, limit)
    target.mkdir(parents=True)
    try:
        with _told(archive), contextlib.closing(entries):
            for name, content in entries:
                place = target / name
                if content is None:
                    place.mkdir(parents=True, exist_ok=True)
                else:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with open(place, "xb") as file:
                        shutil.copyfileobj(content, file, PIECE)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _tar_entries(archive: Path, limit: int) -> Generator[Entry, None, None]:
    with gzip.open(archive, "rb") as stream:
        limited = _Limited(stream, limit)
        with tarfile.open(fileobj=limited, mode="r|") as tar:  # type: ignore[call-overload]
            for member in tar:
                name = _safe(member.name)
                if member.isdir():
                    yield name, None
                elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse():
                    yield name, tar.extractfile(member)
                else:
                    raise InputError(f"{member.name!r} in it is no plain file (a link, a device, a file with holes)")


def _zip_entries(archive: Path, limit: int) -> Generator[Entry, None, None]:
    with zipfile.ZipFile(archive) as zipped:
        members = zipped.infolist()
        if sum(member.file_size for member in members) > limit:
            raise InputError(f"it unpacks to more than {limit:,} bytes")
        for member in members:
            name = _safe(member.filename)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir():
                yield name, None
            elif kind in (0, stat.S_IFREG):
                with zipped.open(member) as content:
                    yield name, content
            else:
                raise InputError(f"{member.filename!r} in it is a link or a device")


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or not name.isprintable():
        raise InputError(f"{name!r} in it would be written outside of the folder")
    return path


@contextlib.contextmanager
def _told(archive: Path) -> Iterator[None]:
    """Whatever a broken or hostile archive leads to, as one sentence."""
    try:
        yield
    except InputError as error:
        raise InputError(f"the archive {archive} is refused: {error}") from None
    except BROKEN as error:
        raise InputError(
            f"the archive {archive} cannot be unpacked: {error}; if it is cut off, fetch it anew"
        ) from error


class _Limited:
    """A stream that ends with an error after so many bytes: a small archive cannot fill a disk, nor the memory."""

    def __init__(self, stream: gzip.GzipFile, limit: int) -> None:
        self.stream, self.limit, self.left = stream, limit, limit

    def read(self, count: int) -> bytes:
        content = self.stream.read(min(count, self.left + 1))
        self.left -= len(content)
        if self.left < 0:
            raise InputError(f"it unpacks to more than {self.limit:,} bytes")
        return content
