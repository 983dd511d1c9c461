"""The agent in a JVM: it reports exactly what happened, a reading in a hold is of one moment, and no end of ours harms the JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from gcspy_drivers.hotspot import cooperative_driver as cooperative
from gcspy_drivers.hotspot.agent.agent import at_start, library
from gcspy_drivers.hotspot.cooperative_driver import GC_END, GC_START
from gcspy_drivers.hotspot.driver import CLOCK, HotSpotDriver
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.remote.elf.file import ElfFile
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.memory_writer import write
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, TargetGone, Unsupported
from gcspy_protocol.messages import Pause, Resume
from gcspy_protocol.model import ControlState

from gcspy.connection.link import connect
from gcspy_server.api import AttachOptions, Event, GatherRequest, Mode, PauseActsOn
from tests.drivers.hotspot.agents import Doing, HoldingSidecar, Told, need_agent
from tests.drivers.hotspot.jvms import Jvm
from tests.drivers.hotspot.residue import residue
from tests.server.viewer import Viewer

AGENT = AttachOptions(values={"inject": "agent"})
_LONG_SECS = 60.0


@pytest.fixture(scope="module", autouse=True)
def agent() -> None:
    need_agent()


@pytest.fixture(scope="module")
def jvm(java: str, classes: Path) -> Iterator[Jvm]:
    """Return one JVM of each version for the tests that leave it unchanged."""
    with Jvm(java, classes, "-Xmx64m", "-XX:+UseSerialGC") as started:
        started.ask("VM.version")  # from now on it has the thread that listens
        yield started


def collections(told: Told) -> int:
    """Return how many collections the JVM has counted itself, of all kinds."""
    counters = told.driver._jvm.counters
    numbers = counters.numbers(
        *(name for name in counters.names("sun.gc.collector.", ".invocations"))
    )
    return sum(number or 0 for number in numbers)


@pytest.mark.parametrize("collector", ["Serial", "Parallel", "G1"])
def test_a_start_and_an_end_are_told_of_each_collection_that_the_jvm_counts(
    java: str, classes: Path, collector: str
) -> None:
    with Jvm(java, classes, "-Xmx64m", f"-XX:+Use{collector}GC") as jvm, Told(jvm.pid) as told:
        before = collections(told)

        def work() -> None:
            jvm.tell("waste", 200)
            jvm.tell("collect")
            jvm.tell("waste", 100)

        told.during(work)
        counted = collections(told) - before
        kinds = [event.event for event in told.events if event.event != CLOCK]
        causes = [event.cause for event in told.events if event.event == GC_END]
        # Parallel's System.gc() was a young and a full collection in one pause, before 25.
        twice = [cause for cause in causes if cause.count("1 × ") == 2]
        assert len(twice) <= (collector == "Parallel"), twice
        pauses = counted - len(twice)
        assert pauses > 3
        assert kinds == [GC_START, GC_END] * pauses
        assert told.server.counts()[GC_START : GC_END + 1] == (pauses, pauses)
        assert sum("System.gc()" in cause for cause in causes) == 1
        assert sum(cause.count("1 × ") for cause in causes) == counted, causes
        assert all("; " in cause for cause in causes), causes


def test_it_says_which_mode_it_is_and_what_a_pause_stops(jvm: Jvm) -> None:
    with Told(jvm.pid) as told:
        assert told.server.mode is Mode.COOPERATIVE
        assert told.server.pause_acts_on is PauseActsOn.PROGRAM
        assert [kind.name for kind in told.server.events] == ["Clock", "GC start", "GC end"]


def test_of_a_concurrent_collector_its_pauses_are_told_and_its_cycles_noticed_at_the_clock(
    java: str, classes: Path
) -> None:
    with (
        Jvm(java, classes, "-Xmx128m", "-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC") as jvm,
        Told(jvm.pid) as told,
    ):
        assert [kind.name for kind in told.server.events] == [
            "Clock",
            "GC start",
            "GC end",
            "Collections",
        ]
        told.driver.tick()
        told.during(lambda: jvm.tell("collect"))
        told.driver.tick()
        starts, ends = told.server.counts()[GC_START : GC_END + 1]
        assert starts == ends >= 3, "mark start, mark end, relocate start"


def heap_bytes(told: Told) -> bytes:
    """Read all of the heap that is there."""
    driver = told.driver
    assert driver._view is not None
    low, high = driver._view.extent
    memory = Memory(driver.process)
    step = 1 << 16
    return b"".join(memory.try_read(addr, step) or b"" for addr in range(low, high, step))


def test_nothing_of_the_heap_changes_in_a_hold_and_it_does_outside_of_one(
    java: str, classes: Path
) -> None:
    equal: list[bool] = []
    with Jvm(java, classes, "-Xms32m", "-Xmx32m", "-XX:+UseSerialGC") as jvm, Told(jvm.pid) as told:

        def compare(event: Event) -> None:
            if event.event != CLOCK:
                equal.append(heap_bytes(told) == heap_bytes(told))

        told.server.add_observer(compare)
        jvm.tell("churn", 4)
        while len(equal) < 6:
            told.holder.wait(1.0)
        assert all(equal)
        # The same check on the running program finds that it runs.
        looks = 0
        while (first := heap_bytes(told)) == heap_bytes(told):
            looks += 1
            assert looks < 1000, first[:16]
            told.holder.wait(0.01)
        jvm.tell("churn", 0)


def test_a_pause_holds_the_program_and_resume_lets_it_go(jvm: Jvm, tmp_path: Path) -> None:
    with Told(jvm.pid) as told, told.server.serve(f"unix:{tmp_path}/session") as listening:
        viewer = Viewer(connect(listening.addresses[0], client="test", wants_control=True))
        told.driver.tick()
        viewer.send(Pause())
        viewer.wait_state(ControlState.PAUSING)
        doing = Doing(jvm, "collect")
        seen: list[bool] = []

        def let_go() -> None:
            viewer.wait_state(ControlState.PAUSED)
            seen.append(doing.done(0.2))  # how long we look, not what we wait for
            viewer.send(Resume())

        waiting = threading.Thread(target=let_go)
        waiting.start()
        while not doing.done(0):
            told.holder.wait(0.01)
        waiting.join()
        assert seen == [False]
        viewer.link.close()


def test_with_nobody_to_hold_it_for_it_goes_on_as_soon_as_it_was_read(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        Told(jvm.pid, observed=False) as told,
        told.server.serve(f"unix:{tmp_path}/session") as listening,
    ):
        viewer = Viewer(connect(listening.addresses[0], client="test", wants_control=False))
        told.server.wait_for_client()
        told.driver.tick()
        view, line = told.driver._view, told.holder._events.line
        went_on: list[int] = []
        assert view is not None
        fill = view.fill

        def fill_late(request: GatherRequest) -> Sequence[Pool]:
            if request.event == GC_START:
                while (
                    line.counts[1] != line.counts[0]
                ):  # it collects meanwhile, and comes to the end of that
                    told.driver.alive()
            elif request.event == GC_END:
                assert doing.done(_LONG_SECS)  # and so does the command's work
            went_on.append(request.event)
            return fill(request)

        monkeypatch.setattr(view, "fill", fill_late)
        told.holder.wait(0)
        doing = Doing(jvm, "collect")
        while GC_END not in went_on:
            told.holder.wait(0.01)
        monkeypatch.undo()
        told.holder.wait(0)
        viewer.until(lambda: any(change.event.event == GC_END for change in viewer.changes))
        told_of = [change.event for change in viewer.changes if change.event.event != CLOCK]
        assert [event.event for event in told_of] == [GC_START, GC_END] == went_on
        assert not any("not read" in event.cause for event in told_of)
        assert all(event.stopped_nanos > 0 for event in told_of)
        told.during(lambda: jvm.tell("collect"))
        viewer.link.close()


def test_under_a_budget_both_ends_of_a_collection_are_gathered_or_neither(
    jvm: Jvm, tmp_path: Path
) -> None:
    with (
        Told(jvm.pid, observed=False, budget=5) as told,
        told.server.serve(f"unix:{tmp_path}/session") as listening,
        closing(connect(listening.addresses[0], client="test", wants_control=False)) as link,
    ):
        viewer = Viewer(link)
        told.server.wait_for_client()
        told.driver.tick()
        told.holder.wait(0)
        happened = 0
        gathered = 0
        while not gathered or happened - gathered < 8:
            assert happened < 1000, f"{gathered} were gathered, of a budget that allows some"
            doing = Doing(jvm, "collect")
            while not doing.done(0):
                told.holder.wait(0.001)
            viewer.sync()  # one that reads nothing would be left out for that
            happened += 1
            gathered = sum(change.event.event == GC_START for change in viewer.changes)
        told.holder.wait(0)
        told.driver.tick()
        viewer.sync()
        seen = [
            (change.event.event, change.event.occurrence)
            for change in viewer.changes
            if change.event.event != CLOCK
        ]
        starts = [number for kind, number in seen if kind == GC_START]
        assert seen == [(kind, number) for number in starts for kind in (GC_START, GC_END)]
        assert starts, "some were gathered"


def test_nobody_waits_for_a_walk_of_the_running_program(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = AttachOptions(level=3, values={"inject": "agent"})
    with (
        Told(jvm.pid, options, observed=False, budget=999) as told,
        told.server.serve(f"unix:{tmp_path}/session") as listening,
    ):
        viewer = Viewer(connect(listening.addresses[0], client="test", wants_control=False))
        told.server.wait_for_client()
        told.driver.tick()
        told.holder.wait(0)
        view = told.driver._view
        assert view is not None
        fill = view.fill

        def fill_late(request: GatherRequest) -> Sequence[Pool]:
            for _ in range(10):
                jvm.tell("collect")
            return fill(request)

        monkeypatch.setattr(view, "fill", fill_late)
        monkeypatch.setattr(cooperative, "_RESTS_SECS", 0)
        told.server._core.spending._keeper._owed.clear()  # whatever the first one took
        told.driver.tick()
        monkeypatch.undo()
        starts, ends = told.holder._events.line.counts
        assert starts == ends >= 10
        assert told.holder._events.line.wait(0) is None, (
            "no collection was told, as nobody would have looked"
        )
        viewer.link.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_sidecar_that_is_killed_or_stopped_in_a_hold_lets_go_and_is_not_waited_for_again(
    jvm: Jvm, number: signal.Signals
) -> None:
    with HoldingSidecar(jvm) as sidecar:
        doing = Doing(jvm, "collect")
        assert sidecar.line() == f"held {GC_START}"
        assert not doing.done(2.5), (
            "longer than the deadline: the sidecar gives signs of life, and it holds"
        )
        before = time.monotonic()
        os.kill(sidecar.process.pid, number)
        assert doing.done(_LONG_SECS)
        once = time.monotonic() - before
        before = time.monotonic()
        for _ in range(20):
            jvm.tell("collect")
        # 20 collections, 40 events: each of which would have waited for as long as the first.
        assert time.monotonic() - before < max(once, 1.0) * 20
    if number == signal.SIGKILL:
        with Told(jvm.pid) as told:
            told.during(lambda: jvm.tell("collect"))
            assert [event.event for event in told.events] == [GC_START, GC_END]


def test_after_detaching_it_has_nothing_more_than_before_and_attaching_again_works(
    jvm: Jvm,
) -> None:
    with Told(jvm.pid):
        pass
    once = residue(jvm.pid)
    for _ in range(5):
        with Told(jvm.pid) as told:
            told.during(lambda: jvm.tell("collect"))
            assert [event.event for event in told.events] == [GC_START, GC_END]
        jvm.tell("collect")
    assert residue(jvm.pid) == once
    assert once["left"] == []
    assert not [
        name
        for name in (*once["descriptors"], *once["files"])
        if "memfd" in name or "anon_inode" in name
    ]


def test_only_one_sidecar_has_it_and_another_is_told_so(jvm: Jvm) -> None:
    with Told(jvm.pid) as told:
        with pytest.raises(TargetError, match="another gcspy has its agent"):
            HotSpotDriver.attach(jvm.pid, AGENT)
        told.during(lambda: jvm.tell("collect"))
        assert [event.event for event in told.events] == [GC_START, GC_END]


def test_an_agent_that_stays_busy_is_told_of_and_serves_again_when_it_is_not(jvm: Jvm) -> None:
    """As if a thread of the JVM were stuck in it: nobody waits for long, the JVM collects, and what it collects is counted."""
    with Told(jvm.pid):
        pass  # from now on the JVM has it
    path = library()
    assert path is not None
    with path.open("rb") as image, ElfFile(image, str(path)) as file:
        symbol = file.static("busy")
    assert symbol is not None
    with Process(jvm.pid) as process:
        maps = read_maps(process)
        mapped = next(one for one in maps.path if path.name in one)
        first = maps.first_addr(mapped)
        assert first is not None
        write(process, first + symbol.vaddr, b"\1")
        try:
            with pytest.raises(TargetError) as raised:
                HotSpotDriver.attach(jvm.pid, AGENT)
            jvm.tell("collect")
        finally:
            write(process, first + symbol.vaddr, b"\0")
    assert "did not load the agent: its agent is in use: try again" in str(raised.value)
    assert "\n" not in str(raised.value)
    with Told(jvm.pid) as told:
        told.during(lambda: jvm.tell("collect"))
        assert [event.event for event in told.events] == [GC_START, GC_END]


def test_what_nobody_wants_is_counted_and_not_told(jvm: Jvm) -> None:
    driver = HotSpotDriver.attach(jvm.pid, AGENT)
    try:
        server = driver.describe().server()
        driver.open(server)
        for _ in range(5):
            jvm.tell("collect")  # no answer comes
        driver.tick()
        assert server.counts()[GC_START : GC_END + 1] == (4, 4), (
            "the last of each may always be on its way"
        )
    finally:
        driver.close()


def test_one_that_may_not_be_attached_to_is_refused_without_a_thread_dump_and_is_watched_from_outside(
    java: str, classes: Path
) -> None:
    with Jvm(java, classes, "-Xmx64m", "-XX:+UseSerialGC", "-XX:+DisableAttachMechanism") as jvm:
        assert "agent" not in HotSpotDriver.recognise(jvm.pid).modes
        with pytest.raises(Unsupported, match=r"started with -XX:\+DisableAttachMechanism"):
            HotSpotDriver.attach(jvm.pid, AGENT)
        with_auto = HotSpotDriver.attach(jvm.pid, AttachOptions(values={"inject": "auto"}))
        try:
            described = with_auto.describe()
            assert described.mode is Mode.PASSIVE
            assert "No exact events" in described.general_info
        finally:
            with_auto.close()
        jvm.tell("collect")  # its very next line is the answer


def test_one_that_takes_no_agent_while_it_runs_is_refused_with_the_reason(
    java: str, classes: Path
) -> None:
    with Jvm(java, classes, "-Xmx64m", "-XX:+UseSerialGC", "-XX:-EnableDynamicAgentLoading") as jvm:
        with pytest.raises(Unsupported, match="-XX:-EnableDynamicAgentLoading"):
            HotSpotDriver.attach(jvm.pid, AGENT)
        jvm.tell("collect")


def test_one_that_handles_no_signals_listens_from_its_start(java: str, classes: Path) -> None:
    with Jvm(java, classes, "-Xmx64m", "-XX:+UseSerialGC", "-Xrs") as jvm, Told(jvm.pid) as told:
        told.during(lambda: jvm.tell("collect"))
        assert [event.event for event in told.events] == [GC_START, GC_END]


def test_one_in_a_long_pause_is_not_waited_for_and_goes_on_unharmed(
    jvm: Jvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcspy_drivers.hotspot.cooperative_driver.HELLO_SECS", 0.5)
    with HoldingSidecar(jvm) as sidecar:
        doing = Doing(jvm, "collect")
        assert sidecar.line() == f"held {GC_START}"
        with pytest.raises(TargetError, match="did not answer in time: it is in a long pause"):
            HotSpotDriver.attach(jvm.pid, AGENT)
        sidecar.go_on()
        assert sidecar.line() == f"held {GC_END}"
        sidecar.go_on()
        assert doing.done(_LONG_SECS)
    monkeypatch.undo()
    with Told(jvm.pid) as told:
        told.during(lambda: jvm.tell("collect"))


def test_one_that_runs_out_of_memory_and_ends_is_told_of_to_the_last(
    java: str, classes: Path
) -> None:
    with Jvm(java, classes, "-Xmx16m", "-XX:+UseSerialGC") as jvm, Told(jvm.pid) as told:
        Doing(jvm, "keep", 100)
        with pytest.raises(TargetGone):
            told.serve()
        assert len(told.events) > 4
    with pytest.raises(TargetError):
        HotSpotDriver.attach(jvm.pid, AGENT)


def test_it_can_be_there_from_the_start_and_the_exit_code_is_the_programs(
    java: str, classes: Path, tmp_path: Path
) -> None:
    if Path(java).read_bytes()[:2] == b"#!":
        pytest.skip(f"{java} starts one in another root, where the agent is not")
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "gcspy", "run", "--no-window", "--", java]
    done = subprocess.run(
        [*command, "-Xmx64m", "-cp", str(classes), "Still"],
        input="collect 1\n", capture_output=True, text=True, timeout=_LONG_SECS, check=False, env=env,
    )  # fmt: skip
    assert done.stdout.split()[-2:] == ["ready", "done"], done.stderr
    assert done.returncode == 0
    done = subprocess.run(
        [*command, "-XX:+NoSuchFlagAtAll", "Still"],
        capture_output=True,
        text=True,
        timeout=_LONG_SECS,
        check=False,
        env=env,
    )
    assert done.returncode == 1
    assert "NoSuchFlagAtAll" in done.stderr + done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as another user")
def test_one_of_another_user_takes_it_and_nothing_is_left(
    java: str, classes: Path, tmp_path: Path
) -> None:
    with tempfile.TemporaryDirectory() as readable:
        os.chmod(readable, 0o755)
        for file in classes.glob("*.class"):
            Path(readable, file.name).write_bytes(file.read_bytes())
        launcher = tmp_path / "java"
        launcher.write_text(
            f'#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups {java} "$@"\n'
        )
        launcher.chmod(0o755)
        with Jvm(str(launcher), Path(readable), "-Xmx64m", "-XX:+UseSerialGC") as jvm:
            if os.stat(f"/proc/{jvm.pid}").st_uid != 65534:
                pytest.skip(f"{java} becomes another user's by itself")
            with Told(jvm.pid) as told:
                told.during(lambda: jvm.tell("collect"))
                assert [event.event for event in told.events] == [GC_START, GC_END]
            assert residue(jvm.pid)["left"] == []


def test_one_that_may_not_be_attached_to_can_be_started_so_that_it_comes_to_us(
    java: str, classes: Path, tmp_path: Path
) -> None:
    if Path(java).read_bytes()[:2] == b"#!":
        pytest.skip(f"{java} starts one in another root, where the agent is not")
    with Jvm(
        java,
        classes,
        "-Xmx64m",
        "-XX:+UseSerialGC",
        "-XX:+DisableAttachMechanism",
        at_start(f"at:{tmp_path}/%p"),
    ) as jvm:
        place = tmp_path / str(jvm.pid)
        assert "agent" in HotSpotDriver.recognise(jvm.pid).modes
        jvm.tell("churn", 4)
        for _ in range(2):
            with Told(jvm.pid) as told:
                while GC_END not in [event.event for event in told.events]:
                    told.holder.wait(1.0)
            assert not place.exists()
        jvm.tell("churn", 0)


def test_the_library_is_one_file_and_it_says_what_to_do_where_it_was_not_built(
    jvm: Jvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert library() is not None
    monkeypatch.setattr("gcspy_drivers.hotspot.agent.agent.library", lambda: None)
    with pytest.raises(Unsupported, match="apt-get install gcc libc6-dev default-jdk-headless"):
        HotSpotDriver.attach(jvm.pid, AGENT)
    with Process(jvm.pid) as process:
        process.check()
