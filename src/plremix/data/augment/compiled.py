"""The engine for the CPU: loops over images, compiled by Numba. `batched.py` has the same functions for other devices.

Each image is worked on by itself, while it is in the processor's nearest cache. A batch is shared out over as many
threads as torch has. Compiled code is kept on disk, so that only the first run on a machine waits for it (seconds).
Images are uint8 (n, c, H, W).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plremix.data.augment.operations import GREY, Operation

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SMALLEST_SHARE = 1 << 17  # pixels; fewer are not worth another thread
_njit: Any = numba.njit
_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
compiled: Callable[[Any], Any] = _njit(**_OPTIONS)
part: Callable[[Any], Any] = _njit(**_OPTIONS, no_cpython_wrapper=True)  # for other compiled code alone

# Constants for the compiled code, which does not know our enumeration.
CONTRAST, BRIGHTNESS = int(Operation.CONTRAST), int(Operation.BRIGHTNESS)
POSTERIZE, SOLARIZE, INVERT = int(Operation.POSTERIZE), int(Operation.SOLARIZE), int(Operation.INVERT)
AUTOCONTRAST, EQUALIZE = int(Operation.AUTOCONTRAST), int(Operation.EQUALIZE)
TABLES = (CONTRAST, BRIGHTNESS, POSTERIZE, SOLARIZE, INVERT, AUTOCONTRAST, EQUALIZE)
CODES = [int(operation) for operation in Operation]  # ascending, NONE first
FIXED = 22  # bits behind the point in a resampling weight


# --- what both engines offer ---


def shift(images: Tensor, rows: Tensor, offsets: Tensor, flip: Tensor) -> Tensor:
    """Images `rows` (n,), mirrored where `flip` and then moved by `offsets` (n, 2: down, right); black comes in."""
    out = torch.empty(len(rows), *images.shape[1:], dtype=torch.uint8)
    source, target = images.contiguous().numpy(), out.numpy()
    which, moves, mirrored = rows.numpy(), offsets.numpy(), flip.numpy()
    _in_threads(
        lambda part: _shift(source, which[part], moves[part], mirrored[part], target[part]),
        len(rows),
        math.prod(out.shape[1:]),
    )
    return out


def resize(images: Tensor, rows: Tensor, boxes: Tensor, flip: Tensor, side: tuple[int, int]) -> Tensor:
    """The `boxes` (n, 4: left, top, right, bottom) of images `rows` at another size, mirrored where `flip`."""
    out = torch.empty(len(rows), images.shape[1], *side, dtype=torch.uint8)
    source, target = images.contiguous().numpy(), out.numpy()
    which, places, mirrored = rows.numpy(), boxes.numpy(), flip.numpy()
    _in_threads(
        lambda part: _resize(source, which[part], places[part], mirrored[part], target[part]),
        len(rows),
        math.prod(out.shape[1:]),
    )
    return out


def operate(images: Tensor, codes: Tensor, values: Tensor) -> Tensor:
    """Run each image's program (n, L) on it, in place."""
    pixels, which, how = images.numpy(), codes.numpy(), values.numpy()

    def run(part: slice) -> None:
        mine = pixels[part]
        for step in range(which.shape[1]):
            order = np.argsort(which[part, step], kind="stable")  # images with the same operation in a row
            values_in_order = how[part, step][order]
            ends = np.searchsorted(which[part, step][order], CODES, side="right").tolist()
            for code, start, stop in zip(CODES[1:], ends[:-1], ends[1:], strict=True):
                if stop > start:
                    OPERATIONS[code](mine, order[start:stop], values_in_order[start:stop])

    _in_threads(run, len(images), math.prod(images.shape[1:]))
    return images


def cover(images: Tensor, holes: Tensor) -> Tensor:
    """Grey rectangles `holes` (n, 4: left, top, right, bottom; whole pixels), in place."""
    _cover(images.numpy(), holes.numpy())
    return images


def normalise(images: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """`images * scale - shift` (c,) as floats with channels last in memory."""
    n, channels, height, width = images.shape
    out = torch.empty(n, height, width, channels)
    source, target = images.flatten(2).numpy(), out.view(n, -1).numpy() if n else out.numpy()
    by, less = scale.numpy(), shift.numpy()
    _in_threads(lambda part: _normalise(source[part], by, less, target[part]), n, channels * height * width)
    return out.permute(0, 3, 1, 2)


def _in_threads(work: Callable[[slice], None], count: int, pixels: int) -> None:
    if not count:
        return
    threads = min(torch.get_num_threads(), count, max(1, count * pixels // SMALLEST_SHARE))
    if threads == 1:
        work(slice(0, count))
        return
    edges = [count * part // threads for part in range(threads + 1)]
    list(_pool().map(work, [slice(start, stop) for start, stop in itertools.pairwise(edges)]))


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(torch.get_num_threads(), thread_name_prefix="views")


# --- cutting a view out of an image ---


@compiled
def _shift(images: Bytes, rows: Integers, offsets: Integers, flip: NDArray[np.bool_], out: Bytes) -> None:
    black = np.uint8(0)
    for i in range(len(out)):
        for channel in range(out.shape[1]):
            _place(images[rows[i], channel], offsets[i, 0], offsets[i, 1], flip[i], black, out[i, channel])


@part
def _place(source: Bytes, down: int, right: int, flip: bool, outside: int, target: Bytes) -> None:
    """One channel, moved by whole pixels."""
    height, width = target.shape
    first, last = _clipped(right, width + 1), _clipped(width + right, width + 1)
    for y in range(height):
        aim = target[y]
        if not 0 <= y - down < height:
            for x in range(width):
                aim[x] = outside
            continue
        for x in range(first):
            aim[x] = outside
        for x in range(last, width):
            aim[x] = outside
        line = source[y - down]
        if flip:  # places that cannot be negative make vector code of these loops
            for x in range(first, last):
                aim[np.uint64(x)] = line[np.uint64(width - 1 + right - x)]
        else:
            for x in range(first, last):
                aim[np.uint64(x)] = line[np.uint64(x - right)]


@part
def _weights(start: float, stop: float, size: int, count: int) -> tuple[Integers, NDArray[np.int32]]:
    """For each of `count` outputs over [start, stop): its first input of `size`, and fixed-point triangle weights."""
    scale = (stop - start) / count
    support = max(scale, 1.0)
    width = math.ceil(support) * 2 + 1
    first, weights = np.zeros(count, np.int64), np.zeros((count, width), np.int32)
    row = np.zeros(width)
    for position in range(count):
        centre = start + (position + 0.5) * scale
        low, high = max(0, int(centre - support + 0.5)), min(size, int(centre + support + 0.5))
        total = 0.0
        for tap in range(high - low):
            row[tap] = max(0.0, 1 - abs((low + tap - centre + 0.5) / support))
            total += row[tap]
        first[position] = low
        for tap in range(high - low):
            share = row[tap] / total if total != 0 else 0.0
            weights[position, tap] = math.floor(share * (1 << FIXED) + 0.5)
    return first, weights


@compiled
def _resize(images: Bytes, rows: Integers, boxes: Floats, flip: NDArray[np.bool_], out: Bytes) -> None:
    n, channels, height, width = out.shape
    half = 1 << (FIXED - 1)
    for i in range(n):
        source = images[rows[i]]
        left, top, right, bottom = boxes[i]
        first_x, weights_x = _weights(left, right, source.shape[2], width)
        first_y, weights_y = _weights(top, bottom, source.shape[1], height)
        low = first_y[0]
        high = min(source.shape[1], first_y[height - 1] + weights_y.shape[1])
        lines = np.empty((high - low, width), np.uint8)
        for channel in range(channels):
            for y in range(low, high):
                line = source[channel, y]
                for x in range(width):
                    total, begin = half, first_x[x]
                    for tap in range(min(weights_x.shape[1], len(line) - begin)):
                        total += line[begin + tap] * weights_x[x, tap]
                    lines[y - low, width - 1 - x if flip[i] else x] = min(max(total >> FIXED, 0), 255)
            sums = np.empty(width, np.int64)
            for y in range(height):
                for x in range(width):
                    sums[x] = half
                begin = first_y[y] - low
                for tap in range(min(weights_y.shape[1], high - low - begin)):
                    weight = weights_y[y, tap]
                    if weight != 0:
                        for x in range(width):
                            sums[x] += lines[begin + tap, x] * weight
                for x in range(width):
                    out[i, channel, y, x] = min(max(sums[x] >> FIXED, 0), 255)


# --- operations: on images `rows` in place, with a value each ---


@compiled
def _shear(before: Bytes, images: Bytes, rows: Integers, values: Floats, along_x: bool) -> None:
    """Cubic interpolation along one axis; the other one stays where it is."""
    _, channels, height, width = images.shape
    size, step = (width, 1) if along_x else (height, width)
    for i in range(len(rows)):
        for y in range(height):
            for x in range(width):
                along, across = (x, y) if along_x else (y, x)
                place = along + 0.5 + values[i] * (across + 0.5)
                inside = 0 <= place < size
                middle = math.floor(place - 0.5)
                d = place - 0.5 - middle
                base = y * width if along_x else x
                first, second = _clipped(middle - 1, size), _clipped(middle, size)
                third, fourth = _clipped(middle + 1, size), _clipped(middle + 2, size)
                for channel in range(channels):
                    plane = before[i, channel]
                    v1 = np.float64(plane[np.uint64(base + first * step)])
                    v2 = np.float64(plane[np.uint64(base + second * step)])
                    v3 = np.float64(plane[np.uint64(base + third * step)])
                    v4 = np.float64(plane[np.uint64(base + fourth * step)])
                    mixed = v2 + d * (v3 - v1 + d * (2 * (v1 - v2) + v3 - v4 + d * (v2 - v1 - v3 + v4)))
                    mixed = mixed if mixed > 0 else 0.0
                    mixed = mixed if mixed < 255 else 255.0
                    images[rows[i], channel, y, x] = np.uint8(mixed) if inside else np.uint8(GREY)


@part
def _clipped(place: int, size: int) -> int:
    place = place if place > 0 else 0
    return place if place < size else size - 1


@compiled
def _translate(before: Bytes, images: Bytes, rows: Integers, values: Floats, along_x: bool, still: bool) -> None:
    """By whole pixels: the nearest one is always at the same distance."""
    _, channels, height, width = images.shape
    for i in range(len(rows)):
        move = -math.floor(values[i] * (width if along_x else height) + 0.5)
        for channel in range(channels):
            target = images[rows[i], channel]
            _place(before[i, channel], 0 if along_x else move, move if along_x else 0, still, np.uint8(GREY), target)


@compiled
def _rotate(before: Bytes, images: Bytes, rows: Integers, values: Floats) -> None:
    """About the centre, in fixed point with 16 bits."""
    _, channels, height, width = images.shape
    for i in range(len(rows)):
        source, image = before[i], images[rows[i]]
        angle = -math.radians(values[i])
        cos, sin = math.cos(angle), math.sin(angle)
        x0 = width / 2 - cos * width / 2 - sin * height / 2
        y0 = height / 2 + sin * width / 2 - cos * height / 2
        fixed_cos, fixed_sin = math.floor(cos * 65536 + 0.5), math.floor(sin * 65536 + 0.5)
        fixed_minus = math.floor(-sin * 65536 + 0.5)
        row_x = math.floor((x0 + cos * 0.5 + sin * 0.5) * 65536 + 0.5)
        row_y = math.floor((y0 - sin * 0.5 + cos * 0.5) * 65536 + 0.5)
        for y in range(height):
            for x in range(width):
                from_x = (row_x + y * fixed_sin + x * fixed_cos) >> 16
                from_y = (row_y + y * fixed_cos + x * fixed_minus) >> 16
                inside = 0 <= from_x < width and 0 <= from_y < height
                row, column = np.uint64(from_y if inside else 0), np.uint64(from_x if inside else 0)
                for channel in range(channels):
                    image[channel, y, x] = source[channel, row, column] if inside else np.uint8(GREY)


@compiled
def _color(images: Bytes, rows: Integers, values: Floats) -> None:
    _, channels, height, width = images.shape
    if channels < 3:
        return
    for i in range(len(rows)):
        factor = np.float32(values[i])
        for y in range(height):
            red, green, blue = images[rows[i], 0, y], images[rows[i], 1, y], images[rows[i], 2, y]
            for x in range(width):
                r, g, b = np.int32(red[x]), np.int32(green[x]), np.int32(blue[x])
                grey = (np.int32(19595) * r + np.int32(38470) * g + np.int32(7471) * b + np.int32(32768)) >> 16
                grey = np.int32(grey)
                red[x], green[x], blue[x] = _mixed(grey, r, factor), _mixed(grey, g, factor), _mixed(grey, b, factor)


@compiled
def _sharpness(before: Bytes, images: Bytes, rows: Integers, values: Floats, sums: NDArray[np.int32]) -> None:
    """Against the image smoothed by a 3x3 window; the outermost pixels stay."""
    _, channels, height, width = images.shape
    for i in range(len(rows)):
        factor = np.float32(values[i])
        for channel in range(channels):
            source = before[i, channel]
            for y in range(1, height - 1):
                above, line, below, target = source[y - 1], source[y], source[y + 1], images[rows[i], channel, y]
                for x in range(width):  # of three pixels above each other
                    sums[x] = np.int32(above[x]) + np.int32(line[x]) + np.int32(below[x])
                for x in range(1, width - 1):
                    here = np.uint64(x)  # a place that cannot be negative: so this loop is compiled to vector code
                    total = sums[np.uint64(x - 1)] + sums[here] + sums[np.uint64(x + 1)] + 4 * np.int32(line[here])
                    smooth = np.uint32(2 * total + 13) // np.uint32(26)
                    target[here] = _mixed(np.int32(smooth), np.int32(line[here]), factor)


@compiled
def _by_table(images: Bytes, rows: Integers, values: Floats, code: int, table: Bytes, counts: Integers) -> None:
    """All that depends on a pixel's own level alone: one table of 256 levels an image, or a channel."""
    _, channels, height, width = images.shape
    per_channel = code in (AUTOCONTRAST, EQUALIZE)
    for i in range(len(rows)):
        image, value, middle = images[rows[i]], values[i], 0
        if code == CONTRAST:
            total = 0
            for y in range(height):
                for x in range(width):
                    total += _luma(image, y, x)
            middle = int(total / (height * width) + 0.5)
        for channel in range(channels):
            if per_channel:
                for level in range(256):
                    counts[level] = 0
                for y in range(height):
                    line = image[channel, y]
                    for x in range(width):
                        counts[line[x]] += 1
            if per_channel or channel == 0:
                _fill_table(table, code, value, middle, counts)
            for y in range(height):
                for x in range(width):
                    image[channel, y, x] = table[image[channel, y, x]]


@part
def _fill_table(table: Bytes, code: int, value: float, middle: int, counts: Integers) -> None:
    if code == EQUALIZE:
        total, last = 0, 255
        for level in range(256):
            total += counts[level]
        while counts[last] == 0:
            last -= 1
        step = (total - counts[last]) // 255
        reached = step // 2
        for level in range(256):  # floats divide many times faster than integers, and exactly at this size
            share = np.float64(reached) / np.float64(step)
            table[level] = np.uint8(level if step == 0 else (share if share < 255 else 255.0))
            reached += counts[level]
    elif code == AUTOCONTRAST:
        low, high = 0, 255
        while counts[low] == 0:
            low += 1
        while counts[high] == 0:
            high -= 1
        scale = 255.0 / (high - low)
        for level in range(256):
            within = low <= level <= high and high > low  # no pixel has another level
            table[level] = np.uint8(level * scale + -low * scale if within else level)
    elif code in (CONTRAST, BRIGHTNESS):
        for level in range(256):
            table[level] = _mixed(np.int32(middle), np.int32(level), np.float32(value))
    elif code == POSTERIZE:
        kept = ~((1 << (8 - np.int64(value))) - 1)
        for level in range(256):
            table[level] = level & kept
    else:  # solarize, and invert from level 0 up
        first = value if code == SOLARIZE else 0.0
        for level in range(256):
            table[level] = level if level < first else 255 - level


@compiled
def _hue(images: Bytes, rows: Integers, values: Floats) -> None:
    """To hue, saturation and brightness in whole levels, turn the hue, and back."""
    _, channels, height, width = images.shape
    if channels < 3:
        return
    for i in range(len(rows)):
        image, turn = images[rows[i]], int(values[i] * 255)
        for y in range(height):
            for x in range(width):
                red, green, blue = int(image[0, y, x]), int(image[1, y, x]), int(image[2, y, x])
                high, low = max(red, green, blue), min(red, green, blue)
                if high == low:
                    continue
                spread = np.float32(high - low)
                saturation = int(spread / np.float32(high) * 255.0)
                r = np.float32(high - red) / spread
                g = np.float32(high - green) / spread
                b = np.float32(high - blue) / spread
                if red == high:
                    hue = float(b - g)
                elif green == high:
                    hue = 2.0 + float(r) - float(b)
                else:
                    hue = 4.0 + float(g) - float(r)
                turned = (int(np.float32((np.float32(hue) / 6.0 + 1.0) % 1.0) * 255.0) + turn) & 255
                place = np.float32(turned) * 6.0 / 255.0
                sector = math.floor(place)
                f, s, v = np.float32(place - sector), np.float32(saturation / 255.0), float(high)
                p = math.floor(v * (1.0 - s) + 0.5)
                q = math.floor(v * (1.0 - s * f) + 0.5)
                t = math.floor(v * (1.0 - s * (1.0 - f)) + 0.5)
                if saturation == 0:
                    red, green, blue = high, high, high
                elif sector % 6 == 0:
                    red, green, blue = high, t, p
                elif sector == 1:
                    red, green, blue = q, high, p
                elif sector == 2:
                    red, green, blue = p, high, t
                elif sector == 3:
                    red, green, blue = p, q, high
                elif sector == 4:
                    red, green, blue = t, p, high
                else:
                    red, green, blue = high, p, q
                image[0, y, x], image[1, y, x], image[2, y, x] = red, green, blue


@compiled
def _blur(images: Bytes, rows: Integers, values: Floats) -> None:
    """A Gaussian as three box filters with a fraction of a pixel at either end, along rows and then along columns."""
    _, channels, height, width = images.shape
    before, line = np.empty(max(height, width), np.uint8), np.empty(max(height, width), np.uint8)
    for i in range(len(rows)):
        image = images[rows[i]]
        variance = values[i] * values[i] / 3
        whole = math.floor((math.sqrt(12 * variance + 1) - 1) / 2)
        rest = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance)
        radius = whole + rest / (6 * (variance - (whole + 1) ** 2))
        weight = int((1 << 24) / (radius * 2 + 1))
        edge = ((1 << 24) - (whole * 2 + 1) * weight) // 2
        for along_x in (True, False):
            size, others = (width, height) if along_x else (height, width)
            for channel in range(channels):
                for other in range(others):
                    for x in range(size):
                        line[x] = image[channel, other, x] if along_x else image[channel, x, other]
                    for _ in range(3):
                        for x in range(size):
                            before[x] = line[x]
                        for x in range(size):
                            total = 0
                            for tap in range(x - whole, x + whole + 1):
                                total += int(before[min(max(tap, 0), size - 1)])
                            ends = int(before[max(x - whole - 1, 0)]) + int(before[min(x + whole + 1, size - 1)])
                            line[x] = (total * weight + ends * edge + (1 << 23)) >> 24
                    for x in range(size):
                        if along_x:
                            image[channel, other, x] = line[x]
                        else:
                            image[channel, x, other] = line[x]


@part
def _luma(image: Bytes, y: int, x: int) -> Any:
    if image.shape[0] < 3:
        return np.int64(image[0, y, x])
    return (19595 * np.int64(image[0, y, x]) + 38470 * image[1, y, x] + 7471 * image[2, y, x] + 32768) >> 16


@part
def _mixed(first: int, second: int, factor: np.float32) -> np.uint8:
    """From `first` (factor 0) over `second` (1) and beyond, cut off at black and white."""
    value = np.float32(first) + factor * (np.float32(second) - np.float32(first))
    value = value if value > 0 else np.float32(0)
    return np.uint8(np.int32(value if value < 255 else np.float32(255)))


@compiled
def _cover(images: Bytes, holes: Integers) -> None:
    for i in range(len(images)):
        left, top, right, bottom = holes[i]
        for channel in range(images.shape[1]):
            for y in range(top, bottom):
                for x in range(left, right):
                    images[i, channel, y, x] = GREY


Operate = Callable[[Bytes, Integers, Floats], None]


def _from_before(kernel: Callable[..., None], *settings: object) -> Operate:
    """Where a pixel comes from other pixels: the kernel reads a copy."""
    return lambda images, rows, values: kernel(images[rows], images, rows, values, *settings)


def _table(code: int) -> Operate:
    """The kernel is given its working memory."""
    return lambda images, rows, values: _by_table(
        images, rows, values, code, np.empty(256, np.uint8), np.empty(256, np.int64)
    )


def _flat_shear(along_x: bool) -> Operate:
    """The kernel reads planes of pixels in a row."""

    def work(images: Bytes, rows: Integers, values: Floats) -> None:
        _shear(images[rows].reshape(len(rows), images.shape[1], -1), images, rows, values, along_x)

    return work


def _smoothed(images: Bytes, rows: Integers, values: Floats) -> None:
    _sharpness(images[rows], images, rows, values, np.empty(images.shape[3], np.int32))


OPERATIONS: dict[int, Operate] = {
    Operation.SHEAR_X: _flat_shear(along_x=True),
    Operation.SHEAR_Y: _flat_shear(along_x=False),
    Operation.TRANSLATE_X: _from_before(_translate, True, False),
    Operation.TRANSLATE_Y: _from_before(_translate, False, False),
    Operation.ROTATE: _from_before(_rotate),
    Operation.COLOR: _color,
    Operation.SHARPNESS: _smoothed,
    Operation.HUE: _hue,
    Operation.BLUR: _blur,
    **{code: _table(code) for code in TABLES},
}


# --- the network's input ---


@compiled
def _normalise(images: Bytes, scale: NDArray[np.float32], shift: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Planes (n, c, H * W) to pixels (n, H * W * c). Three channels are written out: that is several times as fast."""
    n, channels, pixels = images.shape
    if channels == 3:
        by_red, by_green, by_blue = scale[0], scale[1], scale[2]
        less_red, less_green, less_blue = shift[0], shift[1], shift[2]
        for i in range(n):
            red, green, blue, target = images[i, 0], images[i, 1], images[i, 2], out[i]
            for pixel in range(pixels):
                place = np.uint64(3 * pixel)
                target[place] = np.float32(red[pixel]) * by_red - less_red
                target[place + np.uint64(1)] = np.float32(green[pixel]) * by_green - less_green
                target[place + np.uint64(2)] = np.float32(blue[pixel]) * by_blue - less_blue
        return
    for i in range(n):
        for channel in range(channels):
            by, less = scale[channel], shift[channel]
            for pixel in range(pixels):
                out[i, pixel * channels + channel] = np.float32(images[i, channel, pixel]) * by - less
