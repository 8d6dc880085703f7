"""The engine for GPUs: the functions of `compiled.py` as operations on whole batches of torch tensors, on any device.

Images that share an operation are taken together: a table of 256 levels an image and channel, or a map that says for
each pixel where it comes from. Images are uint8 (n, c, H, W).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from plremix.data.augment.operations import GREY, Operation

# --- what both engines offer ---


def shift(images: Tensor, rows: Tensor, offsets: Tensor, flip: Tensor) -> Tensor:
    """Images `rows` (n,), mirrored where `flip` and then moved by `offsets` (n, 2: down, right); black comes in."""
    height, width = images.shape[-2:]
    y = torch.arange(height, device=images.device) - offsets[:, :1]
    x = torch.arange(width, device=images.device) - offsets[:, 1:]
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None, :]
    x = torch.where(flip[:, None], width - 1 - x, x)
    return _taken(images[rows], y.clamp(0, height - 1)[:, :, None], x.clamp(0, width - 1)[:, None, :], inside, 0)


def resize(images: Tensor, rows: Tensor, boxes: Tensor, flip: Tensor, side: tuple[int, int]) -> Tensor:
    """The `boxes` (n, 4: left, top, right, bottom) of images `rows` at another size, mirrored where `flip`."""
    left, top, right, bottom = boxes.unbind(1)
    across = _weights(left, right, images.shape[3], side[1])
    across = torch.where(flip[:, None, None], across.flip(1), across)
    down = _weights(top, bottom, images.shape[2], side[0])
    lines = _rounded(images[rows].float() @ across.transpose(1, 2)[:, None])  # rows first, in whole levels, as Pillow
    return _rounded(down[:, None] @ lines).to(torch.uint8)


def operate(images: Tensor, codes: Tensor, values: Tensor) -> Tensor:
    """Run each image's program (n, L) on it, in place."""
    for step in range(codes.shape[1]):
        for code in sorted(set(codes[:, step].tolist())):
            if code == Operation.NONE:
                continue
            mine = (codes[:, step] == code).nonzero()[:, 0].to(images.device)
            images[mine] = OPERATIONS[code](images[mine], values[mine.cpu(), step].to(images.device))
    return images


def cover(images: Tensor, holes: Tensor) -> Tensor:
    """Grey rectangles `holes` (n, 4: left, top, right, bottom; whole pixels), in place."""
    height, width = images.shape[-2:]
    left, top, right, bottom = holes.to(images.device).view(-1, 4, 1).unbind(1)
    y, x = torch.arange(height, device=images.device), torch.arange(width, device=images.device)
    inside = ((y >= top) & (y < bottom))[:, :, None] & ((x >= left) & (x < right))[:, None, :]
    return images.masked_fill_(inside[:, None], GREY)


def normalise(images: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """`images * scale - shift` (c,) as floats with channels last in memory."""
    floats = images * scale.view(-1, 1, 1) - shift.view(-1, 1, 1)
    return floats.contiguous(memory_format=torch.channels_last)


# --- helpers ---


def _taken(images: Tensor, y: Tensor, x: Tensor, inside: Tensor, outside: int) -> Tensor:
    """Pixels from (y, x), each (n, H, W) or broadcast to it; `outside` where not `inside`."""
    n, channels, height, width = images.shape
    places = (y * width + x).expand(n, height, width).flatten(1)
    taken = images.flatten(2).gather(2, places[:, None].expand(-1, channels, -1)).view_as(images)
    return torch.where(inside[:, None], taken, outside)


def _weights(start: Tensor, stop: Tensor, size: int, count: int) -> Tensor:
    """Triangle weights (n, count, size) of `size` inputs for `count` outputs over [start, stop)."""
    scale = (stop - start)[:, None, None] / count
    support = scale.clamp(min=1)
    centre = start[:, None, None] + (torch.arange(count, device=start.device)[:, None] + 0.5) * scale
    inputs = torch.arange(size, device=start.device)
    weights = (1 - ((inputs - centre + 0.5) / support).abs()).clamp(min=0)
    return (weights / weights.sum(2, keepdim=True).clamp(min=1e-12)).float()


def _rounded(values: Tensor) -> Tensor:
    return (values + 0.5).floor().clamp(0, 255)


def _luma(images: Tensor) -> Tensor:
    """Greyscale (n, H, W), whole levels."""
    if images.shape[1] < 3:
        return images[:, 0].int()
    red, green, blue = images[:, :3].int().unbind(1)
    return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16


def _mixed(first: Tensor, second: Tensor, factor: Tensor) -> Tensor:
    """From `first` (factor 0) over `second` (1) and beyond, cut off at black and white."""
    by = factor.float().view(-1, *(1,) * (second.dim() - 1))
    step = by * (second.float() - first.float())
    return (first.float() + step).clamp(0, 255).to(torch.uint8)


def _by_table(images: Tensor, tables: Tensor) -> Tensor:
    """Each pixel's level looked up in its image's table (n, 256), or its image's and channel's (n, c, 256)."""
    n, channels = images.shape[:2]
    tables = tables.view(n, -1, 256).expand(n, channels, 256).to(torch.uint8)
    return tables.gather(2, images.flatten(2).long()).view_as(images)


def _levels(images: Tensor) -> Tensor:
    return torch.arange(256, device=images.device)


def _counts(images: Tensor) -> Tensor:
    """How many pixels of each level: (n, c, 256)."""
    flat = images.flatten(2).long()
    return torch.zeros(*flat.shape[:2], 256, dtype=torch.long, device=images.device).scatter_add_(
        2, flat, torch.ones_like(flat)
    )


# --- operations: images (m, c, H, W) and values (m,) in, images out ---


def _shear_x(images: Tensor, values: Tensor) -> Tensor:
    """Cubic interpolation along rows."""
    height, width = images.shape[-2:]
    y, x = (torch.arange(size, device=images.device, dtype=torch.float64) + 0.5 for size in (height, width))
    place = x + values[:, None, None] * y[:, None]  # (n, H, W)
    inside = (place >= 0) & (place < width)
    middle = (place - 0.5).floor()
    d = (place - 0.5 - middle).float()[:, None]
    rows = torch.arange(height, device=images.device)[:, None]
    v1, v2, v3, v4 = (
        _taken(images, rows, (middle.long() + tap).clamp(0, width - 1), inside, GREY).float() for tap in (-1, 0, 1, 2)
    )
    mixed = v2 + d * (v3 - v1 + d * (2 * (v1 - v2) + v3 - v4 + d * (v2 - v1 - v3 + v4)))
    return mixed.clamp(0, 255).to(torch.uint8)


def _shear_y(images: Tensor, values: Tensor) -> Tensor:
    return _shear_x(images.transpose(2, 3), values).transpose(2, 3)


def _translate_x(images: Tensor, values: Tensor) -> Tensor:
    height, width = images.shape[-2:]
    place = torch.arange(width, device=images.device) + values[:, None] * width + 0.5
    inside = ((place >= 0) & (place < width))[:, None, :].expand(-1, height, -1)
    rows = torch.arange(height, device=images.device)[:, None]
    return _taken(images, rows, place.long().clamp(0, width - 1)[:, None, :], inside, GREY)


def _translate_y(images: Tensor, values: Tensor) -> Tensor:
    return _translate_x(images.transpose(2, 3), values).transpose(2, 3)


def _rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """About the centre, in fixed point with 16 bits."""
    height, width = images.shape[-2:]
    angle = -torch.deg2rad(degrees)
    cos, sin = angle.cos(), angle.sin()
    x0 = width / 2 - cos * width / 2 - sin * height / 2
    y0 = height / 2 + sin * width / 2 - cos * height / 2
    fixed = [
        (value * 65536 + 0.5).floor().long()[:, None, None]
        for value in (cos, sin, -sin, x0 + cos * 0.5 + sin * 0.5, y0 - sin * 0.5 + cos * 0.5)
    ]
    y, x = torch.arange(height, device=images.device)[:, None], torch.arange(width, device=images.device)
    from_x, from_y = (fixed[3] + y * fixed[1] + x * fixed[0]) >> 16, (fixed[4] + y * fixed[0] + x * fixed[2]) >> 16
    inside = (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    return _taken(images, from_y.clamp(0, height - 1), from_x.clamp(0, width - 1), inside, GREY)


def _color(images: Tensor, factor: Tensor) -> Tensor:
    return images if images.shape[1] < 3 else _mixed(_luma(images)[:, None], images, factor)


def _contrast(images: Tensor, factor: Tensor) -> Tensor:
    middle = (_luma(images).double().mean((1, 2)) + 0.5).floor()
    return _by_table(images, _mixed(middle[:, None], _levels(images).expand(len(images), -1), factor))


def _brightness(images: Tensor, factor: Tensor) -> Tensor:
    levels = _levels(images).expand(len(images), -1)
    return _by_table(images, _mixed(torch.zeros_like(levels), levels, factor))


def _sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Against the image smoothed by a 3x3 window; the outermost pixels stay."""
    kernel = torch.ones(images.shape[1], 1, 3, 3, device=images.device)
    kernel[:, :, 1, 1] = 5
    total = F.conv2d(images.float(), kernel, groups=images.shape[1]).round().long()
    smooth = images.clone()
    smooth[:, :, 1:-1, 1:-1] = ((2 * total + 13) // 26).to(torch.uint8)
    return _mixed(smooth, images, factor)


def _posterize(images: Tensor, bits: Tensor) -> Tensor:
    return images & ~((1 << (8 - bits.long())) - 1).to(torch.uint8).view(-1, 1, 1, 1)


def _solarize(images: Tensor, threshold: Tensor) -> Tensor:
    return torch.where(images < threshold.view(-1, 1, 1, 1), images, 255 - images)


def _invert(images: Tensor, values: Tensor) -> Tensor:
    return 255 - images


def _autocontrast(images: Tensor, values: Tensor) -> Tensor:
    flat = images.flatten(2)
    low, high = flat.amin(2, keepdim=True).double(), flat.amax(2, keepdim=True).double()
    scale = torch.full_like(low, 255) / (high - low)  # a number / tensor would go through the reciprocal
    stretched = (_levels(images) * scale - low * scale).clamp(0, 255)
    return _by_table(images, torch.where(high > low, stretched, _levels(images).double()))


def _equalize(images: Tensor, values: Tensor) -> Tensor:
    counts = _counts(images)
    last = images.flatten(2).amax(2, keepdim=True).long()
    step = (counts.sum(2, keepdim=True) - counts.gather(2, last)) // 255
    reached = step // 2 + counts.cumsum(2) - counts
    table = (reached // step.clamp(min=1)).clamp(max=255)
    return _by_table(images, torch.where(step > 0, table, _levels(images)))


def _hue(images: Tensor, values: Tensor) -> Tensor:
    """To hue, saturation and brightness in whole levels, turn the hue, and back."""
    if images.shape[1] < 3:
        return images
    pixels = images.float()
    high, low = pixels.amax(1), pixels.amin(1)
    red, green, _ = pixels.unbind(1)
    spread = (high - low).clamp(min=1)
    r, g, b = ((high[:, None] - pixels) / spread[:, None]).unbind(1)
    beside = torch.where(green == high, 2.0 + r.double() - b, 4.0 + g.double() - r).float()
    hue = ((torch.where(red == high, b - g, beside).double() / 6.0 + 1.0) % 1.0).float()
    saturation = (((high - low) / high.clamp(min=1)).double() * 255.0).floor()
    turn = (values * 255).long().view(-1, 1, 1)
    turned = ((hue.double() * 255.0).long() + turn) & 255
    place = turned.double() * 6.0 / 255.0
    sector = place.floor()
    f, s = (place - sector).float(), (saturation.double() / 255.0).float()
    shares = (s.double(), (s * f).double(), s * (1.0 - f.double()))
    p, q, t = ((high * (1.0 - share) + 0.5).floor().float() for share in shares)
    wheel = ((high, t, p), (q, high, p), (p, high, t), (p, q, high), (t, p, high), (high, p, q))
    choices = torch.stack([torch.stack(colour, dim=1) for colour in wheel])
    turned_pixels = choices.gather(0, (sector.long() % 6)[None, :, None].expand(1, -1, 3, -1, -1))[0]
    grey = ((high == low) | (saturation == 0))[:, None]
    return torch.where(grey, high[:, None].expand_as(pixels), turned_pixels).to(torch.uint8)


def _blur(images: Tensor, radius: Tensor) -> Tensor:
    """A Gaussian as three box filters with a fraction of a pixel at either end, along rows and then along columns."""
    variance = radius.square() / 3
    whole = (((12 * variance + 1).sqrt() - 1) / 2).floor()
    rest = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance)
    box = whole + rest / (6 * (variance - (whole + 1) ** 2))
    for _ in range(3):
        images = _box(images, box)
    images = images.transpose(2, 3)
    for _ in range(3):
        images = _box(images, box)
    return images.transpose(2, 3)


def _box(images: Tensor, radius: Tensor) -> Tensor:
    """Along rows; every image has a radius of its own, so sums come from a running total."""
    size, whole = images.shape[3], radius.long().view(-1, 1, 1, 1)
    weight = ((1 << 24) / (radius * 2 + 1)).long().view(-1, 1, 1, 1)
    edge = ((1 << 24) - (whole * 2 + 1) * weight) // 2
    reach = int(whole.max()) + 1
    padded = F.pad(images.double(), (reach, reach, 0, 0), mode="replicate").long()
    running = F.pad(padded.cumsum(3), (1, 0))
    x = torch.arange(size, device=images.device) + reach

    def at(values: Tensor, places: Tensor) -> Tensor:
        return values.gather(3, places.expand(*images.shape[:3], -1))

    total = at(running, x + whole + 1) - at(running, x - whole)
    ends = at(padded, x - whole - 1) + at(padded, x + whole + 1)
    return ((total * weight + ends * edge + (1 << 23)) >> 24).to(torch.uint8)


OPERATIONS: dict[int, Callable[[Tensor, Tensor], Tensor]] = {
    Operation.SHEAR_X: _shear_x,
    Operation.SHEAR_Y: _shear_y,
    Operation.TRANSLATE_X: _translate_x,
    Operation.TRANSLATE_Y: _translate_y,
    Operation.ROTATE: _rotate,
    Operation.COLOR: _color,
    Operation.CONTRAST: _contrast,
    Operation.SHARPNESS: _sharpness,
    Operation.BRIGHTNESS: _brightness,
    Operation.POSTERIZE: _posterize,
    Operation.SOLARIZE: _solarize,
    Operation.AUTOCONTRAST: _autocontrast,
    Operation.EQUALIZE: _equalize,
    Operation.INVERT: _invert,
    Operation.HUE: _hue,
    Operation.BLUR: _blur,
}
