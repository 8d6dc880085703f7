"""Views: a whole uint8 batch is changed at once, each image with parameters of its own.

A view draws its parameters from a generator that the caller owns and applies them in a second step, so that the
same draws can be shared out over processes or replayed.
"""

from plremix.data.augment.views import VIEWS, View, normalise

__all__ = ["VIEWS", "View", "normalise"]
