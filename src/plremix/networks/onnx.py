"""The classifier of a run as an ONNX file: uint8 images (n, c, H, W) in, class probabilities (n, C) out."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import torch

from plremix.errors import InputError
from plremix.networks.files import Ensemble


def write_onnx(model: Ensemble, path: Path) -> None:
    """Any number of images at the size that the model was trained on; needs the extra `onnx`."""
    for package in ("onnx", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise InputError(f"the package {package!r} is missing; install the extra: pip install 'plremix[onnx]'")
    example = torch.zeros(2, len(model.mean), *model.side, dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.eval(),
            (example,),
            str(path),
            input_names=["images"],
            output_names=["probabilities"],
            dynamic_shapes={"images": {0: torch.export.Dim("n")}},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
