"""Chromium, driven over a pair of pipes: a page is opened, asked, clicked, and what it requests is written down."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
)


class Browser:
    """One window; `profile` is what survives it, `downloads` is where files go."""

    def __init__(self, profile: Path, downloads: Path) -> None:
        to_browser, self.commands = os.pipe()
        answers, from_browser = os.pipe()
        program = shlex.join([str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "about:blank"])
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {program} 3<&{to_browser} 4>&{from_browser}"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.answers = os.fdopen(answers, "rb")
        self.number, self.session = 0, ""
        self.events: list[dict[str, Any]] = []
        downloads.mkdir(exist_ok=True)
        self.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads), eventsEnabled=True)
        target = next(one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for room in ("Page", "Network", "Runtime"):
            self.send(f"{room}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.session = ""
        self.send("Browser.close")  # in its own time, so that it keeps what it was asked to keep
        self.process.wait(timeout=30)
        os.close(self.commands)
        self.answers.close()

    def open(self, page: Path) -> None:
        self.events = [event for event in self.events if event["method"] != "Page.loadEventFired"]
        self.send("Page.navigate", url=page.as_uri())
        self.wait_for("Page.loadEventFired")

    def ask(self, script: str) -> Any:
        """What the function body returns, in the page."""
        done = self.send("Runtime.evaluate", expression=f"(() => {{ {script} }})()", returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def click(self, selector: str) -> None:
        """With the mouse, in the middle of what is seen of it."""
        x, y = self.ask(
            f"const one = document.querySelector({json.dumps(selector)}); one.scrollIntoView({{ block: 'center' }});"
            "const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2];"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def requested(self) -> list[str]:
        """Every address that was asked for so far."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def wait_for(self, method: str, **wanted: object) -> dict[str, Any]:
        while True:
            for event in self.events:
                if event["method"] == method and wanted.items() <= event["params"].items():
                    return event
            self._read()

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self.number:
            pass
        assert "error" not in answer, answer
        return dict(answer["result"])

    def _read(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self.answers.read(1)) != b"\0":
            assert byte, "the browser has gone"
            text += byte
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message
