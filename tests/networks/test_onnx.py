"""The ONNX file gives what the model gives, and says what that means."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import blobs

from plremix.cli import main
from plremix.networks import load


@pytest.mark.parametrize("count", [1, 5])
def test_the_exported_classifier_equals_the_model(tmp_path: Path, tiny_file: Path, count: int) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    names = np.array(["left", "middle", "right, or \u00fcber"])
    np.savez(tiny_file, **blobs(), classes=names)
    run, file = tmp_path / "run", tmp_path / "model.onnx"
    flags = ["--epochs", "1", "--width", "4", "--embedding-size", "8", "--device", "cpu", "--quiet"]
    assert main(["clean", str(tiny_file), "--out", str(run), *flags]) == 0
    assert main(["export", str(run), "--format", "onnx", "--out", str(file)]) == 0
    images = torch.randint(0, 256, (count, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"images": images.numpy()})
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == names.tolist()
    assert json.loads(about["input_size"]) == [8, 8]
    assert torch.allclose(torch.from_numpy(found), load(run)(images), atol=1e-4)


@pytest.mark.parametrize(
    ("given", "name"),
    [("runs/rgb.v1", "rgb.v1.onnx"), (".", "work.onnx"), ("runs/rgb.v1/model.safetensors", "model.onnx")],
)
def test_the_file_is_called_like_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, name: str
) -> None:
    (tmp_path / "work" / "runs" / "rgb.v1").mkdir(parents=True)
    (tmp_path / "work" / "runs" / "rgb.v1" / "model.safetensors").touch()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("plremix.networks.load", lambda run: run)
    monkeypatch.setattr("plremix.networks.onnx.write_onnx", lambda model, path: Path(path).touch())
    assert main(["export", given]) == 0
    assert (tmp_path / "work" / name).exists()
