"""The operations that a policy is made of: their names, and what the value beside each of them means.

A policy draws for every image a short program: a row of operation codes and a row of values. Both engines run it.
"""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """Each is what Pillow does under this name; the value's meaning stands behind it. Outside is grey."""

    NONE = 0  # -
    SHEAR_X = 1  # pixels to the left per row (bicubic)
    SHEAR_Y = 2  # pixels up per column (bicubic)
    TRANSLATE_X = 3  # share of the width (nearest)
    TRANSLATE_Y = 4  # share of the height (nearest)
    ROTATE = 5  # degrees, counter-clockwise (nearest)
    COLOR = 6  # factor: 0 greyscale, 1 as it was
    CONTRAST = 7  # factor: 0 the mean grey
    SHARPNESS = 8  # factor: 0 smoothed
    BRIGHTNESS = 9  # factor: 0 black
    POSTERIZE = 10  # bits kept
    SOLARIZE = 11  # levels from here up are inverted
    AUTOCONTRAST = 12  # -
    EQUALIZE = 13  # -
    INVERT = 14  # -
    HUE = 15  # share of the circle, from -0.5 to 0.5
    BLUR = 16  # radius of the Gaussian in pixels


GREY = 128  # what comes in from outside
