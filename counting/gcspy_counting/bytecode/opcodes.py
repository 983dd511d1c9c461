"""Facts about the instructions of the running interpreter: sizes, jumps, ends of blocks, and instructions that differ by version."""

from __future__ import annotations

import opcode
import sys
from types import MappingProxyType
from typing import Any

__all__ = [
    "BACKWARD_CHECKED",
    "BACKWARD_UNCHECKED",
    "CACHES",
    "CALL_HOOK",
    "CONDITIONAL",
    "COUNTER_TAIL",
    "ENDS",
    "EXTENDED_ARG",
    "JUMPS",
    "NORMALISED",
    "OP",
    "RAISES",
    "SUPPORTED",
    "UNCONDITIONAL",
    "forward_form",
    "is_backward",
    "normal_argument",
]

VERSION = sys.version_info[:2]
SUPPORTED = (3, 11) <= VERSION <= (3, 14)
"""Whether code objects of this interpreter can be instrumented."""

OP = MappingProxyType(opcode.opmap)
"""Numbers of instructions by name."""

EXTENDED_ARG = opcode.EXTENDED_ARG


def _caches() -> tuple[int, ...]:
    """Units of inline cache behind each instruction, by its number."""
    found: Any = getattr(opcode, "_inline_cache_entries", {})
    if isinstance(found, dict):
        return tuple(int(found.get(name, 0)) for name in opcode.opname[:256])
    return tuple(int(each) for each in found[:256])


def _numbers(*names: str) -> frozenset[int]:
    return frozenset(OP[name] for name in names if name in OP)


CACHES = _caches()

JUMPS = frozenset(
    each for each in opcode.hasjrel if each < 256 and opcode.opname[each] != "END_ASYNC_FOR"
) - frozenset(each for each in opcode.hasjrel if opcode.opname[each].startswith("INSTRUMENTED_"))
"""Instructions with a target. Since 3.11 all targets are relative. In 3.14 that of `END_ASYNC_FOR` names where its loop began, for tools."""

UNCONDITIONAL = _numbers("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
CONDITIONAL = JUMPS - UNCONDITIONAL

RAISES = _numbers("RAISE_VARARGS", "RERAISE")
"""Instructions that end a block by an exception, always."""

ENDS = RAISES | _numbers("RETURN_VALUE", "RETURN_CONST")
"""Instructions that leave the code object. `RETURN_GENERATOR` is not one: its code goes on when the generator is resumed."""

BACKWARD_CHECKED = OP.get("JUMP_BACKWARD", 0)
"""A jump that also handles signals and lets other threads run."""
BACKWARD_UNCHECKED = OP.get("JUMP_BACKWARD_NO_INTERRUPT", 0)

COUNTER_TAIL: tuple[tuple[int, int], ...]
"""Instructions behind `LOAD_CONST counter; FOR_ITER`, which drop what the iterator returned and the iterator: (number, argument)."""
if VERSION == (3, 12):
    COUNTER_TAIL = ((OP["END_FOR"], 0),)
elif VERSION >= (3, 14):
    COUNTER_TAIL = ((OP["END_FOR"], 0), (OP["POP_ITER"], 0))
elif VERSION == (3, 13):
    COUNTER_TAIL = ((OP["END_FOR"], 0), (OP["POP_TOP"], 0))
else:
    COUNTER_TAIL = ((OP["POP_TOP"], 0), (OP["POP_TOP"], 0))


def _call_hook(constant: int) -> list[tuple[int, int]]:
    """Instructions that call a constant without arguments and drop the result: (number, argument)."""
    load = (OP["LOAD_CONST"], constant)
    null = (OP["PUSH_NULL"], 0)
    call = [(OP["CALL"], 0), (OP["POP_TOP"], 0)]
    if VERSION >= (3, 13):
        return [load, null, *call]
    if VERSION == (3, 12):
        return [null, load, *call]
    return [null, load, (OP["PRECALL"], 0), *call]


CALL_HOOK = _call_hook


def is_backward(op: int) -> bool:
    """Say whether a jump goes back."""
    return "BACKWARD" in opcode.opname[op]


def forward_form(op: int) -> int:
    """Return the instruction that jumps forward under the same condition as a conditional jump."""
    return OP[opcode.opname[op].replace("_BACKWARD_", "_FORWARD_")]


NORMALISED = _numbers(
    "YIELD_VALUE" if VERSION == (3, 12) else "RESUME" if VERSION >= (3, 13) else ""
)
"""Instructions whose argument `normal_argument` changes."""


def normal_argument(op: int, argument: int) -> int:
    """Return the argument without the hint that lets a suspended generator end without an exception.

    Where only the handler of `StopIteration` surrounds a `yield`, closing the generator skips all handlers, and what was
    executed of the block could not be counted. The hint is the depth 1 of `YIELD_VALUE` in 3.12 and a bit of `RESUME` from 3.13 on.
    """
    if VERSION == (3, 12) and op == OP["YIELD_VALUE"] and argument == 1:
        return 2
    if VERSION >= (3, 13) and op == OP["RESUME"]:
        return argument & ~4
    return argument
