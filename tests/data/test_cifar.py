"""CIFAR in its official forms: both give the same, strange files are refused and nothing in them runs."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import small_config

from plremix.config import CrossEntropyConfig
from plremix.data import pickles
from plremix.data.download import ARCHIVES
from plremix.data.pickles import read_pickle
from plremix.data.sources import cifar
from plremix.errors import InputError
from plremix.training import load_data, train

BATCHES = [f"data_batch_{number}" for number in range(1, 6)]
# From the coarse labels that CIFAR-100's files carry: the super-class of each class, in alphabetical order of both.
COARSE = [
    *(4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15),
    *(0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17),
    *(10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19),
    *(18, 1, 2, 15, 6, 0, 17, 8, 14, 13),
]


def python2_pickle(entries: dict[str, Any]) -> bytes:
    """As Python 2 wrote the official files: protocol 2, byte strings, numpy's old names."""

    def text(value: bytes) -> bytes:
        return b"T" + len(value).to_bytes(4, "little") + value

    def written(value: Any) -> bytes:
        if isinstance(value, np.ndarray):
            shape = b"".join(b"J" + side.to_bytes(4, "little") for side in value.shape)
            dtype = (
                b"cnumpy\ndtype\n"
                + text(b"u1")
                + b"K\x00K\x01\x87R(K\x03"
                + text(b"|")
                + b"NNN"
                + b"J\xff\xff\xff\xff" * 2
            )
            order, content = (b"\x88", "F") if value.flags.f_contiguous and value.ndim > 1 else (b"\x89", "C")
            return (
                b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
                + (text(b"b") + b"\x87R(K\x01" + shape)
                + (b"\x86" + dtype + b"K\x00tb" + order + text(value.tobytes(order=content)) + b"tb")
            )
        if isinstance(value, list):
            return b"](" + b"".join(written(entry) for entry in value) + b"e"
        return b"K" + bytes([value]) if isinstance(value, int) else text(value.encode())

    items = b"".join(text(name.encode()) + written(value) for name, value in entries.items())
    return b"\x80\x02}(" + items + b"u."


def python3_pickle(protocol: int, *, as_bytes: bool = False) -> Callable[[dict[str, Any]], bytes]:
    def write(entries: dict[str, Any]) -> bytes:
        named = {name.encode() if as_bytes else name: value for name, value in entries.items()}
        return pickle.dumps(named, protocol)

    return write


WRITERS = {
    "python 2": python2_pickle,
    "protocol 2": python3_pickle(2),
    "protocol 3 with bytes": python3_pickle(3, as_bytes=True),
    "protocol 4": python3_pickle(4),
    "protocol 5": python3_pickle(5),
}


def miniature(classes: int, a_batch: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Labels and pixels of five batches and the test batch."""
    draws = np.random.default_rng(seed)
    return [
        ((np.arange(a_batch) * 7 + number) % classes, draws.integers(0, 256, (a_batch, 3072)).astype(np.uint8))
        for number in range(6)
    ]


def write_cifar10(
    root: Path, *, binary: bool = False, writer: Callable[[dict[str, Any]], bytes] = python2_pickle, a_batch: int = 10
) -> Path:
    folder = root / ("cifar-10-batches-bin" if binary else "cifar-10-batches-py")
    folder.mkdir(parents=True)
    for name, (labels, pixels) in zip([*BATCHES, "test_batch"], miniature(10, a_batch), strict=True):
        if binary:
            rows = np.concatenate([labels.astype(np.uint8)[:, None], pixels], axis=1)
            (folder / f"{name}.bin").write_bytes(rows.tobytes())
        else:
            names = [f"{index}.png" for index in range(a_batch)]
            batch = {"batch_label": name, "labels": labels.tolist(), "data": pixels, "filenames": names}
            (folder / name).write_bytes(writer(batch))
    return root


def write_cifar100(root: Path, *, binary: bool = False) -> Path:
    folder = root / ("cifar-100-binary" if binary else "cifar-100-python")
    folder.mkdir(parents=True)
    for name, (labels, pixels) in zip(["train", "test"], miniature(100, 200), strict=False):
        coarse = np.array(COARSE)[labels]
        if binary:
            rows = np.concatenate([coarse[:, None].astype(np.uint8), labels[:, None].astype(np.uint8), pixels], axis=1)
            (folder / f"{name}.bin").write_bytes(rows.tobytes())
        else:
            batch = {"coarse_labels": coarse.tolist(), "data": pixels, "fine_labels": labels.tolist()}
            (folder / name).write_bytes(python2_pickle(batch))
    return root


def packed(root: Path, folder: str, archive: str) -> None:
    """The folder as the archive alone."""
    with tarfile.open(root / archive, "w:gz") as tar:
        tar.add(root / folder, folder)
    shutil.rmtree(root / folder)


def same(first: Any, second: Any) -> bool:
    names = ("images", "given_labels", "true_labels", "test_images", "test_labels")
    return all(torch.equal(getattr(first, name), getattr(second, name)) for name in names)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_python_version_is_read_whoever_pickled_it(tmp_path: Path, writer: str) -> None:
    data = cifar.load("cifar10", write_cifar10(tmp_path, writer=WRITERS[writer]))
    batches = miniature(10, 10)
    assert torch.equal(data.given_labels, torch.from_numpy(np.concatenate([labels for labels, _ in batches[:5]])))
    assert np.array_equal(data.images.numpy().reshape(50, 3072), np.concatenate([pixels for _, pixels in batches[:5]]))
    assert np.array_equal(data.test_images.numpy().reshape(10, 3072), batches[5][1])
    assert data.test_labels.tolist() == batches[5][0].tolist()
    assert data.true_labels is data.given_labels
    assert (data.classes[0], data.classes[9], len(data.classes)) == ("airplane", "truck", 10)
    assert data.images.shape == (50, 3, 32, 32)


@pytest.mark.parametrize("order", ["C", "F"])
def test_python_itself_reads_the_same_from_such_a_file(order: str) -> None:
    batch = {"data": np.arange(6, dtype=np.uint8).reshape(2, 3).copy(order), "labels": [3, 200], "batch_label": "one"}
    content = python2_pickle(batch)
    theirs = pickle.loads(content, encoding="latin1")  # noqa: S301 - ours
    ours = read_pickle(content, "x")
    assert np.array_equal(ours["data"], theirs["data"])
    assert np.array_equal(ours["data"], batch["data"])
    assert (ours["labels"], ours["batch_label"]) == (theirs["labels"], "one")


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
@pytest.mark.parametrize("archived", [False, True])
def test_both_versions_give_the_same_packed_or_not(tmp_path: Path, name: str, archived: bool) -> None:
    write = write_cifar10 if name == "cifar10" else write_cifar100
    write(tmp_path / "python")
    write(tmp_path / "binary", binary=True)
    if archived:
        for form, place in zip(cifar.KINDS[name].forms, ("python", "binary"), strict=True):
            packed(tmp_path / place, form.folder, form.archive)
    first, second = cifar.load(name, tmp_path / "python"), cifar.load(name, tmp_path / "binary")
    assert same(first, second)
    assert len(first.classes) == (10 if name == "cifar10" else 100)


def test_the_second_start_reads_the_cache_and_a_changed_file_makes_it_anew(tmp_path: Path) -> None:
    root = write_cifar10(tmp_path / "data")
    first = cifar.load("cifar10", root, tmp_path / "cache")
    assert {file.name for file in (tmp_path / "cache").iterdir()} == {"cifar10-train.pixels", "cifar10-test.pixels"}
    assert not list(root.glob("*.pixels"))
    batch = root / "cifar-10-batches-py" / "data_batch_1"
    found = batch.stat()
    content = batch.read_bytes()
    batch.write_bytes(bytes(len(content)))  # nobody looks into it while its size and time are the same
    os.utime(batch, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert same(cifar.load("cifar10", root, tmp_path / "cache"), first)
    os.utime(batch)
    with pytest.raises(InputError, match="data_batch_1"):
        cifar.load("cifar10", root, tmp_path / "cache")


def test_the_published_mean_and_deviation_are_used(tmp_path: Path) -> None:
    mean, deviation = cifar.load("cifar10", write_cifar10(tmp_path)).statistics()
    assert mean.tolist() == pytest.approx([0.4914, 0.4822, 0.4465])
    assert deviation.tolist() == pytest.approx([0.2023, 0.1994, 0.2010])


def test_what_is_missing_is_told_and_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cifar10 .*none of cifar-10-batches-py, cifar-10-python.tar.gz.*--download"):
        cifar.load("cifar10", tmp_path)
    folder = write_cifar10(tmp_path) / "cifar-10-batches-py"
    (folder / "data_batch_4").unlink()
    (folder / "test_batch").unlink()
    with pytest.raises(InputError, match=r"cifar-10-batches-py lacks data_batch_4, test_batch"):
        cifar.load("cifar10", tmp_path)


def test_the_folder_itself_may_be_named(tmp_path: Path) -> None:
    root = write_cifar10(tmp_path)
    assert len(cifar.load("cifar10", root / "cifar-10-batches-py")) == 50


@pytest.mark.parametrize("binary", [False, True])
def test_a_truncated_file_is_told(tmp_path: Path, binary: bool) -> None:
    write_cifar10(tmp_path, binary=binary)
    (file,) = tmp_path.glob("*/data_batch_3*")
    whole = file.read_bytes()
    for length in (0, 1, 1000, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"data_batch_3.* cut off"):
            cifar.load("cifar10", tmp_path)
    if binary:
        file.write_bytes(whole[: 3073 * 4])
        with pytest.raises(InputError, match=r"data_batch_3.bin is cut off: it has 4 images, others 10"):
            cifar.load("cifar10", tmp_path)


def test_a_truncated_archive_is_told(tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    packed(tmp_path, "cifar-10-batches-py", "cifar-10-python.tar.gz")
    file = tmp_path / "cifar-10-python.tar.gz"
    file.write_bytes(file.read_bytes()[:20000])
    with pytest.raises(InputError, match=r"archive .*cut off"):
        cifar.load("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0] * 9}, "9 labels"),
        ({"labels": [10] * 10}, "a label 10"),
        ({"labels": ["0"] * 10}, "no class numbers"),
        ({"labels": None}, "array data and a list labels"),
        ({"data": np.zeros((10, 3071), np.uint8)}, "3072 pixels"),
        ({"data": [1, 2]}, "array data"),
        ({"data": np.zeros((10, 3072), np.float32)}, "f4"),
    ],
)
def test_a_batch_that_cannot_be_right_is_told(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write_cifar10(tmp_path)
    labels, pixels = miniature(10, 10)[0]
    batch = {"labels": labels.tolist(), "data": pixels, **change}
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(pickle.dumps(batch))
    with pytest.raises(InputError, match=message):
        cifar.load("cifar10", tmp_path)


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("where", ["folder", "archive"])
def test_a_pickle_bomb_is_refused_and_does_not_go_off(tmp_path: Path, protocol: int, where: str) -> None:
    mark = tmp_path / "it ran".replace(" ", "-")
    write_cifar10(tmp_path)
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_2"
    batch.write_bytes(pickle.dumps({"labels": [1], "data": Bomb(mark)}, protocol))
    if where == "archive":
        packed(tmp_path, "cifar-10-batches-py", "cifar-10-python.tar.gz")
    with pytest.raises(InputError, match=r"data_batch_2 is refused: it (names|holds)"):
        cifar.load("cifar10", tmp_path)
    assert not mark.exists()
    pickle.loads(pickle.dumps(Bomb(mark), protocol))  # noqa: S301 - ours: shows that it would have gone off
    assert mark.exists()


@pytest.mark.parametrize(
    "stream",
    {
        "getattr": b"\x80\x02cbuiltins\ngetattr\n.",
        "eval in numpy's place": b"\x80\x02cnumpy\neval\nU\x011\x85R.",
        "nested name": b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.shape\x93.",
        "an array class called": b"\x80\x02cnumpy\nndarray\nJ\xff\xff\xff\x7f\x85\x85R.",
        "a new object": b"\x80\x02cnumpy\nndarray\n)\x81.",
        "an instance": b"(inumpy\nndarray\n.",
        "an extension": b"\x80\x02\x82\x01.",
        "a persistent name": b"Pname\n.",
        "a huge array": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n"
        b"J\xff\xff\xff\x7f\x85U\x01btR.",
        "a huge shape": python2_pickle({"data": np.zeros((1, 2), np.uint8)}).replace(
            b"J\x02\0\0\0", b"J\xff\xff\xff\x7f"
        ),
        "objects": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R(K\x01K\x01\x85U\x02O8\x89](K\x01etb.",
        "a huge frame": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
        "huge bytes": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        "a far memo": b"\x80\x02Nr\xff\xff\xff\xff.",
        "bytes by another codec": b"\x80\x02c_codecs\nencode\nX\x01\0\0\0aX\x03\0\0\0zip\x86R.",
        "nothing": b"",
        "no pickle": b"<html></html>",
        "an empty stack": b"\x80\x02.",
        "a tuple of nothing": b"\x80\x02\x87.",
        "a missing mark": b"\x80\x02Nt.",
        "a missing memo": b"\x80\x02h\x07.",
        "a list as a key": b"\x80\x02}]Ns.",
        "a list of itself": b"\x80\x02]q\x00h\x00a.",
    }.items(),
    ids=lambda item: item[0],
)
def test_streams_that_try_something_end_in_an_error_or_harmless(stream: tuple[str, bytes]) -> None:
    name, content = stream
    tracemalloc.start()
    try:
        if name in ("a far memo", "a list of itself"):
            assert read_pickle(content, "file") is None or name == "a list of itself"
        else:
            with pytest.raises(InputError, match=r"^file is (refused|damaged)"):
                read_pickle(content, "file")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_stream_of_endless_small_operations_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "MOST", 1000)
    with pytest.raises(InputError, match="more than 1,000 operations"):
        read_pickle(b"\x80\x02](" + b"N" * 2000 + b"e.", "file")


def test_a_text_copied_again_and_again_does_not_fill_the_memory() -> None:
    once = b"c_codecs\nencode\nq\x01X" + (100_000).to_bytes(4, "little") + b"a" * 100_000 + b"q\x02"
    copies = b"h\x01(h\x02X\x06\x00\x00\x00latin1tR" * 1000
    tracemalloc.start()
    with pytest.raises(InputError, match="makes far more data than it holds"):
        read_pickle(b"\x80\x02](" + once + copies + b"e.", "file")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_a_file_far_larger_than_cifar_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cifar10(tmp_path)
    monkeypatch.setattr(cifar, "LARGEST", 1000)
    with pytest.raises(InputError, match="far more than"):
        cifar.load("cifar10", tmp_path)
    packed(tmp_path, "cifar-10-batches-py", "cifar-10-python.tar.gz")
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        cifar.load("cifar10", tmp_path)


def test_download_checks_and_unpacks_an_archive_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cifar10(tmp_path)
    expected = cifar.load("cifar10", tmp_path, tmp_path / "cache")
    packed(tmp_path, "cifar-10-batches-py", "cifar-10-python.tar.gz")
    md5 = hashlib.md5((tmp_path / "cifar-10-python.tar.gz").read_bytes()).hexdigest()
    monkeypatch.setitem(ARCHIVES, "cifar10", replace(ARCHIVES["cifar10"], md5=md5))
    assert same(cifar.load("cifar10", tmp_path, download=True), expected)
    assert (tmp_path / "cifar-10-batches-py").is_dir()


def test_without_download_no_connection_is_tried_and_with_it_the_network_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--download"):
        cifar.load("cifar10", tmp_path)
    with pytest.raises(AssertionError, match="network connection"):  # the tests' guard
        cifar.load("cifar10", tmp_path, download=True)


# --- the classes of CIFAR-100


def test_the_super_classes_are_twenty_of_five_and_those_of_the_files() -> None:
    assert len(cifar.SUPERCLASSES) == 20
    assert all(len(set(names)) == 5 and list(names) == sorted(names) for names in cifar.SUPERCLASSES.values())
    assert len(set(cifar.CIFAR100_CLASSES)) == 100
    assert list(cifar.SUPERCLASSES) == sorted(cifar.SUPERCLASSES)
    of_class = {member: number for number, group in enumerate(cifar.CIFAR100_GROUPS) for member in group}
    assert [of_class[index] for index in range(100)] == COARSE
    assert cifar.CIFAR100_CLASSES[19] == "cattle"
    assert cifar.CIFAR100_CLASSES[21] == "chimpanzee"


# --- people's labels


def write_human(path: Path, truth: np.ndarray, classes: int = 10, **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ["aggre_label", "worse_label", "random_label1", "random_label2", "random_label3"]
    names = names if classes == 10 else ["noisy_label"]
    arrays = {"clean_label": truth, **{name: (truth + 1 + place) % classes for place, name in enumerate(names)}}
    torch.save({**arrays, **changes}, path)
    return path


def as_old_numpy(path: Path) -> None:
    """The names that numpy had when the published files were written."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))


TRUTH = np.concatenate([labels for labels, _ in miniature(10, 10)[:5]])


@pytest.mark.parametrize("place", ["CIFAR-10_human.pt", "CIFAR-N/CIFAR-10_human.pt"])
@pytest.mark.parametrize("old", [False, True])
def test_labels_that_people_gave_are_trained_on(tmp_path: Path, place: str, old: bool) -> None:
    write_cifar10(tmp_path)
    path = write_human(tmp_path / place, TRUTH)
    if old:
        as_old_numpy(path)
    for step, which in enumerate(["aggre", "worst", "random1", "random2", "random3"], start=1):
        data = cifar.load("cifar10", tmp_path, human_labels=which)
        assert data.given_labels.tolist() == ((TRUTH + step) % 10).tolist()
        assert data.true_labels is not None
        assert data.true_labels.tolist() == TRUTH.tolist()


def test_cifar100_has_one_set_of_human_labels(tmp_path: Path) -> None:
    write_cifar100(tmp_path)
    truth = miniature(100, 200)[0][0]
    write_human(tmp_path / "CIFAR-100_human.pt", truth, 100)
    data = cifar.load("cifar100", tmp_path, human_labels="noisy")
    assert data.given_labels.tolist() == ((truth + 1) % 100).tolist()
    with pytest.raises(InputError, match="which has noisy"):
        cifar.load("cifar100", tmp_path, human_labels="worst")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clean_label": (TRUTH + 1) % 10}, "other images: .* at 50 places"),
        ({"clean_label": TRUTH[:40]}, "one label for each of the 50"),
        ({"worse_label": TRUTH + 5}, "a label 14"),
        ({"worse_label": TRUTH - 1}, "from 0 up"),
        ({"worse_label": TRUTH / 2}, "other than arrays of whole numbers"),
    ],
)
def test_human_labels_of_other_images_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write_cifar10(tmp_path)
    write_human(tmp_path / "CIFAR-10_human.pt", TRUTH, **changes)
    with pytest.raises(InputError, match=message):
        cifar.load("cifar10", tmp_path, human_labels="worst")


def test_a_bomb_among_human_labels_does_not_go_off(tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    path, mark = tmp_path / "CIFAR-10_human.pt", tmp_path / "it-ran"
    write_human(path, TRUTH, worse_label=Bomb(mark))
    with pytest.raises(InputError, match="other than arrays of whole numbers, or is damaged"):
        cifar.load("cifar10", tmp_path, human_labels="worst")
    path.write_bytes(pickle.dumps(Bomb(mark), protocol=2))
    with pytest.raises(InputError, match="other than arrays of whole numbers, or is damaged"):
        cifar.load("cifar10", tmp_path, human_labels="worst")
    path.write_bytes(b"")
    with pytest.raises(InputError, match="other than arrays of whole numbers, or is damaged"):
        cifar.load("cifar10", tmp_path, human_labels="worst")
    path.unlink()
    with pytest.raises(InputError, match="CIFAR-N"):
        cifar.load("cifar10", tmp_path, human_labels="worst")
    assert not mark.exists()


# --- as the command line loads it


def config(root: Path, **changes: Any) -> CrossEntropyConfig:
    return CrossEntropyConfig(data_dir=root, **{"data": "cifar10", **changes})


def test_cifar10_asymmetric_noise_is_the_usual_one_by_default(tmp_path: Path) -> None:
    root = write_cifar10(tmp_path, a_batch=200)
    data = load_data(config(root, noise="asymmetric", noise_ratio=0.4))
    assert data.true_labels is not None
    moved = data.given_labels != data.true_labels
    pairs = set(zip(data.true_labels[moved].tolist(), data.given_labels[moved].tolist(), strict=True))
    assert pairs == {(9, 1), (2, 0), (4, 7), (3, 5), (5, 3)}
    assert moved.double().mean().item() == pytest.approx(0.2, abs=0.03)
    mapped = load_data(config(root, noise="asymmetric", noise_ratio=0.4, noise_map="0:1"))
    assert set(mapped.true_labels[mapped.given_labels != mapped.true_labels].tolist()) == {0}


def test_cifar100s_models_move_inside_their_groups(tmp_path: Path) -> None:
    root = write_cifar100(tmp_path)
    coarse = torch.tensor(COARSE)
    for model in ("blocks5", "superclass-next", "superclass-random", "next"):
        data = load_data(config(root, data="cifar100", noise="asymmetric", noise_ratio=0.5, noise_model=model))
        assert data.true_labels is not None
        moved = data.given_labels != data.true_labels
        true, given = data.true_labels[moved], data.given_labels[moved]
        assert 0.3 < moved.double().mean() < 0.7
        if model == "blocks5":
            assert torch.equal(given, true // 5 * 5 + (true + 1) % 5)
        elif model == "next":
            assert torch.equal(given, (true + 1) % 100)
        else:
            assert torch.equal(coarse[given], coarse[true])


def test_a_run_trains_on_it_and_its_noise_can_be_given_again(tmp_path: Path) -> None:
    root = write_cifar10(tmp_path)
    settings = {"data": "cifar10", "data_dir": root, "noise": "symmetric", "noise_ratio": 0.5, "epochs": 2}
    run = small_config(**settings, weak_view="crop-flip", strong_view="autoaugment-cifar", split="mixture2d")
    summary = train(run, tmp_path / "run")
    assert summary["status"] == "done"
    assert summary["best"] is not None
    noisy = json.loads((tmp_path / "run" / "noise.json").read_text())
    assert noisy == load_data(run).given_labels.tolist()
    again = replace(run, noise="none", noise_file=tmp_path / "run" / "noise.json")
    assert load_data(again).given_labels.tolist() == noisy


def test_noise_models_and_human_labels_that_do_not_fit_are_told(tmp_path: Path) -> None:
    root = write_cifar10(tmp_path)
    with pytest.raises(InputError, match="--data cifar100"):
        load_data(config(root, noise="asymmetric", noise_ratio=0.4, noise_model="superclass-next"))
    with pytest.raises(InputError, match="noisy already"):
        load_data(config(root, noise="symmetric", noise_ratio=0.4, human_labels="worst"))
    with pytest.raises(InputError, match="not of digits"):
        load_data(config(root, data="digits", human_labels="worst"))
