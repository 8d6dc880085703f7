"""Kill a run with SIGKILL at random moments, resume it, and compare it with one that was left alone, bit for bit.

    python benchmarks/kill.py            # 20 kills; about five minutes on two cores

Each kill comes up to two seconds after the run went on by an epoch, so it falls into an epoch, an evaluation or the
writing of a checkpoint; when a killed run has finished, another one starts, until all kills are done: in turn with the
digits' settings and with those of own images. The last line is `kills: 20, runs: R, different files: 0` if all is well.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILES = ("metrics.jsonl", "labels.csv", "labels_corrected.csv", "model.safetensors", "noise.json")
DIGITS = ["digits-sym-80", "--epochs", "6", "--width", "8", "--quiet"]
OWN = [
    *("--averaging", "0.9", "--guess", "epoch", "--contrast-above", "0.2"),
    *("--benefit-of-doubt", "--finish-epochs", "2"),
]
KINDS = (DIGITS, [*DIGITS, *OWN])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    draws, kills, runs, different = random.Random(wanted.seed), 0, 0, []
    with tempfile.TemporaryDirectory() as scratch:
        straight = [Path(scratch) / f"straight{kind}" for kind in range(len(KINDS))]
        for kind, out in enumerate(straight):
            if train(out, kind).wait():
                sys.exit("a run that nobody disturbed failed")
        while kills < wanted.kills:
            kind = runs % len(KINDS)
            runs += 1
            out = Path(scratch) / f"killed{runs}"
            while not (out / "summary.json").exists():
                process = train(out, kind)
                if kills < wanted.kills and killed(process, out, draws.uniform(0, 2)):
                    kills += 1
                    print(f"kill {kills} of {wanted.kills}: {finished_epochs(out)} epochs finished", flush=True)
                process.wait()
            different += [name for name in FILES if (out / name).read_bytes() != (straight[kind] / name).read_bytes()]
    print(f"kills: {kills}, runs: {runs}, different files: {len(different)}")
    sys.exit(1 if different else 0)


def train(out: Path, kind: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "plremix", "train", *KINDS[kind], "--out", str(out), "--resume"])


def killed(process: subprocess.Popen[bytes], out: Path, seconds: float) -> bool:
    """Let it go on by an epoch, wait that long, then kill; False if it had finished by then."""
    before = finished_epochs(out)
    while finished_epochs(out) <= before and process.poll() is None:
        time.sleep(0.005)
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.002)
    if process.poll() is not None:
        return False
    process.kill()
    return True


def finished_epochs(out: Path) -> int:
    metrics = out / "metrics.jsonl"
    try:
        return metrics.read_text().count("\n")
    except OSError:
        return 0


if __name__ == "__main__":
    main()
