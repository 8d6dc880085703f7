"""Puts the page together: figures, the gallery of suspicious images, and the settings."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import torch
from markupsafe import Markup, escape
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from plremix.data.dataset import LabelledImages
from plremix.data.files import open_image
from plremix.methods.base import Arrays
from plremix.report import figures
from plremix.selection import Verdict

LEAST = 48  # images that are always shown, flagged or not
PICTURES = 20_000  # rows with a picture; the page stays below 60 MB
SIDES = (48, 256)  # pixels of a picture's longer side: with so many pictures, and with few
ORIGINALS = 2000  # pictures up to which files are opened once more; above, the pixels that were learned from will do
ANALYSIS = ("<!-- analysis -->", "<!-- /analysis -->")  # the place of `plremix analyze` in the page
TINY = 16  # pixels up to which a picture is kept exactly


def write_report(
    path: Path,
    config: dict[str, Any],
    summary: dict[str, Any],
    history: list[dict[str, Any]],
    data: LabelledImages,
    verdict: Verdict,
    details: Arrays,
) -> None:
    """Write report.html for a finished run."""
    is_wrong = None if data.true_labels is None else (data.true_labels != data.given_labels).numpy()
    environment = jinja2.Environment(loader=jinja2.PackageLoader("plremix.report"), autoescape=True, trim_blocks=True)
    environment.filters["percent"] = lambda share: "–" if share is None else f"{share:.1%}"
    html = environment.get_template("report.html").render(
        config=config,
        name=Path(str(config.get("data"))).name if config.get("recipe") == "own" else config.get("recipe"),
        summary=summary,
        findings=summary.get("findings", []),
        count=len(data),
        flagged=int(verdict.is_label_issue.sum()),
        classes=data.classes,
        class_rows=_class_rows(data, verdict),
        curves=Markup(figures.curves(history)),
        split=Markup(figures.split(details, is_wrong)) if details else None,
        payload=_as_json(_payload(config, data, verdict)),
    )
    path.write_text(html, encoding="utf-8", errors="backslashreplace")  # a path may have bytes that are no text


def add_figures(path: Path, figures: list[tuple[str, str, str]]) -> None:
    """Put figures (title, caption, SVG) into a report that is there, in place of those of an earlier time."""
    before, first, rest = path.read_text(encoding="utf-8").partition(ANALYSIS[0])
    _, last, after = rest.partition(ANALYSIS[1])
    if not first or not last:  # of an earlier version, without a place for them
        return
    parts = [
        f'\n<h2>{escape(title)}</h2>\n<figure>{svg}</figure>\n<p class="soft">{escape(caption)}</p>'
        for title, caption, svg in figures
    ]
    path.write_text(before + first + "".join(parts) + last + after, encoding="utf-8")


def _payload(config: dict[str, Any], data: LabelledImages, verdict: Verdict) -> dict[str, Any]:
    """What the page's script works on: rows as [id, given, suggested, score, confidence, picture], worst first, those
    `flagged` before the others."""
    given = data.given_labels.numpy()
    order = np.lexsort((verdict.label_score, ~verdict.is_label_issue))  # flagged ones first
    wanted = order[: max(int(verdict.is_label_issue.sum()), min(LEAST, len(order)))]
    suggested = verdict.predicted
    pictures = _pictures(data, wanted[:PICTURES])
    rows = [
        [
            data.ids[row],
            int(given[row]),
            int(suggested[row]),
            round(float(verdict.label_score[row]), 6),
            round(float(verdict.confidence[row]), 4),
            pictures[place] if place < len(pictures) else "",
        ]
        for place, row in enumerate(wanted.tolist())
    ]
    flagged = verdict.is_label_issue
    pairs, counts = np.unique(np.stack([given[flagged], suggested[flagged]]), axis=1, return_counts=True)
    matrix = [[int(one), int(other), int(number)] for one, other, number in zip(*pairs, counts, strict=True)]
    marked = [list(data.classes), config.get("data"), config.get("seed"), [row[:3] for row in rows]]
    run = hashlib.sha256(json.dumps(marked).encode()).hexdigest()[:16]  # a browser keeps marks of all pages together
    return {"classes": list(data.classes), "rows": rows, "flagged": int(flagged.sum()), "matrix": matrix, "run": run}


def _as_json(payload: dict[str, Any]) -> Markup:
    """JSON that can stand in a page: nothing in it can end the script element."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _class_rows(data: LabelledImages, verdict: Verdict) -> list[dict[str, Any]]:
    given, classes = data.given_labels.numpy(), len(data.classes)
    counts = np.bincount(given, minlength=classes)
    wrong = np.bincount(given[verdict.is_label_issue], minlength=classes)
    return [
        {"name": name, "count": int(counts[k]), "wrong": int(wrong[k]), "share": float(wrong[k] / max(1, counts[k]))}
        for k, name in enumerate(data.classes)
    ]


def _pictures(data: LabelledImages, rows: NDArray[np.int64]) -> list[str]:
    """The images of `rows` as data URLs: the fewer, the larger, so that a person sees what there is to see."""
    smallest, largest = SIDES
    side = min(max(smallest, int(smallest * (PICTURES / max(1, len(rows))) ** 0.5)), largest)
    if data.paths and len(rows) <= ORIGINALS:
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda row: _data_url(_original(data, row, side), side), rows.tolist()))
    pictures = []
    for start in range(0, len(rows), 256):
        images = data.images[torch.from_numpy(rows[start : start + 256])]
        pictures += [_data_url(_picture(image), side) for image in images]
    return pictures


def _original(data: LabelledImages, row: int, side: int) -> Image.Image:
    """As it is in its file; as it was learned from, if the file cannot be read any more."""
    try:
        return open_image(data.paths[row], largest=side)
    except Exception:  # a decoder meets anything in a damaged file
        return _picture(data.images[row])


def _picture(image: Tensor) -> Image.Image:
    return Image.fromarray(image.permute(1, 2, 0).squeeze(2).numpy())


def _data_url(picture: Image.Image, side: int) -> str:
    exact = max(picture.size) <= TINY
    picture.thumbnail((side, side))
    buffer = io.BytesIO()
    if exact:
        picture.save(buffer, format="PNG", optimize=True)
    else:
        picture.save(buffer, format="WEBP", quality=75)
    kind = "png" if exact else "webp"
    return f"data:image/{kind};base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
