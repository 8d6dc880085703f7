"""A CSV file with a row an image: where it is (relative to the CSV) and its label."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from plremix.data.sheets import plain_cell
from plremix.data.sources.listed import ListedFiles
from plremix.errors import InputError

IMAGE_COLUMNS = ("image", "image_path", "path", "filepath", "file", "filename", "file_name", "img", "id")
LABEL_COLUMNS = ("label", "given_label", "class", "class_name", "target", "category", "y")


def read(path: Path, image_column: str = "", label_column: str = "") -> ListedFiles:
    """The rows in order; a row without image or label, and one that comes twice, is left out with a reason."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            separator = _separator(file.readline())
            file.seek(0)
            reader = csv.DictReader(file, delimiter=separator)
            header = [name.strip() for name in reader.fieldnames or []]
            reader.fieldnames = header
            image = _column(header, image_column, IMAGE_COLUMNS, "--image-column", path)
            label = _column(header, label_column, LABEL_COLUMNS, "--label-column", path)
            rows = [(reader.line_num, row.get(image) or "", plain_cell(row.get(label) or "").strip()) for row in reader]
    except OSError as error:
        raise InputError(f"the table {path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file in UTF-8: {error}") from error
    return _listed(path, rows)


def _separator(header: str) -> str:
    """Comma, semicolon, tab or bar: whichever the first line has most of."""
    return max(",;\t|", key=header.count)


def _listed(path: Path, rows: list[tuple[int, str, str]]) -> ListedFiles:
    found = ListedFiles()
    seen: dict[str, str] = {}
    for number, written, label in rows:
        name = _name(path.parent, written)
        place = os.path.realpath(path.parent / name.replace("\0", ""))  # no path has that; opening it will tell
        if not name and not label:
            continue
        if not name:
            found.leave_out(f"line {number}", "the row has no image")
        elif not label:
            found.leave_out(name, "the row has no label")
        elif place in seen:
            first = seen[place]
            same = "again" if first == label else f"with another label ({label}); the first one ({first}) counts"
            found.leave_out(name, f"the row comes {same}")
        else:
            seen[place] = label
            found.add(name, path.parent / name, label)
    if not found.paths:
        raise InputError(f"{path} has no row with an image and a label")
    return found


def _name(folder: Path, written: str) -> str:
    """As it is written if there is a file that is really called so; otherwise without the spaces around it, or without
    what our own tables put before a name that looks like a formula."""
    for name in (written, written.strip(), plain_cell(written.strip())):
        if name and os.path.lexists(folder / name.replace("\0", "")):
            return name
    return written.strip()


def _column(header: list[str], told: str, known: tuple[str, ...], flag: str, path: Path) -> str:
    if told:
        if told not in header:
            raise InputError(f"{path} has no column {told!r} ({flag}); it has {', '.join(header) or 'none'}")
        return told
    by_name = {name.lower(): name for name in header}
    for name in known:
        if name in by_name:
            return by_name[name]
    raise InputError(
        f"{path} has no column named {', '.join(known[:4])}, ...; it has {', '.join(header) or 'none'}: "
        f"name one by {flag}"
    )
