"""Miniature copies of published data sets in their real layouts, for the tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image


def picture(label: int, index: int, classes: int, size: tuple[int, int] = (48, 40)) -> Image.Image:
    """A bright bar on noise, whose height is the class: learned in a few steps, whatever is cropped and mirrored."""
    draws = np.random.default_rng(1000 * label + index)
    width, height = size
    pixels = draws.integers(0, 60, (height, width, 3))
    top = label * height // classes
    pixels[top : top + max(2, height // classes)] += 150
    return Image.fromarray(pixels.astype(np.uint8))


def shown(images: torch.Tensor, classes: int) -> list[int]:
    """The classes of pictures (n, c, H, W), as a person would read them off."""
    return F.adaptive_avg_pool1d(images.float().mean((1, 3)), classes).argmax(1).tolist()


def save(path: Path, label: int, index: int, classes: int, size: tuple[int, int] = (48, 40)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(label, index, classes, size).save(path, quality=95)


def cifar10(root: Path, *, a_batch: int = 10) -> None:
    """The binary version: five batches and a test batch."""
    _cifar(
        root / "cifar-10-batches-bin", [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"], 10, a_batch
    )


def cifar100(root: Path, *, a_batch: int = 200) -> None:
    """The binary version: rows begin with the coarse and the fine label."""
    _cifar(root / "cifar-100-binary", ["train.bin", "test.bin"], 100, a_batch)


def _cifar(folder: Path, names: list[str], classes: int, a_batch: int) -> None:
    folder.mkdir(parents=True)
    for number, name in enumerate(names):
        with open(folder / name, "wb") as file:
            for index in range(a_batch):
                label = index % classes
                pixels = np.asarray(picture(label, 1000 * number + index, classes, (32, 32)))
                file.write(bytes([0, label] if classes == 100 else [label]) + pixels.transpose(2, 0, 1).tobytes())


def lines(path: Path, *rows: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows))


def tiny_imagenet(
    root: Path, *, classes: int = 3, train: int = 4, test: int = 2, sorted_val: str | None = None
) -> None:
    """`tiny-imagenet-200`; `sorted_val`: "" or "images" is what lies between val/<wnid> and the pictures."""
    wnids = [f"n0{7 - k}000000" for k in range(classes)]  # not in sorted order
    lines(root / "wnids.txt", *wnids)
    lines(root / "words.txt", *(f"{wnid}\tthing {wnid[2]}, some {wnid[2]}" for wnid in [*wnids, "n09999999"]))
    annotations = []
    for label, wnid in enumerate(sorted(wnids)):
        names = [f"{wnid}_{index}.JPEG" for index in range(train)]
        for index, name in enumerate(names):
            save(root / "train" / wnid / "images" / name, label, index, classes, (64, 64))
        lines(root / "train" / wnid / f"{wnid}_boxes.txt", *(f"{name}\t0\t0\t62\t62" for name in names))
        for index in range(test):
            name = f"val_{len(annotations)}.JPEG"
            folder = root / "val" / "images" if sorted_val is None else root / "val" / wnid / sorted_val
            save(folder / name, label, 100 + index, classes, (64, 64))
            annotations.append(f"{name}\t{wnid}\t0\t32\t44\t62")
    if sorted_val is None:
        lines(root / "val" / "val_annotations.txt", *annotations)


def clothing1m(root: Path, *, train: int = 4, clean: int = 1, lists: str = "") -> None:
    """The first class has twice as many training pictures as the others; a tenth of the labels is wrong."""
    noisy, known = [], []
    keys: dict[str, list[str]] = {"val": [], "test": []}
    for label in range(14):
        for index in range(train * (2 if label == 0 else 1)):
            name = f"images/{index % 10}/{label:02}/{label},{index}.jpg"
            save(root / name, label, index, 14)
            noisy.append(f"{name} {(label + 1) % 14 if len(noisy) % 10 == 9 else label}")
        for part, names in keys.items():
            for index in range(clean):
                name = f"images/{index % 10}/{label:02}/{part}{label},{index}.jpg"
                save(root / name, label, (500 if part == "val" else 600) + index, 14)
                names.append(name)
                known.append(f"{name} {label}")
    folder = root / lists
    lines(folder / "noisy_train_key_list.txt", *(line.split()[0] for line in noisy))
    lines(folder / "noisy_label_kv.txt", *noisy)
    lines(folder / "clean_label_kv.txt", *known)
    for part, names in keys.items():
        lines(folder / f"clean_{part}_key_list.txt", *names)


def webvision(root: Path, *, classes: int = 4, train: int = 6, test: int = 2, imagenet: Path | None = None) -> None:
    """Google's and Flickr's pictures, WebVision's validation set, and ILSVRC12's below `imagenet`."""
    wnids = [f"n0{9 - k}440764" for k in range(classes)]  # not in sorted order
    lines(root / "info" / "synsets.txt", *(f"{wnid} crane, Kind {wnid[2]}" for wnid in wnids))
    lists: dict[str, list[str]] = {"google": [], "flickr": []}
    validation = []
    for label, wnid in enumerate(wnids):
        for engine, names in lists.items():
            for index in range(train):
                name = f"{engine}/q{label:04}/{engine}{index}.jpg"
                save(root / name, label, index + (200 if engine == "flickr" else 0), classes)
                names.append(f"{name} {label}")
        for index in range(test):
            name = f"val{len(validation):06}.jpg"
            save(root / "val_images_256" / name, label, 300 + index, classes)
            validation.append(f"{name} {label}")
            if imagenet is not None:
                save(imagenet / "imagenet/val" / wnid / f"ILSVRC2012_val_{index:08}.JPEG", label, 400 + index, classes)
    for engine, names in lists.items():
        lines(root / "info" / f"train_filelist_{engine}.txt", *names)
    lines(root / "info" / "val_filelist.txt", *validation)
