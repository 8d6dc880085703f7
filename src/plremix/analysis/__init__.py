"""Analysis: the paper's figures, as functions of a run. `analyze` makes all of them, and says which it cannot make."""

from plremix.analysis.figures import Analysis, analyze, compare

__all__ = ["Analysis", "analyze", "compare"]
