"""A target that cooperates: its stub reports exactly what happened, and nothing moves while it is read."""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import select
import socket
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.cooperative.line import StubEvent
from gcspy_drivers.cpython.cooperation.stub_events import GC_END, GC_START
from gcspy_drivers.cpython.driver import CLOCK
from gcspy_drivers.cpython.target import PymallocHeap
from gcspy_drivers.kit import stubbed_driver
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy.connection.link import connect
from gcspy_server.api import Event, GatherRequest, Mode, PauseActsOn, Server
from tests.drivers.cpython.stubbed import StubbedTarget, Watching
from tests.drivers.targets import find_python
from tests.server.viewer import Viewer

COUNTING = """
mine = []
def own(phase, info):
    mine.append((phase, info["generation"], info["collected"], info["uncollectable"]))
before = len(gc.callbacks)
gc.callbacks.append(own)
gc.disable()
begin()
stats = gc.get_stats()
del mine[:]
gc.enable()
class Node:
    def __init__(self):
        self.me = self
for _ in range(75):
    kept = [Node() for _ in range(300)]
    if _ % 15 == 0:
        gc.collect(_ // 15 % 3)
gc.disable()
after = gc.get_stats()
told = list(mine)
deltas = [[now[key] - then[key] for key in ("collections", "collected", "uncollectable")] for then, now in zip(stats, after)]
say([told, deltas])
sys.stdin.readline()
"""


def until_line(target: StubbedTarget, watching: Watching) -> None:
    """Serve the target's events until it waits for us: it has nothing more to report then."""
    assert target.process.stdout is not None
    while not select.select([target.process.stdout], [], [], 0)[0]:
        watching.driver.wait(0.01)
    watching.driver.wait(0)


def cause(phase: str, generation: int, collected: int, uncollectable: int) -> str:
    if phase == "start":
        return f"generation {generation}"
    return f"generation {generation}, collected {collected}, uncollectable {uncollectable}"


def test_every_collection_is_told_in_order_with_what_the_program_itself_counts(python: str) -> None:
    with StubbedTarget(python, COUNTING) as target, Watching(target) as watching:
        until_line(target, watching)
        told, deltas = json.loads(target.read_line())
        events = [event for event in watching.events if event.event != CLOCK]
        assert len(told) > 20
        assert [(event.event, event.cause) for event in events] == [
            (GC_START if one[0] == "start" else GC_END, cause(*one)) for one in told
        ]
        ends = [one for one in told if one[0] == "stop"]
        for generation, (collections, collected, uncollectable) in enumerate(deltas):
            of_it = [one for one in ends if one[1] == generation]
            assert [len(of_it), sum(one[2] for one in of_it), sum(one[3] for one in of_it)] == [
                collections, collected, uncollectable,
            ]  # fmt: skip
        assert watching.server.counts()[GC_END] == sum(delta[0] for delta in deltas)


def test_it_says_which_mode_it_is(own_python: str) -> None:
    with (
        StubbedTarget(own_python, "begin(); sys.stdin.readline()") as target,
        Watching(target) as watching,
    ):
        assert watching.server.mode is Mode.COOPERATIVE
        assert watching.server.pause_acts_on is PauseActsOn.PROGRAM
        assert [kind.name for kind in watching.server.events] == ["Clock", "GC start", "GC end"]


def test_a_pause_that_waits_for_a_collection_that_does_not_come_is_told(
    own_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stubbed_driver, "_LONG_PAUSING_SECS", 0.0)
    with (
        StubbedTarget(own_python, "gc.disable(); begin(); sys.stdin.readline()") as target,
        Watching(target) as watching,
    ):
        reasons = []
        for pausing in (True, False):
            monkeypatch.setattr(Server, "pausing", pausing)
            watching.driver.notice()
            reasons.append(watching.server._core.flow.state.reason)
        assert "waits for the next GC start" in reasons[0]
        assert reasons[1] == ""


EIGHT_THREADS = """
import mmap
file = open(sys.argv[3], "r+b")
counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
def work(number):
    kept = []
    while True:
        counters[number] += 1
        kept.append({})
        if len(kept) > 5000:
            kept = []
sys.setswitchinterval(1e-6)  # all of them want the lock all the time: any chance to give it away is taken
begin()
for number in range(8):
    threading.Thread(target=work, args=(number,), daemon=True).start()
sys.stdin.readline()
os._exit(0)
"""


def test_no_thread_of_eight_runs_while_it_is_held_and_all_do_afterwards(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "counters"
    shared.write_bytes(bytes(4096))

    def counters() -> npt.NDArray[np.uint64]:
        return np.fromfile(shared, dtype=np.uint64, count=8)

    moved: list[bool] = []
    told: list[npt.NDArray[np.uint64]] = []

    def look(_event: Event) -> None:
        before = told[-1]
        until = time.monotonic() + 0.05  # how long we look, not what we wait for
        while time.monotonic() < until:
            moved.append(bool((counters() != before).any()))

    with StubbedTarget(python, EIGHT_THREADS, str(shared)) as target, Watching(target) as watching:
        handle = watching.driver._events.take

        def handle_and_look(server: Server, event: StubEvent) -> None:
            told.append(
                counters()
            )  # at once: what still runs now runs in a moment that is being read
            handle(server, event)

        monkeypatch.setattr(watching.driver._events, "take", handle_and_look)
        watching.server.add_observer(look)
        while not (counters() > 0).all():
            watching.driver.wait(1.0)
        first, seen = counters(), len(watching.events)
        while len(watching.events) < seen + 12 or not (counters() > first).all():
            watching.driver.wait(1.0)
    assert moved
    assert moved.count(True) == 0, f"at {moved.count(True)} of {len(moved)} looks something had run"


def columns(heap: PymallocHeap) -> list[npt.NDArray[np.generic]]:
    pools = heap.reading.pools
    found = [getattr(pools, field.name) for field in dataclasses.fields(pools)]
    return [one for one in found if isinstance(one, np.ndarray)]


def test_what_is_read_in_a_hold_is_the_same_when_it_is_read_again(
    python: str, tmp_path: Path
) -> None:
    shared = tmp_path / "counters"
    shared.write_bytes(bytes(4096))
    different: list[str] = []
    unknown: list[str] = []
    with StubbedTarget(python, EIGHT_THREADS, str(shared)) as target, Watching(target) as watching:
        reader = watching.driver._target

        def compare(event: Event) -> None:
            found = reader.interpreters()
            assert found is not None
            one, two = reader.heaps(found), reader.heaps(found)
            for first, second in zip(one, two, strict=True):
                if not first.reading.complete or not second.reading.complete:
                    unknown.append(event.cause)
                if any(
                    not np.array_equal(a, b)
                    for a, b in zip(columns(first), columns(second), strict=True)
                ):
                    different.append(event.cause)
            for space in watching.server.spaces:
                if space.name in (
                    "pymalloc arenas",
                    "Size classes",
                    "Whole arenas",
                    "GC generations",
                ):
                    unknown.extend(
                        f"{space.name}.{one.name}" for one in space.streams if one.known is not None
                    )

        watching.server.add_observer(compare)
        while len(watching.events) < 20:
            watching.driver.wait(1.0)
    # The survivors are known of some collections only; their time is known of generations of which one collection was timed.
    # Accesses are followed from the first tick on, of which there is none here.
    assert set(unknown) <= {
        f"GC generations.{name}"
        for name in ("Survivors", "Examined", "Collecting", "Last collection")
    } | {
        f"{space}.{name}"
        for space in ("pymalloc arenas", "Whole arenas")
        for name in ("Accessed", "Idle")
    }
    assert different == []


LATE = """
import ctypes, functools
stub = begin()
line = stub._line
nap, kept = functools.partial(ctypes.pythonapi["usleep"], 20000), []
def hoard():
    kept.extend([bytes(200) for _ in range(400)])
    return 0
# As on a machine where the kernel leaves it between two calls: it has told its event, and its interpreter still allocates.
line._begin += tuple(one for _ in range(5) for one in (functools.partial(nap), functools.partial(hoard)))
sys.stdin.readline()
gc.collect()
sys.stdin.readline()
"""


def test_nothing_is_read_before_the_program_stands_still_however_late_that_is(
    own_python: str,
) -> None:
    read: list[int] = []
    with StubbedTarget(own_python, LATE) as target, Watching(target) as watching:
        reader = watching.driver._target

        def compare(_event: Event) -> None:
            found = reader.interpreters()
            assert found is not None
            blocks = [int(heap.reading.pools.blocks_used.sum()) for heap in reader.heaps(found)]
            (space,) = (space for space in watching.server.spaces if space.name == "Size classes")
            (used,) = (stream for stream in space.streams if stream.name == "Blocks in use")
            read.append(int(used.data.sum()) - sum(blocks))

        watching.server.add_observer(compare)
        target.say("collect")
        while len(read) < 2:
            watching.driver.wait(1.0)
    assert read == [0, 0], "what the driver had read, and what was there later in the same hold"


MANY = """
kept = [[] for _ in range(30000)]
gc.disable()
begin()
sys.stdin.readline()
for _ in range(400):
    gc.collect(0)
    time.sleep(0.001)
say("done")
sys.stdin.readline()
"""


def test_under_a_budget_both_ends_of_a_collection_are_gathered_or_neither(
    own_python: str, tmp_path: Path
) -> None:
    with (
        StubbedTarget(own_python, MANY) as target,
        Watching(target, watched=False, level=1, budget=5) as watching,
        watching.server.serve(f"unix:{tmp_path}/session") as listening,
        closing(connect(listening.addresses[0], client="test", wants_control=False)) as link,
    ):
        viewer = Viewer(link)
        watching.server.wait_for_client()
        watching.driver.tick()
        target.say("collect")
        until_line(target, watching)
        watching.driver.tick()
        starts, ends = watching.server.counts()[GC_START:]
        assert starts == ends >= 399  # the last of each may always be on its way
        sent = watching.server._core._sequence  # an answer to a ping may come before the last event
        viewer.until(
            lambda: (last := viewer.state.last_event) is not None and last.sequence >= sent
        )
        told = [
            (change.event.event, change.event.occurrence)
            for change in viewer.changes
            if change.event.event != CLOCK
        ]
        gathered = sorted({number for _, number in told})
        both = [(kind, number) for number in gathered for kind in (GC_START, GC_END)]
        # An event that a viewer has not been sent before the next one happens is missed, and counted.
        assert len(set(both) - set(told)) <= viewer.state.missed_total
        assert set(told) <= set(both)
        assert 1 <= len(gathered) < 390, "some were left out"


def test_the_clock_ticks_beside_and_holds_nothing(own_python: str) -> None:
    program = "begin(); sys.stdin.readline(); say(gc.collect()); sys.stdin.readline()"
    with StubbedTarget(own_python, program) as target, Watching(target) as watching:
        watching.driver.tick()
        assert [event.event for event in watching.events] == [CLOCK]
        target.say("collect")
        until_line(target, watching)
        assert [event.event for event in watching.events] == [CLOCK, GC_START, GC_END]


def test_what_nobody_wants_is_counted_and_not_told(own_python: str) -> None:
    program = "begin(); [gc.collect() for _ in range(50)]; say(1); sys.stdin.readline()"
    with StubbedTarget(own_python, program) as target, Watching(target, watched=False) as watching:
        assert target.read_line() == "1"  # it continued without an answer
        watching.driver.tick()
        # The last of each may always be on its way.
        assert watching.server.counts()[GC_START] >= 49
        assert watching.server.counts()[GC_END] >= 49


LEAVING = """
order = []
def one(phase, info): order.append(("one", phase))
def two(phase, info): order.append(("two", phase))
gc.disable()
gc.callbacks.append(one)
stub = begin()
gc.callbacks.append(two)
sys.stdin.readline()
gc.collect()
say([stub.connected, gc.callbacks == [one, two], order])
sys.stdin.readline()
"""


def test_after_detaching_it_leaves_at_the_next_collection_and_no_other_callback_notices(
    python: str,
) -> None:
    with StubbedTarget(python, LEAVING) as target:
        with Watching(target):
            pass
        target.say("collect")
        order = [[who, phase] for phase in ("start", "stop") for who in ("one", "two")]
        assert json.loads(target.read_line()) == [False, True, order]


CLOSING = """
gc.disable()
count = lambda: len(os.listdir("/proc/self/fd"))
before = count()
stub = begin()
sys.stdin.readline()
stub.close(); stub.close()
say([stub.connected, len(gc.callbacks)])
del stub
say(before - count())
sys.stdin.readline()
"""


def test_the_program_can_take_it_out_itself_and_the_driver_says_so(python: str) -> None:
    with StubbedTarget(python, CLOSING) as target, Watching(target) as watching:
        target.say("close")
        assert json.loads(target.read_line()) == [False, 0]
        assert json.loads(target.read_line()) == 1, (
            "the socket, which it took over; all else was its own"
        )
        with pytest.raises(TargetError, match="is alive, but the stub is no longer in the program"):
            watching.driver.wait(5.0)


def test_its_end_is_told_as_its_end(own_python: str) -> None:
    with (
        StubbedTarget(own_python, "begin(); sys.stdin.readline(); os._exit(0)") as target,
        Watching(target) as watching,
    ):
        target.say("end")
        with pytest.raises(TargetGone):
            watching.serve()


def test_who_made_the_connection_is_who_may_read_it(own_python: str) -> None:
    program = """
peer = stub_module.peer_of(socket.socket(fileno=os.dup(int(sys.argv[2]))))
stub_module.let_read(peer)  # most kernels do not know it
begin(); say(peer); sys.stdin.readline()
"""
    with StubbedTarget(own_python, program) as target, Watching(target):
        assert json.loads(target.read_line()) == os.getpid()


FORKING = """
gc.disable()
stub = begin()
child = os.fork()
if child == 0:
    for _ in range(5):
        gc.collect()
    os._exit(10 if gc.callbacks else 0)
_, status = os.waitpid(child, 0)
gc.collect()
say([status, stub.connected])
sys.stdin.readline()
"""


def test_a_child_takes_no_part(python: str) -> None:
    with StubbedTarget(python, FORKING) as target, Watching(target) as watching:
        until_line(target, watching)
        assert json.loads(target.read_line()) == [0, True]
        assert [event.event for event in watching.events] == [GC_START, GC_END], "the parent's own"


SIGNALLED = """
import signal
class Stop(BaseException): pass
def handler(*_): raise Stop
signal.signal(signal.SIGUSR1, handler)
gc.disable()
begin()
try:
    say("ready")
    gc.collect()
    say("not raised")
except Stop:
    say("raised")
sys.stdin.readline()
"""


@pytest.mark.parametrize("kind", [GC_START, GC_END])
@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13"])
def test_a_signal_in_a_hold_reaches_the_program_and_not_a_callback(version: str, kind: int) -> None:
    found = find_python(version)
    if found is None:
        pytest.skip(f"no Python {version} here")
    with StubbedTarget(found, SIGNALLED) as target:
        page = _begin_by_hand(target)
        assert target.read_line() == '"ready"'
        for event in (GC_START, GC_END):
            assert target.connection.recv(100)[0] == event - GC_START
            if event == kind:
                target.process.send_signal(10)
            target.connection.send(b"g")
        assert target.read_line() == '"raised"'
        target.say("end")
        assert target.errors() == ""
        page.release()


def _begin_by_hand(target: StubbedTarget) -> memoryview:
    """Do the sidecar's part in the simplest way: for versions that the driver cannot read yet, and for misbehaviour."""
    _, fds, _, _ = socket.recv_fds(target.connection, 100, 4)
    page = memoryview(mmap.mmap(fds[1], 4096)).cast("Q")
    for fd in fds:
        os.close(fd)
    page[2] = page[3] = 1
    target.connection.send(b"g")
    return page


SILENT = """
gc.disable()
stub = begin()
say("ready")
gc.collect()
gc.collect()
say(stub.connected)
sys.stdin.readline()
gc.collect()
say("answered")
sys.stdin.readline()
"""


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13"])
def test_a_silent_sidecar_holds_nobody_for_long_and_then_nobody_at_all(version: str) -> None:
    found = find_python(version)
    if found is None:
        pytest.skip(f"no Python {version} here")
    with StubbedTarget(found, SILENT) as target:
        page = _begin_by_hand(target)
        assert target.read_line() == '"ready"'
        assert target.read_line() == "true", "it went on, and is still there"
        target.connection.setblocking(False)
        assert number_of(target.connection.recv(100)) == (0, 1), "one event, which nobody answered"
        with pytest.raises(BlockingIOError):
            target.connection.recv(100)
        assert list(page[:2]) == [2, 2], "those that could be reported to nobody were counted"
        target.connection.setblocking(True)
        target.connection.send(b"g")
        target.say("answered late")
        for kind in (0, 1):
            assert number_of(target.connection.recv(100)) == (kind, 3)
            target.connection.send(b"g")
        assert target.read_line() == '"answered"'
        page.release()


def number_of(packet: bytes) -> tuple[int, int]:
    """Kind and number of an event that a stub reports."""
    return packet[0], int.from_bytes(packet[8:16], "little")


STARVING = """
gc.disable()
kept = []
begin()
for line in sys.stdin:
    kept.append([[] for _ in range(5000)])
    gc.collect()
    say(len(kept))
"""


@pytest.mark.parametrize("late", ["while it is read", "before it is read"])
def test_an_event_that_the_program_did_not_wait_for_shows_nothing_and_the_next_is_exact(
    own_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    with StubbedTarget(own_python, STARVING) as target, Watching(target, level=3) as watching:
        driver, server = watching.driver, watching.server
        with server.serve(f"unix:{tmp_path}/session") as listening:
            viewer = Viewer(connect(listening.addresses[0], client="test", wants_control=True))

            def tracked() -> list[int]:
                (space,) = (
                    one
                    for one in viewer.state.spaces.values()
                    if one.space.name == "Tracked objects"
                )
                return [stream.sequence for stream in space.streams.values()] + [
                    int(space.streams[0].values.sum())
                ]

            def collect() -> None:
                target.say("collect")
                until_line(target, watching)
                target.read_line()
                viewer.until_events(len(watching.events))

            collect()
            collect()
            last, before = viewer.changes[-1].event, tracked()
            assert set(before[:-1]) == {last.sequence}
            assert before[-1] > 10000

            # As on a machine where nothing of the sidecar runs for two seconds: the timer is not
            # reset.
            def starve() -> None:
                monkeypatch.setattr(driver._line, "_may_hold", lambda _secs: False)
                until = target.read_line()  # the program has gone on, and through its collection
                assert until

            gather, rest = driver.gather, driver._line._await_rest

            def gather_late(request: GatherRequest) -> None:
                monkeypatch.undo()
                gather(request)
                starve()
                gather(request)

            def rest_late(thread: int) -> None:
                monkeypatch.undo()
                starve()
                rest(thread)

            if late == "while it is read":
                monkeypatch.setattr(driver, "gather", gather_late)
            else:
                monkeypatch.setattr(driver._line, "_await_rest", rest_late)
            target.say("collect")
            seen = len(watching.events)
            while len(watching.events) == seen:
                driver.wait(1.0)
            monkeypatch.undo()
            viewer.until_events(len(watching.events))
            lost = viewer.changes[-1].event
            assert (lost.event, lost.occurrence) == (GC_START, last.occurrence + 1)
            assert (
                lost.cause
                == "generation 2; not read: gcspy was silent for 2 s, and the program continued"
            )
            assert lost.stopped_nanos > 1_900_000_000
            assert tracked() == before, "what was shown before, and is known to be of then"

            collect()
            told = [(change.event.event, change.event.occurrence) for change in viewer.changes[-2:]]
            assert told == [(GC_START, last.occurrence + 2), (GC_END, last.occurrence + 2)]
            after = tracked()
            assert set(after[:-1]) == {viewer.changes[-1].event.sequence}
            assert after[-1] >= before[-1] + 10000
            viewer.link.close()


CYCLES = """
gc.collect()
gc.disable()
def some_events():
    for _ in range(3):
        gc.collect()
gc.collect()
stub = begin()
first = gc.collect()
some_events()
later = gc.collect()
stub.close()
del stub
say([first, later, gc.collect()])
sys.stdin.readline()
"""


def test_the_stub_makes_no_garbage_for_the_collector_that_it_watches(python: str) -> None:
    with StubbedTarget(python, CYCLES) as target, Watching(target) as watching:
        with pytest.raises(TargetError, match="no longer in the program"):
            watching.serve()
        assert json.loads(target.read_line()) == [0, 0, 0]
