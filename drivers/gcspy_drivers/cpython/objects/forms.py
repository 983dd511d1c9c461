"""Which types keep something outside of their objects, and where in an object the address of it is.

A list's items, a dictionary's table, a buffer are not in the object; when they have more than 512 bytes they are not in a pool either. The
forms here are those of which CPython's own headers say where pointer and size are. A type has the form of the built-in type that it
comes from, which its flags say, or else the chain of its bases.

Knows types' flags and names, and no memory. Source: CPython 3.9 to 3.15 Include/object.h (Py_TPFLAGS_*_SUBCLASS), cpython/listobject.h,
cpython/dictobject.h, setobject.h, bytearrayobject.h, unicodeobject.h, Objects/odictobject.c, Modules/_collectionsmodule.c,
Modules/arraymodule.c.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from gcspy_drivers.cpython.layouts import ObjectLayout

__all__ = ["HOLDER_WORDS", "Form", "form_of", "pointers_of"]

HOLDER_WORDS: Final = 8
"""Words of an object behind its type in which pointers and sizes of all forms are."""

_HEAP_TYPE = 1 << 9


class Form(IntEnum):
    """What kind of container an object is."""

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


_OF_FLAGS: Final = (
    (1 << 25, Form.LIST),
    (1 << 28, Form.TEXT),
    (1 << 29, Form.DICT),
    (1 << 31, Form.TYPE),
)

# A class of a program has no module's name before its own, and is a heap type.
_OF_NAMES: Final = {
    "set": Form.SET,
    "frozenset": Form.SET,
    "bytearray": Form.BYTEARRAY,
    "frozendict": Form.DICT,
    "collections.OrderedDict": Form.ORDERED_DICT,
    "collections.deque": Form.DEQUE,
    "array.array": Form.ARRAY,
}

_POINTERS: Final = {
    Form.LIST: (24, 0),
    Form.DICT: (32, 0),
    Form.ORDERED_DICT: (32, 64),
    Form.SET: (40, 0),
    Form.BYTEARRAY: (32, 0),
    Form.DEQUE: (24, 0),
    Form.ARRAY: (24, 0),
}


def form_of(name: str, flags: int) -> Form | None:
    """Return the form that a type has by itself; None when that is for its bases to say.

    Args:
        name: Its name, with its module's if it is built in.
        flags: Its ``tp_flags``.
    """
    by_name = _OF_NAMES.get(name)
    if by_name is not None and ("." in name or not flags & _HEAP_TYPE):
        return by_name
    for flag, form in _OF_FLAGS:
        if flags & flag:
            if form is Form.TEXT and not flags & _HEAP_TYPE:
                return Form.NONE  # text of ``str`` itself is in the object
            # An ordered dictionary is a dictionary by its flags.
            return None if form is Form.DICT and flags & _HEAP_TYPE else form
    return None


def pointers_of(form: Form, layout: ObjectLayout) -> tuple[int, int]:
    """Return where in an object the pointers are, bytes from its reference count; 0: there is none."""
    if form is Form.TEXT:
        return layout.text_at, 0
    first, second = _POINTERS.get(form, (0, 0))
    if form is Form.DICT and not layout.compact_keys:
        return first, 40
    return first, second
