"""The scikit-learn face keeps scikit-learn's contract, and finds wrong labels."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import blobs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from plremix import PLReMixClassifier
from plremix.errors import InputError


def data(count: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    made = blobs(count, wrong=0.2)
    names = np.array(["left", "=middle", "right"])
    return made["x_train"].squeeze(3), names[made["y_train"]], names[made["y_true"]]


def test_it_fits_predicts_and_judges_labels_of_any_kind(tmp_path: Path) -> None:
    images, given, truth = data(90)
    model = PLReMixClassifier(epochs=12, random_state=0, device="cpu", out=tmp_path / "run")
    assert model.fit(images, given) is model
    assert model.classes_.tolist() == ["=middle", "left", "right"]
    probabilities = model.predict_proba(images)
    assert probabilities.shape == (90, 3)
    assert np.allclose(probabilities.sum(1), 1)
    assert (model.predict(images) == model.classes_[probabilities.argmax(1)]).all()
    assert model.score(images, truth) > 0.8
    assert model.label_score_.shape == model.is_label_issue_.shape == model.predicted_label_.shape == (90,)
    wrong = given != truth
    assert model.label_score_[wrong].mean() < model.label_score_[~wrong].mean()
    assert set(model.predicted_label_) <= set(model.classes_)
    assert (tmp_path / "run" / "report.html").exists()


def test_parameters_clone_and_the_same_seed_is_the_same_model() -> None:
    images, given, _ = data()
    first = PLReMixClassifier(epochs=2, random_state=3, device="cpu", kappa=2)
    second = clone(first)
    assert second.get_params() == first.get_params()
    assert second.set_params(kappa=1).kappa == 1
    second.set_params(kappa=2)
    assert np.array_equal(
        first.fit(images, given).predict_proba(images), second.fit(images, given).predict_proba(images)
    )


def test_it_works_in_a_pipeline_and_in_cross_validation() -> None:
    images, given, _ = data()
    model = PLReMixClassifier(epochs=1, random_state=0, device="cpu")
    pipeline = Pipeline([("darker", FunctionTransformer(lambda X: (X // 2).astype(np.uint8))), ("model", model)])
    assert pipeline.fit(images, given).predict(images).shape == (60,)
    assert cross_val_score(model, images, given, cv=2).shape == (2,)


def test_a_second_fit_keeps_the_folder_of_the_first(tmp_path: Path) -> None:
    images, given, _ = data()
    model = PLReMixClassifier(epochs=1, random_state=0, device="cpu", out=tmp_path / "run")
    (tmp_path / "run").mkdir()
    assert model.fit(images, given).out_ == tmp_path / "run"
    assert model.fit(images, given).out_ == tmp_path / "run-2"
    assert (tmp_path / "run" / "report.html").exists()


def test_bad_input_is_told() -> None:
    images, given, _ = data()
    model = PLReMixClassifier(epochs=1)
    with pytest.raises(InputError, match="uint8"):
        model.fit(images.astype(float), given)
    with pytest.raises(InputError, match="one label for each of the 60 images"):
        model.fit(images, given[:5])
    with pytest.raises(InputError, match="one class only"):
        model.fit(images, np.zeros(60))
    with pytest.raises(InputError, match="missing or infinite"):
        model.fit(images, np.where(np.arange(60) < 5, np.nan, np.arange(60) % 3))
    for wrong in (
        *({"epochs": 2.0}, {"batch_size": "8"}, {"kappa": -1}, {"lambda_u": "x"}),
        *({"epochs": 0}, {"batch_size": 1}, {"lambda_u": -1.0}, {"random_state": -1}),
        *({"time_budget": value} for value in (-1, 0, float("nan"), float("inf"), [1], True, "600", "0s", "soon")),
    ):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} must (be|look like)"):
            PLReMixClassifier(**{"epochs": 1, **wrong}).fit(images, given)
    for call in (model.predict, model.predict_proba, PLReMixClassifier().predict):
        with pytest.raises(NotFittedError):
            call(images)


MISSING = {
    "None": np.array(["a", None] * 30, dtype=object),
    "None in a list": ["a", None] * 30,
    "NaN beside text": np.array(["a", float("nan")] * 30, dtype=object),
    "NaN beside text in a list": ["a", float("nan")] * 30,
    "NaN beside numbers": [0, 1, float("nan")] * 20,
}


@pytest.mark.parametrize("kind", list(MISSING))
def test_missing_labels_are_told(kind: str) -> None:
    with pytest.raises(InputError, match=r"y has no label for \d+ images \(the first: \d\): leave them out"):
        PLReMixClassifier(epochs=1).fit(data()[0], MISSING[kind])


@pytest.mark.parametrize("labels", [["1", 1] * 30, np.array(["a", 2.5] * 30, dtype=object)])
def test_labels_of_several_kinds_are_told(labels: object) -> None:
    with pytest.raises(InputError, match="one kind"):
        PLReMixClassifier(epochs=1).fit(data()[0], labels)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [list, np.array, partial(np.array, dtype=object)])
def test_bytes_that_are_no_plain_text_are_told(kind: Any) -> None:
    with pytest.raises(InputError, match="y has bytes that are no plain text"):
        PLReMixClassifier(epochs=1).fit(np.zeros((4, 8, 8), np.uint8), kind([b"\xe9a", b"b"] * 2))


def test_numbers_of_numpy_are_numbers_and_whole_pixels_are_pixels() -> None:
    images, given, _ = data()
    plain = PLReMixClassifier(epochs=1, batch_size=8, random_state=0, device="cpu").fit(images, given)
    numpys = PLReMixClassifier(
        epochs=np.int64(1),  # type: ignore[arg-type]
        batch_size=np.int32(8),  # type: ignore[arg-type]
        random_state=np.int64(0),  # type: ignore[arg-type]
        device="cpu",
    ).fit(images.astype(np.int64), given.tolist())
    assert np.array_equal(plain.predict_proba(images), numpys.predict_proba(images.astype(np.uint16)))
    drawn = [
        PLReMixClassifier(epochs=1, random_state=np.random.RandomState(seed), device="cpu").fit(images, given)
        for seed in (3, 3)
    ]
    assert np.array_equal(*(model.predict_proba(images) for model in drawn))


def test_what_is_predicted_has_the_channels_and_gets_the_size_of_what_was_learned() -> None:
    images, given, _ = data()
    model = PLReMixClassifier(epochs=1, random_state=0, device="cpu").fit(images, given)
    with pytest.raises(InputError, match="X has images of 3 channels; it was fitted on those of 1"):
        model.predict(np.repeat(images[..., None], 3, axis=3))
    larger = images.repeat(2, axis=1).repeat(2, axis=2)  # the same picture at twice the size
    assert np.allclose(model.predict_proba(larger), model.predict_proba(images), atol=0.05)
    with pytest.raises(
        InputError, match=r"got float64 from 0\.0 to .*; pixels from 0 to 1 become that by \(X \* 255\)"
    ):
        model.predict(images / 255 * (images > 60))
    with pytest.raises(InputError, match="got int64 from 256 to"):
        model.predict(images.astype(np.int64) + 256)


def test_epochs_are_the_most_that_a_time_budget_may_take(tmp_path: Path) -> None:
    images, given, _ = data()
    for budget in (3600, "1h"):
        model = PLReMixClassifier(epochs=1, time_budget=budget, random_state=0, device="cpu", out=tmp_path / "run")
        assert json.loads((model.fit(images, given).out_ / "config.json").read_text())["epochs"] == 1


def test_an_out_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    images = blobs()
    with pytest.raises(InputError, match="cannot be written"):
        PLReMixClassifier(epochs=1, out=tmp_path / "file").fit(images["x_train"], images["y_train"])


def test_scikit_learn_is_told_what_images_are() -> None:
    tags = PLReMixClassifier().__sklearn_tags__().input_tags
    assert (tags.two_d_array, tags.three_d_array) == (False, True)
