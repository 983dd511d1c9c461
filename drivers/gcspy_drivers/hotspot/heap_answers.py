"""Answers questions about who holds the memory of a JVM, and the use of all of it.

A JVM that may be held is asked for a heap dump. The heap of one that may not is copied while it
runs (`gcspy_drivers.hotspot.copied`); the answer then says what is missing.

Objects of a JVM move, so two dumps are compared by names and numbers, and not by addresses.

Knows dumps and graphs. `requested_dump` and `copied.running_copy` get a dump; `gcspy_drivers.kit.dump_answers` answers from
it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from gcspy_protocol.errors import TargetError, TraceError

from gcspy_drivers.hotspot.agent.sampled_sites import SamplingBetweenLooks
from gcspy_drivers.hotspot.copied.running_copy import RunningCopy, read_running
from gcspy_drivers.hotspot.memory_parts import code_ranges, memory_of, metaspace_bytes
from gcspy_drivers.hotspot.requested_dump import RequestedDump, request_dump
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.dump_answers import Progress, dump_note, parsed_dump
from gcspy_drivers.kit.heap_answers import answer_table
from gcspy_drivers.kit.memory_look import MemoryLook, reports_of_looks
from gcspy_drivers.kit.memory_map import MemoryMapper, missing_bytes
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.process import Process
from gcspy_server.api import DetailTable, HeapQuestion, MemoryQuestion, MemoryReport

__all__ = ["answer", "explain"]


def answer(pid: int, question: HeapQuestion, progress: Progress) -> DetailTable:
    """Answer one question about a JVM.

    Args:
        pid: The process.
        question: The question.
        progress: Called with the current step, its progress, and its total.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The JVM may not be asked.
        Unsupported: It takes no commands; or it may not be held, and its objects move while it runs.
        TargetError: There are no such objects, no room for a dump, the JVM did not write one, or it collected during
            each copy.
    """
    with Process(pid) as process, Jvm(process, read_maps(process)) as jvm:
        dump = _dump(process, jvm, progress, held=question.held)
    with _dump_errors(pid):
        known = parsed_dump(dump.data, f"process {pid}", progress)
        table = answer_table(known.dump, known.tree, known.namer, question)
    note = dump_note(known, table.note, exact=question.held)
    return replace(table, note=f"{note}; {dump.cost}")


def explain(pid: int, question: MemoryQuestion, progress: Progress) -> Iterator[MemoryReport]:
    """Report the use of all memory and what holds it; then, if a second sample is requested, the growth until then.

    Args:
        pid: The process.
        question: The question.
        progress: See `answer`.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The JVM may not be asked.
        Unsupported: As for `answer`.
        TargetError: There is no room for a dump, the JVM did not write one, or it collected during each copy.
    """
    with (
        Process(pid) as process,
        Jvm(process, read_maps(process)) as jvm,
        SamplingBetweenLooks(process, jvm, question) as sampling,
    ):
        mapper = MemoryMapper(process)
        yield from reports_of_looks(
            lambda: _look(process, jvm, mapper, sampling, progress, held=question.held),
            question,
            progress,
            process.check,
        )


def _look(
    process: Process,
    jvm: Jvm,
    mapper: MemoryMapper,
    sampling: SamplingBetweenLooks,
    progress: Progress,
    *,
    held: bool,
) -> MemoryLook:
    nanos = time.monotonic_ns()
    dump = _dump(process, jvm, progress, held=held)
    resident, kind = mapper.read_mappings()
    sites = sampling.look()
    code, metaspace = code_ranges(jvm), metaspace_bytes(jvm)
    with _dump_errors(process.pid):
        known = parsed_dump(dump.data, f"process {process.pid}", progress)
    objects = known.dump
    missing = missing_bytes(process, resident, objects.address, objects.own)
    kinds = objects.kind.astype(np.int64)
    return MemoryLook(
        nanos=nanos,
        memory=memory_of(known, resident, kind, missing, code, metaspace, exact=held),
        heap=objects,
        address=objects.address,
        kind=kinds,
        kind_names={each: objects.kind_name(each) for each in np.unique(kinds).tolist()},
        tree=known.tree,
        namer=known.namer,
        note=f"{dump_note(known, exact=held)}; {dump.cost}",
        moves=True,
        sites=sites,
    )


def _dump(
    process: Process, jvm: Jvm, progress: Progress, *, held: bool
) -> RequestedDump | RunningCopy:
    """Have the JVM write a heap dump if it may be held, or copy its heap while it runs."""
    return request_dump(process, jvm, progress) if held else read_running(jvm, progress)


@contextmanager
def _dump_errors(pid: int) -> Iterator[None]:
    """Say of which process a dump is that cannot be parsed."""
    try:
        yield
    except TraceError as error:
        raise TargetError(f"the heap dump of process {pid} cannot be read: {error}") from None
