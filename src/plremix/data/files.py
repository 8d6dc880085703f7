"""Images that stay in their files: opened as a person would see them, cut to views by threads, and checked once.

Decoding and resizing release Python's lock, so threads are all the workers that are needed; they live as long as the
data set does. A file is decoded once a step, whatever the number of its views.
"""

from __future__ import annotations

import logging
import os
import stat
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from plremix.data.augment.cuts import Cut, Parameters, Side, Whole
from plremix.data.augment.operations import GREY
from plremix.errors import InputError, some_of

log = logging.getLogger("plremix")

Skipped = tuple[int, str]  # position in the list of files, reason
ROOM = 2  # how much larger than needed a large photograph is decoded


class ImageFiles:
    """Files as a data set of one size: `files[rows]` are pixels, `files.cut(...)` are views in the making."""

    def __init__(
        self, paths: Sequence[Path | str], side: int, *, resize: int | None = None, channels: int = 3, workers: int = 0
    ) -> None:
        self.paths, self.side, self.channels = list(paths), side, channels
        self.zoom = side / (resize or side)  # what is left of the short side, as 224 of 256
        self.largest = ROOM * (resize or side)
        self.pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, thread_name_prefix="images")
        self.complained: set[Path | str] = set()

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self), self.channels, self.side, self.side

    def subset(self, rows: Sequence[int]) -> ImageFiles:
        """Some of the files, with the same workers."""
        other = object.__new__(ImageFiles)
        other.__dict__.update(self.__dict__, paths=[self.paths[row] for row in rows])
        return other

    def __getitem__(self, rows: int | slice | Tensor) -> Tensor:
        """uint8 (n, c, H, W), or (c, H, W) for a single row: the middle of each image."""
        if isinstance(rows, int):
            return self[torch.tensor([rows])][0]
        chosen = torch.arange(len(self))[rows]
        whole = Whole()
        (pixels,) = self.cut(chosen, [(whole, whole.draw(len(chosen), (self.side, self.side), torch.Generator()))])()
        return pixels

    def cut(self, rows: Tensor, wanted: Sequence[tuple[Cut, Parameters]]) -> Callable[[], list[Tensor]]:
        """Start the work on `rows`; the call that is returned waits for it. One uint8 (n, c, H, W) a cut."""
        futures = [
            self.pool.submit(self._views, self.paths[row], [(cut, _row(drawn, place)) for cut, drawn in wanted])
            for place, row in enumerate(rows.tolist())
        ]
        return lambda: self._collect(futures, [cut.size((self.side, self.side)) for cut, _ in wanted])

    def _collect(self, futures: list[Future[list[NDArray[np.uint8]]]], sizes: list[Side]) -> list[Tensor]:
        done = [future.result() for future in futures]
        return [
            torch.from_numpy(np.stack([views[place] for views in done]))
            if done
            else torch.empty(0, self.channels, *size, dtype=torch.uint8)
            for place, size in enumerate(sizes)
        ]

    def _views(self, path: Path | str, wanted: list[tuple[Cut, Parameters]]) -> list[NDArray[np.uint8]]:
        try:
            image = open_image(path, self.channels, self.largest)
        except Exception as error:  # readable when it was checked, and no longer
            if path not in self.complained:
                self.complained.add(path)
                log.warning("%s cannot be read any more (%s); a grey image stands in for it", path, _reason(error))
            image = Image.new("RGB" if self.channels == 3 else "L", (self.side, self.side), (GREY,) * self.channels)
        sides, views = torch.tensor([[image.height, image.width]]), []
        for cut, drawn in wanted:
            height, width = cut.size((self.side, self.side))
            box = cut.boxes(drawn, sides, self.zoom)[0].tolist()
            pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR, box=_inside(box, image.size)))
            pixels = pixels[:, ::-1] if bool(drawn["flip"][0]) else pixels
            views.append(np.ascontiguousarray(pixels.reshape(height, width, self.channels).transpose(2, 0, 1)))
        return views


Images = Tensor | ImageFiles  # uint8 (N, c, H, W) either way


def open_image(path: Path | str, channels: int = 3, largest: int | None = None) -> Image.Image:
    """The file's first picture, upright, on white where it is transparent, in 8 bits: RGB, or L for one channel.

    With `largest`, a much larger JPEG is decoded at a fraction of its size, but not below `largest` on its short side.
    """
    if not stat.S_ISREG(Path(path).stat().st_mode):  # a pipe would be waited for, for ever
        raise OSError("not a regular file, but a folder, a pipe, a socket or a device")
    mode = "RGB" if channels == 3 else "L"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(path) as image:
            if largest is not None:
                short = min(image.size)
                factor = max(1.0, short / largest)
                image.draft(mode, (int(image.width / factor), int(image.height / factor)))
            image.load()
            upright: Image.Image = ImageOps.exif_transpose(image) or image
            return _in_8_bits(upright, mode)


def _in_8_bits(image: Image.Image, mode: str) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        values = np.asarray(image, dtype=np.float64)
        values = np.nan_to_num(values)
        highest = values.max(initial=0)
        if image.mode != "F" or highest > 255:
            values = values / 257 if highest > 255 else values  # 65535 is white
        elif highest <= 1:
            values = values * 255
        image = Image.fromarray(np.clip(np.round(values), 0, 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        layers = image.convert("RGBA")
        page = Image.new("RGBA", layers.size, "white")
        image = Image.alpha_composite(page, layers)
    return image.convert(mode)


def check_files(paths: Sequence[Path], names: Sequence[str], workers: int = 0) -> tuple[list[int], list[Skipped]]:
    """Decode every file once: positions of those that can be read, and why the others cannot."""
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        problems = list(pool.map(_problem, paths))
    skipped = [(place, problem) for place, problem in enumerate(problems) if problem is not None]
    if len(skipped) == len(paths):
        reason = f": {names[skipped[0][0]]}: {skipped[0][1]}" if skipped else ""
        raise InputError(f"none of the {len(paths)} image files can be read{reason}")
    return [place for place, problem in enumerate(problems) if problem is None], skipped


def warn_of_left_out(left_out: Sequence[tuple[str, str]], where: str) -> None:
    """One warning for all names and reasons of what was left out."""
    if left_out:
        shown = some_of((f"{name}: {reason}" for name, reason in left_out), joint="; ")
        log.warning("left out%s: %d (%s)", where, len(left_out), shown)


def _problem(path: Path) -> str | None:
    try:
        open_image(path)
    except Exception as error:  # a decoder meets anything in a damaged file
        return _reason(error)
    return None


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file does not exist"
    if isinstance(error, UnidentifiedImageError):
        return "not an image, or empty"
    return " ".join(str(error).split()) or type(error).__name__


def at_size(images: Tensor, side: Sequence[int]) -> Tensor:
    """uint8 images (n, c, H, W) brought to height and width `side`."""
    if tuple(images.shape[-2:]) == tuple(side):
        return images
    resized = torch.nn.functional.interpolate(images.float(), size=tuple(side), mode="bilinear", antialias=True)
    return resized.round().clamp(0, 255).to(torch.uint8)


def _row(drawn: Parameters, place: int) -> Parameters:
    return {name: values[place : place + 1] for name, values in drawn.items()}


def _inside(box: list[float], size: tuple[int, int]) -> tuple[float, float, float, float]:
    left, top, right, bottom = box
    return max(left, 0.0), max(top, 0.0), min(right, float(size[0])), min(bottom, float(size[1]))
