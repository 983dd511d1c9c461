"""Objects of a JVM that stands still: equal, class by class and to the byte, to what the JVM says of itself."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.hotspot.cooperative_driver import GC_END, GC_START
from gcspy_drivers.hotspot.objects import machine_code
from gcspy_drivers.hotspot.objects.heap_objects import HeapObjects
from gcspy_drivers.hotspot.objects.heap_walk import Walker
from gcspy_drivers.hotspot.objects.layout import SpanKind
from gcspy_drivers.hotspot.spaces.object_view import JavaObjectView
from gcspy_drivers.kit.loop_notice import COMING
from gcspy_drivers.remote.maps import parse_maps
from gcspy_protocol.details import AnswerState, Query
from gcspy_protocol.messages import Event

from gcspy_server.api import AttachOptions, ServerStream, StringNames, UniformNames
from tests.drivers.hotspot.agents import Told, need_agent
from tests.drivers.hotspot.jvms import Jvm, agreed
from tests.drivers.hotspot.watching import Watched
from tests.matrix import matrix

Classes = dict[str, tuple[int, int]]

_LINE = re.compile(r"^ *\d+: +(\d+) +(\d+) +(\S+)", re.M)
_AGE = re.compile(r"- age +(\d+): +(\d+) bytes")
_ARRAYS = "[I"
_FILLERS = (_ARRAYS, "[Ljdk.internal.vm.FillerElement;", "jdk.internal.vm.FillerObject")
_SMALL = ("-Xms48m", "-Xmx64m")
_FEW = 60
COLLECTORS = ("Serial", "Parallel", "G1")
_IN_FLIGHT_TILES = 300


@pytest.fixture(scope="module", params=matrix(COLLECTORS, usual=["Serial", "G1"]))
def jvm(request: pytest.FixtureRequest, java: str, classes: Path) -> Iterator[Jvm]:
    """Return a JVM with each collector, of all tests here."""
    with Jvm(java, classes, f"-XX:+Use{request.param}GC", *_SMALL) as started:
        fill(started)
        yield started


def fill(jvm: Jvm) -> None:
    """Have something of everything: old and young objects, garbage, a large object, and one that was large."""
    jvm.tell("drop")
    jvm.tell("keep", 3)
    jvm.tell("collect")
    jvm.tell("large", 2)
    jvm.tell("keep", 1)
    jvm.ask(
        "GC.class_histogram -all"
    )  # what speaks the attach protocol makes some objects the first time


def watch(jvm: Jvm, level: int = 3) -> Watched:
    """Watch its objects."""
    return Watched(jvm.pid, AttachOptions(level=level))


def plain(name: str) -> str:
    """Return a class's name without the address of a hidden one, of which versions have different ones."""
    return re.sub(r"[/+]0x[0-9a-f]+$|/\d+$", "", name)


def told(lines: Sequence[tuple[str, str, str]]) -> Classes:
    """Return objects and bytes of each class that a table has."""
    found: Classes = {}
    for objects, size, name in lines:
        before = found.get(plain(name), (0, 0))
        found[plain(name)] = (before[0] + int(objects), before[1] + int(size))
    return found


def walked(watched: Watched) -> Classes:
    """Return objects and bytes of each class that we found, all of which must be known."""
    watched.driver.tick()
    names = watched.space("Classes").names
    assert isinstance(names, StringNames)
    rows = zip(
        names.names,
        watched.values("Classes", "Objects").tolist(),
        watched.values("Classes", "Bytes").tolist(),
        strict=True,
    )
    return told([(objects, size, name) for name, objects, size in rows if objects])


def free_bytes(watched: Watched) -> int:
    """Return how many bytes are of fillers, and of buffers that are not used yet."""
    return int(watched.values("Objects", "Free bytes").sum())


def assert_same(mine: Classes, theirs: Classes, free: int, *, regions: bool) -> None:
    """Compare class by class; what the JVM fills its gaps with, which until 20 are arrays of int, is free here."""
    different = {
        name
        for name in mine.keys() | theirs.keys()
        if mine.get(name, (0, 0)) != theirs.get(name, (0, 0))
    }
    assert different <= set(_FILLERS), {
        name: (mine.get(name), theirs.get(name)) for name in different
    }
    filled = sum(theirs.get(name, (0, 0))[1] - mine.get(name, (0, 0))[1] for name in _FILLERS)
    if regions:  # behind a humongous object the JVM does not count
        assert 0 <= filled <= free
    else:
        assert filled == free


def test_objects_and_bytes_by_class_are_those_of_the_jvm_s_histogram(jvm: Jvm) -> None:
    with watch(jvm) as watched:
        mine, text = agreed(lambda: walked(watched), lambda: jvm.ask("GC.class_histogram -all"))
        assert mine["[B"][0] > 4_000
        assert_same(
            mine, told(_LINE.findall(text)), free_bytes(watched), regions=jvm_is(watched, "G1")
        )
        objects = watched.values("Objects", "Objects").sum()
        assert objects == sum(count for count, _ in mine.values())
        own = sum(
            watched.values("Objects", name).sum() for name in ("Instance bytes", "Array bytes")
        )
        assert own == sum(size for _, size in mine.values())


def test_every_byte_of_the_heap_is_of_an_object_or_free_or_dead(jvm: Jvm) -> None:
    with watch(jvm) as watched:
        watched.driver.tick()
        watched.driver.tick()
        names = ["Instance bytes", "Array bytes", "Free bytes"]
        whole = np.sum([watched.values("Objects", name) for name in names], axis=0)
        if "Dead bytes" in [one.name for one in watched.space("Objects").streams]:
            # Before a marking nothing is known to be dead: then everything is walked as an object.
            dead = watched.stream("Objects", "Dead bytes")
            known = np.ones(len(whole), dtype=bool) if dead.known is None else dead.known
            whole = whole + np.where(known, dead.data, 0).astype(np.int64)
        assert np.array_equal(whole, watched.values("Heap", "Used"))


def jvm_is(watched: Watched, collector: str) -> bool:
    """Print which collector it has."""
    return watched.driver.describe().target["collector"] == collector


def view(watched: Watched) -> tuple[JavaObjectView, Walker]:
    """Return what walks."""
    objects = watched.driver._objects
    assert objects is not None
    assert objects._walker is not None
    return objects, objects._walker


def assert_found_the_same(one: HeapObjects, other: HeapObjects) -> None:
    for name in ("sums", "tile", "number", "count", "size", "ages", "unknown"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_copy_of_a_heap_that_is_held_says_the_same_as_a_walk_beside_it(jvm: Jvm) -> None:
    with watch(jvm) as watched:
        watched.driver.tick()
        objects, walker = view(watched)

        def both() -> tuple[HeapObjects, HeapObjects]:
            objects.warm()
            layout = watched.driver._view.layout() if watched.driver._view is not None else None
            assert layout is not None
            copy = walker.copy(layout)
            # By now the program may have gone on.
            held = walker.walk_copy(copy, references=True)
            beside = walker.walk(copy.layout, references=True)
            assert beside is not None
            return held, beside

        held, beside = both()
        kept = walker.walk(held.layout, references=False, moved=lambda: (1,))
        assert kept is not None
        again = walker.copy(held.layout, key=(1,))
        assert again.kept
        assert (
            sum(0 if one.words is None else one.words.nbytes for one in again.pieces)
            < int(held.size.sum()) - 2_000_000
        )
        assert_found_the_same(walker.walk_copy(again, references=False), held)
        assert_found_the_same(held, beside)
        assert held.references is not None
        assert beside.references is not None
        assert np.array_equal(held.references, beside.references)
        assert not held.unknown_bytes


def test_what_did_not_change_of_the_old_is_not_read_again_and_says_the_same(jvm: Jvm) -> None:
    with watch(jvm) as watched:
        first = walked(watched)
        again = walked(watched)
        assert first == again
        assert "were not read again" in watched.space("Objects").info
        read = int(
            re.sub(
                ",",
                "",
                re.findall(r"([\d,]+) bytes of old objects", watched.space("Objects").info)[0],
            )
        )
        assert read > 3_000_000
        jvm.tell("keep", 1)
        more = walked(watched)
        assert more["[B"][0] - again["[B"][0] >= 1023
        jvm.tell("collect")
        walked(watched)
        assert "were not read again" not in watched.space("Objects").info


def test_a_tile_says_what_is_in_it(jvm: Jvm) -> None:
    with watch(jvm) as watched:
        mine = walked(watched)
        space = watched.space("Objects")
        arrays = watched.values("Objects", "Arrays")
        tile = int(np.argmax(arrays))
        assert isinstance(space.names, UniformNames)
        key = space.names.base + tile * space.names.tile_bytes
        answer = watched.server.ask(Query(number=1, space=space.id, kind="types", key=key, most=3))
        assert answer.state is AnswerState.ANSWERED
        counted = sum(row[1] for row in answer.table.rows if isinstance(row[1], int))
        rest = answer.table.rest_cells[1] if answer.table.rest else 0
        assert isinstance(rest, int)
        assert counted + rest == watched.values("Objects", "Objects")[tile]
        top = watched.values("Objects", "Top class")[tile]
        names = watched.space("Classes").names
        assert isinstance(names, StringNames)
        assert names.names[top] == answer.table.rows[0][0]
        whole = watched.server.ask(
            Query(number=2, space=watched.space("Classes").id, kind="types", most=1)
        )
        assert whole.table.rows[0] == ("[B", *mine["[B"])


def test_references_are_counted_one_by_one_and_by_generation(jvm: Jvm) -> None:
    jvm.tell("collect")
    with watch(jvm, level=4) as watched:

        def references() -> dict[str, int]:
            walked(watched)
            return {
                one.name: int(watched.values("References", one.name).sum())
                for one in watched.space("References").streams
            }

        before = references()
        jvm.tell("keep", 1)  # a list's item, and an array of 1,023
        after = references()
        made = after["Within"] + after["Out"] - before["Within"] - before["Out"]
        # Reading a command takes some objects too.
        assert 1024 <= made < 1024 + _FEW, (before, after)
        assert after["Out"] == after["Into"]
        assert 1 <= after["Old to young"] - before["Old to young"] < _FEW, "of the list's items"
        jvm.tell("store", 1000)
        stored = references()
        assert 1000 <= stored["Old to young"] - after["Old to young"] < 1000 + _FEW
        assert stored["Within"] + stored["Out"] - after["Within"] - after["Out"] < _FEW, (
            "they were references before"
        )


@pytest.mark.parametrize(
    ("collector", "flags"),
    [
        ("Serial", ("-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers")),
        ("G1", ("-XX:ObjectAlignmentInBytes=16",)),
        ("Serial", ("-XX:+UseCompactObjectHeaders",)),
        ("G1", ("-XX:+UseCompactObjectHeaders",)),
    ],
)
def test_objects_of_other_forms_are_counted_as_well(
    java: str, classes: Path, collector: str, flags: tuple[str, ...]
) -> None:
    with Jvm(java, classes, f"-XX:+Use{collector}GC", *_SMALL, *flags) as jvm:
        fill(jvm)
        with watch(jvm, level=4) as watched:
            mine, text = agreed(lambda: walked(watched), lambda: jvm.ask("GC.class_histogram -all"))
            assert_same(
                mine, told(_LINE.findall(text)), free_bytes(watched), regions=collector == "G1"
            )
            before = watched.values("References", "Old to young").sum()
            jvm.tell("store", 500)
            walked(watched)
            assert 500 <= watched.values("References", "Old to young").sum() - before < 500 + _FEW


def test_what_fills_the_region_before_the_archive_is_no_array_of_the_program(
    java: str, classes: Path
) -> None:
    with Jvm(java, classes, "-XX:+UseG1GC", "-XX:G1HeapRegionSize=8m", "-Xmx128m") as jvm:
        fill(jvm)
        with watch(jvm) as watched:
            mine, text = agreed(lambda: walked(watched), lambda: jvm.ask("GC.class_histogram -all"))
            theirs = told(_LINE.findall(text))
            assert_same(mine, theirs, free_bytes(watched), regions=True)
            layout = view(watched)[1]._heap.look()
            assert layout is not None
            filled = int((layout.fillers[:, 1] - layout.fillers[:, 0]).sum())
            assert mine[_ARRAYS][1] < 2 << 20, "the program has no large one"
            spans = [span for span in layout.spans if span.kind is SpanKind.ARCHIVE]
            if spans and "[Ljdk.internal.vm.FillerElement;" not in theirs:
                maps = parse_maps(Path(f"/proc/{jvm.pid}/maps").read_bytes())
                archived = sum(
                    min(end, span.top) - max(start, span.bottom)
                    for start, end, inode in zip(maps.start.tolist(), maps.end.tolist(), maps.inode.tolist(), strict=True)
                    for span in spans
                    if inode and start < span.top and end > span.bottom
                )  # fmt: skip
                assert filled == sum(span.top - span.bottom for span in spans) - archived


def test_stacks_of_virtual_threads_have_the_size_that_the_jvm_says(
    java: str, classes: Path
) -> None:
    with Jvm(java, classes, "-XX:+UseSerialGC", *_SMALL) as jvm:
        if int((re.findall(r"^JDK (\d+)", jvm.ask("VM.version"), re.M) or ["8"])[0]) < 21:
            pytest.skip(f"{java} has no virtual threads")
        jvm.tell("park", 20)
        jvm.ask("GC.class_histogram -all")
        with watch(jvm) as watched:
            mine, text = agreed(lambda: walked(watched), lambda: jvm.ask("GC.class_histogram -all"))
            assert mine["jdk.internal.vm.StackChunk"][0] >= 20
            assert_same(mine, told(_LINE.findall(text)), free_bytes(watched), regions=False)


def test_ages_of_survivors_are_those_that_the_jvm_logs(
    java: str, classes: Path, tmp_path: Path
) -> None:
    log = tmp_path / "age.log"
    flags = [
        "-XX:+UseSerialGC",
        "-Xmn24m",
        "-XX:+IgnoreUnrecognizedVMOptions",
        f"-Xlog:gc+age=trace:file={log}:none",
    ]
    with Jvm(java, classes, *_SMALL, *flags) as jvm:
        for _ in range(3):
            jvm.tell("keep", 1)
            jvm.tell("waste", 25)  # more than eden: a young collection
        if not log.exists():
            pytest.skip(f"{java} does not log ages: not compared")
        with watch(jvm) as watched:
            walked(watched)
            size, objects = (
                watched.values("Survivors by age", "Bytes"),
                watched.values("Survivors by age", "Objects"),
            )
            said = {
                int(age): int(number)
                for age, number in _AGE.findall(
                    log.read_text().rpartition("Desired survivor size")[2]
                )
            }
            assert len(said) >= 2, log.read_text()
            assert {age: int(number) for age, number in enumerate(size) if number} == said
            assert objects[0] == 0, "who survived is at least 1"


def test_live_objects_of_g1_are_those_that_its_marking_found(java: str, classes: Path) -> None:
    flags = ["-XX:+UseG1GC", *_SMALL, "-XX:G1HeapRegionSize=1m", "-XX:+ExplicitGCInvokesConcurrent"]
    with Jvm(java, classes, *flags) as jvm:
        jvm.tell("keep", 12)
        jvm.tell("collect")
        jvm.tell("drop")
        jvm.tell("keep", 4)
        for _ in range(2):
            jvm.tell("collect")
        with watch(jvm) as watched:
            walked(watched)
            streams = [one.name for one in watched.space("Objects").streams]
            if "Live bytes" not in streams:
                assert not re.search(r"\bJDK (11|17)\.", jvm.ask("VM.version")), "these keep them"
                pytest.skip(
                    f"{java} does not keep the marks of its last marking, or not where they are known: not compared"
                )
            live = watched.stream("Heap", "Live")
            marked = watched.stream("Objects", "Live bytes").known
            assert marked is not None
            kind = watched.values("Heap", "Type")
            names = watched.stream("Heap", "Type").schema.enum_names
            old = (kind == names.index("old")) & marked
            known = old if live.known is None else old & live.known
            # Objects allocated since the marking began count as live there, and are not marked.
            dead = watched.stream("Objects", "Dead bytes").data.astype(np.int64)
            marked_bytes = watched.stream("Objects", "Live bytes").data.astype(np.int64)
            marked_objects = watched.stream("Objects", "Live objects").data
            assert np.count_nonzero(known) >= 4
            assert (watched.values("Heap", "Used")[known] - dead[known] == live.data[known]).all()
            assert (marked_bytes[known] <= live.data[known]).all()
            assert marked_bytes.sum() > 3_000_000
            # Regions without live objects are free at once: the rest of 12 MB depends on where
            # objects came to lie.
            assert dead.sum() > 100_000
            assert (marked_objects[known] > 0).any()


def test_before_the_first_marking_of_g1_nobody_knows_what_is_alive(
    java: str, classes: Path
) -> None:
    with (
        Jvm(java, classes, "-XX:+UseG1GC", *_SMALL, "-XX:G1HeapRegionSize=1m") as jvm,
        watch(jvm) as watched,
    ):
        jvm.tell("keep", 12)
        jvm.tell("large", 3)
        walked(watched)
        count = watched.space("Heap").count
        used = watched.values("Heap", "Used") > 0
        assert np.count_nonzero(used) >= 12
        live = [one for one in watched.space("Heap").streams if one.schema.name == "Live"] + [
            one
            for one in watched.space("Objects").streams
            if one.schema.name in ("Live objects", "Live bytes", "Dead bytes")
        ]
        for stream in live:
            known = np.ones(count, dtype=np.bool_) if stream.known is None else stream.known
            assert not known.any(), (
                f"{stream.schema.name}: not even of what is free, or its sum would be 0"
            )
            assert not stream.data[used].any()
        if not live:
            pytest.skip(f"{java} does not say what is alive, or not where it is known")
        jvm.tell("collect")  # a full collection marks as well
        walked(watched)
        heap = watched.stream("Heap", "Live")
        kind = watched.values("Heap", "Type")
        old = kind == heap_kinds(watched).index("old")
        assert heap.known is None or heap.known[old].all()
        assert heap.data[old].sum() > 10 << 20


def heap_kinds(watched: Watched) -> tuple[str, ...]:
    return watched.stream("Heap", "Type").schema.enum_names


def test_the_histogram_of_the_debugger_is_the_same(classes: Path, java: str) -> None:
    debugger = Path(java).with_name("jhsdb")
    if not debugger.exists():
        pytest.skip(f"{java} has no jhsdb beside it: not compared with it")
    with Jvm(java, classes, "-XX:+UseSerialGC", "-Xms16m", "-Xmx16m") as jvm:
        jvm.tell("keep", 1)
        with watch(jvm) as watched:

            def ask() -> str:
                return subprocess.run(
                    [str(debugger), "jmap", "--histo", "--pid", str(jvm.pid)],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=120,
                ).stdout

            mine, text = agreed(lambda: walked(watched), ask)
            theirs = told(re.findall(r"^\d+:\s+(\d+)\s+(\d+)\s+(\S+)", text, re.M))
            assert len(theirs) > 100, text
            assert theirs["java.lang.String"] == mine["java.lang.String"]
            for name in (
                "java.util.HashMap$Node",
                "java.lang.Class",
                "java.lang.Thread",
                "java.util.ArrayList",
            ):
                assert theirs[name] == mine[name]


@pytest.mark.parametrize("collector", matrix(COLLECTORS, usual=["G1"]))
def test_at_safepoints_of_a_busy_jvm_every_byte_is_of_an_object_or_free_or_dead(
    java: str, classes: Path, collector: str
) -> None:
    need_agent()
    looks: list[tuple[int, str]] = []
    marked: list[bool] = []
    causes: list[tuple[int, int, str]] = []
    # Whether the whole heap has been collected: nothing is marked unless that does it. None: it is under way, and the events that report
    # it may be missed on a busy machine.
    collected: list[bool | None] = [False]
    flags = ["-XX:InitiatingHeapOccupancyPercent=100", "-XX:+IgnoreUnrecognizedVMOptions"]
    flags.append("-XX:-G1UseAdaptiveIHOP")
    with Jvm(java, classes, f"-XX:+Use{collector}GC", "-Xms32m", "-Xmx32m", *flags) as jvm:
        jvm.tell("keep", 4)
        with Told(jvm.pid, AttachOptions(level=3, values={"inject": "agent"})) as told:

            def look(event: Event) -> None:
                if event.event not in (GC_START, GC_END):
                    return
                streams = {one.name: one for one in told.space("Objects").streams}
                names = ("Instance bytes", "Array bytes", "Free bytes")
                known = streams["Objects"].known
                rows = (
                    np.ones(told.space("Objects").count, dtype=np.bool_) if known is None else known
                )
                if "full collection" in event.cause:
                    collected.append(True)
                causes.append((event.event, event.occurrence, event.cause))
                if "not read: gcspy was silent" in event.cause:
                    return  # a busy machine gave this process no time, and the JVM continued
                # At the end that allocation is not in order yet for which it was collected.
                assert np.count_nonzero(~rows) <= (
                    0 if event.event == GC_START else _IN_FLIGHT_TILES
                ), told.space("Objects").info
                whole = np.sum([streams[name].data.astype(np.int64) for name in names], axis=0)
                if "Dead bytes" in streams:
                    whole += dead_bytes(streams["Dead bytes"], event)
                used = told.values("Heap", "Used")
                wrong = np.flatnonzero((whole != used) & rows)
                assert not len(wrong), (
                    f"{event.event} {event.cause}: tiles {wrong[:8]} hold {whole[wrong[:8]]}, "
                    f"used {used[wrong[:8]]}; {told.space('Objects').info}"
                )
                looks.append((event.event, told.space("Objects").info))

            def dead_bytes(dead: ServerStream, event: Event) -> npt.NDArray[np.int64]:
                """Return what is dead; of a tile of which that is unknown, all was walked as objects."""
                known = (
                    np.ones(len(dead.data), dtype=np.bool_) if dead.known is None else dead.known
                )
                marked.append(bool(known.any()))
                assert collected[-1] in (None, marked[-1]), (
                    f"{event.event} {event.occurrence} {event.cause}: {np.flatnonzero(known)[:8]} "
                    f"after {causes}; {told.space('Objects').info}"
                )
                assert not dead.data[~known].any()
                return np.where(known, dead.data, 0).astype(np.int64)

            # Regions that are not walked yet, because the loops are being compiled, are not compared.
            while told.driver._objects is None or told.driver._objects.coming:
                told.holder.wait(0.1)
            told.server.add_observer(look)
            churn_until(told, jvm, looks, 8)
            collected.append(None)
            told.during(lambda: jvm.tell("collect"))
            collected.append(True)
            churn_until(told, jvm, looks, len(looks) + 4)
    assert {event for event, _ in looks} == {GC_START, GC_END}
    assert any("were not read again" in info for _, info in looks), looks
    assert not marked or {False, True} == set(marked), "before the first marking, and after it"


def churn_until(told: Told, jvm: Jvm, looks: list[tuple[int, str]], count: int) -> None:
    """Have a JVM collect until this many collections were observed."""
    jvm.tell("churn", 3)
    while len(looks) < count:
        told.holder.wait(1.0)
    jvm.tell("churn", 0)


def test_while_the_loops_are_being_compiled_it_is_said_that_objects_wait_for_them(
    java: str, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_agent()
    options = AttachOptions(level=3, values={"inject": "agent"})
    with Jvm(java, classes, "-XX:+UseSerialGC", *_SMALL) as jvm, Told(jvm.pid, options) as told:
        monkeypatch.setattr(machine_code, "coming", lambda: True)
        told.during(lambda: jvm.tell("collect"))
        assert COMING in told.space("Memory pools").info
        assert told.space("Objects").info == COMING
        assert not told.values("Objects", "Objects").any(), "nothing was walked"
        monkeypatch.setattr(machine_code, "coming", lambda: False)
        told.during(lambda: jvm.tell("collect"))
        assert COMING not in told.space("Memory pools").info
        assert "objects" in told.space("Objects").info
        assert COMING not in told.space("Objects").info
        assert told.values("Objects", "Objects").any()
