"""Views: a whole uint8 batch is changed at once, each image with parameters of its own.

A view draws its parameters from a generator that the caller owns and applies them in a second step, so that the
same draws can be shared out over processes, replayed, or run by another engine: compiled loops on the CPU
(`compiled.py`), batched operations elsewhere (`batched.py`).
"""

from plremix.data.augment.views import VIEWS, View, multi_crop, normalise

__all__ = ["VIEWS", "View", "multi_crop", "normalise"]
