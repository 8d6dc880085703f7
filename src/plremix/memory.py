"""The allocator, for a program of ours: keep freed memory for the next step instead of giving it back each time.

A training step on a CPU frees and takes the same hundreds of megabytes again and again; handing them back to the system
in between costs a quarter to a third of the time (fresh pages are cleared first) and tears the heap to pieces.
"""

from __future__ import annotations

import ctypes
import os

TRIM, MMAP = -1, -3  # mallopt's numbers for M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
LARGE, LARGEST_BLOCK = 2**31 - 1, 2**25  # bytes; the second is as much as glibc takes


def keep_freed_memory() -> None:
    """Tell glibc, here and for processes started from here; elsewhere nothing happens."""
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(LARGE))
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(LARGEST_BLOCK))
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return
    mallopt(TRIM, LARGE)
    mallopt(MMAP, LARGEST_BLOCK)
