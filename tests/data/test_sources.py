"""Sources: the digits are the same every time, and an .npz file that cannot be right is told."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import blobs

from plremix.data.sources import arrays, digits, own
from plremix.errors import InputError


def test_digits_have_a_fixed_split_and_use_the_whole_scale() -> None:
    data, again = digits.load(), digits.load()
    assert data.images.shape == (1400, 1, 8, 8)
    assert data.test_images.shape == (397, 1, 8, 8)
    assert data.images.dtype == torch.uint8
    assert (int(data.images.min()), int(data.images.max())) == (0, 255)
    assert torch.equal(data.images, again.images)
    assert data.classes == tuple("0123456789")
    assert torch.bincount(data.given_labels).min() > 120


def test_no_digit_is_in_both_parts() -> None:
    data = digits.load()
    train = {image.numpy().tobytes() for image in data.images}
    assert not any(image.numpy().tobytes() in train for image in data.test_images)


def test_statistics_are_those_of_the_pixels(tiny: Any) -> None:
    mean, std = tiny.statistics()
    pixels = tiny.images.double() / 255
    assert mean.item() == pytest.approx(pixels.mean().item(), abs=1e-6)
    assert std.item() == pytest.approx(pixels.std(correction=0).item(), abs=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_an_npz_file_gives_images_labels_truth_and_test_set(tmp_path: Path, channels: int) -> None:
    values = blobs(channels=channels)
    np.savez(tmp_path / "a.npz", worst=values["y_true"], **values)
    data = arrays.load(tmp_path / "a.npz")
    assert data.images.shape == (60, channels, 8, 8)
    assert torch.equal(data.images[3, 0], torch.from_numpy(values["x_train"][3, :, :, 0]))
    assert data.given_labels.tolist() == values["y_train"].tolist()
    assert data.true_labels.tolist() == values["y_true"].tolist()
    other = arrays.load(tmp_path / "a.npz", label_key="worst", truth_key="y_train")
    assert other.given_labels.tolist() == values["y_true"].tolist()
    assert other.true_labels.tolist() == values["y_train"].tolist()


def test_images_without_a_channel_axis_are_grey_and_class_names_are_kept() -> None:
    values = blobs()
    values["x_train"], values["x_test"] = values["x_train"][..., 0], values["x_test"][..., 0]
    values["classes"] = np.array(["a", "b", "c", "never seen"])
    data = arrays.from_arrays(values)
    assert data.images.shape == (60, 1, 8, 8)
    assert data.classes == ("a", "b", "c", "never seen")


def test_labels_may_be_names_or_yes_and_no() -> None:
    names = np.array(["pear", "apple", "fig"])
    values = blobs()
    text = {**values, **{key: names[values[key]] for key in ("y_train", "y_true", "y_test")}}
    data = arrays.from_arrays(text)
    assert data.classes == ("apple", "fig", "pear")
    for labels, key in [(data.given_labels, "y_train"), (data.true_labels, "y_true"), (data.test_labels, "y_test")]:
        assert labels is not None
        assert [data.classes[label] for label in labels] == text[key].tolist()
    assert arrays.from_arrays({**text, "classes": names}).given_labels.tolist() == values["y_train"].tolist()
    numbers = {"x_train": values["x_train"], "y_train": np.array(["10", "9"] * 30)}
    assert arrays.from_arrays(numbers).classes == ("9", "10")
    yes = arrays.from_arrays({"x_train": values["x_train"], "y_train": values["y_train"] > 0})
    assert yes.given_labels.tolist() == (values["y_train"] > 0).astype(int).tolist()


TRAINED_ON = {  # the labels of a training file, and its classes
    "numbers": {"y_train": np.arange(6) % 3},
    "numbers with names": {"y_train": np.arange(6) % 3, "classes": np.array(["a", "b", "c"])},
    "names": {"y_train": np.array(["a", "b", "c"] * 2)},
}


@pytest.mark.parametrize(
    ("trained", "test", "expected"),
    [
        ("numbers", {"y_train": np.array([2, 0])}, [2, 0]),
        ("numbers with names", {"y_train": np.array([2, 0])}, [2, 0]),
        ("numbers with names", {"y_train": np.array([0, 1]), "classes": np.array(["c", "b", "new"])}, [2, 1]),
        ("numbers with names", {"y_train": np.array(["c", "a"])}, [2, 0]),
        ("names", {"y_train": np.array([0, 1]), "classes": np.array(["c", "a"])}, [2, 0]),
        ("names", {"y_train": np.array(["c", "b"])}, [2, 1]),
        ("numbers", {"y_train": np.array(["2", "1"])}, [2, 1]),
        ("numbers", {"y_train": np.array([1, 3])}, "that the training images do not have: 3; those have 0, 1, 2"),
        ("numbers with names", {"y_train": np.array([1, 3])}, "do not have: 3"),
        ("names", {"y_train": np.array([0, 1])}, "do not have: 0, 1; .* an array `classes` in it names its numbers"),
        ("names", {"y_train": np.array(["a", "d"])}, "do not have: d; those have a, b, c"),
        ("numbers", {"y_train": np.array([0, 1]), "classes": np.array(["a", "b"])}, "do not have: a, b"),
        ("names", {"y_test": np.array(["c", "b"])}, "needs x_test and y_test, or x_train and y_train; it has x_train"),
    ],
)
def test_a_test_file_is_matched_by_name(
    tmp_path: Path, trained: str, test: dict[str, np.ndarray], expected: list[int] | str
) -> None:
    images = blobs()["x_train"]
    np.savez(tmp_path / "own.npz", x_train=images[:6], **TRAINED_ON[trained])
    np.savez(tmp_path / "test.npz", x_train=images[:2], **test)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            own.load(tmp_path / "own.npz", 8, 1, test=tmp_path / "test.npz")
    else:
        data = own.load(tmp_path / "own.npz", 8, 1, test=tmp_path / "test.npz")
        assert data.test_labels is not None
        assert data.test_labels.tolist() == expected


def test_a_test_file_may_call_its_arrays_test_and_must_have_the_size(tmp_path: Path) -> None:
    values = blobs()
    np.savez(tmp_path / "own.npz", x_train=values["x_train"], y_train=values["y_train"])
    np.savez(tmp_path / "test.npz", x_test=values["x_test"], y_test=values["y_test"])
    data = own.load(tmp_path / "own.npz", 8, 1, test=tmp_path / "test.npz")
    assert data.test_labels is not None
    assert data.test_labels.tolist() == values["y_test"].tolist()
    np.savez(tmp_path / "large.npz", x_test=np.zeros((2, 9, 9, 3), np.uint8), y_test=np.array([0, 1]))
    with pytest.raises(InputError, match=r"are 9x9 pixels in colour, those of .* 8x8 pixels in grey"):
        own.load(tmp_path / "own.npz", 8, 1, test=tmp_path / "large.npz")


def without(name: str) -> dict[str, np.ndarray]:
    return {key: value for key, value in blobs().items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_train": np.zeros((60, 8, 8))}, "uint8"),
        ({"x_train": np.zeros((60, 8), np.uint8)}, "shape"),
        ({"x_train": np.zeros((60, 8, 8, 4), np.uint8)}, "1 or 3"),
        ({"x_train": np.zeros((60, 4, 8), np.uint8)}, "at least 8x8"),
        ({"x_train": np.zeros((0, 8, 8), np.uint8), "y_train": np.zeros(0, int)}, "no images"),
        ({"y_train": np.zeros(59, int)}, "one label for each of the 60 images"),
        ({"y_train": np.full(60, -1)}, "from 0 up"),
        ({"y_train": np.full(60, np.nan)}, "NaN"),
        ({"y_train": np.full(60, 0.5)}, "fractions"),
        ({"y_train": np.full(60, np.inf)}, "infinite"),
        ({"y_train": np.array(["a"] * 60)}, "y_train holds names and y_true numbers"),
        ({"y_train": np.array([b"a"] * 60)}, r"got bytes: save them as text, by \.astype\(str\)"),
        ({"y_train": np.zeros(60, "datetime64[D]")}, "must hold names or whole numbers .*, got dates"),
        ({"y_train": np.array(["a", "x"] * 30), "classes": np.array(["a", "b", "c"])}, "not in classes: x"),
        ({"y_train": np.array(["a", " "] * 30), "classes": np.array(["a", "b", "c"])}, r"empty label \(image 1\)"),
        ({"x_test": np.zeros((10, 9, 9), np.uint8), "y_test": np.zeros(10, int)}, "like x_train's"),
        ({"y_train": np.full(60, 4294967295)}, "there is a label 4294967295, but only 60 images"),
        ({"y_true": np.zeros(3, int)}, "y_true must have one label"),
        ({"classes": np.array(["a", "b"])}, "name each of the 3 classes"),
        ({"classes": np.array(["a", "b", "a"])}, "name each of the 3 classes once"),
        (
            {key: np.zeros(60 if key != "y_test" else 30, int) for key in ("y_train", "y_true", "y_test")},
            "at least two",
        ),
    ],
)
def test_arrays_that_cannot_be_right_are_told(tmp_path: Path, change: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "bad.npz", **{**blobs(), **change})
    with pytest.raises(InputError, match=message):
        arrays.load(tmp_path / "bad.npz")


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("executed"),))


@pytest.mark.parametrize(
    "kind",
    ["object array", "pickle", "junk", "truncated", "damaged", "header", "single array", "missing", "no labels"],
)
def test_files_that_cannot_be_read_are_told_and_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.npz"
    if kind == "object array":
        np.savez(path, x_train=np.array([Payload()], dtype=object), y_train=np.zeros(1, int))
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Payload()))
    elif kind == "junk":
        path.write_bytes(b"junk")
    elif kind == "truncated":
        np.savez(path, **blobs())
        path.write_bytes(path.read_bytes()[:900])
    elif kind == "damaged":
        np.savez_compressed(path, **blobs())
        content = bytearray(path.read_bytes())
        content[200:260] = b"\xff" * 60
        path.write_bytes(content)
    elif kind == "header":
        header = b"{'descr': (" + b" " * 52 + b"\n"
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("x_train.npy", "y_train.npy"):
                archive.writestr(name, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    elif kind == "single array":
        np.save(tmp_path / "one.npy", np.zeros(3))
        (tmp_path / "one.npy").rename(path)
    elif kind == "no labels":
        np.savez(path, **without("y_train"))
    with pytest.raises(InputError, match=r"bad\.npz"):
        arrays.load(path)
    assert not (tmp_path / "executed").exists()


def test_one_image_and_a_truth_key_that_is_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least two are needed"):
        arrays.from_arrays({"x_train": blobs()["x_train"][:1], "y_train": np.zeros(1, int)})
    np.savez(tmp_path / "own.npz", **blobs())
    with pytest.raises(InputError, match="no array 'nope'"):
        arrays.load(tmp_path / "own.npz", truth_key="nope")
