"""Fetching a data set from its official address, for `--download`: the only room that opens a network connection.

What is fetched lies in a `.part` file until its checksum is right, so a broken connection goes on where it stopped; the
folder appears under its name when it is complete.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import shutil
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from plremix.data import archives
from plremix.errors import InputError

log = logging.getLogger("plremix")

PIECE = 1 << 20  # bytes that are read at a time
PATIENCE = 60  # seconds without a byte
TRIES = 3  # connections that may break off before we give up
GIGABYTE = 10**9


@dataclass(frozen=True)
class Archive:
    """A file at an address, and the folder that it unpacks to."""

    address: str
    md5: str  # as the data set's authors publish it
    folder: str
    limit: int = GIGABYTE  # bytes, packed or unpacked

    @property
    def name(self) -> str:
        return self.address.rsplit("/", 1)[1]


ARCHIVES = {
    "cifar10": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "c58f30108f718f92721af3b95e74349a",
        "cifar-10-batches-py",
    ),
    "cifar100": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        "eb9058c3a382ffc7106e4002c42a8d85",
        "cifar-100-python",
    ),
    "tiny-imagenet": Archive(
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de", "tiny-imagenet-200"
    ),
}


def fetch(archive: Archive, data_dir: Path) -> Path:
    """The archive's folder in `data_dir`: downloaded if it is not there, checked, unpacked; all of it or nothing."""
    packed, folder = data_dir / archive.name, data_dir / archive.folder
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not packed.exists() or _md5(packed) != archive.md5:
            _download(archive, packed)
        _unpack(archive, packed, folder)
    except OSError as error:  # the disk; the network has been told apart below
        raise InputError(f"{data_dir} cannot be written: {error.strerror or error}") from error
    return folder


def _unpack(archive: Archive, packed: Path, folder: Path) -> None:
    log.info("unpacking %s", packed)
    beside = folder.with_name(f"{folder.name}.{secrets.token_hex(8)}.unpacking")
    try:
        archives.unpack(packed, beside, archive.limit)
        if not (beside / archive.folder).is_dir():
            raise InputError(f"the archive {packed} holds no folder {archive.folder}")
        if folder.exists():
            aside = folder.with_name(f"{folder.name}.incomplete-{secrets.token_hex(4)}")
            folder.rename(aside)
            log.warning("%s was not complete; it is now %s and can be deleted", folder, aside.name)
        (beside / archive.folder).rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _download(archive: Archive, packed: Path) -> None:
    part = packed.with_name(packed.name + ".part")
    by_hand = f"or fetch it by another way and put it into {packed.parent}"
    for last in [False] * (TRIES - 1) + [True]:
        try:
            complete = _receive(archive, part)
        except HTTPError as error:
            raise InputError(f"{archive.address} answers {error.code} {error.reason}: try later, {by_hand}") from error
        except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            if last:
                raise InputError(
                    f"{archive.address} cannot be reached ({reason}): check the network and start again, {by_hand}"
                ) from error
            continue
        if complete:
            break
        if last:
            raise InputError(
                f"the connection to {archive.address} broke off after {part.stat().st_size:,} bytes: "
                f"start again and it goes on from there, {by_hand}"
            )
    found = _md5(part)
    if found != archive.md5:
        part.unlink()
        raise InputError(
            f"{archive.address} gave a file with the MD5 checksum {found} instead of {archive.md5}: "
            f"it was deleted; start again, {by_hand}"
        )
    part.replace(packed)


def _receive(archive: Archive, part: Path) -> bool:
    """Add to `part` what is missing; whether all that was announced has come."""
    start = part.stat().st_size if part.exists() else 0
    request = Request(archive.address, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urlopen(request, timeout=PATIENCE)
    except HTTPError as error:
        if error.code != 416 or not start:
            raise
        error.close()
        if _md5(part) == archive.md5:
            return True
        part.unlink()  # longer than the file at the address
        return _receive(archive, part)
    with response:
        goes_on = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if start and not goes_on and response.status == 206:
            raise InputError(f"{archive.address} sent another part than was asked for; delete {part} and start again")
        start = start if goes_on else 0
        length = response.length  # of what is to come, where the server says
        log.info("fetching %s%s", archive.address, f", from byte {start:,} on" if start else "")
        with open(part, "ab" if goes_on else "wb") as file:
            while (content := _next(response)) and file.tell() <= archive.limit:
                file.write(content)
            end = file.tell()
    if end > archive.limit:
        part.unlink()
        raise InputError(f"{archive.address} gives more than the {archive.limit:,} bytes that are expected at most")
    return length is None or end - start == length


def _next(response: HTTPResponse) -> bytes:
    try:
        return response.read(PIECE)
    except OSError as error:  # told apart from trouble with the disk
        raise ConnectionError(str(error)) from error


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while content := file.read(PIECE):
            digest.update(content)
    return digest.hexdigest()
