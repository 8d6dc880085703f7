"""Own images, in whatever form they come: a folder with a sub-folder a class, a CSV file, or an .npz file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plremix.data.dataset import LabelledImages
from plremix.data.sources import arrays, folder, listed, table
from plremix.data.sources.listed import ListedFiles, Look
from plremix.errors import InputError


def listed_files(path: Path, image_column: str = "", label_column: str = "") -> ListedFiles | None:
    """What a folder or a CSV file lists; None for an .npz file, which holds the pixels themselves."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if path.is_dir():
        return folder.read(path)
    if path.suffix.lower() == ".npz":
        return None
    if path.suffix.lower() in (".csv", ".tsv", ".txt"):
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
        other = arrays.load(test, label_key, truth_key)
        if other.images.shape[1:] != data.images.shape[1:]:
            raise InputError(f"the images of --test {test} are not of the size of those of {path}")
        if len(other.classes) > len(data.classes):
            raise InputError(f"--test {test} has classes that {path} does not have")
    else:
        other = listed.load(trusted, side, channels, resize=resize or None, stream=stream, classes=data.classes)
    return replace(data, test_images=other.images, test_labels=other.given_labels)
