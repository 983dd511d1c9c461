"""Without a budget every pause of a JVM comes, as its own log has them; and what is lost all the same counts as missed."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.cooperative import held_events
from gcspy_drivers.hotspot import cooperative_driver as cooperative
from gcspy_drivers.hotspot.cooperative_driver import GC_END, GC_START
from gcspy_drivers.hotspot.driver import CLOCK
from gcspy_drivers.hotspot.spaces.pool_space import Pool

from gcspy.connection.link import connect
from gcspy_server.api import AttachOptions, GatherRequest
from tests.drivers.hotspot.agents import Doing, Told, need_agent
from tests.drivers.hotspot.jvms import Jvm
from tests.matrix import matrix
from tests.server.viewer import Viewer

NO_BUDGET = 1000
_PAUSE = re.compile(r"GC\(\d+\) Pause (?!Full \(G1).*ms$", re.MULTILINE)
"""A full collection after a young one that found no room is in the same pause as that one."""


@pytest.fixture(scope="module", autouse=True)
def agent() -> None:
    need_agent()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "gc.log"


@pytest.fixture
def jvm(java: str, classes: Path, log: Path) -> Iterator[Jvm]:
    """Return a JVM that marks all the time, so that a Remark and a Cleanup follow other pauses within milliseconds."""
    flags = ("-XX:+UseG1GC", "-Xmx64m", "-XX:InitiatingHeapOccupancyPercent=1", f"-Xlog:gc:{log}")
    with Jvm(java, classes, *flags) as started:
        started.ask("VM.version")
        yield started


@contextmanager
def viewed(jvm: Jvm, tmp_path: Path, *, level: int, budget: int) -> Iterator[tuple[Told, Viewer]]:
    """Watch a JVM with a client that wants everything."""
    options = AttachOptions(level=level, values={"inject": "agent"})
    with (
        Told(jvm.pid, options, observed=False, budget=budget) as told,
        told.server.serve(f"unix:{tmp_path}/session") as listening,
    ):
        viewer = Viewer(connect(listening.addresses[0], client="test", wants_control=False))
        told.server.wait_for_client()
        told.driver.tick()
        told.holder.wait(0)
        over = threading.Event()

        def read() -> None:  # one that does not read would be left out for that
            while not over.is_set():
                viewer.read()

        reading = threading.Thread(target=read)
        reading.start()
        try:
            yield told, viewer
        finally:
            over.set()
            told.server.end("the test is over")
            reading.join()
            viewer.link.close()


def up_to_date(told: Told, viewer: Viewer) -> None:
    """Wait until the client has all that was sent so far."""
    sent = told.server._core._sequence
    while (last := viewer.state.last_event) is None or last.sequence < sent:
        told.driver.alive()


def occurrences(viewer: Viewer, kind: int) -> list[int]:
    return [number for event, number in viewer.events() if event == kind]


@pytest.mark.parametrize("level", matrix([1, 3], usual=[1]))
def test_every_pause_of_the_log_comes_and_nothing_is_missed(
    jvm: Jvm, log: Path, tmp_path: Path, level: int
) -> None:
    with viewed(jvm, tmp_path, level=level, budget=NO_BUDGET) as (told, viewer):
        before = len(_PAUSE.findall(log.read_text()))
        told.during(lambda: jvm.tell("keep", 8))
        told.beside(lambda: jvm.tell("churn", 4))
        while told.server.counts()[GC_END] < 8:
            told.holder.wait(0.05)
            told.driver.tick()
        told.during(lambda: jvm.tell("churn", 0))
        told.during(lambda: jvm.tell("collect"))
        up_to_date(told, viewer)
        pauses = len(_PAUSE.findall(log.read_text())) - before
        assert occurrences(viewer, GC_START) == list(range(1, pauses + 1))
        assert occurrences(viewer, GC_END) == list(range(1, pauses + 1))
        assert viewer.state.missed_total == 0


def test_a_pause_that_begins_while_the_last_one_is_being_made_something_of_waits_for_us(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with viewed(jvm, tmp_path, level=1, budget=NO_BUDGET) as (told, viewer):
        view, line = told.driver._view, told.holder._events.line
        assert view is not None
        fill = view.fill
        again: list[Doing] = []

        def fill_late(request: GatherRequest) -> Sequence[Pool]:
            if request.event == GC_END and not again:
                while not doing.done(0):
                    told.driver.alive()
                again.append(Doing(jvm, "collect"))
                while line.counts[0] < 2:  # the next has begun
                    told.driver.alive()
            return fill(request)

        monkeypatch.setattr(view, "fill", fill_late)
        doing = Doing(jvm, "collect")
        while told.server.counts()[GC_END] < 2:
            told.holder.wait(0.01)
        while not again[0].done(0.01):
            told.holder.wait(0.01)
        up_to_date(told, viewer)
        told_of = [event for event in viewer.events() if event[0] != CLOCK]
        assert told_of == [(GC_START, 1), (GC_END, 1), (GC_START, 2), (GC_END, 2)]
        assert viewer.state.missed_total == 0


def test_a_pause_that_begins_while_the_running_program_is_walked_waits_for_us(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with viewed(jvm, tmp_path, level=3, budget=NO_BUDGET) as (told, viewer):
        view, line = told.driver._view, told.holder._events.line
        assert view is not None
        fill = view.fill
        doing: list[Doing] = []

        def fill_late(request: GatherRequest) -> Sequence[Pool]:
            if not doing:
                doing.append(Doing(jvm, "collect"))
                while line.counts[0] < 1:
                    told.driver.alive()
            return fill(request)

        monkeypatch.setattr(view, "fill", fill_late)
        monkeypatch.setattr(cooperative, "_RESTS_SECS", 0)
        told.driver.tick()
        monkeypatch.undo()
        assert line.counts == (1, 0)
        while not doing[0].done(0.01):
            told.holder.wait(0.01)
        up_to_date(told, viewer)
        assert (occurrences(viewer, GC_START), occurrences(viewer, GC_END)) == ([1], [1])
        assert viewer.state.missed_total == 0


@pytest.mark.parametrize("budget", [NO_BUDGET, NO_BUDGET - 1])
def test_what_happened_while_we_were_silent_is_missed_or_else_the_budgets(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    with viewed(jvm, tmp_path, level=1, budget=budget) as (told, viewer):
        monkeypatch.setattr(held_events, "_LONGEST_GATHER_SECS", 0)
        line = told.holder._events.line
        doing = Doing(jvm, "collect")
        while line.counts[0] < 1:
            told.driver.alive()
        while not doing.done(1):  # it waits for two seconds and continues
            told.driver.alive()
        for _ in range(3):
            jvm.tell("collect")
        monkeypatch.undo()
        starts, ends = line.counts
        assert starts == ends >= 4
        told.holder.wait(0)
        told.during(lambda: jvm.tell("collect"))
        told.driver.tick()
        up_to_date(told, viewer)
        came = len([event for event, _ in viewer.events() if event != CLOCK])
        lost = sum(line.counts) - came
        assert lost >= 2 * 4 - 1
        assert viewer.state.missed_total == (lost if budget == NO_BUDGET else 0)
        if budget != NO_BUDGET:
            assert sum(told.server._core.spending._keeper.left_out) >= lost


def test_the_clock_goes_on_between_exact_events_and_leaves_objects_as_they_were_read_then(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with viewed(jvm, tmp_path, level=3, budget=NO_BUDGET) as (told, viewer):
        while told.driver._objects is None or told.driver._objects.coming:
            told.driver.alive()
        told.during(lambda: jvm.tell("collect"))
        monkeypatch.setattr(cooperative, "_RESTS_SECS", 3600)
        told.driver.tick()
        up_to_date(told, viewer)
        change = viewer.changes[-1]
        assert change.event.event == CLOCK
        streams = {
            (space.space.name, stream.schema.name): stream.is_fresh(change.event)
            for space in viewer.state.spaces.values()
            for stream in space.streams.values()
        }
        assert streams["Heap", "Used"]
        assert not streams["Objects", "Objects"]
        clock = occurrences(viewer, CLOCK)
        assert clock == list(range(clock[0], clock[0] + len(clock)))


def test_under_a_budget_a_clock_that_gives_way_to_exact_events_is_left_out_and_says_so(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with viewed(jvm, tmp_path, level=3, budget=NO_BUDGET - 1) as (told, viewer):
        monkeypatch.setattr(cooperative, "_RESTS_SECS", 3600)
        before = told.server._core.spending._keeper.left_out[CLOCK]
        told.driver.tick()
        assert told.server._core.spending._keeper.left_out[CLOCK] == before + 1
        assert viewer.state.missed_total == 0


def test_the_end_of_a_pause_has_a_cause_where_its_start_had_one(jvm: Jvm, tmp_path: Path) -> None:
    with viewed(jvm, tmp_path, level=1, budget=NO_BUDGET) as (told, viewer):
        told.during(lambda: jvm.tell("waste", 40))
        up_to_date(told, viewer)
        causes = {GC_START: dict[int, str](), GC_END: dict[int, str]()}
        for change in viewer.changes:
            if change.event.event in causes:
                causes[change.event.event][change.event.occurrence] = change.event.cause
        started = {number: cause for number, cause in causes[GC_START].items() if cause}
        assert started
        for number, cause in started.items():
            # The VM's own word at the end counts: a pause that was tried again has another by then.
            collector, _, said = causes[GC_END][number].rpartition("; ")
            assert collector, (cause, causes[GC_END][number])
            assert said


def test_a_session_that_begins_within_a_pause_begins_with_a_start(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Told(jvm.pid, budget=NO_BUDGET, observed=False) as told:
        line = told.holder._events.line
        line.want(0, period=1, not_before_nanos=0)  # the stub tells a start that nobody here wants
        doing = Doing(jvm, "collect")
        while line.counts[0] < 1:
            told.driver.alive()
        came: list[tuple[int, int]] = []
        told.server.add_observer(lambda event: came.append((event.event, event.occurrence)))
        begun = line.wait(60)
        assert begun is not None
        told.holder._events._accounting.want(told.server)  # within the pause
        told.server.skip(GC_START)
        line.go_on()
        while not doing.done(0.01):
            told.holder.wait(0.01)
        told.during(lambda: jvm.tell("collect"))
        assert came == [(GC_START, 2), (GC_END, 2)]
