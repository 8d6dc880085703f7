"""The one exception for input that a person can correct; the command line prints it in a line and exits with 2."""

from collections.abc import Iterable

NAMED = 5  # what a message names, of many


class InputError(ValueError):
    """Bad input: the message says what was given, what was expected and what to do."""


def some_of(names: Iterable[str], most: int = NAMED, joint: str = ", ") -> str:
    """A few of many names, for a message."""
    every = list(names)
    return joint.join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "") or "none"
