"""CIFAR-10 and CIFAR-100 in their official forms: the python or the binary version, unpacked or as the archive.

The given labels are the true ones, unless the people's labels of CIFAR-10N or CIFAR-100N are asked for.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plremix.data import cache
from plremix.data.archives import read_tar
from plremix.data.dataset import LabelledImages, labels_from_array
from plremix.data.download import ARCHIVES, fetch
from plremix.data.pickles import read_pickle
from plremix.errors import InputError

log = logging.getLogger("plremix")

SIDE = 32
PIXELS = 3 * SIDE * SIDE  # bytes an image: red, green, blue
LARGEST = 500_000_000  # bytes; all of CIFAR is 184,380,000

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR10_MAP = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}  # truck, bird, deer, cat, dog, as everybody does it
SUPERCLASSES = {
    "aquatic_mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "flowers": ("orchid", "poppy", "rose", "sunflower", "tulip"),
    "food_containers": ("bottle", "bowl", "can", "cup", "plate"),
    "fruit_and_vegetables": ("apple", "mushroom", "orange", "pear", "sweet_pepper"),
    "household_electrical_devices": ("clock", "keyboard", "lamp", "telephone", "television"),
    "household_furniture": ("bed", "chair", "couch", "table", "wardrobe"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large_carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large_man-made_outdoor_things": ("bridge", "castle", "house", "road", "skyscraper"),
    "large_natural_outdoor_scenes": ("cloud", "forest", "mountain", "plain", "sea"),
    "large_omnivores_and_herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium_mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect_invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small_mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
    "trees": ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"),
    "vehicles_1": ("bicycle", "bus", "motorcycle", "pickup_truck", "train"),
    "vehicles_2": ("lawn_mower", "rocket", "streetcar", "tank", "tractor"),
}
CIFAR100_CLASSES = tuple(sorted(name for names in SUPERCLASSES.values() for name in names))
CIFAR100_GROUPS = tuple(tuple(CIFAR100_CLASSES.index(name) for name in names) for names in SUPERCLASSES.values())

Bytes = NDArray[np.uint8]
Part = tuple[Bytes, Bytes]  # labels (n,), pixels (n, 3072)


@dataclass(frozen=True)
class Form:
    """One official form: its folder, its archive, its files, and how one of them is read."""

    folder: str
    archive: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    read: Callable[[bytes, str], Part]


@dataclass(frozen=True)
class Kind:
    """One of the two data sets."""

    classes: tuple[str, ...]
    statistics: tuple[tuple[float, ...], tuple[float, ...]]  # mean and deviation, published code
    forms: tuple[Form, ...]
    human_file: str
    human_keys: dict[str, str]


@dataclass(frozen=True)
class _Found:
    """A complete data set on the disk: a folder, or an archive."""

    form: Form
    place: Path

    def files(self, names: tuple[str, ...]) -> list[Path]:
        return [self.place / name for name in names] if self.place.is_dir() else [self.place]

    def contents(self, names: tuple[str, ...]) -> list[bytes]:
        if self.place.is_dir():
            return [_read_file(file) for file in self.files(names)]
        wanted = [str(PurePosixPath(self.form.folder, name)) for name in names]
        found = read_tar(self.place, wanted, LARGEST)
        if missing := [name for name in wanted if name not in found]:
            raise InputError(f"the archive {self.place} holds no {', '.join(missing)}")
        return [found[name] for name in wanted]


def load(
    name: str, data_dir: Path, cache_dir: Path | None = None, *, download: bool = False, human_labels: str = "none"
) -> LabelledImages:
    """`cifar10` or `cifar100`; the pixels are kept for the next start in `cache_dir`, or beside the data."""
    kind = KINDS[name]
    found, problem = _find(kind, data_dir)
    if download and (found is None or found.place.name == ARCHIVES[name].name):  # an archive is checked and unpacked
        fetch(ARCHIVES[name], data_dir)
        found, problem = _find(kind, data_dir)
    if found is None:
        raise InputError(f"{name} is missing or incomplete in {data_dir}: {problem}; --download fetches it")
    keep_in = cache_dir or data_dir
    images, labels = _part(found, found.form.train, keep_in, f"{name}-train", len(kind.classes))
    test_images, test_labels = _part(found, found.form.test, keep_in, f"{name}-test", len(kind.classes))
    data = LabelledImages(
        images=images,
        given_labels=labels,
        true_labels=labels,
        test_images=test_images,
        test_labels=test_labels,
        classes=kind.classes,
        ids=tuple(str(index) for index in range(len(images))),
        pixel_statistics=kind.statistics,
    )
    if human_labels == "none":
        return data
    return data.relabelled(_human_labels(kind, name, data_dir, human_labels, labels))


def _find(kind: Kind, data_dir: Path) -> tuple[_Found | None, str]:
    """The first form that is complete; else what is missing of it."""
    problems = []
    for form in kind.forms:
        folder = data_dir if data_dir.name == form.folder else data_dir / form.folder
        missing = [name for name in form.train + form.test if not (folder / name).is_file()]
        if not missing:
            return _Found(form, folder), ""
        if folder.is_dir():
            problems.append(f"{folder} lacks {', '.join(missing)}")
    for form in kind.forms:
        if (data_dir / form.archive).is_file():
            return _Found(form, data_dir / form.archive), ""
    if not problems:
        names = [name for form in kind.forms for name in (form.folder, form.archive)]
        problems.append(f"there is none of {', '.join(names)}")
    return None, "; ".join(problems)


def _part(found: _Found, names: tuple[str, ...], folder: Path, name: str, classes: int) -> tuple[Tensor, Tensor]:
    """Images (n, 3, 32, 32) and labels (n,) of some files: kept as all labels, then all pixels."""
    key = cache.fingerprint(found.place.parent, found.files(names), found.form.folder, names)
    flat = cache.kept(folder, name, key)
    if flat is None:
        labels, pixels = _read(found, names, classes)

        def fill(array: Bytes) -> None:
            array[: len(labels)] = labels
            array[len(labels) :] = pixels.reshape(-1)

        flat = cache.keep(folder, name, key, (labels.size + pixels.size,), fill)
    count = len(flat) // (1 + PIXELS)
    return flat[count:].view(count, 3, SIDE, SIDE), flat[:count].long()


def _read(found: _Found, names: tuple[str, ...], classes: int) -> Part:
    parts = [
        found.form.read(content, f"{found.place / name}")
        for name, content in zip(names, found.contents(names), strict=True)
    ]
    counts = [len(labels) for labels, _ in parts]
    for name, (labels, _) in zip(names, parts, strict=True):
        if len(labels) < max(counts) or not len(labels):
            raise InputError(
                f"{found.place / name} is cut off: it has {len(labels)} images, others {max(counts)}; unpack it again"
            )
        if labels.max() >= classes:
            raise InputError(f"{found.place / name} has a label {labels.max()}, but the classes are 0 to {classes - 1}")
    return np.concatenate([labels for labels, _ in parts]), np.concatenate([pixels for _, pixels in parts])


def _read_file(path: Path) -> bytes:
    try:
        if (size := path.stat().st_size) > LARGEST:
            raise InputError(f"{path} has {size:,} bytes, far more than the file of the data set")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _python(content: bytes, source: str, *, key: str) -> Part:
    """A pickled dictionary with `data` and the labels under `key`; Python 2 or 3 may have written it."""
    batch = read_pickle(content, source)
    if not isinstance(batch, dict):
        raise InputError(f"{source} holds no dictionary with data and {key}")
    entries = {name.decode("latin-1") if isinstance(name, bytes) else name: entry for name, entry in batch.items()}
    pixels, labels = entries.get("data"), entries.get(key)
    if not isinstance(pixels, np.ndarray) or not isinstance(labels, list):
        raise InputError(f"{source} must hold an array data and a list {key}; it has {_shown(entries)}")
    if pixels.shape != (len(labels), PIXELS):
        raise InputError(
            f"{source} must have {PIXELS} pixels for each of its {len(labels)} labels, got the shape {pixels.shape}"
        )
    if not all(type(label) is int and 0 <= label < 256 for label in labels):
        raise InputError(f"{source} has labels that are no class numbers")
    return np.array(labels, np.uint8), pixels


def _binary(content: bytes, source: str, *, labels: int) -> Part:
    """Rows of `labels` label bytes, of which the last (the fine one) counts, and the pixels."""
    row = labels + PIXELS
    if not content or len(content) % row:
        raise InputError(f"{source} is cut off: {len(content):,} bytes are not whole rows of {row}; unpack it again")
    rows = np.frombuffer(content, np.uint8).reshape(-1, row)
    return rows[:, labels - 1], rows[:, labels:]


def _shown(entries: dict[Any, Any]) -> str:
    return ", ".join(str(name) for name in list(entries)[:10]) or "nothing"


def _human_labels(kind: Kind, name: str, data_dir: Path, which: str, truth: Tensor) -> Tensor:
    """The labels that people gave, in the order of the data set."""
    if which not in kind.human_keys:
        raise InputError(f"--human-labels {which} is not of {name}, which has {', '.join(kind.human_keys)}")
    places = [data_dir / kind.human_file, data_dir / "CIFAR-N" / kind.human_file]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise InputError(
            f"--human-labels needs {places[0]} or {places[1]}, from the CIFAR-N data set; neither is there"
        )
    arrays = _load_arrays(path)
    given, clean = (_column(arrays, key, path, len(truth)) for key in (kind.human_keys[which], "clean_label"))
    if not torch.equal(clean, truth):
        differing = int((clean != truth).sum())
        raise InputError(
            f"{path} is of other images: its clean_label differs from the labels of {name} at {differing} places"
        )
    if int(given.max()) >= len(kind.classes):
        raise InputError(f"{path} has a label {int(given.max())}, but the classes are 0 to {len(kind.classes) - 1}")
    return given


def _column(arrays: dict[str, Any], key: str, path: Path, count: int) -> Tensor:
    if key not in arrays:
        raise InputError(f"{path} has no {key}; it has {_shown(arrays)}")
    return labels_from_array(np.asarray(arrays[key]), f"{key} of {path}", count)


def _load_arrays(path: Path) -> dict[str, Any]:
    """A dictionary of arrays from torch.save; nothing but arrays of numbers is taken, and nothing else is called."""
    reconstruct: Any = np.empty(0).__reduce__()[0]
    modules = ("numpy.core.multiarray", "numpy._core.multiarray")  # before and since numpy 2
    allowed: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
        *((reconstruct, f"{module}._reconstruct") for module in modules),
        *(np.ndarray, np.dtype, type(np.dtype(np.int64)), type(np.dtype(np.int32)), type(np.dtype(np.uint8))),
    ]
    try:
        with torch.serialization.safe_globals(allowed):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError, TypeError, OSError) as error:
        raise InputError(f"{path} holds something other than arrays of whole numbers, or is damaged") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} holds no dictionary of labels")
    return content


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
KINDS = {
    "cifar10": Kind(
        classes=CIFAR10_CLASSES,
        statistics=((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        forms=(
            Form(
                "cifar-10-batches-py",
                "cifar-10-python.tar.gz",
                _BATCHES,
                ("test_batch",),
                partial(_python, key="labels"),
            ),
            Form(
                "cifar-10-batches-bin",
                "cifar-10-binary.tar.gz",
                tuple(f"{name}.bin" for name in _BATCHES),
                ("test_batch.bin",),
                partial(_binary, labels=1),
            ),
        ),
        human_file="CIFAR-10_human.pt",
        human_keys={
            "aggre": "aggre_label",
            "random1": "random_label1",
            "random2": "random_label2",
            "random3": "random_label3",
            "worst": "worse_label",
        },
    ),
    "cifar100": Kind(
        classes=CIFAR100_CLASSES,
        statistics=((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
        forms=(
            Form(
                "cifar-100-python",
                "cifar-100-python.tar.gz",
                ("train",),
                ("test",),
                partial(_python, key="fine_labels"),
            ),
            Form(
                "cifar-100-binary", "cifar-100-binary.tar.gz", ("train.bin",), ("test.bin",), partial(_binary, labels=2)
            ),
        ),
        human_file="CIFAR-100_human.pt",
        human_keys={"noisy": "noisy_label"},
    ),
}
