"""`Namer`: names a reference from one object to another, and the path from a root to an object, in Python syntax.

Names are read on demand; none are stored with the graph.

Knows forms of objects and a copy of memory. Source: CPython 3.9 to 3.15 Include/cpython/descrobject.h (PyMemberDescrObject),
Include/structmember.h (PyMemberDef),
Include/cpython/funcobject.h (PyFunctionObject).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from gcspy_drivers.cpython.graph.forms import Attributes, Form, TypeForm
from gcspy_drivers.cpython.graph.heap_graph import HeapGraph
from gcspy_drivers.cpython.graph.roots import RootKind, variable_names
from gcspy_drivers.cpython.graph.texts import text_at
from gcspy_drivers.remote.memory import Memory

__all__ = ["Namer"]

_MOST_STEPS: Final = 24
_MOST_ITEMS: Final = 1 << 24
_MOST_KEY_CHARACTERS: Final = 60
_DESCRIPTOR_NAME, _DESCRIPTOR_MEMBER, _MEMBER_OFFSET = 24, 40, 16
_TYPE_DICT, _TYPE_BASE = 264, 256
_TYPE_PLACES: Final = {
    256: ".__base__",
    264: ".__dict__",
    336: ".__bases__",
    344: ".__mro__",
    352: " (cache of the class)",
    360: ".__subclasses__()",
}
_BASES: Final = 64
_EXCEPTION: Final = 1 << 30
_FRAME_OF_OBJECT: Final = 24
_ITS_BYTES: Final = " (its bytes)"
_KNOWN: Final = {
    "bytearray": {56: _ITS_BYTES},
    "functools._lru_cache_wrapper": {72: " (its cache)", 24: " (its cache)", 32: ".__wrapped__"},
    "functools.partial": {16: ".func", 24: ".args", 32: ".keywords"},
    "builtin_function_or_method": {24: ".__self__"},
    "method": {16: ".__func__", 24: ".__self__"},
    "cell": {16: ".cell_contents"},
    "traceback": {16: ".tb_next", 24: ".tb_frame"},
    "_thread._local": {48: " (values of each thread)"},
}
"""Names of references in objects of C that have no descriptor, by type and by where they are."""

_SINCE_3_10: Final = (
    "__globals__",
    "__builtins__",
    "__name__",
    "__qualname__",
    "__code__",
    "__defaults__",
    "__kwdefaults__",
    "__closure__",
    "__doc__",
    "__dict__",
    "",
    "__module__",
    "__annotations__",
)

_OF_FUNCTION: Final = {
    (3, 9): (
        "__code__",
        "__globals__",
        "__defaults__",
        "__kwdefaults__",
        "__closure__",
        "__doc__",
        "__name__",
        "__dict__",
        "",
        "__module__",
        "__annotations__",
        "__qualname__",
    ),
    (3, 10): (*_SINCE_3_10, "__type_params__"),
    (3, 14): (*_SINCE_3_10, "__annotate__", "__type_params__"),
}
"""Attributes of a function object by the version since which they are so, a word each from offset 16 on; empty: its weak references.
``__type_params__`` is there since 3.12; until then the word behind the annotations is the address of code."""

_OF_EXCEPTION: Final = {
    False: {
        16: ".__dict__",
        24: ".args",
        32: ".__traceback__",
        40: ".__context__",
        48: ".__cause__",
    },
    True: {
        16: ".__dict__",
        24: ".args",
        32: ".__notes__",
        40: ".__traceback__",
        48: ".__context__",
        56: ".__cause__",
    },
}
"""The same of exceptions, until 3.10 and since."""


class Namer:
    """Names for one graph.

    Args:
        graph: The graph.
        memory: The target's memory, for names that lie in memory that was not copied.
        forms: (types, columns) as `forms.forms_of` made them.
    """

    def __init__(self, graph: HeapGraph, memory: Memory) -> None:
        self._graph = graph
        self._copy = graph.copy
        self._memory = memory
        self._members: dict[int, dict[int, str]] = {}

    def way_to(self, number: int) -> str:
        """Describe the path from a root to an object: ``__main__.AUDIT[3].items``.

        Args:
            number: The object.
        """
        way = [number]
        parent = self._graph.parent
        while parent[way[-1]] >= 0 and len(way) < _MOST_STEPS:
            way.append(int(parent[way[-1]]))
        way.reverse()
        first = way[0]
        root = self._graph.roots.get(first)
        text = "…" if root is None else str(root)
        steps = way
        if root is not None and root.kind is RootKind.MODULES:
            # sys.modules['a'].__dict__['B'] is simply a.B; the tables between have no name of their
            # own.
            text, steps = self._from_modules(text, way)
        elif root is not None and root.kind > RootKind.STACK:
            text = f"{root}: {self.type_name(first)}"
        for above, below in pairwise(steps):
            text = _joined(text, self.reference(above, below))
        return text

    def holder_name(self, number: int) -> str:
        """Describe the path to an object that holds others; its dictionary of attributes represents it, and the bytes a bytearray."""
        return self.way_to(number).removesuffix(".__dict__").removesuffix(_ITS_BYTES)

    def holder_type(self, number: int) -> str:
        """Return the name of an object's type."""
        return self.type_name(number)

    def _from_modules(self, text: str, way: list[int]) -> tuple[str, list[int]]:
        """Return the name of a module on a path, and the rest of the path."""
        if len(way) == 1:
            return text, way
        if not text.startswith("sys.modules"):
            return f"{text}.__dict__", way
        module = self._key_of(way[0], way[1])
        if module is None or self.type_name(way[1]) != "module":
            return text, way
        return str(module), way[1:]

    def reference(self, above: int, below: int) -> str:
        """Name the reference from one object to another: ``.name``, ``[3]``, ``['key']``."""
        graph = self._graph
        holder, held = int(graph.address[above]), int(graph.address[below])
        row = int(graph.kind[above])
        form = Form(int(graph.forms[row, TypeForm.FORM]))
        found = None
        if form == Form.LIST:
            found = self._index(self._copy.word(holder + 24), self._copy.word(holder + 16), held)
        elif form == Form.TUPLE:
            found = self._index(
                holder + int(graph.forms[row, TypeForm.BASIC_BYTES]),
                self._copy.word(holder + 16),
                held,
            )
        elif form == Form.DEQUE:
            found = "[…]"
        elif form == Form.SET:
            found = " (member)"
        elif form == Form.MODULE and self._copy.word(holder + 16) == held:
            found = ".__dict__"
        elif form == Form.NDARRAY:
            found = self._index(self._copy.word(holder + 16), _MOST_ITEMS, held)
        elif form == Form.TYPE:
            found = next(
                (
                    name
                    for offset, name in _TYPE_PLACES.items()
                    if self._copy.word(holder + offset) == held
                ),
                None,
            )
        elif form in (Form.FRAME, Form.GENERATOR):
            found = self._variable(holder, form, held)
        if found is None and graph.forms[row, TypeForm.IS_DICT]:
            key = self._key_of(above, below)
            found = " (key)" if key is None else f"[{key!r}]"
        return found or self._attribute(above, held) or self._word(holder, row, held)

    def type_name(self, number: int) -> str:
        """Return the name of an object's type."""
        return self._graph.types.names[int(self._graph.kind[number])]

    def _index(self, begin: int | None, count: int | None, held: int) -> str | None:
        """Find an address in an array of words."""
        if not begin or not count or count < 0:
            return None
        row = int(np.searchsorted(self._copy.runs[:, 0], begin, side="right")) - 1
        if row < 0 or begin >= self._copy.runs[row, 1]:
            return None
        first = self._copy.place(begin)
        if first is None:
            return None
        most = min(count, _MOST_ITEMS, (int(self._copy.runs[row, 1]) - begin) // 8)
        found = np.flatnonzero(self._copy.words[first : first + most] == held)
        return f"[{int(found[0])}]" if len(found) else None

    def _key_of(self, above: int, below: int) -> str | int | None:
        """Return the key under which a dictionary has an object; None if the object is a key itself, or the key is unreadable."""
        dict_, held = int(self._graph.address[above]), int(self._graph.address[below])
        table = self._entries(self._copy.word(dict_ + 32) or 0)
        if table is None:
            return None
        begin, count, stride = table
        values = self._copy.word(dict_ + 40)
        if values:
            first = values + (8 if self._graph.layout.version >= (3, 13) else 0)
            value_at, value_stride = first, 8
        else:
            value_at, value_stride = begin + stride - 8, stride
        for entry in range(count):
            if self._copy.word(value_at + entry * value_stride) == held:
                key = self._copy.word(begin + entry * stride + (8 if stride == 24 else 0))
                return self._value(key or 0)
        return None

    def _entries(self, keys: int) -> tuple[int, int, int] | None:
        """Return of a dictionary's table: address of the entries, their number, bytes of one."""
        head, compact = self._copy.word(keys + 8), self._graph.layout.objects.compact_keys
        count = self._copy.word(keys + (24 if compact else 32)) if keys else None
        if head is None or count is None or not 0 <= count <= _MOST_ITEMS:
            return None
        if compact:
            log_index, general = (head >> 8) & 255, (head >> 16) & 255
            if log_index > 44:
                return None
            return keys + 32 + (1 << log_index), count, 24 if general == 0 else 16
        if not 0 < head <= 1 << 40:
            return None
        width = 1 if head <= 0xFF else 2 if head <= 0xFFFF else 4 if head <= 0xFFFFFFFF else 8
        return keys + 40 + head * width, count, 24

    def _value(self, address: int) -> str | int:
        """Return a key as text: a text itself, a number, or its type."""
        number = self._graph.number_of(address)
        name = "?" if number is None else self.type_name(number)
        if name == "str":
            text = text_at(self._copy, self._graph.layout.objects, address)
            if text is not None:
                return (
                    text if len(text) <= _MOST_KEY_CHARACTERS else text[:_MOST_KEY_CHARACTERS] + "…"
                )
        if name == "int":
            size, digit = self._copy.word(address + 16), self._copy.word(address + 24)
            shift = self._graph.layout.objects.digits_shift
            if size is not None and digit is not None:
                digits = size >> shift if shift else size
                negative = (size & 3) == 2 if shift else size < 0
                if abs(digits) <= 1:
                    small = digit & 0x3FFFFFFF if digits or negative else 0
                    return -small if negative else small
        return f"a {name}"

    def _variable(self, holder: int, form: Form, held: int) -> str | None:
        """Name a variable of a frame or a generator."""
        places, layout = self._graph.layout.graph, self._graph.layout
        if places is None:
            return None
        if layout.version < (3, 11):
            frame: int | None = holder
        elif form == Form.FRAME:
            frame = self._copy.word(holder + _FRAME_OF_OBJECT)
        else:
            frame = holder + places.generator_frame
        if not frame:
            return None
        code = (self._copy.word(frame + places.frame_code) or 0) & ~7
        names = variable_names(self._copy, layout, places, code) or []
        for row, name in enumerate(names):
            word = self._copy.word(frame + places.frame_variables + 8 * row)
            if word is not None and word & ~int(places.frame_tags) == held:
                return f" (variable {name})"
        return None

    def _attribute(self, above: int, held: int) -> str | None:
        """Name an attribute: of a slot, of a shared dictionary, or the dictionary itself."""
        graph = self._graph
        holder, row = int(graph.address[above]), int(graph.kind[above])
        if self._copy.word(holder + 8) == held:
            return ".__class__"
        for offset, name in self._members_of(row).items():
            if self._copy.word(holder + offset) == held:
                return name
        dict_at = int(graph.forms[row, TypeForm.DICT_AT])
        if dict_at > 0 and self._copy.word(holder + dict_at) == held:
            return ".__dict__"
        if not graph.forms[row, TypeForm.ATTRIBUTES]:
            return None
        before = self._copy.word(holder - 24)
        if before == held:
            return ".__dict__"
        keys = int(graph.forms[row, TypeForm.KEYS])
        table = self._entries(keys)
        basic = int(graph.forms[row, TypeForm.BASIC_BYTES])
        version = graph.layout.version
        if graph.forms[row, TypeForm.ATTRIBUTES] == Attributes.ONLY_DICT:
            values = None
        elif version == (3, 11):
            values = self._copy.word(holder - 32)
        elif version == (3, 12):
            values = before + 1 if before is not None and before & 1 else None
        else:
            values = holder + basic + 8
        if table is None or not values:
            return None
        begin, count, stride = table
        for entry in range(count):
            if self._copy.word(values + 8 * entry) == held:
                key = self._copy.word(begin + entry * stride + (8 if stride == 24 else 0))
                text = text_at(self._copy, graph.layout.objects, key or 0)
                return None if text is None else f".{text}"
        return None

    def _members_of(self, row: int) -> dict[int, str]:
        """Return what references in objects of a type are called, by where they are."""
        types = self._graph.types
        known = _KNOWN.get(types.names[row], {})
        if int(types.flags[row]) & _EXCEPTION:
            known = _OF_EXCEPTION[self._graph.layout.version >= (3, 11)]
        if types.names[row] == "function":
            known = _of_function(self._graph.layout.version)
        slots = self._slots(int(types.address[row])).items()
        return {**{offset: f".{name}" for offset, name in slots}, **known}

    def _slots(self, type_: int) -> dict[int, str]:
        """Return the names of a type's members by where they are in an object."""
        known = self._members.get(type_)
        if known is not None:
            return known
        found: dict[int, str] = {}
        at = type_
        for _ in range(_BASES):
            for offset, name in self._own_slots(at).items():
                found.setdefault(offset, name)
            at = self._copy.word(at + _TYPE_BASE) or 0
            if not at:
                break
        self._members[type_] = found
        return found

    def _own_slots(self, type_: int) -> dict[int, str]:
        table = self._entries(self._copy.word((self._copy.word(type_ + _TYPE_DICT) or 0) + 32) or 0)
        found: dict[int, str] = {}
        if table is None:
            return found
        begin, count, stride = table
        for entry in range(min(count, 4096)):
            value = self._copy.word(begin + (entry + 1) * stride - 8)
            number = self._graph.number_of(value) if value else None
            if value is None or number is None or self.type_name(number) != "member_descriptor":
                continue
            name = text_at(
                self._copy,
                self._graph.layout.objects,
                self._copy.word(value + _DESCRIPTOR_NAME) or 0,
            )
            member = self._copy.word(value + _DESCRIPTOR_MEMBER)
            offset = self._word_of(member + _MEMBER_OFFSET) if member else None
            if name is not None and offset is not None and 0 < offset < 1 << 20:
                found[offset] = name
        return found

    def _word_of(self, address: int) -> int | None:
        word = self._copy.word(address)
        if word is None:
            data = self._memory.try_read(address, 8)
            word = None if data is None else int.from_bytes(data, "little", signed=True)
        return word

    def _word(self, holder: int, row: int, held: int) -> str:
        """Describe the place of a reference in an object without a name."""
        basic = int(self._graph.forms[row, TypeForm.BASIC_BYTES])
        for offset in range(16, min(basic, 4096), 8):
            if self._copy.word(holder + offset) == held:
                return f".<word {offset // 8} of {self._graph.types.names[row]}>"
        return f".<{self._graph.types.names[row]}>"


def _of_function(version: tuple[int, int]) -> dict[int, str]:
    """Return the names of references in function objects, by where they are."""
    since = max(each for each in _OF_FUNCTION if each <= version)
    return {16 + 8 * at: f".{name}" for at, name in enumerate(_OF_FUNCTION[since]) if name}


def _joined(text: str, step: str) -> str:
    """Join a step to a way; an attribute's dictionary is not named: ``a.__dict__['b']`` is ``a.b``."""
    if text.endswith(".__dict__") and step.startswith("['") and step[2:-2].isidentifier():
        return f"{text.removesuffix('.__dict__')}.{step[2:-2]}"
    return text + step
