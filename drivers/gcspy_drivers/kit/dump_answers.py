"""Answers questions about who holds the objects of a heap dump in the format HPROF, from any source.

Knows dumps and graphs. `gcspy_objects.hprof` reads the format, `heap_answers` makes the tables.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from gcspy_objects.graph.dominators import DominatorTree, dominators
from gcspy_objects.graph.kernels import compile_kernels
from gcspy_objects.hprof import machine_code
from gcspy_objects.hprof.heap_dump import HeapDump, load, parse
from gcspy_objects.hprof.names import DumpNamer
from numpy.typing import NDArray

from gcspy_drivers.kit.heap_answers import answer_table
from gcspy_server.api import DetailTable, HeapQuestion

__all__ = [
    "MOST_BYTES",
    "ParsedDump",
    "Progress",
    "answer_of_dump",
    "answer_of_file",
    "dump_note",
    "parsed_dump",
]

Progress = Callable[[str, int, int], None]


class ParsedDump(NamedTuple):
    """A parsed heap dump, from which answers are computed.

    Attributes:
        dump: Objects and references.
        tree: Their dominators.
        namer: Their names.
    """

    dump: HeapDump
    tree: DominatorTree
    namer: DumpNamer


MOST_BYTES: Final = 64 << 30
"""A larger dump is refused; one that does not fit the available memory, too."""


def answer_of_file(
    file: io.RawIOBase, name: str, question: HeapQuestion, progress: Progress
) -> DetailTable:
    """Answer one question about the objects of a heap dump.

    Args:
        file: The dump, at its beginning.
        name: Its name, for messages.
        question: The question.
        progress: Called with the current step, its progress, and its total.

    Raises:
        TraceError: It is not a heap dump, is damaged, or too large.
        TargetError: There are no such objects.
        OSError: It cannot be read.
    """
    data = load(file, name, MOST_BYTES, lambda done, whole: progress("reading", done, whole))
    return answer_of_dump(data, name, question, progress)


def answer_of_dump(
    data: NDArray[np.uint8], name: str, question: HeapQuestion, progress: Progress
) -> DetailTable:
    """Answer one question from the bytes of a heap dump; arguments and errors as of `answer_of_file`."""
    known = parsed_dump(data, name, progress)
    table = answer_table(known.dump, known.tree, known.namer, question)
    return replace(table, note=dump_note(known, table.note))


def parsed_dump(data: NDArray[np.uint8], name: str, progress: Progress) -> ParsedDump:
    """Find objects, references, dominators and names in the bytes of a heap dump.

    Args:
        data: (b,) the dump.
        name: Of it, for messages.
        progress: As of `answer_of_file`.

    Raises:
        TraceError: It is no heap dump, or is damaged.
    """
    progress("preparing", 0, 0)
    loops = machine_code.load()
    compile_kernels()
    dump = parse(
        data, name, loops, lambda done, whole: progress("following references", done, whole)
    )
    progress("finding dominators", 0, 0)
    tree = dominators(dump.graph)
    return ParsedDump(dump, tree, DumpNamer(dump, tree.reached))


def dump_note(known: ParsedDump, note: str = "", *, exact: bool = True) -> str:
    """Say what a dump has, behind a note; if it is not exact, what no root reaches may be garbage or not."""
    dump, reached = known.dump, len(known.tree.order)
    size = f"{dump.objects:,} objects, {len(dump.graph.targets):,} references"
    said = [part for part in (note, size) if part]
    if reached < dump.objects:
        rest = dump.objects - reached
        said.append(
            f"{rest:,} of them garbage"
            if exact
            else f"{rest:,} of them held by nothing that was seen, or garbage"
        )
    return "; ".join(said)
