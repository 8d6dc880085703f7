"""The 1,797 hand-written digits (8x8, greyscale) that scikit-learn carries: 1,400 to train on, 397 to test on."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from plremix.data.dataset import LabelledImages, images_from_array, labels_from_array

TRAIN = 1400


def load() -> LabelledImages:
    """The same split every time: a fixed shuffle, since the file is ordered by writer."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    pixels = np.round(digits.images[order] * (255 / 16)).astype(np.uint8)  # ink from 0 to 16
    labels = digits.target[order]
    train = labels_from_array(labels[:TRAIN], "digits", TRAIN)
    return LabelledImages(
        images=images_from_array(pixels[:TRAIN], "digits"),
        given_labels=train,
        true_labels=train,
        test_images=images_from_array(pixels[TRAIN:], "digits"),
        test_labels=labels_from_array(labels[TRAIN:], "digits", len(labels) - TRAIN),
        classes=tuple(str(name) for name in digits.target_names),
        ids=tuple(str(index) for index in range(TRAIN)),
    )
