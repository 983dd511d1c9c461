"""Values that cannot be read are unknown: none is made up, and none is zero instead."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import eq
from typing import Any

import pytest
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_server.api import Event, Server, StringNames
from tests.drivers.behaviour.conftest import Classes, Join
from tests.drivers.behaviour.faulty_reads import FaultyReads
from tests.drivers.behaviour.subjects import (
    HOTSPOT_G1,
    Attached,
    AttachedSubject,
    Behaviour,
    having,
)
from tests.drivers.behaviour.target_programs import PythonProgram, TargetProgram
from tests.server.viewer import Viewer

MOST_LOOKS = 300
"""Events after which everything that can be read again is known again."""

THE_KERNELS = {("Memory over time", "Resident set")}
"""Space and stream of values that change while a program holds still: the kernel takes pages back."""

Shown = dict[tuple[str, Any, str], int | None]
"""Values by space, tile and stream, as a client has them; None: unknown."""


def shown(viewer: Viewer, server: Server) -> Shown:
    """Return what a client knows; a tile that is named by a text is known by it, as rows come and go.

    Of `THE_KERNELS` only whether it is known.
    """
    texts = {one.name: one.names for one in server.spaces if isinstance(one.names, StringNames)}
    found: Shown = {}
    for space in viewer.state.spaces.values():
        named = texts.get(space.space.name)
        keys: Sequence[Any] = (
            [space.names.key(tile) for tile in range(space.count)] if named is None else named.names
        )
        for stream in space.streams.values():
            known = stream.known
            for tile, key in enumerate(keys):
                sure = known is None or bool(known[tile])
                value = int(stream.values[tile]) if sure else None
                if value is not None and (space.space.name, stream.defined.name) in THE_KERNELS:
                    assert value > 0, "it is not zero"
                    value = 1
                found[space.space.name, key, stream.defined.name] = value
    return found


def texts(viewer: Viewer) -> dict[str, str]:
    """Return the report of each space."""
    return {space.space.name: space.info for space in viewer.state.spaces.values()}


@contextmanager
def damaged(subject: AttachedSubject, target: TargetProgram) -> Iterator[None]:
    """Damage what a driver reads that reads no memory: the head of the database, with its change counter."""
    assert isinstance(target, PythonProgram)
    assert not subject.reads_memory
    with target.database.open("r+b") as file:
        head = file.read(100)
        file.seek(0)
        file.write(b"\xa5" * 100)
        file.flush()
        try:
            yield
        finally:
            file.seek(0)
            file.write(head)
            file.flush()


class Look:
    """Lets events happen, and follows them as a client.

    Args:
        case: The driver.
        viewer: A client of its session.
    """

    def __init__(self, case: Attached, viewer: Viewer) -> None:
        self.viewer = viewer
        self._case = case
        self._events: list[Event] = []
        case.server.add_observer(self._events.append)

    def __call__(self) -> bool:
        """Let an event happen; return whether the driver refused it with an error of ours."""
        refused = False
        try:
            self._case.happen()
        except TargetGone:
            raise
        except TargetError as error:
            refused = str(self._case.target.pid) in str(error)
        self.viewer.until_events(len(self._events))
        return refused


@pytest.mark.parametrize(
    "subject",
    [*having(Behaviour.UNREADABLE), pytest.param(HOTSPOT_G1, id="hotspot-g1")],
)
def test_what_cannot_be_read_is_unknown_and_never_zero(
    subject: AttachedSubject, classes: Classes, reads: FaultyReads, join: Join
) -> None:
    with subject.target(classes) as target:
        target.hold()
        with subject.watch(target) as case:
            viewer = join(case.server)
            look = Look(case, viewer)
            assert not look()
            truth = shown(viewer, case.server)
            assert any(truth.values())
            unknown = 0
            if subject.reads_memory:
                reads.reset()
                assert not look()
                assert shown(viewer, case.server) == truth, "it holds still"
                for fails in _faults(reads.count):
                    reads.reset()
                    reads.fails = fails
                    look()
                    unknown += _compare(subject, truth, viewer, case.server)
                reads.reset()
            else:
                with damaged(subject, target):
                    assert not look()
                    assert shown(viewer, case.server) == truth, "what was read before stays"
                    assert "file is not a database" in viewer.changes[-1].event.cause
                    unknown += 1
            assert unknown, "nothing was hidden: no fault had an effect"
            looks = 0
            while (
                shown(viewer, case.server) != truth
            ):  # what was given up is looked for again, not at every event
                assert looks < MOST_LOOKS, "it is not read again"
                look()
                looks += 1


def _faults(count: int) -> list[Callable[[int], bool]]:
    """Return which reads fail at each event: one of some, every third, each with a probability, all."""
    dice = random.Random(count)
    single = sorted({1, 2, count // 2, count, *(dice.randrange(1, count + 1) for _ in range(12))})
    faults: list[Callable[[int], bool]] = [partial(eq, at) for at in single]
    return [*faults, lambda number: number % 3 == 0, lambda number: dice.random() < 0.5, bool]


def _compare(subject: AttachedSubject, truth: Shown, viewer: Viewer, server: Server) -> int:
    """Check that every known value is the true one; return how many are unknown."""
    found, said = shown(viewer, server), texts(viewer)
    for where, value in found.items():
        if value is None or value == truth.get(where):
            continue
        assert where[0] in subject.partial, (
            f"{where}: {value}, and it is {truth.get(where)}: {said[where[0]]}"
        )
        assert value <= (truth[where] or 0), where
        assert "unknown" in said[where[0]], where
    return sum(value is None for where, value in found.items() if truth.get(where) is not None)
