"""Arrays in memory, or in an .npz file: `x_train`, the given labels, and if there are any a test set and the truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plremix.data.dataset import LabelledImages, images_from_array, labels_from_array
from plremix.errors import InputError

Array = NDArray[np.generic]
TRUTH_KEY = "y_true"


def load(path: Path, label_key: str = "y_train", truth_key: str = TRUTH_KEY) -> LabelledImages:
    """Read an .npz file; nothing in it is ever executed (object arrays are refused)."""
    if not path.exists():
        raise InputError(f"there is no file {path}")
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{path} is a single array, not an .npz file with x_train and {label_key}")
        with archive:
            names = set(archive.files)
            wanted = {"x_train", label_key, truth_key, "x_test", "y_test", "classes"} & names
            arrays = {name: archive[name] for name in wanted}
    except InputError:
        raise
    except Exception as error:  # a damaged file can break the reader anywhere
        reason = "it holds Python objects, which are never loaded" if "pickle" in str(error).lower() else str(error)
        raise InputError(f"{path} cannot be read as an .npz file: {reason}") from error
    required = ["x_train", label_key, *([truth_key] if truth_key != TRUTH_KEY else [])]
    for name in required:
        if name not in arrays:
            raise InputError(f"{path} has no array {name!r}; it has {', '.join(sorted(names)) or 'none'}")
    return from_arrays(arrays, label_key, truth_key)


def from_arrays(arrays: Mapping[str, Array], label_key: str = "y_train", truth_key: str = TRUTH_KEY) -> LabelledImages:
    """The same from arrays by name; a test set needs both `x_test` and `y_test`."""
    images = images_from_array(arrays["x_train"], "x_train")
    count = len(images)
    given = labels_from_array(arrays[label_key], label_key, count)
    truth = labels_from_array(arrays[truth_key], truth_key, count) if truth_key in arrays else None
    test_images = test_labels = None
    if "x_test" in arrays and "y_test" in arrays:
        test_images = images_from_array(arrays["x_test"], "x_test")
        test_labels = labels_from_array(arrays["y_test"], "y_test", len(test_images))
        if test_images.shape[1:] != images.shape[1:]:
            raise InputError(
                f"x_test must have images like x_train's {tuple(images.shape[1:])} (channels, height, width), "
                f"got {tuple(test_images.shape[1:])}"
            )
    used = [labels for labels in (given, truth, test_labels) if labels is not None]
    largest = max(int(labels.max()) for labels in used)
    if largest >= max(2, count):
        raise InputError(f"there is a label {largest}, but only {count} images: class numbers go 0, 1, 2, ...")
    classes = _class_names(arrays.get("classes"), 1 + largest)
    return LabelledImages(
        images=images,
        given_labels=given,
        true_labels=truth,
        test_images=test_images,
        test_labels=test_labels,
        classes=classes,
        ids=tuple(str(index) for index in range(count)),
    )


def _class_names(names: Array | None, count: int) -> tuple[str, ...]:
    if names is None:
        if count < 2:
            raise InputError("all labels are of one class: at least two are needed")
        return tuple(str(index) for index in range(count))
    if names.ndim != 1 or len(names) < count or len(names) < 2 or len(set(names.tolist())) < len(names):
        raise InputError(f"classes must name each of the {max(count, 2)} classes once, got {len(np.atleast_1d(names))}")
    return tuple(str(name) for name in names)
