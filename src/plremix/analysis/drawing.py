"""How the figures look and where they go: SVG and PNG for people, and the numbers behind them as CSV.

Series differ by colour (Okabe and Ito's set, told apart in colour blindness), by line style and by marker, so that a
figure is readable in black and white as well.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plremix.data.sheets import harmless
from plremix.report import figures
from plremix.training.files import write_bytes, write_text

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DOTS_PER_INCH = 150


class Left(NamedTuple):
    """A figure that cannot be made of this run, and why."""

    name: str
    why: str


class Drawn(NamedTuple):
    """A figure, what it shows, and the rows behind it."""

    name: str
    title: str
    caption: str
    figure: Figure
    header: Sequence[str]
    rows: Sequence[Sequence[object]]


def write(drawn: Drawn, folder: Path) -> list[Path]:
    """`<name>.svg`, `<name>.png` and `<name>.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{drawn.name}.{ending}" for ending in ("svg", "png", "csv")]
    write_text(paths[0], figures.svg(drawn.figure) + "\n")
    buffer = io.BytesIO()
    drawn.figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    write_bytes(paths[1], buffer.getvalue())
    write_text(paths[2], as_csv(drawn.header, drawn.rows))
    return paths


def whole_epochs(axes: Axes) -> None:
    """There is no half an epoch."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else harmless(value)
