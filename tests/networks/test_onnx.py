"""The ONNX file gives what the model gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from plremix.cli import main
from plremix.networks import load


@pytest.mark.parametrize("count", [1, 5])
def test_the_exported_classifier_equals_the_model(tmp_path: Path, tiny_file: Path, count: int) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    run, file = tmp_path / "run", tmp_path / "model.onnx"
    flags = ["--epochs", "1", "--width", "4", "--embedding-size", "8", "--device", "cpu", "--quiet"]
    assert main(["clean", str(tiny_file), "--out", str(run), *flags]) == 0
    assert main(["export", str(run), "--format", "onnx", "--out", str(file)]) == 0
    images = torch.randint(0, 256, (count, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"images": images.numpy()})
    assert torch.allclose(torch.from_numpy(found), load(run)(images), atol=1e-4)
