"""CSV text that a spreadsheet can open: names stay names, and none of them runs as a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets take for the start of a formula
NUMBER = re.compile(r"[+-]\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)  # a number with a sign is none


def csv_text(header: list[str], rows: Iterable[Iterable[object]]) -> str:
    """The header and the rows, every cell harmless."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(harmless(cell) for cell in header)
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def harmless(cell: object) -> object:
    """A name that a spreadsheet would run as a formula gets an apostrophe in front, as spreadsheets do it; so does one
    that looks as if it had got it, for `plain_cell` to take away."""
    runs = isinstance(cell, str) and cell.lstrip("'")[:1] in FORMULA and not NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell


def plain_cell(cell: str) -> str:
    """A name as it was before `harmless`."""
    return cell[1:] if cell[:1] == "'" and cell.lstrip("'")[:1] in FORMULA else cell
