"""The interpreters of a process: a list from the newest to the main one, which has id 0.

Sub-interpreters are created and deleted while the list is walked. A walk that meets an invalid
interpreter is repeated, and reported as unreadable if it fails again.

Source: CPython 3.11 to 3.13 pycore_runtime.h (interpreters.head), pycore_interp.h (next, id).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gcspy_drivers.cpython.layouts import VersionLayout
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.memory import Memory

__all__ = ["MOST_INTERPRETERS", "Interpreter", "read_interpreters"]

MOST_INTERPRETERS: Final = 4096
"""The longest accepted list."""

_MOST_ID = 1 << 40
_TRIES = 3


@dataclass(frozen=True)
class Interpreter:
    """One interpreter.

    Attributes:
        ident: Its id; 0 is the main interpreter.
        address: Its PyInterpreterState.
    """

    ident: int
    address: Addr


def read_interpreters(
    memory: Memory, layout: VersionLayout, runtime: Addr
) -> tuple[Interpreter, ...] | None:
    """List the interpreters, the main one first and then by id.

    Args:
        memory: The target's memory.
        layout: Offsets of its version.
        runtime: Its ``_PyRuntime``.

    Returns:
        The interpreters; none of them while the runtime starts or ends; None when the list could not be walked.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    for _ in range(_TRIES):
        found = _walk(memory, layout, runtime)
        if found is not None:
            return tuple(sorted(found, key=lambda interpreter: interpreter.ident))
    return None


def _walk(memory: Memory, layout: VersionLayout, runtime: Addr) -> list[Interpreter] | None:
    found: list[Interpreter] = []
    seen = set()
    first = min(layout.interpreter_next, layout.interpreter_id)
    extent = max(layout.interpreter_next, layout.interpreter_id) + 8 - first
    head = memory.try_read(runtime + layout.interpreters_head, 8)
    address = _word(head, 0)
    while address:
        # A pointer into nowhere fails to be read, one into other memory has no plausible id there.
        record = memory.try_read(address + first, extent) if address % 8 == 0 else None
        ident = _word(record, layout.interpreter_id - first)
        if (
            record is None
            or ident is None
            or ident > _MOST_ID
            or ident in seen
            or len(found) >= MOST_INTERPRETERS
        ):
            return None
        seen.add(ident)
        found.append(Interpreter(ident, Addr(address)))
        address = _word(record, layout.interpreter_next - first)
    # Everything else hangs off the main interpreter, so a list without it was torn, or has ended.
    if address is None or (found and 0 not in seen):
        return None
    return found


def _word(record: bytes | None, offset: int) -> int | None:
    return None if record is None else int.from_bytes(record[offset : offset + 8], "little")
