"""The one exception for input that a person can correct; the command line prints it in a line and exits with 2."""


class InputError(ValueError):
    """Bad input: the message says what was given, what was expected and what to do."""
