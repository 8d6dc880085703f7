"""Data sets are fetched whole, resumed, checked and unpacked with care; tested against a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from plremix.data import archives, download
from plremix.data.download import ARCHIVES, Archive, fetch
from plremix.errors import InputError

FILES = {"set/a.txt": b"first", "set/sub/b.bin": bytes(range(256)) * 400}


def tar_of(files: dict[str, bytes], *special: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for info in special:
            tar.addfile(info)
    return buffer.getvalue()


def zip_of(files: dict[str, bytes], *special: zipfile.ZipInfo) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(name, content)
        for info in special:
            zipped.writestr(info, b"/etc/passwd")
    return buffer.getvalue()


PACKERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {"set.tar.gz": tar_of, "set.zip": zip_of}


class Server:
    """Serves one content; remembers what was asked for; can break off, or pay no heed to ranges."""

    def __init__(self) -> None:
        self.content = b""
        self.ranges: list[str | None] = []
        self.breaks_after: list[int] = []  # bytes, for the next answers
        self.knows_ranges, self.status, self.says_length = True, 200, True
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.answer(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("Range")
        self.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.knows_ranges else 0
        status = 206 if asked and self.knows_ranges else self.status
        if status == 206 and start >= len(self.content):
            status = 416
        request.send_response(status)
        rest = self.content[start:] if status in (200, 206) else b""
        if self.says_length:
            request.send_header("Content-Length", str(len(rest)))
        if status == 206:
            request.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        request.end_headers()
        request.wfile.write(rest[: self.breaks_after.pop(0)] if self.breaks_after else rest)

    def archive(self, content: bytes, name: str = "set.tar.gz", **changes: Any) -> Archive:
        self.content = content
        facts = {"md5": hashlib.md5(content).hexdigest(), "folder": "set", **changes}
        return Archive(f"http://127.0.0.1:{self.server.server_address[1]}/{name}", **facts)


@pytest.fixture
def server(loopback: None) -> Iterator[Server]:
    running = Server()
    yield running
    running.server.shutdown()
    running.server.server_close()


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", PACKERS)
def test_a_data_set_is_fetched_and_unpacked(tmp_path: Path, server: Server, name: str) -> None:
    packed = PACKERS[name](FILES)
    folder = fetch(server.archive(packed, name), tmp_path / "data")
    assert folder == tmp_path / "data" / "set"
    assert contents(tmp_path) == {f"data/{file}": content for file, content in FILES.items()} | {f"data/{name}": packed}


def test_a_part_that_is_there_is_gone_on_from(tmp_path: Path, server: Server) -> None:
    packed = tar_of(FILES)
    (tmp_path / "set.tar.gz.part").write_bytes(packed[:100])
    fetch(server.archive(packed), tmp_path)
    assert server.ranges == ["bytes=100-"]
    assert (tmp_path / "set.tar.gz").read_bytes() == packed
    assert not (tmp_path / "set.tar.gz.part").exists()


def test_a_connection_that_breaks_off_is_taken_up_again(tmp_path: Path, server: Server) -> None:
    packed = tar_of(FILES)
    server.breaks_after = [50, 70]
    fetch(server.archive(packed), tmp_path)
    assert server.ranges == [None, "bytes=50-", "bytes=120-"]
    assert (tmp_path / "set.tar.gz").read_bytes() == packed


def test_one_that_always_breaks_off_keeps_what_came_for_the_next_start(tmp_path: Path, server: Server) -> None:
    archive = server.archive(tar_of(FILES))
    server.breaks_after = [10, 10, 10]
    with pytest.raises(InputError, match=r"broke off after 30 bytes: start again and it goes on from there"):
        fetch(archive, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["set.tar.gz.part"]
    assert fetch(archive, tmp_path).is_dir()
    assert server.ranges[-1] == "bytes=30-"


def test_where_the_server_ignores_ranges_it_starts_anew(tmp_path: Path, server: Server) -> None:
    packed = tar_of(FILES)
    server.knows_ranges = False
    (tmp_path / "set.tar.gz.part").write_bytes(packed[:100])
    fetch(server.archive(packed), tmp_path)
    assert (tmp_path / "set.tar.gz").read_bytes() == packed


@pytest.mark.parametrize("right", [True, False])
def test_a_part_with_all_bytes_is_checked_and_a_wrong_one_fetched_anew(
    tmp_path: Path, server: Server, right: bool
) -> None:
    packed = tar_of(FILES)
    (tmp_path / "set.tar.gz.part").write_bytes(packed if right else bytes(len(packed)))
    fetch(server.archive(packed), tmp_path)
    assert (tmp_path / "set.tar.gz").read_bytes() == packed
    assert server.ranges == [f"bytes={len(packed)}-", *([] if right else [None])]


def test_a_wrong_checksum_is_told_and_nothing_stays(tmp_path: Path, server: Server) -> None:
    archive = server.archive(tar_of(FILES), md5="0" * 32)
    with pytest.raises(InputError, match="checksum"):
        fetch(archive, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_file_of_unknown_length_fails_its_checksum(tmp_path: Path, server: Server) -> None:
    archive = server.archive(tar_of(FILES))
    server.says_length, server.breaks_after = False, [60]
    with pytest.raises(InputError, match="checksum"):
        fetch(archive, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_more_than_expected_is_not_taken(tmp_path: Path, server: Server) -> None:
    archive = server.archive(bytes(10**6), limit=1000)
    with pytest.raises(InputError, match="more than the 1,000 bytes"):
        fetch(archive, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_refuses_and_a_network_that_fails_are_told(tmp_path: Path, server: Server) -> None:
    archive = server.archive(tar_of(FILES))
    server.status = 503
    with pytest.raises(InputError, match="answers 503"):
        fetch(archive, tmp_path)
    server.server.shutdown()
    server.server.server_close()
    with pytest.raises(InputError, match=r"cannot be reached .*check the network .* put it into"):
        fetch(archive, tmp_path)


def test_an_archive_that_lies_there_needs_no_network(tmp_path: Path) -> None:
    packed = tar_of(FILES)
    (tmp_path / "set.tar.gz").write_bytes(packed)
    archive = Archive("http://nowhere.invalid/set.tar.gz", hashlib.md5(packed).hexdigest(), "set")
    assert contents(fetch(archive, tmp_path)) == {"a.txt": FILES["set/a.txt"], "sub/b.bin": FILES["set/sub/b.bin"]}


def test_a_half_unpacked_folder_is_put_aside_not_deleted(tmp_path: Path, server: Server) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine.txt").write_text("kept")
    fetch(server.archive(tar_of(FILES)), tmp_path)
    assert (tmp_path / "set" / "a.txt").exists()
    (aside,) = tmp_path.glob("set.incomplete-*")
    assert (aside / "mine.txt").read_text() == "kept"


def linked(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info


HOSTILE = {
    "dots": ("set.tar.gz", tar_of({"set/../../evil": b"x"})),
    "only dots": ("set.tar.gz", tar_of({"../evil": b"x"})),
    "absolute": ("set.tar.gz", tar_of({"/tmp/evil-plremix": b"x"})),
    "backslash": ("set.tar.gz", tar_of({"set\\..\\..\\evil": b"x"})),
    "drive": ("set.tar.gz", tar_of({"C:/evil": b"x"})),
    "symbolic link": ("set.tar.gz", tar_of(FILES, linked("set/link", tarfile.SYMTYPE))),
    "link, then through it": ("set.tar.gz", tar_of({}, linked("set", tarfile.SYMTYPE, ".."))),
    "hard link": ("set.tar.gz", tar_of(FILES, linked("set/link", tarfile.LNKTYPE))),
    "device": ("set.tar.gz", tar_of(FILES, linked("set/device", tarfile.CHRTYPE))),
    "pipe": ("set.tar.gz", tar_of(FILES, linked("set/pipe", tarfile.FIFOTYPE))),
    "twice": ("set.zip", zip_of({"set/a": b"x", "set//a": b"y"})),
    "file as folder": ("set.tar.gz", tar_of({"set/a": b"x", "set/a/b": b"y"})),
    "too large": ("set.tar.gz", tar_of({"set/zeros": bytes(2_000_000)})),
    "zip dots": ("set.zip", zip_of({"set/../../evil": b"x"})),
    "zip absolute": ("set.zip", zip_of({"/tmp/evil-plremix": b"x"})),
    "zip link": ("set.zip", zip_of(FILES, zip_link("set/link"))),
    "zip too large": ("set.zip", zip_of({"set/zeros": bytes(2_000_000)})),
    "truncated": ("set.tar.gz", tar_of(FILES)[:-40]),
    "truncated zip": ("set.zip", zip_of(FILES)[:-40]),
    "no archive": ("set.tar.gz", b"<html>not found</html>"),
    "no zip": ("set.zip", b"<html>not found</html>"),
    "other folder": ("set.tar.gz", tar_of({"other/a": b"x"})),
    "empty": ("set.tar.gz", gzip.compress(b"")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_or_broken_archive_is_refused_and_nothing_is_unpacked(tmp_path: Path, what: str) -> None:
    name, packed = HOSTILE[what]
    data = tmp_path / "data" / "deep"
    data.mkdir(parents=True)
    (data / name).write_bytes(packed)
    archive = Archive(f"http://nowhere.invalid/{name}", hashlib.md5(packed).hexdigest(), "set", limit=1_000_000)
    with pytest.raises(InputError, match="archive"):
        fetch(archive, data)
    assert contents(tmp_path) == {f"data/deep/{name}": packed}
    assert not Path("/tmp/evil-plremix").exists()


def test_a_file_with_holes_is_refused(tmp_path: Path) -> None:
    """A sparse file claims far more bytes than the archive has."""
    info = tarfile.TarInfo("set/holes")
    info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.size": str(10**15), "GNU.sparse.map": "0,0"}
    (tmp_path / "set.tar.gz").write_bytes(tar_of({}, info))
    with pytest.raises(InputError, match="holes"):
        archives.unpack(tmp_path / "set.tar.gz", tmp_path / "out", 10**6)
    assert not (tmp_path / "out").exists()


def test_single_files_are_read_out_of_a_tar(tmp_path: Path) -> None:
    (tmp_path / "set.tar.gz").write_bytes(tar_of(FILES))
    assert archives.read_tar(tmp_path / "set.tar.gz", ["set/a.txt", "set/none"], 10**6) == {"set/a.txt": b"first"}


def test_the_addresses_are_the_official_ones() -> None:
    assert {name: (archive.name, archive.folder) for name, archive in ARCHIVES.items()} == {
        "cifar10": ("cifar-10-python.tar.gz", "cifar-10-batches-py"),
        "cifar100": ("cifar-100-python.tar.gz", "cifar-100-python"),
        "tiny-imagenet": ("tiny-imagenet-200.zip", "tiny-imagenet-200"),
    }
    assert all(len(archive.md5) == 32 for archive in ARCHIVES.values())


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        fetch(download.ARCHIVES["cifar10"], tmp_path / "file")
