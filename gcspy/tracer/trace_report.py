"""Report at the end of `gcspy trace`: how much was written, and what is missing.

Knows summaries; does not know how they came to be.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gcspy_protocol.errors import Unsupported
from gcspy_protocol.text.visible import Lines

from gcspy.output.terminal import say, say_aside
from gcspy.tracer.drain import OBJECTS_FLAG, PYTHON_FLAG, RUNTIME_FLAG
from gcspy.tracer.process_trace import TraceSummary

__all__ = ["report_as_json", "report_as_text"]


def report_as_text(summaries: Sequence[TraceSummary], program: str) -> None:
    """Print a line for each trace, and one for each thing that it lacks.

    Raises:
        TraceError: A trace could not be written to its end.
        Unsupported: Nothing was traced.
    """
    if not summaries:
        raise Unsupported(
            f"{program} was not traced",
            found="a program that did not load gcspy's library",
            known="programs that are linked dynamically to a C library, for this machine, without setuid",
        )
    for one in summaries:
        counts = one.counts
        say_aside(
            f"{one.path}: {counts.events:,} events ({counts.allocations:,} allocations, {counts.frees:,} frees) of process {one.pid}, "
            f"{one.threads:,} {'thread' if one.threads == 1 else 'threads'}, {one.sites:,} sites, {one.nanos / 1e9:.1f} s; {one.bytes:,} bytes"
            + (f", {one.bytes / counts.events:.2f} an event" if counts.events else "")
        )
        say_aside(
            f"{one.path}: {counts.live_bytes:,} bytes in {counts.live_blocks:,} blocks live at the end"
        )
        for flaw in flaws_of(one):
            say_aside(f"{one.path}: {flaw}")
    for one in summaries:
        if one.error is not None:
            raise one.error


def flaws_of(one: TraceSummary) -> list[str]:
    """Return the flaws of a trace, a sentence each."""
    counts, facts = one.counts, one.facts
    lost = max(counts.lost, facts.lost)
    flaws = []
    if one.own_allocator:
        flaws.append("the program has its own malloc, whose blocks are not in the trace")
    if lost:
        flaws.append(
            f"{lost:,} events are missing: gcspy did not keep up, and does not hold a program for long"
        )
    if counts.unknown_frees:
        flaws.append(
            f"{counts.unknown_frees:,} frees of blocks whose allocation was not seen were left out"
        )
    if counts.inferred_frees:
        flaws.append(
            f"{counts.inferred_frees:,} frees were not seen, and were inferred from addresses that were given out again"
        )
    if facts.cut_stacks:
        flaws.append(
            f"{facts.cut_stacks:,} of {one.sites:,} stacks end before their outermost frame"
        )
    if facts.full_sites:
        flaws.append(f"{facts.full_sites:,} allocations have no site: there are too many sites")
    if facts.flags & RUNTIME_FLAG:
        flaws.append(
            "not seen are objects that the JVM makes for itself, and those that its compiler never allocates"
        )
    elif facts.flags & OBJECTS_FLAG:
        flaws.append(
            f"{counts.reused_objects:,} objects came from free lists, which hold {counts.cached_objects:,} dead ones, {counts.cached_bytes:,} bytes, at the end; "
            f"{counts.unknown_objects:,} births and deaths were of objects from before the trace"
        )
    elif facts.flags & PYTHON_FLAG:
        flaws.append(
            "these are blocks of memory: objects that free lists hand out again are not seen, from CPython 3.13 on they are"
        )
    if counts.damaged:
        flaws.append(
            f"the shared memory was damaged {counts.damaged:,} times: the program wrote where it should not"
        )
    return flaws


def report_as_json(summaries: Sequence[TraceSummary], exit_code: int) -> None:
    """Print all numbers as one JSON object on standard error."""
    traces: list[dict[str, Any]] = [
        {
            "file": str(one.path),
            "pid": one.pid,
            "bytes": one.bytes,
            "sites": one.sites,
            "threads": one.threads,
            "nanos": one.nanos,
            "waited_nanos": one.facts.waited_nanos,
            "error": None if one.error is None else str(one.error),
            "flaws": flaws_of(one),
            **{
                name: getattr(one.counts, name)
                for name in (
                    "events", "allocations", "frees", "unknown_frees", "inferred_frees", "live_blocks", "live_bytes"
                )
            },
            "lost": max(one.counts.lost, one.facts.lost),
        }
        for one in summaries
    ]  # fmt: skip
    say(Lines.of(json.dumps({"exit_code": exit_code, "traces": traces}, indent=2)), err=True)
