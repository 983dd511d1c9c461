"""Code objects with instructions added: counters at chosen places, calls at handlers of exceptions, and a handler for what none covers.

What is added has the line of the instruction before which it stands, so that traces and tracebacks are those of the program.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from operator import add
from types import CodeType
from typing import Any

from gcspy_counting.bytecode.exception_table import Cover, exception_table
from gcspy_counting.bytecode.instructions import Instructions
from gcspy_counting.bytecode.line_table import LineRuns, line_table
from gcspy_counting.bytecode.opcodes import (
    BACKWARD_CHECKED,
    BACKWARD_UNCHECKED,
    CACHES,
    CALL_HOOK,
    COUNTER_TAIL,
    EXTENDED_ARG,
    JUMPS,
    OP,
    forward_form,
    is_backward,
)

__all__ = ["Additions", "Assembled", "assemble"]

_COUNTER_STACK = 4
"""Values that what is added may have on the stack beside the program's."""


@dataclass(slots=True)
class Additions:
    """Additions to a code object; each list holds constants, which are counted by iterating them once.

    Attributes:
        inside: By row: counted when the instruction is about to run, however it was reached.
        before: By row: counted when the instruction before it falls through to it.
        jumps: By row of a conditional jump: counted when it jumps.
        handlers: By row of the first instruction of a handler: called when it is entered.
        uncovered: Called when an exception leaves the code that no handler covers; None: nothing is added.
        body: First row of the body: what stands before it (a generator's preamble) is not covered by the added handler.
    """

    inside: dict[int, list[Any]] = field(default_factory=dict)
    before: dict[int, list[Any]] = field(default_factory=dict)
    jumps: dict[int, list[Any]] = field(default_factory=dict)
    handlers: dict[int, Callable[[], None]] = field(default_factory=dict)
    uncovered: Callable[[], None] | None = None
    body: int = 0


@dataclass(frozen=True, slots=True)
class Assembled:
    """A code object with additions.

    Attributes:
        code: The code object.
        units: First unit of each of its instructions, prefixes included.
        rows: Row of the original instruction that each is; -1: added.
        jumps: Row of the conditional jump by the index of the jump that was added for its target.
    """

    code: CodeType
    units: list[int]
    rows: list[int]
    jumps: Mapping[int, int]

    def row_at(self, place: int) -> tuple[int, bool]:
        """Return the original row of what runs at a byte offset (`tb_lasti`, `f_lasti`), and whether it has jumped.

        While a function is called the offset may be that of the call's inline cache. The row is -1 at what was added, but for jumps to the
        target of a conditional jump: these have its row, and True.
        """
        item = bisect_right(self.units, place >> 1) - 1
        if not 0 <= item < len(self.rows):
            return -1, False
        jumped = self.jumps.get(item)
        return (self.rows[item], False) if jumped is None else (jumped, True)


_CLEANUP = -2
"""Mark of a cover by the code that ends the added handler."""


class _Stream:
    """New instructions as columns; a target is an item, and a label is where jumps to an original row go."""

    def __init__(self, found: Instructions, constants: list[Any]) -> None:
        self._found = found
        self._arguments = found.normal_arguments
        self.ops: list[int] = []
        self.arguments: list[int] = []
        self.targets: list[int] = []
        """Original row, or -1; below -1: -2 - item."""
        self.origins: list[int] = []
        """Row whose line and handler an item has."""
        self.rows: list[int] = []
        """Row that an item is, or -1."""
        self.constants = constants
        self._constant_at: dict[int, int] = {}

    def add(self, op: int, argument: int, origin: int, target: int = -1, row: int = -1) -> None:
        self.ops.append(op)
        self.arguments.append(argument)
        self.targets.append(target)
        self.origins.append(origin)
        self.rows.append(row)

    def copy(self, begin: int, end: int) -> range:
        """Add original instructions as they are, from a row to a row; return where they are."""
        first = len(self.ops)
        if begin < end:
            self.ops += self._found.ops[begin:end]
            self.arguments += self._arguments[begin:end]
            self.targets += self._found.targets[begin:end]
            self.origins += range(begin, end)
            self.rows += range(begin, end)
        return range(first, len(self.ops))

    def constant(self, value: Any) -> int:
        at = self._constant_at.get(id(value))
        if at is None:
            at = self._constant_at[id(value)] = len(self.constants)
            self.constants.append(value)
        return at

    def count(self, counters: Iterable[Any], origin: int) -> None:
        for counter in counters:
            self.add(OP["LOAD_CONST"], self.constant(counter), origin)
            self.add(OP["FOR_ITER"], 0, origin, target=-2 - (len(self.ops) + 1))
            for op, argument in COUNTER_TAIL:
                self.add(op, argument, origin)
            if len(COUNTER_TAIL) > 1 and COUNTER_TAIL[0][0] == OP["POP_TOP"]:
                self.targets[-3] = -2 - len(self.ops)

    def call(self, hook: Callable[[], None], origin: int) -> None:
        for op, argument in CALL_HOOK(self.constant(hook)):
            self.add(op, argument, origin)


def _handler_call(stream: _Stream, hook: Callable[[], None], row: int) -> None:
    """Call a hook in a handler that does not begin with `PUSH_EXC_INFO`: the exception is the handled one meanwhile."""
    stream.add(OP["PUSH_EXC_INFO"], 0, row)
    stream.call(hook, row)
    stream.add(OP["SWAP"], 2, row)
    stream.add(OP["POP_EXCEPT"], 0, row)


def _main_part(
    stream: _Stream, found: Instructions, additions: Additions
) -> tuple[list[int], list[tuple[int, list[Any]]]]:
    """Write the original instructions and what stands between them; return the labels, and jumps that need a detour."""
    labels: list[int] = []
    detours: list[tuple[int, list[Any]]] = []
    inside, before, handlers = additions.inside, additions.before, additions.handlers
    push = OP["PUSH_EXC_INFO"]
    ops, targets = found.ops, found.targets
    copied = 0
    for row in sorted({*inside, *before, *handlers, *additions.jumps}):
        labels += stream.copy(copied, row)
        if row in before:
            stream.count(before[row], row)
        labels.append(len(stream.ops))
        hook = handlers.get(row)
        op = ops[row]
        if hook is not None and op != push:
            _handler_call(stream, hook, row)
        if row in inside:
            stream.count(inside[row], row)
        if row in additions.jumps:
            detours.append((len(stream.ops), additions.jumps[row]))
            stream.add(forward_form(op), 0, row, targets[row], row)
        else:
            stream.copy(row, row + 1)
            if hook is not None and op == push:
                # Covered as what follows is: by the code that ends the handler.
                stream.call(hook, row + 1)
        copied = row + 1
    labels += stream.copy(copied, len(found))
    return labels, detours


def _detours(
    stream: _Stream, found: Instructions, detours: list[tuple[int, list[Any]]]
) -> tuple[int, dict[int, int]]:
    """Write the counters of taken jumps behind the code; return where they begin, and the row of the jump by added jump."""
    begin = len(stream.ops)
    jumped: dict[int, int] = {}
    for item, counters in detours:
        row = stream.rows[item]
        stream.targets[item] = -2 - len(stream.ops)
        target = found.targets[row]
        if found.ops[row] == OP["FOR_ITER"]:
            # The loop's end skips, or runs, what stands at its target: both are repeated here, and skipped there.
            while found.ops[target] in _LOOP_ENDS and target < found.targets[row] + len(_LOOP_ENDS):
                stream.add(found.ops[target], 0, row)
                target += 1
        stream.count(counters, row)
        back = BACKWARD_CHECKED if is_backward(found.ops[row]) else BACKWARD_UNCHECKED
        jumped[len(stream.ops)] = row
        stream.add(back, 0, row, target)
    return begin, jumped


_LOOP_ENDS: tuple[int, ...] = ()
if "END_FOR" in OP:
    _LOOP_ENDS = tuple(op for op, _ in COUNTER_TAIL)


def assemble(
    code: CodeType,
    found: Instructions,
    covers: list[Cover],
    additions: Additions,
    constants: tuple[Any, ...],
) -> Assembled:
    """Return a code object that does the same and counts.

    Args:
        code: The original.
        found: Its instructions.
        covers: Its table of handlers.
        additions: What is added.
        constants: Its constants; nested code objects may be other ones.
    """
    stream = _Stream(found, list(constants))
    labels, detours = _main_part(stream, found, additions)
    first_added, jumped = _detours(stream, found, detours)
    uncovered = len(stream.ops)
    if additions.uncovered is not None:
        last = len(found) - 1
        stream.add(OP["PUSH_EXC_INFO"], 0, last)
        stream.call(additions.uncovered, last)
        stream.add(OP["RERAISE"], 0, last)
        cleanup = len(stream.ops)
        stream.add(OP["COPY"], 3, last)
        stream.add(OP["POP_EXCEPT"], 0, last)
        stream.add(OP["RERAISE"], 1, last)
    else:
        cleanup = uncovered
    units, sizes = _layout(stream, labels)
    raw = _raw(stream, sizes)
    table = _table(
        stream, found, covers, labels, units, additions, (first_added, uncovered, cleanup)
    )
    lines = _lines(code, stream, found, units, (first_added, uncovered, cleanup))
    new = code.replace(
        co_code=raw,
        co_consts=tuple(stream.constants),
        co_exceptiontable=table,
        co_linetable=lines,
        co_stacksize=code.co_stacksize + _COUNTER_STACK,
    )
    return Assembled(new, units, stream.rows, jumped)


def _layout(stream: _Stream, labels: list[int]) -> tuple[list[int], list[int]]:
    """Place the items; return the first unit of each (and of the end), and its number of prefixes. Sets arguments of jumps."""
    ops, arguments, targets = stream.ops, stream.arguments, stream.targets
    jumps = []
    for item, target in enumerate(targets):
        if target != -1:
            jumps.append((item, labels[target] if target >= 0 else -2 - target))
    sizes = [0] * len(ops)
    for item, argument in enumerate(arguments):
        if argument > _LARGEST_BYTE:
            sizes[item] = (argument.bit_length() - 1) // 8
    for item, _ in jumps:
        sizes[item] = 0
    widths = [_WIDTHS[op] for op in ops]
    while True:
        units = list(accumulate(map(add, sizes, widths), initial=0))
        grown = False
        for item, target in jumps:
            distance = units[target] - units[item + 1]
            argument = -distance if distance < 0 or ops[item] in _BACKWARD else distance
            arguments[item] = argument
            needed = (max(argument, 0).bit_length() - 1) // 8 if argument else 0
            if needed > sizes[item]:
                sizes[item] = needed
                grown = True
        if not grown:
            return units, sizes


_LARGEST_BYTE = 255
_WIDTHS = tuple(1 + each for each in CACHES)
"""Units of each instruction, its inline cache included."""
_BACKWARD = frozenset(op for op in JUMPS if is_backward(op))


def _raw(stream: _Stream, sizes: list[int]) -> bytes:
    out = bytearray()
    for op, argument, size in zip(stream.ops, stream.arguments, sizes, strict=True):
        for prefix in range(size, 0, -1):
            out += bytes((EXTENDED_ARG, (argument >> 8 * prefix) & 255))
        out.append(op)
        out.append(argument & 255)
        if CACHES[op]:
            out += _EMPTY[op]
    return bytes(out)


_EMPTY = tuple(bytes(2 * each) for each in CACHES)
"""Inline cache of each instruction before it runs."""


def _table(
    stream: _Stream,
    found: Instructions,
    covers: list[Cover],
    labels: list[int],
    units: list[int],
    additions: Additions,
    parts: tuple[int, int, int],
) -> bytes:
    """Write the table of handlers: each item is covered as the row is whose line it has."""
    _, uncovered, cleanup = parts
    of_row = [-1] * len(found)
    for index, cover in enumerate(covers):
        row, end = found.row_at[cover.start], cover.end
        while row < len(found) and found.starts[row] < end:
            of_row[row] = index
            row += 1
    out: list[Cover] = []
    begin, current = 0, -1

    def close(end: int) -> None:
        if current == -1 or units[begin] == units[end]:
            return
        if current == _CLEANUP:
            out.append(Cover(units[begin], units[end], units[cleanup], 1, True))
        elif current == len(covers):
            out.append(Cover(units[begin], units[end], units[uncovered], 0, False))
        else:
            cover = covers[current]
            target = units[labels[found.row_at[cover.target]]]
            out.append(Cover(units[begin], units[end], target, cover.depth, cover.keeps_place))

    catches = additions.uncovered is not None
    for item, origin in enumerate(stream.origins):
        if item >= uncovered:
            mine = _CLEANUP if uncovered < item < cleanup else -1
        else:
            mine = of_row[origin]
            if mine == -1 and catches and origin >= additions.body:
                mine = len(covers)
        if mine != current:
            close(item)
            begin, current = item, mine
    close(len(stream.origins))
    return exception_table(out)


def _lines(
    code: CodeType,
    stream: _Stream,
    found: Instructions,
    units: list[int],
    parts: tuple[int, int, int],
) -> bytes:
    """Write the table of lines; the added handler has none."""
    first_added, uncovered, _ = parts
    runs = LineRuns(code.co_linetable, code.co_firstlineno)
    if not runs.entries:
        return b""
    run_of: list[int] = []
    index = 0
    begins = runs.starts[1:]
    begins[-1] = found.units + 1
    for start in found.starts:
        while begins[index] <= start:
            index += 1
        run_of.append(index)
    lengths: list[tuple[int, int]] = []
    origins = stream.origins
    begin = 0
    current = run_of[origins[0]]
    for item in range(first_added):
        run = run_of[origins[item]]
        if run != current:
            unit = units[item]
            lengths.append((current, unit - begin))
            begin, current = unit, run
    lengths.append((current, units[first_added] - begin))
    tail = [
        (run_of[origins[item]], units[item + 1] - units[item])
        for item in range(first_added, uncovered)
    ]
    return line_table(runs, lengths, tail, units[-1] - units[uncovered])
