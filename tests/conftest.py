"""What all tests share: no network, the parity figures, and tiny data."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

os.environ["OMP_NUM_THREADS"] = "1"  # here and in the processes that tests start: see `_one_thread`

import numpy as np
import pytest
import torch
from helpers import blobs

from plremix.data.dataset import LabelledImages
from plremix.data.sources import arrays

FIXTURES = Path(__file__).parent / "fixtures"
CONNECT = socket.socket.connect


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise AssertionError("a test tried to open a network connection")

    for way in ("connect", "connect_ex", "sendto", "sendmsg"):
        monkeypatch.setattr(socket.socket, way, refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture
def loopback(_no_network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests with a server of their own: this machine may be connected to, and nothing else."""

    def connect(self: socket.socket, address: Any) -> None:
        assert address[0] == "127.0.0.1", "a test tried to open a network connection"
        CONNECT(self, address)

    def create(address: Any, *arguments: Any, **options: Any) -> socket.socket:
        opened = socket.socket()
        opened.settimeout(10)
        opened.connect(address)
        return opened

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "create_connection", create)


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)  # the tests' networks are so small that more threads only wait for each other


@pytest.fixture(scope="session")
def parity() -> dict[str, torch.Tensor]:
    """Figures that the authors' published functions gave for random inputs."""
    with np.load(FIXTURES / "parity.npz", allow_pickle=False) as archive:
        return {name: torch.from_numpy(np.array(archive[name])) for name in archive.files}


@pytest.fixture
def tiny() -> LabelledImages:
    return arrays.from_arrays(blobs())


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.npz"
    np.savez(path, **blobs())
    return path


@pytest.fixture(scope="session")
def timm() -> Iterator[None]:
    """timm, on machines too where torchvision's compiled operators do not fit torch: it wants only their names."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):  # this torchvision has them
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    pytest.importorskip("timm")
    yield
    del library  # till here: it takes its names with it
