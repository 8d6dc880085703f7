"""The report is one page that needs nothing else, and names in it cannot run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import method_on, small_config, small_cross_entropy

from plremix.data.dataset import LabelledImages
from plremix.report import write_report


def page(folder: Path, data: LabelledImages, make: object = small_config, **changes: object) -> str:
    config = make(**changes)  # type: ignore[operator]
    method = method_on(data, config)
    history = [{"epoch": epoch, **method.train_epoch(epoch), "test_accuracy": 0.5} for epoch in range(2)]
    summary = {"last": 0.5, "best": 0.6, "seconds": 1.0, "noise_rate_estimate": 0.25, "noise_rate": 0.2}
    write_report(
        folder / "report.html", config.as_dict(), summary, history, data, method.verdict(), method.split_details()
    )
    return (folder / "report.html").read_text(encoding="utf-8")


def test_it_shows_curves_split_and_the_most_suspicious_images(tmp_path: Path, tiny: LabelledImages) -> None:
    html = page(tmp_path, tiny)
    assert html.count("<svg") == 2
    assert html.count("<li><img") == 48
    assert "25.0% of the given labels look wrong" in html


def test_it_asks_nobody_for_anything(tmp_path: Path, tiny: LabelledImages) -> None:
    html = page(tmp_path, tiny)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', html.replace("xlink:href", "href"))
    assert "<script" not in html
    assert "@import" not in html


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
    evil = replace(tiny, classes=("<script>alert(1)</script>", 'a"b', "c"))
    html = page(tmp_path, evil)
    assert "<script" not in html
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
    assert page(tmp_path, small).count("<li><img") == 10
