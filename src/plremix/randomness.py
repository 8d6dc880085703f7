"""Randomness is a function, not a state: every draw names its seed, its purpose and where in the run it stands.

So a resumed run draws what the uninterrupted one would have drawn, and no global seed is read or set.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch


def generator(seed: int, purpose: str, *where: int) -> torch.Generator:
    """A generator of its own for one purpose, for example `generator(seed, "views", network, epoch, step)`."""
    name = f"{seed}/{purpose}/" + "/".join(map(str, where))
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


def beta(concentration: float, generator: torch.Generator) -> float:
    """A draw from Beta(concentration, concentration); torch's own takes no generator."""
    seed = int(torch.randint(2**62, (), generator=generator))
    return float(np.random.default_rng(seed).beta(concentration, concentration))
