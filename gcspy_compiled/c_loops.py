"""`CLibrary`: loops in C, called with the same arrays as their twins that numba compiles.

A loop has one signature, numba's. An array becomes a ``struct i64s``, ``i32s``, ``i8s``, ``u16s``
or ``u8s`` of ``arrays.h`` by value, a tuple of arrays a pointer to the structs one behind the other, a number an
``int64_t``. An array of another type, or one that is not contiguous or not writable, is refused, as
numba does. A call gives up the interpreter's lock.

Knows signatures; does not know what a loop computes.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from gcspy_compiled.libraries import VARIABLE, Library, find_library, load_library

__all__ = ["CLibrary", "CLoop"]

K = TypeVar("K", bound=tuple[Any, ...])

_DTYPES: Final = {
    "int64": "int64",
    "int32": "int32",
    "int8": "int8",
    "uint16": "uint16",
    "uint8": "uint8",
    "boolean": "bool",
}
_TOKEN = re.compile(r"[a-zA-Z]\w*(?:\[[:,1]+\])?|\d+|[()]")


class _Array(ctypes.Structure):
    """``struct i64s`` and the like."""

    _fields_ = (
        ("at", ctypes.c_void_p),
        ("length", ctypes.c_int64),
        ("width", ctypes.c_int64),
    )


class _ArrayType(NamedTuple):
    """An array's type in a signature."""

    dtype: np.dtype[Any]
    dimensions: int


_Type = _ArrayType | tuple["_ArrayType", ...] | None
"""Type of an argument: an array, a tuple of arrays, or a number."""


class CLoop:
    """A loop in C.

    Args:
        function: The function of a library.
        signature: Its signature for numba, such as ``int64(int64[::1], int64)``.
    """

    def __init__(self, function: Any, signature: str) -> None:
        result, _, arguments = signature.partition("(")
        self._types = _types(_TOKEN.findall(arguments.rpartition(")")[0]))
        function.restype = {"int64": ctypes.c_int64, "void": None}[result]
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        """Call it.

        Raises:
            TypeError: There are too many or too few arguments, or one of another type.
        """
        if len(arguments) != len(self._types):
            raise TypeError(f"{len(arguments)} arguments instead of {len(self._types)}")
        return self._function(*map(_passed, arguments, self._types))


class CLibrary:
    """A library of loops, loaded when one of them is wanted.

    Args:
        name: Beginning of its file name.
        folder: Folder of its sources and of the built file.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder

    @cached_property
    def _library(self) -> Library | None:
        path = find_library(self.name, self.folder)
        return None if path is None else load_library(path)

    @property
    def available(self) -> bool:
        """Whether the library was built and libraries in C are not disabled (``GCSPY_C_CODE=no``)."""
        return os.environ.get(VARIABLE) != "no" and self._library is not None

    def loop(self, name: str, signature: str) -> CLoop | None:
        """Return a loop; None: the library is not `available`."""
        if not self.available or self._library is None:
            return None
        # A function object of its own: its type of result is set.
        return CLoop(self._library.released[name], signature)

    def loops(self, kind: Callable[..., K], signatures: Mapping[str, str]) -> K | None:
        """Return several loops as a named tuple; None as for `loop`."""
        found = {name: self.loop(name, signature) for name, signature in signatures.items()}
        return None if None in found.values() else kind(**found)


def _types(tokens: list[str]) -> list[_Type]:
    """Return the types of arguments, in order."""
    found: list[_Type] = []
    while tokens:
        token = tokens.pop(0)
        if token in ("Tuple", "UniTuple"):
            depth = 1 if token == "UniTuple" else 2
            inner = tokens[depth : tokens.index(")")]
            del tokens[: tokens.index(")") + depth]
            count = int(inner.pop()) if token == "UniTuple" else 1
            found.append(tuple(_array_type(each) for each in inner) * count)
        elif token == "int64":
            found.append(None)
        else:
            found.append(_array_type(token))
    return found


def _array_type(token: str) -> _ArrayType:
    name, _, places = token.partition("[")
    return _ArrayType(np.dtype(_DTYPES[name]), places.count(",") + 1)


def _passed(argument: Any, wanted: _Type) -> Any:
    if wanted is None:
        return ctypes.c_int64(argument)
    if isinstance(wanted, _ArrayType):
        return _array(argument, wanted)
    if len(argument) != len(wanted):
        raise TypeError(f"a tuple of {len(argument)} arrays instead of {len(wanted)}")
    several = (_Array * len(wanted))(*map(_array, argument, wanted))
    return ctypes.byref(several)


def _array(argument: np.ndarray[Any, Any], wanted: _ArrayType) -> _Array:
    if (
        argument.dtype != wanted.dtype
        or argument.ndim != wanted.dimensions
        or not argument.flags.carray
    ):
        raise TypeError(
            f"an array of {argument.dtype} with {argument.ndim} dimensions, {argument.strides} bytes apart, instead of "
            f"a contiguous and writable one of {wanted.dtype} with {wanted.dimensions}"
        )
    width = argument.shape[1] if argument.ndim > 1 else 1
    return _Array(argument.ctypes.data, len(argument), width)
