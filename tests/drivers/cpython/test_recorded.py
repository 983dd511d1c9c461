"""Events that a stub records: equal to the target's own numbers at each collection, and nothing waits for them."""

from __future__ import annotations

import ctypes
import json
import os
import random
import re
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.cpython.cooperation import stub
from gcspy_drivers.cpython.cooperation.stub_events import GC_END, GC_START
from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.layouts.structures import POOL_HEADER
from gcspy_drivers.cpython.pymalloc.pools import PoolState, judge
from gcspy_protocol.errors import TargetError
from hypothesis import given
from hypothesis import strategies as st

from gcspy_compiled.libraries import hash_of_sources, load_library
from gcspy_session.capacity import Capacity
from tests.drivers.cpython.stubbed import StubbedTarget, Watching

ROOT = Path(__file__).parents[3]
FOLDER = Path(stub.__file__).parent / "compiled"
# The tests run without machine code; these are about it.
LIBRARY = str(next(FOLDER.glob(f"gcspy-collect-{hash_of_sources(FOLDER)}-*.so"), ""))
pytestmark = pytest.mark.skipif(not LIBRARY, reason="there is no C compiler")

# At each recorded event the target prints what its allocator has, between the same two instructions as the copy is made.
TELLING = """
import ctypes, functools
stub = begin()
tell = ctypes.pythonapi["_PyObject_DebugMallocStats"]
tell.argtypes, tell.restype = None, None
errors = ctypes.c_void_p.in_dll(ctypes.pythonapi, "stderr")

line = stub._line
record = line._record
line._begin = (record, *line._begin)
line._record = functools.partial(tell, errors)
kept, rounds = [], int(sys.argv[3])
gc.disable()
sys.stdin.readline()
for turn in range(rounds):
    kept.append([{number: object()} for number in range(turn % 97)])
    if turn % 7 == 3:
        del kept[:: 3]
    gc.collect(turn % 3)
say(gc.get_stats())
sys.stdin.readline()
"""

ROW = re.compile(r"^ +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", re.MULTILINE)


@dataclass
class Shown:
    """Data that the session shows at each event, from its streams."""

    watching: Watching
    classes: list[dict[int, tuple[int, int, int]]] = field(default_factory=list)
    collections: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        server = self.watching.server
        finish = server.finish

        def kept(
            event: int,
            cause: str = "",
            program_clock: tuple[str, int] | None = None,
            *,
            holds: bool = True,
        ) -> None:
            if event in (GC_START, GC_END):
                self.keep()
            finish(event, cause, program_clock, holds=holds)

        vars(server)["finish"] = kept

    def keep(self) -> None:
        spaces = {space.schema.name: space for space in self.watching.server.spaces}
        streams = {one.schema.name: one.data for one in spaces["Size classes"].streams}
        columns = [streams[name].tolist() for name in ("Pools", "Blocks in use", "Free blocks")]
        self.classes.append(
            {number: row for number, row in enumerate(zip(*columns, strict=True)) if row[0]}
        )
        generations = {one.schema.name: one.data for one in spaces["GC generations"].streams}
        self.collections.append(int(generations["Collections"].sum()))


def told_by(text: str) -> list[dict[int, tuple[int, int, int]]]:
    """Return the pools, used and free blocks of each size class, as often as the target printed them."""
    found = []
    for part in text.split("Small block threshold")[1:]:
        rows = [tuple(map(int, row)) for row in ROW.findall(part.partition("# arenas")[0])]
        found.append({row[0]: (row[2], row[3], row[4]) for row in rows})
    return found


def compare(python: str, rounds: int) -> int:
    """Compare all events of a program with its own numbers; return how many there were."""
    with (
        StubbedTarget(python, TELLING, str(rounds), library=LIBRARY) as target,
        Watching(target, may_hold=False, level=2) as watching,
    ):
        shown = Shown(watching)
        assert target.process.stderr is not None
        errors = target.process.stderr.fileno()
        target.say("begin")
        text: list[bytes] = []
        ends = False
        until = time.monotonic() + 60 + rounds
        while time.monotonic() < until:
            watching.driver.wait(0.01)
            part = os.read(errors, 1 << 20) if select.select([errors], [], [], 0)[0] else b""
            text.append(part)
            if ends and not part:
                break
            ends = ends or len(shown.classes) >= 2 * rounds
        truth = told_by(b"".join(text).decode())
        assert len(shown.classes) == 2 * rounds == len(truth)
        assert shown.classes == truth
        stats = json.loads(target.read_line())
        assert shown.collections[-1] == sum(one["collections"] for one in stats)
        assert watching.server.counts()[1:] == (rounds, rounds)
        return len(truth)


def test_every_recorded_event_is_what_the_target_itself_tells(python: str) -> None:
    assert compare(python, 60) == 120


COLLECTING = """
stub = begin()
gc.disable()
sys.stdin.readline()
before = time.monotonic()
for turn in range(int(sys.argv[3])):
    gc.collect(0)
say(time.monotonic() - before)
sys.stdin.readline()
gc.collect(0)
say([stub.connected, gc.get_stats()[0]["collections"]])
sys.stdin.readline()
"""


def take_all(watching: Watching, *, starts: int) -> None:
    """Take events until a number of collections has ended."""
    until = time.monotonic() + 150
    while watching.server.counts()[GC_END] < starts and time.monotonic() < until:
        watching.driver.wait(0.01)


def test_a_target_that_records_waits_for_nobody_until_the_ring_is_full(own_python: str) -> None:
    with (
        StubbedTarget(own_python, COLLECTING, "100", library=LIBRARY) as target,
        Watching(target, may_hold=False, level=2) as watching,
    ):
        target.say("begin")
        # Nothing is taken meanwhile.
        assert json.loads(target.read_line()) > 0
        assert watching.driver._events.pending == 200
        take_all(watching, starts=100)
        assert watching.server.counts()[1:] == (100, 100)
        assert watching.server._core.lost == 0


def test_a_target_rests_between_events_for_which_nothing_was_saved(own_python: str) -> None:
    with (
        StubbedTarget(own_python, COLLECTING, "100", library=LIBRARY) as target,
        Watching(target, may_hold=False, level=2) as watching,
    ):
        watching.driver._line.rest(10**15, after=3)
        target.say("begin")
        assert json.loads(target.read_line()) > 0
        assert watching.driver._events.pending == 6, "the first three collections, start and end"


@pytest.mark.parametrize("budget", [None, 1])
def test_a_full_ring_holds_the_program_or_leaves_events_out_as_the_budget_wants(
    own_python: str, budget: int | None
) -> None:
    rounds = 530  # two records each, and there are 1,024 places
    with (
        StubbedTarget(own_python, COLLECTING, str(rounds), library=LIBRARY) as target,
        Watching(target, may_hold=False, level=1, budget=budget) as watching,
    ):
        shown = Shown(watching)
        ring = watching.driver._events.line.ring
        assert ring is not None
        if budget is not None:
            # As if the budget had room for all; it has none for what finds no room.
            assert ring.plan is not None
            ring.follow(ring.plan, holds=False)
            watching.driver._line.record(records=True, ends=True)
            for kind in (0, 1):
                watching.driver._line.want(kind, period=1, not_before_nanos=0)
            watching.driver._line.rest(0, after=0)
        target.say("begin")
        if budget is None:
            take_all(watching, starts=rounds)
            assert len(shown.collections) == 2 * rounds
            assert watching.server._core.lost == 0
        else:
            assert json.loads(target.read_line()) > 0
            assert ring.full > 0
            assert ring.pending < 1024
            assert ring.pending % 2 == 0, "whose start was recorded has its end"
        ring_events = ring.pending
        until = time.monotonic() + 150
        while ring.pending and time.monotonic() < until:
            watching.driver.tick()  # each takes what it can in a second
        watching.driver.tick()
        assert watching.server.counts()[GC_START] >= rounds - 1, f"{ring_events} were recorded"


def test_a_lossless_client_gets_every_event_from_the_ring(own_python: str) -> None:
    with (
        StubbedTarget(own_python, COLLECTING, "100", library=LIBRARY) as target,
        Watching(target, may_hold=False, level=1, budget=1) as watching,
    ):
        room = Capacity(events=4, size_bytes=1 << 20, deadline_nanos=10**9)
        watching.server._core.room.tell(1 << 60, (room,))
        watching.driver._events.prepare()
        ring = watching.driver._events.line.ring
        assert ring is not None
        assert ring.plan is not None, "nothing is held for it"
        assert ring._words[2] == 1, "but for a full ring"
        shown = Shown(watching)
        target.say("begin")
        take_all(watching, starts=100)
        assert len(shown.collections) == 200


def test_a_pause_holds_the_target_at_the_next_event_and_not_at_a_recorded_one(
    own_python: str,
) -> None:
    with (
        StubbedTarget(own_python, COLLECTING, "1", library=LIBRARY) as target,
        Watching(target, may_hold=False, level=2) as watching,
    ):
        server = watching.server
        ring = watching.driver._events.line.ring
        assert ring is not None
        planned = [ring.plan]
        server._core.flow.pause("a test")
        watching.driver._events.prepare()
        planned.append(ring.plan)
        assert [one is None for one in planned] == [False, True], "from now on the target waits"
        held: list[bool] = []
        server.add_observer(lambda event: held.append(watching.driver._line.stands_still))
        target.say("begin")
        server._core.flow.resume()
        take_all(watching, starts=1)
        assert held == [True, True]
        assert json.loads(target.read_line()) > 0


def test_what_the_sidecar_leaves_when_it_is_gone_is_nothing(python: str) -> None:
    source = """
stub_module.__dict__.setdefault("json", json)
def mapped():
    with open("/proc/self/maps") as file:
        return sorted(line.split()[-1] for line in file if "gcspy" in line)
before = mapped(), sorted(os.listdir("/proc/self/fd"))
stub = begin()
gc.disable()
sys.stdin.readline()
for turn in range(20): gc.collect(0)
say(len(mapped()) > len(before[0]))
sys.stdin.readline()
gc.collect(0)
connected = stub.connected
del stub
say([connected, mapped() == before[0], len(os.listdir("/proc/self/fd")) <= len(before[1])])
sys.stdin.readline()
"""
    with StubbedTarget(python, source, library=LIBRARY) as target:
        with Watching(target, may_hold=False, level=2) as watching:
            target.say("begin")
            assert target.read_line() == "true"
            take_all(watching, starts=20)
        target.say("collect")
        assert json.loads(target.read_line()) == [False, True, True]


@pytest.mark.parametrize("level", [2, 3])
def test_what_a_program_recorded_before_its_end_is_shown(own_python: str, level: int) -> None:
    source = """
stub = begin()
gc.disable()
sys.stdin.readline()
for turn in range(30): gc.collect(0)
os._exit(0)
"""
    with (
        StubbedTarget(own_python, source, library=LIBRARY) as target,
        Watching(target, may_hold=False, level=level) as watching,
    ):
        shown = Shown(watching)
        target.say("begin")
        if level > 2:  # it waits at the first event
            ring = watching.driver._events.line.ring
            assert ring is not None
            while not ring.plan:
                watching.driver.wait(0.01)
        assert target.read_line() == "", "it has ended"
        with pytest.raises(TargetError):
            watching.serve()
        assert len(shown.collections) == 60
        assert watching.server.counts()[1:] == (30, 30)


def test_a_program_is_not_held_by_a_sidecar_that_is_slower_than_its_collections(
    own_python: str,
) -> None:
    rounds = 700  # more than there are places
    with (
        StubbedTarget(own_python, COLLECTING, str(rounds), library=LIBRARY) as target,
        Watching(target, may_hold=False, level=2) as watching,
    ):
        ring = watching.driver._events.line.ring
        assert ring is not None
        shown = Shown(watching)
        keep = shown.keep

        def keep_slowly() -> None:
            keep()
            time.sleep(0.002)

        vars(shown)["keep"] = keep_slowly
        assert target.process.stdout is not None
        target.say("begin")
        done = False
        until = time.monotonic() + 150
        while not done and time.monotonic() < until:
            watching.driver.wait(0.01)
            done = bool(select.select([target.process.stdout], [], [], 0)[0])
        assert ring.pending > 1024, "the program has ended its work, and we have not"
        vars(shown).pop("keep")
        take_all(watching, starts=rounds)
        assert len(shown.collections) == 2 * rounds
        assert watching.server._core.lost == 0


def test_a_child_leaves_the_ring_alone(own_python: str) -> None:
    source = """
stub = begin()
gc.disable()
sys.stdin.readline()
gc.collect(0)
if os.fork() == 0:
    for turn in range(10): gc.collect(0)
    os._exit(0)
os.wait()
gc.collect(0)
say(stub.connected)
sys.stdin.readline()
"""
    with (
        StubbedTarget(own_python, source, library=LIBRARY) as target,
        Watching(target, may_hold=False, level=2) as watching,
    ):
        shown = Shown(watching)
        target.say("begin")
        assert target.read_line() == "true"
        take_all(watching, starts=2)
        assert watching.server.counts()[1:] == (2, 2)
        assert len(shown.collections) <= 4


def test_a_file_that_gets_the_number_of_a_closed_ring_is_not_written_to(
    own_python: str, tmp_path: Path
) -> None:
    source = """
stub = begin()
gc.disable()
sys.stdin.readline()
gc.collect(0)
number = stub._line._recorder.memory
os.close(number)
file = os.open(sys.argv[3], os.O_RDWR | os.O_CREAT)
os.dup2(file, number)
sys.stdin.readline()
gc.collect(0)
say([os.fstat(file).st_size, os.pread(number, 10, 0).decode()])
sys.stdin.readline()
"""
    path = tmp_path / "precious"
    path.write_text("precious")
    with (
        StubbedTarget(own_python, source, str(path), library=LIBRARY) as target,
        Watching(target, may_hold=False, level=2) as watching,
    ):
        target.say("begin")
        take_all(watching, starts=1)
        target.say("collect")
        take_all(watching, starts=2)  # held and read, as without a ring
        assert json.loads(target.read_line()) == [8, "precious"]


GEOMETRY = PoolGeometry()
POOL_AT = 0x7F00_0000_0000


@st.composite
def headers(draw: st.DrawFn) -> np.void:
    """A pool header that is valid, or nearly."""
    header: np.void = np.zeros(1, dtype=POOL_HEADER)[0]
    size_class = draw(st.integers(0, 31))
    size = 16 * (size_class + 1)
    capacity = (GEOMETRY.pool_bytes - 48) // size
    carved = draw(st.integers(2, capacity))
    header["count"] = draw(st.integers(0, carved))
    header["szidx"], header["arenaindex"] = size_class, 5
    header["nextoffset"], header["maxnextoffset"] = 48 + size * carved, GEOMETRY.pool_bytes - size
    if header["count"] != capacity:
        header["freeblock"] = POOL_AT + 48 + size * draw(st.integers(0, carved - 1))
    if draw(st.booleans()):
        name = draw(st.sampled_from([one for one in POOL_HEADER.names or () if one[0] != "_"]))
        bits = 8 * POOL_HEADER[name].itemsize
        near = int(header[name]) + draw(st.integers(-20, 20))
        wrong = draw(st.sampled_from([0, 0xFFFF, near, draw(st.integers(0, (1 << bits) - 1))]))
        header[name] = wrong % (1 << bits)
    if draw(st.integers(0, 9)) == 0:
        header["szidx"], header["count"] = 0xFFFF, draw(st.integers(0, 1))
    return header


@given(headers())
def test_the_library_judges_a_header_as_numpy_does(header: np.void) -> None:
    library = load_library(Path(LIBRARY))
    assert library is not None
    check = library.held.gcspy_judge
    check.restype = ctypes.c_uint32
    check.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
    plan = np.zeros(96, dtype=np.uint64)
    plan[10:15] = GEOMETRY.arena_bytes, GEOMETRY.pool_bytes, 48, 16, 32
    records = np.array([header], dtype=POOL_HEADER)
    number = check(records.ctypes.data, POOL_AT, 5, plan.ctypes.data)
    good = judge(
        records, np.array([POOL_AT], dtype=np.uint64), np.array([5], dtype=np.uint32), GEOMETRY
    )[0]
    if not good:
        assert number == 0
    else:
        state = PoolState.USED if header["count"] else PoolState.FREE
        assert number >> 24 == state
        assert number & 0xFFFF == header["count"]
        assert (number >> 16 & 0xFF) == header["szidx"] & 0xFF


SIDECAR = """
import socket, sys
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
from tests.drivers.cpython.stubbed import Watching
target = SimpleNamespace(pid=int(sys.argv[2]), connection=socket.socket(fileno=int(sys.argv[3])))
with Watching(target, may_hold=False, level=int(sys.argv[4])) as watching:
    print("there", flush=True)
    watching.serve()
"""

BEATING = """
import select
stub = begin()
gc.disable()
gaps, since = [], time.monotonic()
while not select.select([sys.stdin], [], [], 0)[0]:
    gc.collect(0)
    now = time.monotonic()
    if now - since > 0.001:
        gaps.append((since, now))
    since = now
killed = float(sys.stdin.readline())
longest = max([end - max(begin, killed) for begin, end in gaps if end > killed], default=0.001)
for turn in range(100):
    gc.collect(0)
say([stub.connected, longest, gc.get_stats()[0]["collections"]])
sys.stdin.readline()
"""


def kill_a_sidecar(python: str, after_secs: float, level: int = 2) -> float:
    """Kill a sidecar while its target records; return the longest time between two collections from then on, in s; 0.001: none above that."""
    with StubbedTarget(python, BEATING, library=LIBRARY) as target:
        fd = target.connection.fileno()
        command = [sys.executable, "-c", SIDECAR, str(ROOT), str(target.pid), str(fd), str(level)]
        with subprocess.Popen(command, pass_fds=(fd,), stdout=subprocess.PIPE) as sidecar:
            target.connection.close()
            assert sidecar.stdout is not None
            assert sidecar.stdout.readline() == b"there\n"
            time.sleep(after_secs)
            killed = time.monotonic()
            sidecar.kill()
        target.say(str(killed))
        connected, longest, collections = json.loads(target.read_line())
        assert not connected, "the stub has left"
        assert collections >= 100
        assert not target.ended()
        return float(longest)


@pytest.mark.parametrize(("after_secs", "level"), [(0.0, 2), (0.03, 2), (1.5, 2), (1.5, 3)])
def test_a_target_works_on_when_its_sidecar_is_killed(
    own_python: str, after_secs: float, level: int
) -> None:
    assert kill_a_sidecar(own_python, after_secs, level) > 0


@pytest.mark.soak
@pytest.mark.parametrize("level", [2, 3])
def test_two_hundred_sidecars_are_killed(own_python: str, soak_seed: int, level: int) -> None:
    chance = random.Random(soak_seed)
    longest = sorted(
        kill_a_sidecar(own_python, chance.uniform(0, 1.0 if level < 3 else 3.0), level)
        for _ in range(200)
    )
    print(
        f"level {level}, 200 kills: longest time between two collections, ms: median {longest[100] * 1e3:.1f}, "
        f"p95 {longest[190] * 1e3:.1f}, longest {longest[-1] * 1e3:.1f}"
    )


@pytest.mark.soak
def test_ten_thousand_collections_are_what_the_target_itself_tells(own_python: str) -> None:
    assert compare(own_python, 10_000) == 20_000
