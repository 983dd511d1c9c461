"""The way of one real call through the flow graph of its function: which edges it took, and how far each block was executed.

The call is executed under the interpreter's own trace: by `sys.monitoring` from 3.12 on, by `sys.settrace` before.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from gcspy_counting.bytecode.opcodes import COUNTER_TAIL, ENDS, OP, RAISES
from gcspy_counting.flow_graph import OUTSIDE, EdgeKind, FlowGraph

__all__ = ["Visit", "walk"]

_TOOL = "gcspy-walk"
_TRACING = threading.Lock()
"""Code is traced in one thread at a time."""


@dataclass(frozen=True, slots=True)
class Visit:
    """An edge that control took, and what it did in the block behind it.

    Attributes:
        edge: The edge, by its index in the graph.
        block: The block behind it; `OUTSIDE`: the call has ended.
        rows: Rows of the instructions of the block that began, in their order.
        raised: Whether an exception leaves the block at the last of them.
    """

    edge: int
    block: int
    rows: tuple[int, ...]
    raised: bool


def walk(graph: FlowGraph, function: Any, *arguments: Any) -> list[Visit]:
    """Call a function, and return its way from the call to its end. An exception that leaves the function ends the way.

    Args:
        graph: The flow graph of its code.
        function: The function: no generator, and not recursive.
        arguments: Its arguments.
    """
    places: list[int] = []
    # An exception is a way out.
    with _TRACING, _traced(graph.code, places), suppress(Exception):
        function(*arguments)
    row_at = graph.instructions.row_at_place
    return _visits(graph, [row_at[each // 2] for each in places])


def _visits(graph: FlowGraph, rows: Sequence[int]) -> list[Visit]:
    """Cut the instructions of a call at the edges."""
    found: list[Visit] = []
    edge, block = _edge(graph, OUTSIDE, graph.block_of[graph.body], EdgeKind.ENTRY), OUTSIDE
    begun: list[int] = []
    for row, following in zip(rows, [*rows[1:], -1], strict=True):
        if row < graph.body or graph.block_of[row] < 0:
            continue
        block = graph.block_of[row]
        begun.append(row)
        next_block = graph.block_of[following] if following >= 0 else OUTSIDE
        if next_block == block and following == row + 1:
            continue
        if _goes_to(graph, row, following):
            found.append(Visit(edge, block, tuple(begun), raised=False))
            kind = EdgeKind.FALL if following == row + 1 else None
            edge = _edge(graph, block, next_block, kind)
        else:
            leaves = graph.instructions.ops[row] not in RAISES
            found.append(Visit(edge, block, tuple(begun), raised=leaves))
            if not leaves:
                found.append(Visit(_edge(graph, block, OUTSIDE), OUTSIDE, (), raised=False))
            handler = graph.caught_by[row]
            if handler < 0:
                return found
            edge = _edge(graph, OUTSIDE, graph.block_of[handler], EdgeKind.HANDLER)
        begun = []
    found.append(Visit(edge, OUTSIDE, (), raised=False))
    return found


def _goes_to(graph: FlowGraph, row: int, following: int) -> bool:
    """Say whether control goes from an instruction to the following one, or out if that is -1, without an exception."""
    instructions = graph.instructions
    op = instructions.ops[row]
    if op in RAISES:
        return False
    if following < 0:
        return op in ENDS
    target = instructions.targets[row]
    # The end of a loop skips what only drops the iterator.
    skipped = len(COUNTER_TAIL) if op == OP["FOR_ITER"] else 0
    return following == row + 1 or 0 <= target <= following <= target + skipped


def _edge(graph: FlowGraph, source: int, target: int, kind: EdgeKind | None = None) -> int:
    """Return the edge between two blocks, of a kind if there are several."""
    found = [
        number
        for number, edge in enumerate(graph.edges)
        if (edge.source, edge.target) == (source, target)
    ]
    of_kind = [each for each in found if kind is None or graph.edges[each].kind is kind]
    return (of_kind or found)[0]


@contextmanager
def _traced(code: CodeType, places: list[int]) -> Iterator[None]:
    """Note the byte offset of each instruction of a code object that begins meanwhile, in this thread."""
    if sys.version_info >= (3, 12):
        monitoring: Any = sys.monitoring
        tool = next(each for each in range(6) if monitoring.get_tool(each) is None)
        monitoring.use_tool_id(tool, _TOOL)
        monitoring.register_callback(
            tool, monitoring.events.INSTRUCTION, lambda _code, place: places.append(place)
        )
        monitoring.set_local_events(tool, code, monitoring.events.INSTRUCTION)
        try:
            yield
        finally:
            monitoring.set_local_events(tool, code, 0)
            monitoring.register_callback(tool, monitoring.events.INSTRUCTION, None)
            monitoring.free_tool_id(tool)
        return

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            places.append(frame.f_lasti)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
