"""The house rule that arrows point one way is kept, and its check can fail."""

from __future__ import annotations

from pathlib import Path

import check_imports
import pytest


def test_imports_point_one_way() -> None:
    assert check_imports.violations() == []


@pytest.mark.parametrize(
    "line", ["import plremix.methods.codivide", "from plremix.config import Config", "from . import x"]
)
def test_an_import_against_the_arrows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    source = tmp_path / "src" / "plremix"
    (source / "losses").mkdir(parents=True)
    (source / "losses" / "bad.py").write_text(line)
    monkeypatch.setattr(check_imports, "SOURCE", source)
    assert len(check_imports.violations()) == 1
