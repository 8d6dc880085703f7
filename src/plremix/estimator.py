"""The scikit-learn face: `PLReMixClassifier().fit(images, noisy_labels)`, then predict, and look at `label_score_`."""

from __future__ import annotations

import csv
import math
import numbers
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from plremix import recipes
from plremix.config import CoDivideConfig, parse_time
from plremix.data.dataset import images_from_array
from plremix.data.files import at_size
from plremix.data.sheets import plain_cell
from plremix.errors import InputError
from plremix.networks import Ensemble, load
from plremix.training import budget, has_gpu, load_data, train
from plremix.training.folder import free_folder
from plremix.training.progress import Lines, Silent

CHUNK = 256  # images at a time


class PLReMixClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that does not learn wrong labels, and says which ones are wrong.

    Images are uint8 (N, H, W) or (N, H, W, channels); those to predict are resized to the height and width that it was
    fitted on. What is None or "auto" is chosen from the data. `kappa` is where PLR's number of likely classes starts;
    it falls to 1 as in the paper. `time_budget` sets the number of epochs by a time: a number is seconds, text has its
    unit ("90s", "30m", "2h"); `epochs` is then the most. `out` keeps the run folder (report, lists, model), as `out_`;
    where there is one already, the next gets a number. Without it the run is thrown away after `fit`.

    After `fit`: `classes_`; and for each training image `label_score_` (0 to 1, low = likely wrong), `is_label_issue_`
    and `predicted_label_`.
    """

    def __init__(
        self,
        *,
        epochs: int | None = None,
        batch_size: int | None = None,
        network: str = "auto",
        kappa: int = 3,
        lambda_u: float | Literal["auto"] = "auto",
        time_budget: float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        out: str | Path | None = None,
        verbose: int = 0,
    ) -> None:
        self.epochs = epochs
        self.batch_size = batch_size
        self.network = network
        self.kappa = kappa
        self.lambda_u = lambda_u
        self.time_budget = time_budget
        self.random_state = random_state
        self.device = device
        self.out = out
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> PLReMixClassifier:
        """Train on images and their given labels, of any kind that numpy can sort."""
        images, labels = _pixels(X), _labels(y)
        images_from_array(images, "X")
        if labels.ndim != 1 or len(labels) != len(images):
            raise InputError(
                f"y must have one label for each of the {len(images)} images, got the shape {labels.shape}"
            )
        try:
            self.classes_, class_numbers = np.unique(labels, return_inverse=True)
        except TypeError as error:
            raise InputError(f"y has labels that cannot be sorted ({error}): make them one kind") from error
        if len(self.classes_) < 2:
            raise InputError(f"y has one class only ({self.classes_[0]!r}): at least two are needed")
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "run" if self.out is None else free_folder(Path(self.out))
            file = Path(scratch) / "data.npz"
            np.savez(file, x_train=images, y_train=class_numbers, classes=self.classes_.astype(str))
            try:
                config = self._config(file, images.shape)
                train(config, folder, progress=Lines if self.verbose else Silent)
            except InputError as error:
                raise InputError(_in_our_words(str(error), list(self.get_params()))) from error
            self.model_ = load(folder)
            self._read_labels(folder / "labels.csv")
        self.out_ = None if self.out is None else folder
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities (n, C) in the order of `classes_`."""
        check_is_fitted(self, "model_")
        model: Ensemble = self.model_
        images = images_from_array(_pixels(X), "X")
        if images.shape[1] != len(model.mean):
            raise InputError(f"X has images of {images.shape[1]} channels; it was fitted on those of {len(model.mean)}")
        rows = [model(at_size(images[start : start + CHUNK], model.side)) for start in range(0, len(images), CHUNK)]
        probabilities: NDArray[np.float64] = torch.cat(rows).double().numpy()
        probabilities /= probabilities.sum(1, keepdims=True)
        return probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each image."""
        check_is_fitted(self, "model_")
        found: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(1)]
        return found

    def _config(self, file: Path, shape: tuple[int, ...]) -> CoDivideConfig:
        _check_numbers(epochs=self.epochs, batch_size=self.batch_size, kappa=self.kappa)
        if self.lambda_u != "auto" and not isinstance(self.lambda_u, numbers.Real):
            raise InputError(f"lambda_u must be a number or 'auto', got {self.lambda_u!r}")
        epochs = None if self.epochs is None else int(self.epochs)  # numpy's numbers are none for JSON
        channels = shape[3] if len(shape) == 4 else 1
        gpu = self.device != "cpu" and has_gpu()
        settings = recipes.for_own_images(shape[0], len(self.classes_), min(shape[1:3]), channels, gpu)
        config = recipes.own(file, settings, epochs=epochs)
        assert isinstance(config, CoDivideConfig)
        kappa = tuple(range(self.kappa, 0, -1)) if self.kappa else (0,)
        falls = config.kappa_epochs[-(len(kappa) - 1) :] if len(kappa) > 1 else config.kappa_epochs
        while len(kappa) > 1 and len(falls) < len(kappa) - 1:
            falls = (falls[0], *falls)
        changes: dict[str, Any] = {
            "kappa": kappa,
            "kappa_epochs": falls,
            "lambda_u": self.lambda_u if self.lambda_u == "auto" else float(self.lambda_u),
            "device": self.device,
        }
        if self.batch_size is not None:
            changes["batch_size"] = int(self.batch_size)
        if self.network != "auto":
            changes["network"] = self.network
        seed = self.random_state
        whole = isinstance(seed, numbers.Integral)
        changes["seed"] = int(seed) if whole else int(check_random_state(seed).randint(2**31 - 1))  # type: ignore[arg-type]
        config = replace(config, **changes)
        if self.time_budget is None:
            return config
        seconds = _seconds(self.time_budget)
        expected = budget.expected_seconds(config, load_data(config))
        fitted = recipes.scaled(config, budget.epochs_within(config, expected, seconds, most=epochs))
        assert isinstance(fitted, CoDivideConfig)
        return fitted

    def _read_labels(self, file: Path) -> None:
        with open(file, newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        number = {name: index for index, name in enumerate(self.classes_.astype(str))}
        self.label_score_ = np.array([float(row["label_score"]) for row in rows])
        self.is_label_issue_ = np.array([row["is_label_issue"] == "True" for row in rows])
        self.predicted_label_ = self.classes_[[number[plain_cell(row["predicted_label"])] for row in rows]]


def _pixels(X: ArrayLike) -> NDArray[Any]:
    """Whole numbers from 0 to 255 are pixels, whatever their type; of others only their owner knows the scale."""
    images = np.asarray(X)
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind in "iu" and images.size and images.min() >= 0 and images.max() <= 255:
        return images.astype(np.uint8)
    raise InputError(
        f"X must hold uint8 pixels (0 to 255), got {_range(images)}; pixels from 0 to 1 become that by "
        "(X * 255).round().astype(np.uint8)"
    )


def _range(values: NDArray[Any]) -> str:
    known = values.size and values.dtype.kind in "iuf"
    return f"{values.dtype} from {values.min()} to {values.max()}" if known else str(values.dtype)


def _labels(y: ArrayLike) -> NDArray[Any]:
    """Labels of one kind, with none missing."""
    labels = np.asarray(y)
    # numpy makes text of all that stands in a list beside text, of what is missing too
    given = labels if hasattr(y, "dtype") else np.asarray(y, dtype=object)
    if given.dtype.kind == "O" and given.ndim == 1:
        if missing := [place for place, label in enumerate(given) if _is_missing(label)]:
            raise InputError(f"y has no label for {len(missing)} images (the first: {missing[0]}): leave them out")
        if len({isinstance(label, str) for label in given}) > 1:
            raise InputError("y has text and other labels: make them one kind, for example by astype(str)")
    elif labels.dtype.kind in "fcmM" and not np.isfinite(labels).all():
        raise InputError("y has missing or infinite values (NaN, inf): leave those images out")
    if any(isinstance(label, bytes) and not label.isascii() for label in labels.ravel().tolist()):
        raise InputError("y has bytes that are no plain text: decode them first, as by np.char.decode(y, 'latin-1')")
    return labels


def _is_missing(label: Any) -> bool:
    """None, and what does not equal itself: NaN, and the NA and NaT of pandas."""
    same = label == label
    return label is None or not (isinstance(same, bool | np.bool_) and bool(same))


def _seconds(time_budget: object) -> float:
    if isinstance(time_budget, str):
        return parse_time(time_budget, "time_budget")
    number = isinstance(time_budget, numbers.Real) and not isinstance(time_budget, bool)
    if not number or not 0 < float(time_budget) < math.inf:  # type: ignore[arg-type]
        raise InputError(
            f"time_budget must be seconds above 0, or text such as '90s', '30m', '2h', got {time_budget!r}"
        )
    return float(time_budget)  # type: ignore[arg-type]


def _in_our_words(message: str, parameters: list[str]) -> str:
    """Flags of the command line by the names of the parameters that they are here."""
    names = {f"--{name.replace('_', '-')}": name for name in parameters} | {"--seed": "random_state"}
    return re.sub(r"--[a-z][a-z-]*", lambda flag: names.get(flag[0], flag[0]), message)


def _check_numbers(**given: object) -> None:
    for name, value in given.items():
        if value is not None and (not isinstance(value, numbers.Integral) or value < 0):
            raise InputError(f"{name} must be a whole number from 0 up, got {value!r}")
