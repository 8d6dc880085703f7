"""The training samples as the first network sees them, in two dimensions: by given and by predicted label.

The projector's embeddings where the run has a projector, else the backbone's features.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from plremix.analysis.drawing import COLOURS, MARKERS, Drawn
from plremix.data.dataset import LabelledImages
from plremix.methods.base import Method
from plremix.methods.learner import CHUNK

MOST = 2000  # samples; t-SNE of more takes minutes, and a scatter of more is a blot
NAMED = 14  # classes up to which each has a colour and marker of its own
WORDS = 14  # letters of a class name
BRIGHT = tuple(colour for colour in COLOURS if colour != "#000000")  # black crosses mark the wrong labels
SHAPES = tuple(marker for marker in MARKERS if marker not in "XP")

Floats = NDArray[np.floating]


@torch.no_grad()
def look(method: Method, rows: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """What the first network makes of some training samples: vectors (n, d) and predicted classes (n,)."""
    network = method.networks[0].eval()
    images = method.loader.images[torch.from_numpy(rows)]
    vectors, predicted = [], []
    for pixels in method.loader.plain(images, range(len(rows)), CHUNK):
        features = network.backbone(pixels)
        vectors.append(features if network.projector is None else network.projector(features))
        predicted.append(network.classifier(features).argmax(1))
    unit = torch.nn.functional.normalize(torch.cat(vectors), dim=1)
    return unit.cpu().numpy(), torch.cat(predicted).cpu().numpy()


def flatten(vectors: Floats, how: Literal["tsne", "pca"]) -> Floats:
    """(n, d) to (n, 2), the same each time."""
    vectors = np.nan_to_num(vectors).astype(np.float64)
    if np.ptp(vectors, axis=0).max(initial=0.0) == 0:  # all the same: there is nothing to spread
        return np.zeros((len(vectors), 2))
    components = min(2, *vectors.shape)
    flat = PCA(components, svd_solver="full").fit_transform(vectors)
    flat = np.pad(flat, ((0, 0), (0, 2 - components)))
    if how == "pca" or len(vectors) < 10:
        return np.asarray(flat)
    start = flat / max(flat[:, 0].std(), 1e-12) * 1e-4
    return np.asarray(
        TSNE(perplexity=min(30, (len(vectors) - 1) / 3), init=start, random_state=0).fit_transform(vectors)
    )


def some_rows(count: int) -> NDArray[np.int64]:
    """At most 2,000 samples, spread evenly over the set."""
    return np.linspace(0, count - 1, min(count, MOST)).astype(np.int64)


def draw(
    data: LabelledImages,
    rows: NDArray[np.int64],
    flat: Floats,
    predicted: NDArray[np.int64],
    wrong: NDArray[np.bool_],
    known: bool,
    how: str,
) -> Drawn:
    """`wrong` (n,): labels that are wrong, or where that is not `known`, labels that the network disagrees with."""
    given = data.given_labels.numpy()[rows]
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, labels, title in ((left, given, "by given label"), (right, predicted, "by predicted label")):
        _scatter(axes, flat, labels, data.classes)
        axes.set(title=title, xticks=[], yticks=[])
    marked = "label wrong" if known else "network disagrees with the label"
    left.scatter(flat[wrong, 0], flat[wrong, 1], s=7, marker="x", color="black", linewidths=0.6, label=marked)
    handles, words = left.get_legend_handles_labels()
    figure.legend(handles, words, loc="outside lower center", ncols=min(6, len(words)), fontsize=8, markerscale=1.5)
    header = ["id", "x", "y", "given_label", "predicted_label", "label_wrong" if known else "network_disagrees"]
    return Drawn(
        "embeddings",
        "The samples as the first network sees them",
        f"{len(rows):,} training samples in two dimensions ({'t-SNE' if how == 'tsne' else 'PCA'}); crosses: {marked}.",
        figure,
        header,
        [
            [data.ids[row], *point, data.classes[one], data.classes[other], bool(bad)]
            for row, point, one, other, bad in zip(rows, flat.tolist(), given, predicted, wrong, strict=True)
        ],
    )


def _scatter(axes: Axes, flat: Floats, labels: NDArray[np.int64], classes: tuple[str, ...]) -> None:
    if len(classes) > NAMED:
        x, y = flat.T
        axes.scatter(x, y, s=20, c=labels, cmap="viridis", linewidths=0, alpha=0.8, label="samples, colour by class")
        return
    for k, name in enumerate(classes):
        member = labels == k
        colour, marker = BRIGHT[k % len(BRIGHT)], SHAPES[(k + k // len(BRIGHT)) % len(SHAPES)]
        face = colour if k < len(BRIGHT) else "none"  # colours that come again are hollow
        word = name if len(name) <= WORDS else name[: WORDS - 1] + "…"
        x, y = flat[member].T
        axes.scatter(x, y, s=20, facecolors=face, edgecolors=colour, marker=marker, linewidths=0.9, label=word)
