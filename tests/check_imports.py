"""Arrows point one way (README, "How it is laid out"): each room may import only the rooms listed beside it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "plremix"
EVERYWHERE = {"errors", "randomness"}  # importable by all rooms but losses and selection
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "randomness": set(),
    "memory": set(),
    "losses": set(),
    "doctor": set(),
    "selection": set(),
    "config": set(),
    "networks": set(),
    "data": set(),
    "recipes": {"config"},
    "paper": set(),
    "tables": {"config", "recipes", "paper"},
    "methods": {"config", "data", "networks", "losses", "selection"},
    "inference": {"data", "networks"},
    "report": {"methods", "data", "selection"},
    "training": {"config", "doctor", "methods", "data", "networks", "selection", "report"},
    "analysis": {"config", "data", "doctor", "losses", "methods", "networks", "report", "selection", "training"},
    "cli": {
        "analysis",
        "config",
        "data",
        "inference",
        "memory",
        "networks",
        "paper",
        "recipes",
        "tables",
        "training",
        "",
    },
    "estimator": {"config", "recipes", "data", "networks", "training"},
    "__main__": {"cli"},
    "": {"estimator", "losses", "networks", "recipes", "training"},  # plremix/__init__.py
}
PURE = {"losses", "selection"}


def violations() -> list[str]:
    """Every import that goes against an arrow, as `file:line imports room`."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        room = _room(file.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for target in _ours(node):
                allowed = ALLOWED[room] | {room} | (set() if room in PURE else EVERYWHERE)
                if target not in allowed:
                    where = file.relative_to(SOURCE.parents[1])
                    found.append(f"{where}:{node.lineno} imports plremix.{target} (from {room or 'plremix'})")
    return found


def _ours(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            return ["(relative import)"]
        if node.module == "plremix":
            rooms = {path.stem for path in SOURCE.iterdir()}
            return [alias.name if alias.name in rooms else "" for alias in node.names]
        names = [node.module or ""]
    else:
        return []
    return [_room(tuple(name.split(".")[1:])) for name in names if name.split(".")[0] == "plremix"]


def _room(parts: tuple[str, ...]) -> str:
    return "" if not parts or parts == ("__init__",) else parts[0]


if __name__ == "__main__":
    problems = violations()
    print("\n".join(problems) or "imports point one way")
    sys.exit(1 if problems else 0)
