"""The scikit-learn face keeps scikit-learn's contract, and finds wrong labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers import blobs
from sklearn.base import clone
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
    for wrong in ({"epochs": 2.0}, {"batch_size": "8"}, {"kappa": -1}, {"lambda_u": "x"}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
            PLReMixClassifier(**{"epochs": 1, **wrong}).fit(images, given)
    with pytest.raises(Exception, match="not fitted"):
        model.predict(images)
