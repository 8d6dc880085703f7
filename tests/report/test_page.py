"""The report is one page that needs nothing else, and names in it cannot run."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import method_on, small_config, small_cross_entropy
from PIL import Image

from plremix.data.dataset import LabelledImages
from plremix.report import figures, write_report
from plremix.report.page import _pictures


def page(
    folder: Path,
    data: LabelledImages,
    make: object = small_config,
    found: dict[str, float] | None = None,
    **changes: object,
) -> str:
    config = make(**changes)  # type: ignore[operator]
    method = method_on(data, config)
    history = [{"epoch": epoch, **method.train_epoch(epoch), "test_accuracy": 0.5} for epoch in range(2)]
    rates = {"noise_rate_estimate": 0.25, "noise_rate": 0.2} if found is None else found
    summary = {"last": 0.5, "best": 0.6, "seconds": 1.0, **rates}
    write_report(
        folder / "report.html", config.as_dict(), summary, history, data, method.verdict(), method.split_details()
    )
    return (folder / "report.html").read_text(encoding="utf-8")


def payload(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_it_shows_curves_split_and_the_most_suspicious_images(tmp_path: Path, tiny: LabelledImages) -> None:
    html = page(tmp_path, tiny)
    assert html.count("<svg") == 2
    rows = payload(html)["rows"]
    assert len(rows) >= 48
    assert [row[3] for row in rows] == sorted(row[3] for row in rows), "least believable first"
    assert all(row[5].startswith("data:image/png;base64,") for row in rows)
    assert re.search(r"Of 60 training images in 3 classes, \d+ labels\s+look wrong", html)


def test_marks_belong_to_one_run_on_one_set_of_labels(tmp_path: Path, tiny: LabelledImages) -> None:
    html = page(tmp_path, tiny)
    assert payload(page(tmp_path, tiny))["run"] == payload(html)["run"], "the same run written anew keeps them"
    named = replace(tiny, classes=("apple", "pear", "plum"))
    given = replace(tiny, given_labels=tiny.given_labels.flip(0))
    others = [page(tmp_path, named), page(tmp_path, given), page(tmp_path, tiny, seed=1)]
    assert len({payload(other)["run"] for other in (html, *others)}) == 4


def test_without_test_images_and_truth_there_is_no_empty_figure() -> None:
    history = [{"epoch": epoch, "phase": "warmup", "loss": 1.0} for epoch in range(3)]
    assert "Accuracy" not in figures.curves(history)
    assert "Accuracy" in figures.curves([{**line, "test_accuracy": 0.5} for line in history])
    assert "Accuracy" in figures.curves([{**line, "clean_precision": 0.5} for line in history])


def test_it_asks_nobody_for_anything(tmp_path: Path, tiny: LabelledImages) -> None:
    html = page(tmp_path, tiny)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', html.replace("xlink:href", "href"))
    assert "default-src 'none'" in html, "and the browser would not let it"
    assert not re.findall(
        r"@import|fetch\(|XMLHttpRequest|WebSocket|https?://(?!www\.w3\.org|creativecommons|purl|matplotlib)", html
    )


@pytest.mark.parametrize("make", [small_config, small_cross_entropy])
@pytest.mark.parametrize("known", [True, False])
def test_it_is_written_with_and_without_truth_and_split(
    tmp_path: Path, tiny: LabelledImages, make: object, known: bool
) -> None:
    data = tiny if known else replace(tiny, true_labels=None)
    html = page(tmp_path, data, make)
    assert html.count("<svg") == (2 if make is small_config else 1)


def test_a_one_dimensional_split_is_drawn_too(tmp_path: Path, tiny: LabelledImages) -> None:
    assert page(tmp_path, tiny, split="mixture1d").count("<svg") == 2


def test_class_names_cannot_run(tmp_path: Path, tiny: LabelledImages) -> None:
    name = "</script><script>alert(1)</script>"
    evil = replace(tiny, classes=(name, 'a"b', "c"), ids=(name, *tiny.ids[1:]))
    html = page(tmp_path, evil)
    assert html.count("<script") == 2, "the page's own two"
    assert html.count("</script>") == 2
    assert payload(html)["classes"][0] == name
    assert "&lt;script&gt;" in html


def test_fewer_images_than_the_gallery_holds(tmp_path: Path, tiny: LabelledImages) -> None:
    few = np.arange(10)
    small = replace(
        tiny,
        images=tiny.images[few],
        given_labels=tiny.given_labels[few],
        true_labels=tiny.true_labels[few],
        ids=tiny.ids[:10],
    )
    assert len(payload(page(tmp_path, small))["rows"]) == 10


def test_it_says_when_more_labels_are_wrong_than_it_can_name(tmp_path: Path, tiny: LabelledImages) -> None:
    for unnamed in (0.0, 0.3):
        found = {"noise_rate_estimate": 0.4, "unnamed": unnamed}
        html = page(tmp_path, replace(tiny, true_labels=None), found=found)
        assert ("about 40.0% probably are" in html) == (unnamed > 0)


def test_pictures_are_as_large_as_there_is_room_and_come_from_their_files(tmp_path: Path, tiny: LabelledImages) -> None:
    """60 images of 8x8 that were photographs of 300x200; one file is gone since."""
    paths = [tmp_path / f"{place}.png" for place in range(len(tiny))]
    for path in paths[1:]:
        Image.new("RGB", (300, 200), "red").save(path)
    rows = payload(page(tmp_path, replace(tiny, paths=tuple(paths))))["rows"]
    for name, _, _, _, _, picture in rows:
        with Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2]))) as shown:
            assert shown.size == ((8, 8) if name == tiny.ids[0] else (256, 171))


def test_many_pictures_are_small(tiny: LabelledImages) -> None:
    sizes, data = [], replace(tiny, images=torch.zeros(1, 1, 300, 300, dtype=torch.uint8))
    for count in (1, 1000, 20_000):
        urls = _pictures(data, np.zeros(count, dtype=np.int64))
        assert len(urls) == count
        with Image.open(io.BytesIO(base64.b64decode(urls[0].partition(",")[2]))) as shown:
            sizes.append(max(shown.size))
    assert sizes == [256, 214, 48]
