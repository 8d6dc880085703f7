"""The classifier of a run as an ONNX file: uint8 images (n, c, H, W) in, class probabilities (n, C) out.

Its metadata has `classes` (in the order of the probabilities) and `input_size` (height, width), as JSON.
"""

from __future__ import annotations

import importlib.util
import json
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
        program = torch.onnx.export(
            model.eval(),
            (example,),
            input_names=["images"],
            output_names=["probabilities"],
            dynamic_shapes={"images": {0: torch.export.Dim("n")}},
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    program.model.metadata_props["classes"] = json.dumps(model.classes)
    program.model.metadata_props["input_size"] = json.dumps(model.side)
    program.save(str(path), external_data=False)
