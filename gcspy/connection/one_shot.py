"""One sample of a process: one gathering, one question, and detach.

Knows drivers and questions; does not know their subjects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from gcspy_protocol.details import AnswerState, DetailTable, Query
from gcspy_protocol.errors import TargetError, Unsupported
from gcspy_protocol.messages import Event

from gcspy.connection.target import attach_group, one_driver_of
from gcspy.output.detail_text import print_table, rows_as_json
from gcspy.output.progress import results_with_steps
from gcspy.output.terminal import say, say_aside, say_json
from gcspy_compiled.machine_code import compile_after
from gcspy_server.api import AttachOptions, Server, ServerSpace
from gcspy_server.hosting.slow_watch import told_when_slow

__all__ = ["OneShot", "look_once", "print_as_json", "print_as_text", "print_early"]

_OBJECTS = 3
_TYPES = "types"
_SOON_SECS = 1.0
"""A user who waits longer gets a message."""

_PATIENCE_SECS = 3.0
"""If a sample takes longer, it is worth compiling loops for it; a shorter one would be slowed down by that, and end before."""

_MOST_LOOKS = 3
"""How often a sample is repeated if too much changed during it."""


@dataclass(frozen=True, slots=True)
class OneShot:
    """The result.

    Attributes:
        pid: The process.
        name: Its name.
        gather_nanos: Duration of the gathering.
        table: The answer.
    """

    pid: int
    name: str
    gather_nanos: int
    table: DetailTable


def look_once(
    pid: int,
    kind: str,
    *,
    most: int,
    drivers: tuple[str, ...] = (),
    early: Callable[[OneShot], None] | None = None,
) -> OneShot:
    """Attach to a process, gather once, ask for its whole content, and detach.

    Args:
        pid: The process.
        kind: Kind of the question.
        most: Rows.
        drivers: Names of the drivers; none: the most specific one.
        early: Receives estimates, while the answer takes long.

    Raises:
        TargetError: It cannot be attached to, or does not support the question.
    """
    if kind == _TYPES and len(drivers) < 2:
        with suppress(Unsupported), compile_after(_PATIENCE_SECS):
            return _count(pid, most, drivers, early)
    slow = told_when_slow(f"looking into process {pid}", say_aside, secs=_SOON_SECS)
    with slow, compile_after(_PATIENCE_SECS):
        return _look(pid, kind, most=most, drivers=drivers)


def _count(
    pid: int, most: int, drivers: tuple[str, ...], early: Callable[[OneShot], None] | None
) -> OneShot:
    """Count types without a session.

    Raises:
        Unsupported: The driver does not support that.
        TargetError: The process cannot be read.
    """
    driver = one_driver_of(pid, drivers)
    what = f"looking into process {pid}"
    with nullcontext() if sys.stderr.isatty() else told_when_slow(what, say_aside, secs=_SOON_SECS):
        for found in results_with_steps(lambda show: driver.count_types(pid, most, show)):
            result = OneShot(pid, found.name, found.gather_nanos, found.table)
            if found.share == 1:
                return result
            if early is not None:
                early(result)
    raise TargetError(f"process {pid}: its driver counted no types; try again")


def _look(pid: int, kind: str, *, most: int, drivers: tuple[str, ...]) -> OneShot:
    driver = attach_group(pid, AttachOptions(level=_OBJECTS), drivers)
    try:
        described = driver.describe()
        server = described.server()
        events: list[Event] = []
        server.add_observer(events.append)
        driver.open(server)
        for _ in range(_MOST_LOOKS):
            driver.tick()
            space = _whole_space(server, kind)
            if space is None or not events:
                continue
            answer = server.ask(Query(number=1, space=space.id, kind=kind, most=most))
            if answer.state is AnswerState.ANSWERED:
                return OneShot(pid, described.name, events[-1].gather_nanos, answer.table)
    finally:
        driver.close()
    if space is None:
        raise Unsupported(
            f"{described.name}: its driver cannot report {kind}. {described.general_info}".rstrip(
                ". "
            ),
            found=", ".join(space.name for space in server.spaces) or "no spaces",
            known=f"spaces that can report {kind}",
        )
    raise TargetError(f"{described.name}: {answer.reason}; try again")


def _whole_space(server: Server, kind: str) -> ServerSpace | None:
    """The first space that supports it: a driver adds the one of the whole process before those of its parts."""
    return next((space for space in server.spaces if kind in space.schema.details), None)


def print_as_json(found: OneShot, more: Mapping[str, object] | None = None) -> None:
    """Print one JSON object, with more fields if there are any; unknown is null."""
    data = {
        "pid": found.pid,
        "process": found.name,
        "gather_nanos": found.gather_nanos,
        **rows_as_json(found.table),
        **(more or {}),
    }
    say_json(data)


def print_as_text(found: OneShot) -> None:
    """A table for people."""
    say(f"{found.name}, sampled in {found.gather_nanos / 1e6:.0f} ms")
    print_table(found.table)


def print_early(found: OneShot) -> None:
    """Print an estimate for people who wait, beside the result."""
    say(f"{found.name}, after {found.gather_nanos / 1e6:.0f} ms", err=True)
    print_table(found.table, err=True)
    say("the exact counts follow", err=True)
    say(err=True)
