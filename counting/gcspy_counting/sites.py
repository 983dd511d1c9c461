"""Allocation sites: instructions that allocate, always or perhaps.

A count of a site is the number of times that its instruction began. For a site that always allocates that is the number of allocations by the instruction itself;
what a called function allocates has sites of its own, or none if the function is written in C.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum

from gcspy_counting.bytecode.instructions import Instructions
from gcspy_counting.bytecode.opcodes import OP

__all__ = ["Site", "SiteChoice", "bytes_of", "sites_of"]

_LIST_TO_TUPLE = 6
"""`CALL_INTRINSIC_1`: the function that makes a tuple of a list."""

_ALWAYS = {
    "BUILD_LIST": "list",
    "BUILD_TUPLE": "tuple",
    "BUILD_SET": "set",
    "BUILD_MAP": "dict",
    "BUILD_CONST_KEY_MAP": "dict",
    "BUILD_STRING": "str",
    "BUILD_SLICE": "slice",
    "BUILD_TEMPLATE": "template",
    "BUILD_INTERPOLATION": "interpolation",
    "LIST_TO_TUPLE": "tuple",
    "MAKE_FUNCTION": "function",
    "UNPACK_EX": "list",
    "RETURN_GENERATOR": "generator",
}
_PERHAPS = {
    # 3.11 calls in two instructions, and specialised forms of the first do all of it.
    "PRECALL" if "PRECALL" in OP else "CALL": "call",
    "CALL_KW": "call",
    "CALL_FUNCTION_EX": "call",
    "GET_ITER": "iterator",
    "GET_AITER": "iterator",
    "GET_YIELD_FROM_ITER": "iterator",
    "BINARY_OP": "operator",
    "UNARY_NEGATIVE": "operator",
    "UNARY_INVERT": "operator",
    "BINARY_SUBSCR": "item",
    "BINARY_SLICE": "item",
    "FORMAT_VALUE": "str",
    "FORMAT_SIMPLE": "str",
    "FORMAT_WITH_SPEC": "str",
}


class SiteChoice(StrEnum):
    """Which instructions are sites."""

    DEFINITE = "definite"
    """Those that always allocate."""
    WIDE = "wide"
    """Also those that may: calls, iterators, operators, items."""


@dataclass(frozen=True, slots=True)
class Site:
    """An allocation site of a code object.

    Attributes:
        row: Row of its instruction.
        what: What it makes: a type, or a kind of instruction.
        always: Whether it allocates each time.
    """

    row: int
    what: str
    always: bool


_BY_OP = {OP[name]: (what, True) for name, what in _ALWAYS.items() if name in OP}
_BY_OP_WIDE = _BY_OP | {OP[name]: (what, False) for name, what in _PERHAPS.items() if name in OP}
_BINARY = OP["BINARY_OP"]
_SUBSCRIPT = 26
"""`BINARY_OP`: an item of a sequence, from 3.14 on."""
_BUILD_TUPLE = OP["BUILD_TUPLE"]
_INTRINSIC = OP.get("CALL_INTRINSIC_1", -1)


def sites_of(found: Instructions, choice: SiteChoice) -> list[Site]:
    """Return the sites among the instructions, in their order."""
    by_op = _BY_OP_WIDE if choice == SiteChoice.WIDE else _BY_OP
    out = []
    for row, op in enumerate(found.ops):
        kind = by_op.get(op)
        if op == _BINARY and kind is not None and found.arguments[row] == _SUBSCRIPT:
            kind = ("item", False)
        if op == _INTRINSIC and found.arguments[row] == _LIST_TO_TUPLE:
            kind = ("tuple", True)
        if kind is None or (op == _BUILD_TUPLE and found.arguments[row] == 0):
            continue
        out.append(Site(row, *kind))
    return out


def bytes_of(op: int, argument: int) -> int | None:
    """Return the bytes that an instruction allocates each time, the collector's header included; None: that depends on values, or is not known.

    What the program puts into a list or dict later is not among them.

    Args:
        op: Its number.
        argument: Its argument.
    """
    if op == _BUILD_TUPLE:
        return sys.getsizeof((None,) * argument)
    if op == OP["BUILD_LIST"]:
        return sys.getsizeof([None] * argument)
    if op == OP["BUILD_MAP"] and argument == 0:
        return sys.getsizeof({})
    if op == OP["BUILD_SLICE"]:
        return sys.getsizeof(slice(0))
    if op == OP["MAKE_FUNCTION"]:
        return sys.getsizeof(bytes_of)
    return None
