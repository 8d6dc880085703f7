"""Arrays in memory, or in an .npz file: `x_train`, the given labels, and if there are any a test set and the truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plremix.data.dataset import LabelledImages, TrustedImages, images_from_array, labels_from_array
from plremix.data.sources.listed import class_names
from plremix.errors import InputError, some_of

Array = NDArray[np.generic]
TRUTH_KEY = "y_true"
NO_LABELS = {  # kinds of array that are neither names nor numbers, for people
    "S": "bytes: save them as text, by .astype(str)",
    "O": "Python objects: save them as text, by .astype(str)",
    "c": "complex numbers",
    "M": "dates",
    "m": "time spans",
    "V": "records",
}


def load(path: Path, label_key: str = "y_train", truth_key: str = TRUTH_KEY) -> LabelledImages:
    """Read an .npz file; nothing in it is ever executed (object arrays are refused)."""
    arrays, there = _read(path, {"x_train", label_key, truth_key, "x_test", "y_test", "classes"})
    required = ["x_train", label_key, *([truth_key] if truth_key != TRUTH_KEY else [])]
    for name in required:
        if name not in arrays:
            raise InputError(f"{path} has no array {name!r}; it has {there}")
    return from_arrays(arrays, label_key, truth_key)


def load_trusted(path: Path, label_key: str, classes: tuple[str, ...], *, numbered: bool) -> TrustedImages:
    """The images and labels of a test file, by the numbers that `classes` have in training.

    Names are compared where the file has names. Where it has none, its numbers are places in `classes` if those of the
    training file are (`numbered`), and names otherwise.
    """
    arrays, there = _read(path, {"x_train", label_key, "x_test", "y_test", "classes"})
    pairs = (("x_train", label_key), ("x_test", "y_test"))
    pair = next((pair for pair in pairs if set(pair) <= arrays.keys()), None)
    if pair is None:
        raise InputError(f"--test {path} needs x_test and y_test, or x_train and {label_key}; it has {there}")
    images = images_from_array(arrays[pair[0]], f"{pair[0]} of --test {path}")
    key = f"{pair[1]} of --test {path}"
    labels, own = _as_numbers({key: (arrays[pair[1]], len(images))}, arrays.get("classes"))
    used = sorted(set(labels[key].tolist()))
    if own is None and numbered:
        own = tuple(classes[number] if number < len(classes) else str(number) for number in range(used[-1] + 1))
    names = {number: str(number) if own is None else own[number] for number in used}
    if strange := [name for name in names.values() if name not in classes]:
        hint = "; an array `classes` in it names its numbers" if own is None else ""
        raise InputError(
            f"--test {path} has labels that the training images do not have: {some_of(strange)}; "
            f"those have {some_of(classes)}{hint}"
        )
    place = {number: classes.index(name) for number, name in names.items()}
    return TrustedImages(images, torch.tensor([place[number] for number in labels[key].tolist()]))


def holds_numbers(path: Path, label_key: str) -> bool:
    """Whether the labels are class numbers, and not names."""
    return bool(_read(path, {label_key})[0][label_key].dtype.kind != "U")


def from_arrays(arrays: Mapping[str, Array], label_key: str = "y_train", truth_key: str = TRUTH_KEY) -> LabelledImages:
    """The same from arrays by name; a test set needs both `x_test` and `y_test`."""
    images = images_from_array(arrays["x_train"], "x_train")
    count = len(images)
    given = {key: (arrays[key], count) for key in (label_key, truth_key) if key in arrays}
    test_images = None
    if "x_test" in arrays and "y_test" in arrays:
        test_images = images_from_array(arrays["x_test"], "x_test")
        given["y_test"] = arrays["y_test"], len(test_images)
    labels, names = _as_numbers(given, arrays.get("classes"))
    if test_images is not None and test_images.shape[1:] != images.shape[1:]:
        raise InputError(
            f"x_test must have images like x_train's {tuple(images.shape[1:])} (channels, height, width), "
            f"got {tuple(test_images.shape[1:])}"
        )
    largest = max(int(numbers.max()) for numbers in labels.values())
    if largest >= max(2, count):
        raise InputError(f"there is a label {largest}, but only {count} images: class numbers go 0, 1, 2, ...")
    names = names or tuple(str(index) for index in range(1 + largest))
    if len(names) < 2:
        raise InputError("all labels are of one class: at least two are needed")
    return LabelledImages(
        images=images,
        given_labels=labels[label_key],
        true_labels=labels.get(truth_key),
        test_images=test_images,
        test_labels=labels.get("y_test") if test_images is not None else None,
        classes=names,
        ids=tuple(str(index) for index in range(count)),
    )


def _read(path: Path, wanted: set[str]) -> tuple[dict[str, Array], str]:
    """Those of the wanted arrays that the file has, and the names of all that it has, for people."""
    if not path.exists():
        raise InputError(f"there is no file {path}")
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{path} is a single array, not an .npz file with images and labels (x_train, y_train)")
        with archive:
            names = some_of(sorted(archive.files), most=20)
            return {name: archive[name] for name in wanted & set(archive.files)}, names
    except InputError:
        raise
    except Exception as error:  # a damaged file can break the reader anywhere
        reason = str(error)
        if reason.startswith("Object arrays"):
            reason = "it holds Python objects, which are never loaded; save text labels by .astype(str)"
        elif "pickle" in reason.lower():  # what numpy takes everything for that it does not know
            reason = "it is none, or it is damaged"
        raise InputError(f"{path} cannot be read as an .npz file: {reason}") from error


def _as_numbers(
    given: Mapping[str, tuple[Array, int]], classes: Array | None
) -> tuple[dict[str, Tensor], tuple[str, ...] | None]:
    """Labels as class numbers, by the name of their array (beside each stands how many they must be), and the names of
    the classes where there are any.

    Text is the name of a class; its number is its place in `classes` or else among all the names that occur.
    """
    text = [key for key, (array, _) in given.items() if array.dtype.kind == "U"]
    names = None if classes is None else _checked_names(classes)
    if text and names is None:
        if numbers := [key for key in given if key not in text]:
            raise InputError(f"{text[0]} holds names and {numbers[0]} numbers: save both as names, or both as numbers")
        names = class_names([name for key in text for name in given[key][0].ravel().tolist()])
    labels = {
        key: labels_from_array(_numbers(array, key, names or ()), key, count) for key, (array, count) in given.items()
    }
    least = max(2, *(1 + int(numbers.max()) for numbers in labels.values()))
    if classes is not None and len(classes) < least:
        raise InputError(f"classes must name each of the {least} classes once, got {len(classes)}")
    return labels, names


def _numbers(array: Array, key: str, names: tuple[str, ...]) -> Array:
    """What `labels_from_array` takes, of what people save."""
    kind = array.dtype.kind
    if kind in NO_LABELS:
        raise InputError(f"{key} must hold names or whole numbers (class 0, 1, 2, ...), got {NO_LABELS[kind]}")
    if kind == "b":
        return array.astype(np.int64)
    if kind != "U":
        return array
    words = array.ravel().tolist()
    if blank := [place for place, name in enumerate(words) if not name.strip()]:
        raise InputError(f"{key} has an empty label (image {blank[0]}): leave out images without a label")
    number = {name: index for index, name in enumerate(names)}
    if strange := sorted(set(words) - set(names)):
        raise InputError(f"{key} has labels that are not in classes: {some_of(strange)}")
    return np.array([number[name] for name in words], dtype=np.int64).reshape(array.shape)


def _checked_names(classes: Array) -> tuple[str, ...]:
    names = tuple(str(name) for name in np.atleast_1d(classes).ravel())
    if classes.ndim != 1 or len(set(names)) < len(names):
        raise InputError(f"classes must name each of the {max(2, len(names))} classes once, got {some_of(names)}")
    return names
