"""Types that keep content outside of their objects, and the place of its address in an object.

A list's items, a dictionary's table and a buffer are not in the object; if they have more than 512 bytes they are not in a pool either. The
kinds here are those whose pointer and size are declared in CPython's or numpy's headers. A type has the kind of the built-in type from which it
is derived, according to its flags or else to the chain of its bases.

Knows types' flags and names; knows no memory. Source: CPython 3.9 to 3.15 Include/object.h (Py_TPFLAGS_*_SUBCLASS), cpython/listobject.h,
cpython/dictobject.h, setobject.h, bytearrayobject.h, unicodeobject.h, Objects/odictobject.c, Modules/_collectionsmodule.c,
Modules/arraymodule.c; numpy 1.20 to 2.4 numpy/core/include/numpy/ndarraytypes.h (PyArrayObject_fields, _PyArray_Descr).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from gcspy_drivers.cpython.layouts import ObjectLayout

__all__ = ["HOLDER_WORDS", "ContainerKind", "container_kind_of", "pointers_of"]

HOLDER_WORDS: Final = 8
"""Words of an object behind its type in which pointers and sizes of all kinds are."""

_HEAP_TYPE = 1 << 9


class ContainerKind(IntEnum):
    """Kind of container of an object."""

    NONE = 0
    LIST = 1
    DICT = 2
    ORDERED_DICT = 3
    SET = 4
    BYTEARRAY = 5
    DEQUE = 6
    ARRAY = 7
    TEXT = 8
    """An instance of a class that is derived from ``str``: its text is not in it."""
    TYPE = 9
    NDARRAY = 10


_OF_FLAGS: Final = (
    (1 << 25, ContainerKind.LIST),
    (1 << 28, ContainerKind.TEXT),
    (1 << 29, ContainerKind.DICT),
    (1 << 31, ContainerKind.TYPE),
)

# A class of a program has no module's name before its own, and is a heap type.
_OF_NAMES: Final = {
    "set": ContainerKind.SET,
    "frozenset": ContainerKind.SET,
    "bytearray": ContainerKind.BYTEARRAY,
    "frozendict": ContainerKind.DICT,
    "collections.OrderedDict": ContainerKind.ORDERED_DICT,
    "collections.deque": ContainerKind.DEQUE,
    "array.array": ContainerKind.ARRAY,
    "numpy.ndarray": ContainerKind.NDARRAY,
}

_POINTERS: Final = {
    ContainerKind.LIST: (24, 0),
    ContainerKind.DICT: (32, 0),
    ContainerKind.ORDERED_DICT: (32, 64),
    ContainerKind.SET: (40, 0),
    ContainerKind.BYTEARRAY: (32, 0),
    ContainerKind.DEQUE: (24, 0),
    ContainerKind.ARRAY: (24, 0),
    ContainerKind.NDARRAY: (16, 0),
}


def container_kind_of(name: str, flags: int) -> ContainerKind | None:
    """Return the kind that a type says of itself; None when that is for its bases to say.

    Args:
        name: Its name, with its module's if it is built in.
        flags: Its ``tp_flags``.
    """
    by_name = _OF_NAMES.get(name)
    if by_name is not None and ("." in name or not flags & _HEAP_TYPE):
        return by_name
    for flag, kind in _OF_FLAGS:
        if flags & flag:
            if kind is ContainerKind.TEXT and not flags & _HEAP_TYPE:
                return ContainerKind.NONE  # text of ``str`` itself is in the object
            # An ordered dictionary is a dictionary by its flags.
            return None if kind is ContainerKind.DICT and flags & _HEAP_TYPE else kind
    return None


def pointers_of(kind: ContainerKind, layout: ObjectLayout) -> tuple[int, int]:
    """Return where in an object the pointers are, bytes from its reference count; 0: there is none."""
    if kind is ContainerKind.TEXT:
        return layout.text_at, 0
    first, second = _POINTERS.get(kind, (0, 0))
    if kind is ContainerKind.DICT and not layout.compact_keys:
        return first, 40
    return first, second
