"""The examples run, and do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_plr_in_your_loop_is_short_and_learns() -> None:
    file = EXAMPLES / "plr_in_your_loop.py"
    assert len(file.read_text().splitlines()) < 50
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True, timeout=300)
    accuracies = [float(value) for value in re.findall(r"test accuracy ([\d.]+)%", done.stdout)]
    assert accuracies[-1] > 70
    assert accuracies[-1] > accuracies[0] + 20
