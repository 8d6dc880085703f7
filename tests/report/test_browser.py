"""The report in a real browser, opened from disk: filters, pages, marks that survive, and a download."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from report.browser import CHROMIUM, Browser

from plremix.data.dataset import LabelledImages
from plremix.data.sheets import harmless
from plremix.report import write_report
from plremix.selection import Verdict

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")

ODD = ('plain "quotes", comma', "<img src=x onerror=document.title='hacked'>", "=cmd()", "Ж" * 200)


def write_page(
    path: Path, count: int = 200, side: int = 16, classes: tuple[str, ...] = ODD, flagged: int | None = None
) -> None:
    """A page of a made-up run in which labels are flagged, all if not told otherwise."""
    draws, number = np.random.default_rng(0), len(classes)
    data = LabelledImages(
        images=torch.from_numpy(draws.integers(0, 256, (count, 3, side, side)).astype(np.uint8)),
        given_labels=torch.arange(count) % number,
        true_labels=None,
        test_images=None,
        test_labels=None,
        classes=classes,
        ids=tuple(f"folder/{index:05}.png" for index in range(count)),
    )
    score = np.linspace(0, 0.4, count)
    wrong = np.arange(count) < (count if flagged is None else flagged)
    verdict = Verdict(score, wrong, (np.arange(count) // number) % number, 1 - score)
    history = [{"epoch": epoch, "phase": "train", "loss": 1.0 - 0.1 * epoch} for epoch in range(3)]
    summary = {"last": None, "best": None, "seconds": 3.0, "noise_rate_estimate": 1.0}
    write_report(path, {"recipe": "own", "method": "plremix", "seed": 0}, summary, history, data, verdict, {})


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile", tmp_path / "downloads") as opened:
        yield opened


def test_people_can_filter_page_mark_and_download(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_page(page)
    with Browser(tmp_path / "profile", tmp_path / "downloads") as browser:
        browser.open(page)
        cards = "return document.querySelectorAll('#gallery li').length;"
        place = "return document.getElementById('place').textContent;"
        assert browser.ask(cards) == 48
        assert browser.ask(place) == "page 1 of 5 (200 images)"
        browser.click("#next")
        assert browser.ask(place) == "page 2 of 5 (200 images)"
        assert browser.ask("return document.querySelector('#gallery li').dataset.id;") == "folder/00048.png"
        browser.ask("set({ given: '1', suggested: '2' });")
        assert browser.ask(place) == "page 1 of 1 (12 images)"
        browser.ask("set({ given: '', suggested: '', search: '0019' });")
        assert browser.ask(cards) == 11
        browser.click("#clear")
        browser.click("#gallery li:nth-child(1) [data-decision=given]")
        browser.click("#gallery li:nth-child(2) [data-decision=suggestion]")
        browser.click("#gallery li:nth-child(3) [data-decision=drop]")
        browser.ask(
            "const other = document.querySelector('#gallery li:nth-child(4) select'); other.focus();"
            "other.value = '3'; other.dispatchEvent(new Event('change'));"
        )
        browser.ask("document.querySelector('#gallery li:nth-child(5)').focus();")
        browser.send("Input.dispatchKeyEvent", type="keyDown", key="2", text="2")
        focused = "return [page, document.activeElement.dataset.id];"
        browser.ask("document.querySelector('#gallery li:last-child').focus();")
        browser.send("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
        assert browser.ask(focused) == [1, "folder/00048.png"], "past the last card is the next page"
        browser.send("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
        assert browser.ask(focused) == [0, "folder/00047.png"]
        browser.ask("set({ state: 'done' });")
        assert browser.ask(cards) == 5
        assert browser.ask("return document.getElementById('marked').textContent;") == "5 marked"
        assert "hacked" not in browser.ask("return document.title;")
        names = ["-1", "+2.5e-3", "-1+2", "=1", "'=1", "'a", "@a", "-", "1"]
        assert browser.ask(f"return {json.dumps(names)}.map(harmless);") == [harmless(name) for name in names]
        browser.click("#download")
        browser.wait_for("Browser.downloadProgress", state="completed")
        asked = [address for address in browser.requested() if not address.startswith(("data:", "blob:"))]
        assert asked == [page.as_uri()], "it asks nobody for anything"

    lines = (tmp_path / "downloads" / "labels_reviewed.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id,given_label,reviewed_label,decision"
    quoted = '"plain ""quotes"", comma"'
    assert lines[1] == f"folder/00000.png,{quoted},{quoted},given"
    assert lines[2] == f"folder/00001.png,{ODD[1]},{quoted},suggestion"
    assert lines[3] == "folder/00002.png,'=cmd(),,drop", "a formula does not run"
    assert lines[4] == f"folder/00003.png,{ODD[3]},{ODD[3]},other"
    assert len(lines) == 6

    with Browser(tmp_path / "profile", tmp_path / "downloads") as again:
        again.open(page)
        count = "return [Object.keys(marks).length, document.querySelectorAll('.marked').length];"
        assert again.ask(count) == [5, 5], "the marks survive"
        assert again.ask("return document.querySelector('#gallery li:nth-child(4) select').value;") == "3"


def test_long_names_and_small_screens_leave_the_numbers_in_sight(tmp_path: Path, browser: Browser) -> None:
    write_page(tmp_path / "report.html", flagged=30)
    for width in (390, 1200):
        browser.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500
        )
        browser.open(tmp_path / "report.html")
        assert browser.ask("return document.documentElement.scrollWidth;") <= width, "nothing sticks out of the page"
        box, number = browser.ask(
            "const box = document.getElementById('matrix').parentElement.getBoundingClientRect();"
            "const number = document.querySelector('#matrix td button').getBoundingClientRect();"
            "return [[box.right, box.bottom], [number.right, number.bottom]];"
        )
        assert number[0] <= box[0]
        assert number[1] <= box[1]
        cards = "[...document.querySelectorAll('#gallery li')]"
        told = browser.ask(f"return {cards}.map((one) => one.textContent.includes('not flagged'));")
        assert told == [False] * 30 + [True] * 18


def test_twenty_thousand_images_open_quickly(tmp_path: Path, browser: Browser) -> None:
    page = tmp_path / "report.html"
    write_page(page, count=20_000, side=32)
    assert page.stat().st_size < 60_000_000
    browser.open(page)
    took, rows = browser.ask(
        "return [performance.timing.loadEventEnd - performance.timing.navigationStart, rows.length];"
    )
    assert rows == 20_000
    assert took < 3000


def test_a_thousand_classes_do_not_freeze_it(tmp_path: Path, browser: Browser) -> None:
    write_page(tmp_path / "report.html", count=20_000, side=8, classes=tuple(f"class {index}" for index in range(1000)))
    browser.open(tmp_path / "report.html")
    turning = browser.ask(
        "const began = performance.now(); for (let k = 0; k < 5; k++) { page += 1; draw(); }"
        "return performance.now() - began;"
    )
    assert turning < 5 * 300
    assert browser.ask("return document.getElementById('cut').textContent;").startswith("Shown are the 60 classes")
    assert browser.ask("return document.querySelectorAll('#matrix tr').length;") == 61
