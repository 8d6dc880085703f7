"""Puts the page together: figures, the gallery of suspicious images, and the settings."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup
from PIL import Image
from torch import Tensor

from plremix.data.dataset import LabelledImages
from plremix.methods.base import Arrays
from plremix.report import figures
from plremix.selection import Verdict

GALLERY = 48  # images


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
        summary=summary,
        count=len(data),
        classes=len(data.classes),
        curves=Markup(figures.curves(history)),
        split=Markup(figures.split(details, is_wrong)) if details else None,
        gallery=_gallery(data, verdict),
    )
    path.write_text(html, encoding="utf-8")


def _gallery(data: LabelledImages, verdict: Verdict) -> list[dict[str, Any]]:
    """The images whose given label is least believable, worst first."""
    worst = np.argsort(verdict.label_score, kind="stable")[:GALLERY].tolist()
    return [
        {
            "id": data.ids[index],
            "image": _data_url(data.images[index]),
            "given": data.classes[int(data.given_labels[index])],
            "predicted": data.classes[int(verdict.predicted[index])],
            "score": float(verdict.label_score[index]),
            "confidence": float(verdict.confidence[index]),
        }
        for index in worst
    ]


def _data_url(image: Tensor) -> str:
    pixels = image.permute(1, 2, 0).squeeze(2).numpy()
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
