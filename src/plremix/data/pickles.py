"""Python pickles read as data: numbers, text, lists, dictionaries and arrays of bytes, and nothing is ever called.

The standard library only takes the stream apart; the few operations that plain data needs are carried out here, and a
stream with any other is refused. An array is built by us from its shape and bytes, after looking at both.
"""

from __future__ import annotations

import pickletools
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plremix.errors import InputError

ARRAY_MAKERS = {
    "numpy.core.multiarray _reconstruct",
    "numpy._core.multiarray _reconstruct",
    "numpy.core.numeric _frombuffer",
    "numpy._core.numeric _frombuffer",
}
NAMES = ARRAY_MAKERS | {"numpy ndarray", "numpy dtype", "_codecs encode"}  # all that a stream may name
BYTE = ("u1", "|u1", "uint8")
MOST = 5_000_000  # operations; the largest official file, CIFAR-100's, has about 350,000


class _Name(str):
    """A function or class that the stream names; it stays a name."""


class _Array:
    """An array that is not made yet."""

    pixels: NDArray[np.uint8] | None = None


class _Dtype(str):
    """The kind of an array's elements, by its short name."""


class _Mark:
    pass


def read_pickle(content: bytes, source: object) -> Any:
    """The object of a pickle; `source` is what an error calls it."""
    try:
        return _Reader().read(content)
    except InputError as error:
        raise InputError(f"{source} is refused: {error}") from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{source} is damaged or cut off ({error}); unpack it again") from error


class _Reader:
    """A stack and a memo, as the format defines them."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.room = 0  # bytes that may still be made

    def read(self, content: bytes) -> Any:
        self.room = 2 * len(content)  # plain data is made of each of its bytes once
        argument: Any
        for count, (opcode, argument, _) in enumerate(pickletools.genops(content)):
            name = opcode.name
            if count > MOST:
                raise InputError(f"it has more than {MOST:,} operations")
            if name == "STOP":
                (result,) = self.stack
                return _made(result)
            if name in _VALUES:
                self.stack.append(argument)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name])
            elif name in _PUTS:
                self.memo[argument] = self.stack[-1]
            elif name in _GETS:
                self.stack.append(self.memo[argument])
            elif name in _ACTIONS:
                _ACTIONS[name](self)
            elif name == "GLOBAL":
                self.stack.append(_allowed(argument))
            elif name not in ("PROTO", "FRAME"):
                raise InputError(f"it holds a Python object (operation {name}), which is never loaded")
        raise ValueError("it has no end")

    def _since_mark(self) -> list[Any]:
        for place in reversed(range(len(self.stack))):
            if isinstance(self.stack[place], _Mark):
                items = self.stack[place + 1 :]
                del self.stack[place:]
                return items
        raise ValueError("a mark is missing")

    def _last(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise ValueError("the stack is empty")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items

    def _memoize(self) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("something is appended to what is no list")
        target.extend(items)

    def _set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise ValueError("something is set in what is no dictionary")
        target.update(zip(items[::2], items[1::2], strict=True))

    def _stack_global(self) -> None:
        module, name = self._last(2)
        self.stack.append(_allowed(f"{module} {name}"))

    def _reduce(self) -> None:
        name, arguments = self._last(2)
        if not isinstance(name, _Name) or not isinstance(arguments, tuple):
            raise ValueError("something is called that has no name")
        made = _stand_in(name, arguments)
        self._spend(made.pixels if isinstance(made, _Array) else made)
        self.stack.append(made)

    def _spend(self, made: Any) -> None:
        """A small file must not fill the memory by copying one text again and again."""
        self.room -= made.nbytes if isinstance(made, np.ndarray) else len(made) if isinstance(made, bytes) else 0
        if self.room < 0:
            raise InputError("it makes far more data than it holds")

    def _build(self) -> None:
        target, state = self._last(2)
        if isinstance(target, _Array):
            _, shape, dtype, fortran, content = state
            target.pixels = _pixels(content, dtype, shape, "F" if fortran else "C")
            self._spend(target.pixels)
        elif not isinstance(target, _Dtype):
            raise ValueError("a state is set on what has none")
        self.stack.append(target)


_VALUES = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINSTRING", "SHORT_BINSTRING", "BINUNICODE", "SHORT_BINUNICODE"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_PUTS, _GETS = ("BINPUT", "LONG_BINPUT"), ("BINGET", "LONG_BINGET")
_ACTIONS: dict[str, Any] = {
    "MARK": lambda reader: reader.stack.append(_Mark()),
    "EMPTY_LIST": lambda reader: reader.stack.append([]),
    "EMPTY_DICT": lambda reader: reader.stack.append({}),
    "TUPLE": lambda reader: reader.stack.append(tuple(reader._since_mark())),
    "TUPLE1": lambda reader: reader.stack.append(tuple(reader._last(1))),
    "TUPLE2": lambda reader: reader.stack.append(tuple(reader._last(2))),
    "TUPLE3": lambda reader: reader.stack.append(tuple(reader._last(3))),
    "APPEND": lambda reader: reader._append(reader._last(1)),
    "APPENDS": lambda reader: reader._append(reader._since_mark()),
    "SETITEM": lambda reader: reader._set_items(reader._last(2)),
    "SETITEMS": lambda reader: reader._set_items(reader._since_mark()),
    "MEMOIZE": _Reader._memoize,
    "STACK_GLOBAL": _Reader._stack_global,
    "REDUCE": _Reader._reduce,
    "BUILD": _Reader._build,
}


def _allowed(name: str) -> _Name:
    if name not in NAMES:
        raise InputError(f"it names {name.replace(' ', '.')}, which is never loaded")
    return _Name(name)


def _stand_in(name: _Name, arguments: tuple[Any, ...]) -> Any:
    """What the call would have meant, without making it."""
    if name == "_codecs encode":  # how Python 3 writes bytes for Python 2
        text, coding = arguments
        if coding != "latin1" or type(text) is not str:
            raise ValueError(f"bytes as {coding!r}")
        return text.encode("latin-1")
    if name == "numpy dtype":
        if type(arguments[0]) is not str:
            raise ValueError("a dtype without a name")
        return _Dtype(arguments[0])
    if name not in ARRAY_MAKERS:
        raise InputError(f"it calls {name.replace(' ', '.')}, which is never done")
    array = _Array()
    if name.endswith("_frombuffer"):
        content, dtype, shape, order = arguments
        array.pixels = _pixels(content, dtype, shape, order)
    return array


def _pixels(content: Any, dtype: Any, shape: Any, order: Any) -> NDArray[np.uint8]:
    content = content.encode("latin-1") if type(content) is str else content  # Python 2's strings are bytes
    if dtype not in BYTE or type(content) not in (bytes, bytearray) or order not in ("C", "F"):
        raise ValueError(f"an array of {dtype!r}, where bytes are expected")
    if type(shape) is not tuple or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"an array of the shape {shape!r}")
    if prod(shape) != len(content):
        raise ValueError(f"an array of the shape {shape} with {len(content)} bytes")
    return np.frombuffer(content, np.uint8).reshape(shape, order=order)


def _made(value: Any) -> Any:
    """Arrays in place of their stand-ins: the value itself, and the entries of a dictionary."""
    if isinstance(value, dict):
        return {key: _made(entry) if isinstance(entry, _Array) else entry for key, entry in value.items()}
    if isinstance(value, _Array) and value.pixels is None:
        raise ValueError("an array without content")
    return value.pixels if isinstance(value, _Array) else value
