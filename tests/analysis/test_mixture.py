"""The mixture figure: snapshots of a run, the decision line, and the epochs to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import small_config

from plremix.analysis import mixture
from plremix.errors import InputError
from plremix.selection import fit_mixture, normalise_losses
from plremix.training import run as run_module
from plremix.training import snapshots, train
from plremix.training.folder import RunFolder


def losses(right: torch.Tensor) -> torch.Tensor:
    draws = torch.Generator().manual_seed(0)
    return torch.where(right[:, None], 0.2, 1.5) + 0.1 * torch.rand(len(right), 2, generator=draws)


@pytest.mark.parametrize("known", [True, False])
def test_a_snapshot_has_256_of_each_and_the_mixture_over_all(known: bool) -> None:
    right = torch.arange(1000) % 3 > 0
    is_clean = torch.arange(1000) % 2 > 0
    kept = snapshots.of_losses(losses(right), is_clean, right if known else None)
    assert len(kept["rows"]) == 512
    kind = (right if known else is_clean)[kept["rows"]]
    assert int(kind.sum()) == 256
    assert len(kept["is_right"]) == (512 if known else 0)
    assert np.allclose(kept["points"], normalise_losses(losses(right).numpy())[kept["rows"]])
    fitted = fit_mixture(losses(right).numpy())
    assert np.allclose(kept["means"], fitted.means)
    posterior = mixture.clean_posterior(kept["points"], kept)
    assert np.allclose(posterior, fitted.clean_probability[kept["rows"]], atol=1e-5), "the line is the split's own"


def test_some_epochs_are_kept_and_the_first_and_the_last() -> None:
    config = small_config(epochs=103, warmup_epochs=3, lr_epochs=(), kappa=(1,))
    kept = [epoch for epoch in range(103) if snapshots.is_kept(config, epoch)]
    assert kept == [*range(3, 103, 10), 102]


def test_epochs_are_chosen_or_told_what_there_is() -> None:
    assert mixture.chosen_epochs([11, 14, 17, 20, 40], ()) == [11, 17, 40]
    assert mixture.chosen_epochs([11], ()) == [11]
    assert mixture.chosen_epochs([11, 14], (14,)) == [14]
    with pytest.raises(InputError, match="nothing was kept of that; there is 11, 14"):
        mixture.chosen_epochs([11, 14], (12,))


def test_an_interrupted_run_keeps_the_same_snapshots(
    tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(data=str(tiny_file))
    train(config, tmp_path / "straight")
    real = run_module._Run._save

    def save(self: Any) -> None:
        if len(self.history) == 2:
            raise KeyboardInterrupt  # between the snapshot and the checkpoint
        real(self)

    with monkeypatch.context() as patch:
        patch.setattr(run_module._Run, "_save", save)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "broken")
    train(config, tmp_path / "broken", resume=True)
    files = [sorted((tmp_path / run / "snapshots").iterdir()) for run in ("straight", "broken")]
    assert [path.name for path in files[0]] == ["epoch002.npz", "epoch003.npz"]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
    (tmp_path / "broken" / "snapshots" / "epoch002.npz").write_bytes(b"junk")
    assert list(RunFolder(tmp_path / "broken").read_snapshots()) == [3]
