"""Accesses between full collections, against the addresses of the objects that a program used."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.cooperative.line import StubEvent
from gcspy_drivers.cpython.cooperation import stub
from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver
from gcspy_drivers.cpython.options import ACCESSES
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.accesses import CellAccesses
from gcspy_drivers.remote.pages.trial import try_pages

from gcspy_server.api import (
    AttachOptions,
    Event,
    HeapQuestion,
    HeapQuestionKind,
    ServerSpace,
    StringNames,
)
from tests.drivers.cpython.stubbed import StubbedTarget, Watching
from tests.drivers.cpython.test_recorded import LIBRARY
from tests.drivers.targets import VERSIONS, find_python
from tests.matrix import matrix

pytestmark = pytest.mark.skipif(not try_pages().works, reason=try_pages().refusal)

USES = """
import random
class Node:
    __slots__ = ("x", "y")
    def __init__(self, number):
        self.x, self.y = float(number), (number, number + 1)
gc.disable()
objects = [Node(number) for number in range(int(sys.argv[3]))]
stub = begin()
def pages(chosen):
    found = set()
    for number in chosen:
        one = objects[number]
        found.update((id(one) >> 12, id(one.x) >> 12))
    return sorted(found)
say({"all": pages(range(len(objects)))})
for seed in range(int(sys.argv[4])):
    sys.stdin.readline()
    chance = random.Random(seed)
    many = chance.choice((1, 10, 100, 1000, 10000))
    chosen = chance.sample(range(len(objects)), min(many, len(objects)))
    if seed % 3 == 2:
        chosen = range(chosen[0] // 2, chosen[0] // 2 + len(chosen) // 2)
    gc.collect()
    total = 0.0
    for number in chosen:
        total += objects[number].x
    say("used")
    sys.stdin.readline()
    say(pages(chosen))
sys.stdin.readline()
"""


class Session:
    """A driver and a program that uses objects."""

    def __init__(self, target: StubbedTarget, watching: Watching) -> None:
        self.target, self.watching = target, watching

    def without_limit(self) -> None:
        """Have every interval followed, whatever it costs: these are far shorter than a program's."""
        accesses = self.watching.driver._accesses
        assert accesses is not None
        accesses._accesses._saved = 1e15
        accesses._accesses._most_saved = 1e15

    def tick(self) -> None:
        """Let the clock tick."""
        self.watching.driver.notice()
        self.watching.driver.sample()

    def line(self) -> Any:
        """Serve the program's events until it prints a line."""
        assert self.target.process.stdout is not None
        while not select.select([self.target.process.stdout], [], [], 0)[0]:
            self.watching.driver.wait(0.005)
        return json.loads(self.target.read_line())

    def space(self, name: str) -> ServerSpace:
        """Return a space."""
        return next(one for one in self.watching.server.spaces if one.name == name)

    def accessed(self) -> set[int]:
        """Return the numbers of the pages that were accessed, all of them."""
        accesses = self.watching.driver._accesses
        assert accesses is not None
        assert not accesses.problem
        inner = accesses._accesses
        inner._next_look = 0
        self.tick()
        return set((inner._ranges.addresses[inner._bits] // np.uint64(PAGE_BYTES)).tolist())


def compared(python: str, *, objects: int, patterns: int, library: str) -> tuple[int, int, int]:
    """Return how many pages were used in all patterns, how many of them were missed, and how many others were reported."""
    used = missed = extra = 0
    with (
        StubbedTarget(python, USES, str(objects), str(patterns), library=library) as target,
        Watching(target, may_hold=False) as watching,
    ):
        session = Session(target, watching)
        session.without_limit()
        everything = set(session.line()["all"])
        session.tick()
        for _ in range(patterns):
            target.say("collect and use")
            assert session.line() == "used"
            found = session.accessed() & everything
            target.say("tell")
            truth = set(session.line())
            used += len(truth)
            missed += len(truth - found)
            extra += len(found - truth)
    return used, missed, extra


@pytest.mark.parametrize("version", matrix(VERSIONS, usual=("3.11", "3.13")))
def test_no_page_is_missed_and_few_are_too_many(version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    patterns = 8
    used, missed, extra = compared(python, objects=30_000, patterns=patterns, library=LIBRARY)
    assert used > 1000
    assert missed == 0
    # The interpreter's own work shares a few pages with the objects at each pattern.
    assert extra <= used // 100 + 8 * patterns


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
def test_a_hundred_patterns(version: str, soak_seed: int) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    random.seed(soak_seed)
    used, missed, extra = compared(python, objects=100_000, patterns=100, library=LIBRARY)
    print(f"\n{version}: {used} pages used in 100 patterns, {missed} missed, {extra} too many")
    assert missed == 0
    assert extra <= used / 100


def test_tiles_say_what_was_accessed_and_for_how_long_nothing_was() -> None:
    with (
        StubbedTarget(sys.executable, USES, "30000", "4", library=LIBRARY) as target,
        Watching(target, may_hold=False) as watching,
    ):
        session = Session(target, watching)
        session.without_limit()
        session.line()
        arenas, whole = session.space("pymalloc arenas"), session.space("Whole arenas")
        streams = {one.name: one for one in arenas.streams}
        for _ in range(4):
            session.tick()
            target.say("collect and use")
            session.line()
            target.say("tell")
            session.line()
        session.accessed()
        assert streams["Accessed"].known is None
        accessed = streams["Accessed"].values
        idle = streams["Idle"].values
        assert 0 < int((accessed > 0).sum()) < len(accessed)
        assert int(idle.max()) == 3 + 1  # the intervals from attaching to the last collection
        assert (idle[accessed > 0] == 0).all()
        assert "accesses since the last full collection" in arenas.info
        assert "pools without any access have" in arenas.info
        of_arenas = next(one for one in whole.streams if one.name == "Accessed")
        assert int(of_arenas.values.sum()) == int(accessed.sum())


def test_accesses_can_be_turned_off() -> None:
    assert "off" in ACCESSES.choices
    with StubbedTarget(sys.executable, USES, "100", "1") as target:
        options = AttachOptions(
            stub_fd=os.dup(target.connection.fileno()), values={"accesses": "off"}
        )
        target.connection.close()
        driver = CooperativeDriver.attach(target.pid, options)
        try:
            assert "accesses" not in driver.describe().general_info
            driver.open(driver.describe().server())
            names = {stream.name for space in driver.server.spaces for stream in space.streams}
            assert "Accessed" not in names
        finally:
            driver.close()


def test_a_kernel_that_cannot_is_reported_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcspy_drivers.cpython import collection_accesses
    from gcspy_drivers.remote.pages.trial import PageTrial

    refused = PageTrial(works=False, refusal="this kernel does not say which pages were written")
    monkeypatch.setattr(collection_accesses, "try_pages", lambda: refused)
    with (
        StubbedTarget(sys.executable, USES, "100", "1") as target,
        Watching(target, may_hold=False) as watching,
    ):
        info = watching.driver.describe().general_info
        assert "Accesses to memory are not known: this kernel does not say" in info
        assert all(
            "Accessed" not in [s.name for s in one.streams] for one in watching.server.spaces
        )


KILLED = """
import os, socket, sys, time
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_server.api import AttachOptions
driver = CPythonDriver.attach(int(sys.argv[1]), AttachOptions(stub_fd=int(sys.argv[2])))
server = driver.describe().server()
server.add_observer(lambda event: None)
driver.open(server)
driver.wait(0)
driver.notice()
driver.sample()
print(driver._accesses._accesses.measures, flush=True)
driver.wait(1000)
"""


def test_nothing_is_protected_any_more_when_gcspy_was_killed() -> None:
    with StubbedTarget(sys.executable, USES, "20000", "1") as target:
        fd = target.connection.fileno()
        sidecar = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(target.pid), str(fd)],
            pass_fds=(fd,),
            stdout=subprocess.PIPE,
            text=True,
        )
        target.connection.close()
        try:
            assert sidecar.stdout is not None
            assert sidecar.stdout.readline().strip() == "True"
            flags = f"/proc/{target.pid}/smaps"
            with open(flags) as file:
                assert " uw" in file.read()
        finally:
            sidecar.send_signal(signal.SIGKILL)
            sidecar.communicate()
        json.loads(target.read_line())
        target.say("collect and use")
        assert json.loads(target.read_line()) == "used"
        with open(flags) as file:
            assert " uw" not in file.read()


def test_the_stub_and_the_driver_have_one_number_of_the_call() -> None:
    from gcspy_drivers.remote.pages.trial import CALL_NUMBERS

    assert stub._USERFAULTFD == CALL_NUMBERS


BY_TYPE = """
class Used:
    __slots__ = ("x",)
class Kept:
    __slots__ = ("x",)
gc.disable()
used, kept = [Used() for _ in range(20000)], [Kept() for _ in range(30000)]
stub = begin()
sys.stdin.readline()
gc.collect()
for one in used:
    one.x = None
say("used")
sys.stdin.readline()
gc.collect()
say("collected")
"""


def test_types_on_idle_pools_are_those_that_are_not_used() -> None:
    with (
        StubbedTarget(sys.executable, BY_TYPE) as target,
        Watching(target, level=3, may_hold=False) as watching,
    ):
        session = Session(target, watching)
        session.without_limit()
        session.tick()
        target.say("collect and use")
        assert session.line() == "used"
        session.accessed()
        space = session.space("Types")
        assert isinstance(space.names, StringNames)
        names = space.names.names
        values = {one.name: one.values for one in space.streams}
        used, kept = (names.index(name) for name in ("Used", "Kept"))
        assert values["Idle bytes"][used] < values["Bytes"][used] // 50
        assert values["Idle bytes"][kept] > values["Bytes"][kept] * 49 // 50

        # The same at the event at which the interval ends, where written pools are read again.
        at_starts: list[int] = []

        def note(event: Event) -> None:
            if event.cause.startswith("generation 2") and "collected" not in event.cause:
                stream = next(
                    one for one in session.space("Types").streams if one.name == "Idle bytes"
                )
                at_starts.append(int(stream.values[kept]))

        watching.server.add_observer(note)
        target.say("collect again")
        assert session.line() == "collected"
        assert at_starts[-1] > values["Bytes"][kept] * 49 // 50


MANY_FULL = """
class Node:
    __slots__ = ("x",)
gc.disable()
objects = [Node() for _ in range(20000)]
stub = begin()
sys.stdin.readline()
used = []
gc.collect()
for turn in range(int(sys.argv[3])):
    chosen = objects[turn * 400:turn * 400 + 300]
    used.append(sorted({id(one) >> 12 for one in chosen}))
    for one in chosen:
        one.x = None
    gc.collect()
say({"used": used, "all": sorted({id(one) >> 12 for one in objects})})
sys.stdin.readline()
"""


@pytest.mark.skipif(not LIBRARY, reason="there is no C compiler")
def test_full_collections_do_not_wait_for_events_that_are_not_gathered_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = 20
    with (
        StubbedTarget(sys.executable, MANY_FULL, str(turns), library=LIBRARY) as target,
        Watching(target, may_hold=False) as watching,
    ):
        session = Session(target, watching)
        session.without_limit()
        session.tick()
        events, accesses = watching.driver._events, watching.driver._accesses
        assert accesses is not None
        at_starts: list[set[int]] = []
        accesses_at = accesses.at

        def noted(
            event: StubEvent, address: npt.NDArray[np.uint64]
        ) -> tuple[CellAccesses | None, str] | None:
            found = accesses_at(event, address)
            if event.kind == 0:
                assert found is not None
                assert found[0] is not None
                pools = address[found[0].accessed_bytes > 0] // np.uint64(PAGE_BYTES)
                at_starts.append(set(pools.tolist()))
            return found

        with monkeypatch.context() as patch:
            # As if each event took for ever to gather: the program finishes nevertheless.
            patch.setattr(events, "_take_copies", lambda _server, _secs: 0)
            patch.setattr(events, "_drain", lambda *_args, **_more: None)
            target.say("collect")
            truth = session.line()
            assert events.pending == 2 * (turns + 1)
            assert watching.server.counts()[1:] == (0, 0)
        monkeypatch.setattr(accesses, "at", noted)
        while events.pending:
            watching.driver.wait(0.01)
        assert watching.server.counts()[1:] == (turns + 1, turns + 1)
        # Each event has the accesses of its own time, although those of later ones were known.
        per = watching.driver._target.geometry.pool_bytes // PAGE_BYTES
        everything = {page // per * per for page in truth["all"]}
        assert len(at_starts) == turns + 1
        for used, found in zip(truth["used"], at_starts[1:], strict=True):
            pools = {page // per * per for page in used}
            assert pools <= found
            assert len(found & everything - pools) <= 8
        target.say("end")


BY_HOLDER = """
class Item:
    __slots__ = ("x",)
gc.disable()
CACHE, LIVE = [Item() for _ in range(30000)], [Item() for _ in range(20000)]
stub = begin()
sys.stdin.readline()
gc.collect()
for one in LIVE:
    one.x = None
del one
say("used")
sys.stdin.readline()
"""


@pytest.mark.soak
def test_holders_say_how_much_of_what_they_hold_is_idle() -> None:
    with (
        StubbedTarget(sys.executable, BY_HOLDER) as target,
        Watching(target, may_hold=False) as watching,
    ):
        session = Session(target, watching)
        session.without_limit()
        session.tick()
        target.say("collect and use")
        assert session.line() == "used"
        session.accessed()
        ask = watching.driver.investigator()
        assert ask is not None
        question = HeapQuestion(kind=HeapQuestionKind.HOLDERS, type_name="Item")
        table = ask(question, lambda *_: None)
        names = [column.name for column in table.columns]
        assert names[-2:] == ["Idle", "Address"]
        found = {str(row[0]): row for row in table.rows}
        cache, live = (
            next(row for way, row in found.items() if way.endswith(end))
            for end in ("CACHE", "LIVE")
        )
        size = names.index("Bytes")
        (idle, whole), (idle_live, whole_live) = (
            (int(str(row[-2])), int(str(row[size]))) for row in (cache, live)
        )
        assert whole * 0.97 < idle <= whole
        assert idle_live < whole_live * 0.03
        assert "accesses since the last full collection" in table.note
