"""Own images, in whatever form they come: a folder with a sub-folder a class, a CSV file, or an .npz file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plremix.data.dataset import LabelledImages
from plremix.data.files import warn_of_left_out
from plremix.data.sources import arrays, folder, listed, table
from plremix.data.sources.listed import ListedFiles, Look
from plremix.errors import InputError


def listed_files(path: Path, image_column: str = "", label_column: str = "") -> ListedFiles | None:
    """What a folder or a CSV file lists; None for an .npz file, which holds the pixels themselves."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if path.is_dir():
        return folder.read(path)
    if path.is_file() and path.suffix.lower() == ".npz":
        return None
    if path.is_file() and path.suffix.lower() in (".csv", ".tsv", ".txt"):
        return table.read(path, image_column, label_column)
    raise InputError(f"{path} is neither a folder with a sub-folder a class, nor a .csv file, nor an .npz file")


def look(path: Path, image_column: str = "", label_column: str = "", label_key: str = "y_train") -> tuple[Look, int]:
    """What the images are like, and the number of classes."""
    found = listed_files(path, image_column, label_column)
    if found is not None:
        return listed.look_at(found), len(set(found.labels))
    data = arrays.load(path, label_key)
    if len(data.given_labels.unique()) < 2:  # type: ignore[no-untyped-call]
        raise InputError(f"all labels of {path} are of one class: at least two are needed")
    return Look(len(data), min(data.side), data.channels), len(data.classes)


def load(
    path: Path,
    side: int,
    channels: int,
    *,
    resize: int = 0,
    stream: str = "auto",
    image_column: str = "",
    label_column: str = "",
    label_key: str = "y_train",
    truth_key: str = "y_true",
    test: Path | None = None,
) -> LabelledImages:
    """The images with their given labels, and the trusted ones of `test` beside them where there are some."""
    found = listed_files(path, image_column, label_column)
    if found is None:
        data = arrays.load(path, label_key, truth_key)
    else:
        data = listed.load(found, side, channels, resize=resize or None, stream=stream)
    if test is None:
        return data
    trusted = listed_files(test, image_column, label_column)
    if trusted is None:
        numbered = found is None and arrays.holds_numbers(path, label_key)
        images, labels = arrays.load_trusted(test, label_key, data.classes, numbered=numbered)
        if images.shape[1:] != data.images.shape[1:]:
            raise InputError(
                f"the images of --test {test} are {_size(images.shape)}, those of {path} {_size(data.images.shape)}: "
                "bring them to one size"
            )
        return replace(data, test_images=images, test_labels=labels)
    other = listed.load(trusted, side, channels, resize=resize or None, stream=stream, classes=data.classes)
    warn_of_left_out(other.skipped, f" of --test {test}")
    return replace(data, test_images=other.images, test_labels=other.given_labels)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[2]}x{shape[3]} pixels in {'grey' if shape[1] == 1 else 'colour'}"
