"""`TypeForms`: for each type, the places of references in its objects, and the memory that they keep outside.

Most types need no entry: every word of an object that leads to an object is a reference. The forms
are for types that keep references elsewhere, or have words that lead to objects without holding
them.

Knows types by name and flags; knows no memory. Source: CPython 3.9 to 3.15 Include/object.h, Include/cpython/*.h,
Include/internal/pycore_frame.h; numpy/core/include/numpy/ndarraytypes.h.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.cpython.layouts import GraphLayout, VersionLayout
from gcspy_drivers.cpython.objects.types import TypeTable

__all__ = ["COLUMNS", "Attributes", "Form", "TypeForm", "forms_of"]


class Form(IntEnum):
    """The memory that an object keeps, and where."""

    PLAIN = 0
    """References are among its words, and behind them in its items."""
    LEAF = 1
    """It refers to nothing."""
    LIST = 2
    DICT = 3
    SET = 4
    DEQUE = 5
    MODULE = 6
    FRAME = 7
    GENERATOR = 8
    TYPE = 9
    TEXT = 10
    INTEGER = 11
    BYTEARRAY = 12
    NDARRAY = 13
    TUPLE = 14
    """Like a plain one; its items are known to be references."""
    ARRAY = 15


class Attributes(IntEnum):
    """Place of an instance's attributes, if not in a dictionary among its words."""

    NONE = 0
    BEFORE = 1
    """3.11: pointers to a dictionary and to values before the collector's head."""
    TAGGED = 2
    """3.12: one pointer there, odd if it leads to values."""
    INSIDE = 3
    """3.13: a pointer to a dictionary there, and values behind the object."""
    ONLY_DICT = 4
    """3.13: a pointer to a dictionary there, and no values."""


class TypeForm(IntEnum):
    """Columns of the table that `loops.walk` reads: one row a type."""

    FORM = 0
    BASIC_BYTES = 1
    ITEM_BYTES = 2
    SKIPPED = 3
    """A bit for each of the first 62 words that hold nothing although they may lead to an object."""
    HEAP = 4
    """1: its objects hold it."""
    KEYS = 5
    """Address of the names that its instances share; 0: none."""
    PREFIX_BYTES = 6
    ATTRIBUTES = 7
    IS_DICT = 8
    """1: its objects are dictionaries, whatever else they are."""
    ITEMS_REFER = 9
    """1: its items are references."""
    DICT_AT = 10
    """Offset in its objects of the address of a dictionary of attributes; negative: from their end. 0: none, or before them."""


COLUMNS: Final = len(TypeForm)
_WORDS_TOLD_APART: Final = 62
_BASES: Final = 64
_HEAP_TYPE, _MANAGED_DICT, _DICT_SUBCLASS = 1 << 9, 1 << 4, 1 << 29
_INLINE_VALUES: Final = 1 << 2

_BY_NAME: Final = {
    "list": Form.LIST,
    "tuple": Form.TUPLE,
    "dict": Form.DICT,
    "frozendict": Form.DICT,
    "set": Form.SET,
    "frozenset": Form.SET,
    "frame": Form.FRAME,
    "generator": Form.GENERATOR,
    "coroutine": Form.GENERATOR,
    "async_generator": Form.GENERATOR,
    "module": Form.MODULE,
    "type": Form.TYPE,
    "str": Form.TEXT,
    "int": Form.INTEGER,
    "bool": Form.INTEGER,
    "bytes": Form.LEAF,
    "float": Form.LEAF,
    "complex": Form.LEAF,
    "NoneType": Form.LEAF,
    "ellipsis": Form.LEAF,
    "NotImplementedType": Form.LEAF,
    "PyCapsule": Form.LEAF,
    "bytearray": Form.BYTEARRAY,
    "collections.deque": Form.DEQUE,
    "array.array": Form.ARRAY,
    "numpy.ndarray": Form.NDARRAY,
}
_HEAP_TYPES: Final = (
    "collections.deque",
    "array.array",
)  # heap types that are taken by name all the same

DATA_WORD: Final = {
    Form.LIST: 3,
    Form.DICT: 4,
    Form.SET: 5,
    Form.BYTEARRAY: 4,
    Form.ARRAY: 3,
    Form.NDARRAY: 2,
}
"""Word of an object that has the address of its table, items or data."""

# Words that hold nothing, from the object's beginning: counters, and pointers to memory that is not
# an object or is not held.
_NOT_HELD: Final = {
    Form.LIST: (16, 24, 32),
    Form.DICT: (16, 24, 32, 40),
    Form.TUPLE: (16,),
    Form.DEQUE: (16, 24, 32, 40, 48, 56, 64),
    Form.NDARRAY: (16, 24, 32, 40, 64, 72),
    Form.BYTEARRAY: (16, 24, 32, 40, 48),
    Form.ARRAY: (16, 24, 32, 40, 48),
}
_WEAK_NAMES: Final = {
    "weakref.ReferenceType",
    "weakref",
    "weakproxy",
    "weakcallableproxy",
    "weakref.ProxyType",
    "weakref.CallableProxyType",
}
_OF_WEAK: Final = (16, 40, 48)  # the target, and its neighbours on that object's list
_TYPE_HELD: Final = (256, 264, 336, 344, 352, 360)  # base, dict, bases, mro, cache, subclasses

_FRAME_HELD: Final = (24, 32, 40, 48, 56, 72, 80)
"""3.9 and 3.10: caller, code, builtins, globals, locals, and what traces it; the blocks behind them are never cleared."""


def forms_of(
    types: TypeTable, layout: VersionLayout, words: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Make the table.

    Args:
        types: Types of the process.
        layout: Offsets of its version, which has a graph's.
        words: (types, 3) of each type: ``tp_weaklistoffset``, the address of the names that its instances share, ``tp_dictoffset``.

    Returns:
        (types, COLUMNS).
    """
    places = layout.graph
    if places is None:
        raise ValueError("a layout without a graph's offsets")
    row_of = {int(address): row for row, address in enumerate(types.address.tolist())}
    table = np.zeros((len(types), COLUMNS), dtype=np.int64)
    table[:, TypeForm.BASIC_BYTES] = types.basic_bytes
    table[:, TypeForm.ITEM_BYTES] = types.item_bytes
    table[:, TypeForm.PREFIX_BYTES] = types.prefix_bytes
    table[:, TypeForm.HEAP] = (types.flags & np.uint64(_HEAP_TYPE)) != 0
    table[:, TypeForm.IS_DICT] = (types.flags & np.uint64(_DICT_SUBCLASS)) != 0
    for row in range(len(types)):
        chain = _chain(types, row_of, row)
        names = [types.names[each] for each in chain]
        form = _form(types, chain, names)
        flags = int(types.flags[row])
        skipped = _bits(_not_held(form, places))
        if any(name in _WEAK_NAMES for name in names):
            skipped |= _bits(_OF_WEAK)
        weak = int(words[row, 0])
        if 0 < weak < 8 * _WORDS_TOLD_APART:
            skipped |= _bits((weak,))
        if "generator" in names and places.generator_state:
            skipped |= _bits(
                (places.generator_frame - 16,)
            )  # for coroutines; never set for a generator
        if form == Form.FRAME and layout.version < (3, 11):
            skipped = ~_bits(_FRAME_HELD) & _all()
        if form == Form.TYPE:
            skipped = ~_bits(_TYPE_HELD) & _all()
        if form == Form.DICT:
            table[row, TypeForm.IS_DICT] = 1
        table[row, TypeForm.FORM] = form
        table[row, TypeForm.SKIPPED] = skipped
        table[row, TypeForm.KEYS] = int(words[row, 1]) if flags & _HEAP_TYPE else 0
        table[row, TypeForm.DICT_AT] = 0 if flags & _MANAGED_DICT else int(words[row, 2])
        table[row, TypeForm.ATTRIBUTES] = _attributes(layout.version, flags)
        table[row, TypeForm.ITEMS_REFER] = types.item_bytes[row] == 8 and form not in (
            Form.TYPE,
            Form.TEXT,
        )
    return table


def _not_held(form: Form, places: GraphLayout) -> tuple[int, ...]:
    """Return the offsets of words that hold nothing."""
    found = _NOT_HELD.get(form, ())
    if form == Form.TUPLE:  # since 3.14 its hash is before its items
        return (*found, *range(24, places.tuple_items, 8))
    if form == Form.MODULE:
        state = places.module_state
        own = range(places.module_state_bytes, places.module_state_bytes + 48, 8)
        of_c = (state - 8,) if state > 24 else ()
        return (*of_c, state, state + 8, *(own if places.module_state_bytes else ()))
    return found


def _chain(types: TypeTable, row_of: dict[int, int], row: int) -> list[int]:
    """Return the rows of a type and its known bases, nearest first."""
    chain: list[int] = []
    at: int | None = row
    while at is not None and len(chain) < _BASES and at not in chain:
        chain.append(at)
        at = row_of.get(int(types.base[at]))
    return chain


def _form(types: TypeTable, chain: list[int], names: list[str]) -> Form:
    """Return the form of the nearest built-in base."""
    for row, name in zip(chain, names, strict=True):
        form = _BY_NAME.get(name)
        if form is not None and (name in _HEAP_TYPES or not int(types.flags[row]) & _HEAP_TYPE):
            return form
    return Form.PLAIN


def _attributes(version: tuple[int, int], flags: int) -> Attributes:
    if not flags & _MANAGED_DICT or version < (3, 11):
        return Attributes.NONE
    if version == (3, 11):
        return Attributes.BEFORE
    if version == (3, 12):
        return Attributes.TAGGED
    return Attributes.INSIDE if flags & _INLINE_VALUES else Attributes.ONLY_DICT


def _bits(offsets: tuple[int, ...]) -> int:
    return sum(1 << each // 8 for each in set(offsets) if each < 8 * _WORDS_TOLD_APART)


def _all() -> int:
    return (1 << _WORDS_TOLD_APART) - 1
