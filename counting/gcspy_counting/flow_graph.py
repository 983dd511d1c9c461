"""The control flow of a code object: blocks, edges between them, sites in them, and what exceptions do.

All that leaves the code and all that enters it is one vertex, `OUTSIDE`, so that as much flows into each block as out of it. An exception is a flow too:
it leaves a block at an instruction, and comes back from outside at the handler that counts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import CodeType

from gcspy_counting.bytecode.exception_table import Cover, read_exception_table
from gcspy_counting.bytecode.instructions import Instructions, instructions_of
from gcspy_counting.bytecode.opcodes import (
    BACKWARD_UNCHECKED,
    CONDITIONAL,
    COUNTER_TAIL,
    ENDS,
    JUMPS,
    OP,
    RAISES,
    UNCONDITIONAL,
)
from gcspy_counting.sites import Site, SiteChoice, sites_of

__all__ = [
    "OUTSIDE",
    "Block",
    "Edge",
    "EdgeKind",
    "FlowGraph",
    "NotCountableError",
    "flow_graph_of",
]

OUTSIDE = -1
"""The vertex of all that is not in the code object."""


class NotCountableError(Exception):
    """A code object has no entry where it could be counted; its sites are not counted."""


class EdgeKind(Enum):
    """How control goes along an edge."""

    ENTRY = "entry"
    EXIT = "exit"
    GOTO = "goto"
    FALL = "fall"
    JUMP = "jump"
    HANDLER = "handler"


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from a block to another.

    Attributes:
        source: Block, or `OUTSIDE`.
        target: Block, or `OUTSIDE`.
        kind: How control goes there.
        countable: Whether a counter may stand on it.
    """

    source: int
    target: int
    kind: EdgeKind
    countable: bool


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that run one after the other.

    Attributes:
        start: First row.
        begin: First row before which a counter may stand: behind the end of a loop, or of what is delegated. `end`: behind the block.
        end: Row behind the last one.
        sites: Sites in it, in the order of their rows.
    """

    start: int
    begin: int
    end: int
    sites: tuple[Site, ...]

    @property
    def last(self) -> int:
        """Row of the last instruction."""
        return self.end - 1


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """The control flow of a code object.

    Attributes:
        code: The code object.
        instructions: Its instructions.
        covers: Its table of handlers.
        body: First row of the body, behind `RESUME`.
        blocks: Its blocks; those that cannot be reached have no edges.
        edges: Edges between them.
        block_of: Block of each row; -1 before the body and in cleanup code.
        handlers: First row of each handler that is counted, and its block.
        caught_by: For each row the first row of the counted handler that sees an exception raised there first; -1: none.
        direct: Sites outside of the graph, which need a counter each: the making of a generator.
    """

    code: CodeType
    instructions: Instructions
    covers: list[Cover]
    body: int
    blocks: list[Block]
    edges: list[Edge]
    block_of: list[int]
    handlers: dict[int, int]
    caught_by: list[int]
    direct: list[Site]

    @property
    def is_conserved(self) -> bool:
        """Whether as much flows out of each block as into it.

        In 3.11 a delegation (`yield from`, `await`) into which an exception is thrown may end without the instructions that end it.
        """
        return "CLEANUP_THROW" in OP or _SEND not in self.instructions.ops

    def goes_on_after(self, handler: int) -> type[BaseException]:
        """Return the exceptions after which a handler goes on; it passes on all others by itself, unseen.

        Those of `yield from`, `await` and `async for` go on after the end of what they iterate, and all others after anything.
        """
        return _SELECTIVE.get(self.instructions.ops[handler], BaseException)

    def counted_by(self, row: int, kind: type[BaseException]) -> int:
        """Return the first row of the handler that counts an exception of a row; -1: that of exceptions that no handler covers."""
        handler = self.caught_by[row]
        while handler >= 0 and not issubclass(kind, self.goes_on_after(handler)):
            handler = self.caught_by[handler]
        return handler

    def raised_at(self, row: int) -> int:
        """Return the block that an exception at a row leaves, before or at its sites; `OUTSIDE` if it is none of the graph's.

        A jump that is interrupted has left its block: it leaves the block of its target, at its beginning. (In 3.11 an exception that is thrown into a
        delegating generator appears at the jump of the delegation, which cannot be interrupted and has not happened.)
        """
        ops = self.instructions.ops
        if row < self.body or ops[row] in RAISES:
            return OUTSIDE
        if ops[row] in UNCONDITIONAL and ops[row] != BACKWARD_UNCHECKED:
            return self.block_of[self.instructions.targets[row]]
        return self.block_of[row]


_PLAIN_CLEANUP = frozenset(
    OP[name]
    for name in (
        "COPY",
        "SWAP",
        "POP_TOP",
        "POP_EXCEPT",
        "LOAD_CONST",
        "STORE_FAST",
        "DELETE_FAST",
        "STORE_NAME",
        "DELETE_NAME",
        "STORE_GLOBAL",
        "DELETE_GLOBAL",
        "STORE_DEREF",
        "DELETE_DEREF",
        "RERAISE",
        "NOP",
    )
    if name in OP
)
"""Instructions of handlers that only tidy up and pass the exception on: these need no counting."""

_LOOP_END = OP.get("END_FOR", -1)
_NOT_TAKEN = OP.get("NOT_TAKEN", -1)
"""Behind a conditional jump, for tools: the jump and it stay together."""
_SEND = OP["SEND"]
_SELECTIVE = {
    OP.get("CLEANUP_THROW", -1): StopIteration,
    OP.get("END_ASYNC_FOR", -1): StopAsyncIteration,
}


def _cleanup_end(found: Instructions, row: int, jumped_to: set[int]) -> int | None:
    """Return the row of the `RERAISE` of a handler that only tidies up; None if it does more."""
    first = row
    while row < len(found) and found.ops[row] in _PLAIN_CLEANUP:
        if row in jumped_to and row != first:
            return None
        if found.ops[row] == OP["RERAISE"]:
            return row
        row += 1
    return None


def _handlers(found: Instructions, covers: list[Cover]) -> tuple[list[int], set[int], set[int]]:
    """Return for each row the counted handler that sees its exceptions first, all counted handlers, and the rows of cleanup code."""
    jumped_to = {target for target in found.targets if target >= 0}
    handler_of = [-1] * len(found)
    for cover in covers:
        target = found.row_at[cover.target]
        row = found.row_at[cover.start]
        while row < len(found) and found.starts[row] < cover.end:
            handler_of[row] = target
            row += 1
    passes_on: dict[int, int] = {}
    tidy: set[int] = set()
    for target in {each for each in handler_of if each >= 0}:
        end = _cleanup_end(found, target, jumped_to)
        falls_in = target > 0 and found.ops[target - 1] not in ENDS | UNCONDITIONAL
        if end is not None and target not in jumped_to and not falls_in:
            passes_on[target] = end
            tidy.update(range(target, end + 1))

    def counted(row: int) -> int:
        seen = set()
        handler = handler_of[row]
        while handler in passes_on and handler not in seen:
            seen.add(handler)
            handler = handler_of[passes_on[handler]]
        return -1 if handler in passes_on else handler

    caught_by = [counted(row) for row in range(len(found))]
    return caught_by, {each for each in handler_of if each >= 0 and each not in passes_on}, tidy


def _begin_of(found: Instructions, start: int, end: int) -> int:
    """Return the first row of a block before which a counter may stand; `end`: only behind the block.

    `FOR_ITER` skips all of a loop's end, so that nothing may stand before it or within it.
    """
    if found.ops[start] == _LOOP_END:
        return start + len(COUNTER_TAIL)
    if found.ops[start] in _SELECTIVE or found.ops[start] == _NOT_TAKEN:
        return min(start + 1, end - 1)
    return start


def flow_graph_of(code: CodeType, choice: SiteChoice = SiteChoice.WIDE) -> FlowGraph:
    """Find the control flow of a code object.

    Raises:
        NotCountableError: The code has no `RESUME` at its entry, or is damaged.
    """
    try:
        found = instructions_of(code)
        covers = read_exception_table(code.co_exceptiontable)
        resume = next(
            row
            for row, op in enumerate(found.ops)
            if op == OP["RESUME"] and not found.arguments[row] & 3
        )
        caught_by, handlers, tidy = _handlers(found, covers)
    except (ValueError, KeyError, StopIteration) as error:
        raise NotCountableError(f"{code.co_qualname}: {str(error) or 'no RESUME'}") from error
    body = resume + 1
    leaders = {body} | handlers
    for row in range(body, len(found)):
        op = found.ops[row]
        if op in JUMPS:
            leaders.add(found.targets[row])
        if op in JUMPS or op in ENDS:
            leaders.add(row + 1)
    starts = sorted(each for each in leaders if body <= each < len(found))
    sites = sites_of(found, choice)
    blocks = []
    block_of = [-1] * len(found)
    at = 0
    direct = []
    while at < len(sites) and sites[at].row < body:
        direct.append(sites[at])
        at += 1
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(found)
        mine = []
        while at < len(sites) and sites[at].row < end:
            mine.append(sites[at])
            at += 1
        blocks.append(Block(start, _begin_of(found, start, end), end, tuple(mine)))
        block_of[start:end] = [index] * (end - start)
    for row in tidy:
        block_of[row] = -1
    edges = _edges(found, blocks, block_of, body, handlers)
    return FlowGraph(
        code,
        found,
        covers,
        body,
        blocks,
        _reachable(edges),
        block_of,
        {row: block_of[row] for row in handlers if row >= body},
        caught_by,
        direct,
    )


def _edges(
    found: Instructions, blocks: list[Block], block_of: list[int], body: int, handlers: set[int]
) -> list[Edge]:
    edges = [Edge(OUTSIDE, block_of[body], EdgeKind.ENTRY, True)]
    for index, block in enumerate(blocks):
        row = block.last
        op = found.ops[row]
        if block_of[block.start] == -1:
            continue
        if op in ENDS:
            edges.append(Edge(index, OUTSIDE, EdgeKind.EXIT, True))
            continue
        countable = op != _SEND
        if op in JUMPS:
            kind = EdgeKind.JUMP if op in CONDITIONAL else EdgeKind.GOTO
            edges.append(Edge(index, block_of[found.targets[row]], kind, countable))
        if op not in UNCONDITIONAL and index + 1 < len(blocks):
            edges.append(Edge(index, index + 1, EdgeKind.FALL, countable))
    edges += [
        Edge(OUTSIDE, block_of[row], EdgeKind.HANDLER, False)
        for row in sorted(handlers)
        if row >= body
    ]
    return edges


def _reachable(edges: list[Edge]) -> list[Edge]:
    """Return the edges that control can go along."""
    ways: dict[int, list[int]] = {}
    for edge in edges:
        ways.setdefault(edge.source, []).append(edge.target)
    seen = {OUTSIDE}
    todo = [OUTSIDE]
    while todo:
        for target in ways.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return [edge for edge in edges if edge.source in seen]
