"""The report in a real browser, opened from disk: filters, pages, marks that survive, and a download."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from plremix.data.dataset import LabelledImages
from plremix.report import write_report
from plremix.selection import Verdict

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")

ODD = ('plain "quotes", comma', "<img src=x onerror=document.title='hacked'>", "=cmd()", "Ж" * 200)


def write_page(path: Path, count: int = 200, side: int = 16) -> None:
    """A page of a made-up run in which every label is flagged."""
    draws = np.random.default_rng(0)
    data = LabelledImages(
        images=torch.from_numpy(draws.integers(0, 256, (count, 3, side, side)).astype(np.uint8)),
        given_labels=torch.arange(count) % 4,
        true_labels=None,
        test_images=None,
        test_labels=None,
        classes=ODD,
        ids=tuple(f"folder/{index:05}.png" for index in range(count)),
    )
    score = np.linspace(0, 0.4, count)
    predicted = (np.arange(count) // 4) % 4
    verdict = Verdict(score, np.ones(count, dtype=np.bool_), predicted, 1 - score)
    history = [{"epoch": epoch, "phase": "train", "loss": 1.0 - 0.1 * epoch} for epoch in range(3)]
    summary = {"last": None, "best": None, "seconds": 3.0, "noise_rate_estimate": 1.0}
    write_report(path, {"recipe": "own", "method": "plremix", "seed": 0}, summary, history, data, verdict, {})


def browse(page: Path, script: str, profile: Path, tmp_path: Path) -> str:
    """Open a copy of the page that runs `script` (which ends in an expression) after its own; returns that as text."""
    tail = (
        "<script>document.body.append(Object.assign(document.createElement('pre'), { id: 'answer', textContent: "
        f"String((() => {{ {script} }})()) }}));</script></body>"
    )
    copy = tmp_path / "opened.html"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", tail), encoding="utf-8")
    done = subprocess.run(
        [
            str(CHROMIUM),
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
            *(
                f"--user-data-dir={profile}",
                "--allow-file-access-from-files",
                "--virtual-time-budget=3000",
                "--dump-dom",
            ),
            copy.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    return html.unescape(found[1])


def test_people_can_filter_page_mark_and_download(tmp_path: Path) -> None:
    page, profile = tmp_path / "report.html", tmp_path / "profile"
    write_page(page)
    answer = browse(
        page,
        """
        const cards = () => document.querySelectorAll('#gallery li').length;
        const seen = [cards(), document.getElementById('place').textContent];
        document.getElementById('next').click();
        seen.push(document.getElementById('place').textContent, document.querySelector('#gallery li').dataset.id);
        set({ given: '1', suggested: '2' });
        seen.push(cards(), document.getElementById('place').textContent);
        set({ given: '', suggested: '', search: '0019' });
        seen.push(cards());
        set({ search: '' });
        const [first, second, third] = document.querySelectorAll('#gallery li');
        first.querySelector('[data-decision=given]').click();
        second.querySelector('[data-decision=suggestion]').click();
        third.querySelector('[data-decision=drop]').click();
        const fourth = document.querySelectorAll('#gallery li')[3];
        fourth.querySelector('select').value = '3';
        fourth.querySelector('select').dispatchEvent(new Event('change'));
        const fifth = document.querySelectorAll('#gallery li')[4];
        fifth.dispatchEvent(new KeyboardEvent('keydown', { key: '2', bubbles: true }));
        set({ state: 'done' });
        seen.push(cards(), document.getElementById('marked').textContent);
        return JSON.stringify([seen, reviewed(), document.title]);
        """,
        profile,
        tmp_path,
    )
    seen, reviewed, title = json.loads(answer)
    assert seen == [
        *(48, "page 1 of 5 (200 images)", "page 2 of 5 (200 images)", "folder/00048.png"),
        *(12, "page 1 of 1 (12 images)", 11, 5, "5 marked"),
    ]
    assert "hacked" not in title
    lines = reviewed.strip().split("\r\n")
    assert lines[0] == "id,given_label,reviewed_label,decision"
    quoted = '"plain ""quotes"", comma"'
    assert lines[1] == f"folder/00000.png,{quoted},{quoted},given"
    assert lines[2] == f"folder/00001.png,{ODD[1]},{quoted},suggestion"
    assert lines[3] == "folder/00002.png,'=cmd(),,drop", "a formula does not run"
    assert lines[4] == f"folder/00003.png,{ODD[3]},{ODD[3]},other"
    assert len(lines) == 6

    count = "return Object.keys(marks).length + ' ' + document.querySelectorAll('.marked').length;"
    again = browse(page, count, profile, tmp_path)
    assert again == "5 5", "the marks survive a reload"


def test_twenty_thousand_images_open_quickly(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_page(page, count=20_000, side=32)
    assert page.stat().st_size < 60_000_000
    began = time.monotonic()
    answer = browse(page, "return Math.round(performance.now()) + ' ' + rows.length;", tmp_path / "profile", tmp_path)
    took, rows = map(int, answer.split())
    assert rows == 20_000
    assert took < 3000, f"{took} ms in the page, {time.monotonic() - began:.1f} s in all"
