"""The lessons that come with GCspy: each can be led to its end, the recording of it is the lesson of today, and the right answers are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.simulator.heap import WHITE, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plans import make_plan
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import ControlState
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from gcspy_replay.samples import lesson_recording
from numpy.typing import NDArray
from pytestqt.qtbot import QtBot

from gcspy.recorder.lesson_recorder import record_lesson
from gcspy_client.lessons import Lesson, find_lesson, lesson_names, shipped_lessons
from gcspy_client.lessons.claims import check_claims, events_of_steps
from gcspy_client.lessons.lint import lint_lessons
from gcspy_client.view.window import MainWindow
from tests.matrix import matrix
from tests.waiting import PATIENCE_MILLIS

Values = NDArray[np.int64]


class Led:
    """A lesson in its recording, and at which event each step stands."""

    def __init__(self, lesson: Lesson, recording: Recording) -> None:
        self.lesson, self.recording = lesson, recording
        self.reached = events_of_steps(lesson, recording)
        self._states = [recording.seek(number) for number in self.reached]

    def state(self, step: int) -> ClientInterpreter:
        return self._states[step - 1]

    def values(self, step: int, space: str, stream: str) -> Values:
        """Return the values of the tiles at a step, from 1."""
        found = next(one for one in self.state(step).spaces.values() if one.space.name == space)
        column = next(one for one in found.streams.values() if one.schema.name == stream)
        assert column.known is None or column.known.all(), (
            f"step {step}: {space}, {stream} is not known"
        )
        return column.values.astype(np.int64)

    def total(self, step: int, space: str, stream: str) -> int:
        return int(self.values(step, space, stream).sum())

    def each(self, space: str, stream: str, first: int, last: int) -> Iterator[Values]:
        """Return the values of the tiles at those events of a range at which they are known."""
        for _, state in self.recording.steps(first, last):
            found = next(one for one in state.spaces.values() if one.space.name == space)
            column = next(one for one in found.streams.values() if one.schema.name == stream)
            if column.known is None or column.known.all():
                yield column.values.astype(np.int64)


@pytest.fixture(scope="module")
def led() -> Iterator[Callable[[str], Led]]:
    found: dict[str, Led] = {}

    def of(name: str) -> Led:
        if name not in found:
            path = lesson_recording(name)
            assert path is not None, (
                f"no recording of {name!r}: python replay/samples/lessons.py {name}"
            )
            found[name] = Led(find_lesson(name), Recording.open(path))
        return found[name]

    yield of
    for one in found.values():
        one.recording.close()


def contents(state: ClientInterpreter) -> dict[str, bytes]:
    return {
        f"{one.space.name}: {stream.schema.name}": stream.values.tobytes()
        for one in state.spaces.values()
        for stream in one.streams.values()
        if not one.space.name.startswith("Real Python")  # its numbers are not ours to fix
    }


def happened(state: ClientInterpreter) -> tuple[object, ...]:
    event = state.last_event
    assert event is not None
    return event.event, event.occurrence, event.cause, event.program_clock


# Of the same collector and program as "tiles", and 575 events long.
@pytest.mark.parametrize(
    "name", matrix(lesson_names(), usual=["tiles", "generations", "tricolour"])
)
def test_a_lesson_that_is_led_anew_is_the_recorded_one_event_for_event(
    name: str, led: Callable[[str], Led], tmp_path: Path
) -> None:
    there = led(name)
    path = tmp_path / "anew.gcspy"
    assert list(record_lesson(there.lesson, path)) == there.reached
    with Recording.open(path) as anew:
        assert len(anew) == len(there.recording), (
            f"it changed: python replay/samples/lessons.py {name}"
        )
        for (one, mine), (_, theirs) in zip(anew.steps(), there.recording.steps(), strict=True):
            assert happened(mine) == happened(theirs), f"at event {one.number}"
            assert contents(mine) == contents(theirs), f"at event {one.number}"


@pytest.mark.parametrize("name", lesson_names())
def test_the_recording_of_a_lesson_reaches_every_step_and_what_each_looks_at_is_there(
    name: str, led: Callable[[str], Led]
) -> None:
    one = led(name)
    assert one.recording.welcome.target["lesson"] == name
    assert not one.recording.damages
    settings = {setting.name for setting in one.state(1).settings.settings}
    for number, step in enumerate(one.lesson.steps, start=1):
        assert step.settings.keys() <= settings
        if step.view is not None:
            for space, stream in [(step.view.space, step.view.stream), *step.view.history]:
                one.values(number, space, stream)


# ------------------------------------------------------------------------------------- the texts


@pytest.mark.parametrize("name", lesson_names())
def test_what_a_lesson_says_is_true_of_the_values_that_the_student_sees(
    name: str, led: Callable[[str], Led]
) -> None:
    one = led(name)
    wrong = [
        f"step {checked.step + 1}, event {checked.event}: {checked.claim.text!r}: {checked.values}"
        for checked in check_claims(one.lesson, one.recording, one.reached)
        if not checked.holds
    ]
    assert not wrong


def test_no_answer_of_a_lesson_can_be_guessed_and_each_is_explained() -> None:
    assert lint_lessons(shipped_lessons()) == []


# ------------------------------------------------------------------------------- the right answers


def tiles_2(led: Led) -> None:
    """Tiles fill one after the other, from the first."""
    for used in led.each("Heap", "Used space", led.reached[1], led.reached[4]):
        full = int((used == used.max()).sum())
        assert (used[:full] == used.max()).all()
        assert (used[full + 1 :] == 0).all()


def tiles_5(led: Led) -> None:
    """Less than a tenth is live."""
    assert led.total(5, "Heap", "Live") < 0.1 * led.total(5, "Heap", "Used space")


def marksweep_2(led: Led) -> None:
    """Marks appear where references lead from the roots, not from the first tile on."""
    roots = np.flatnonzero(led.values(2, "Heap", "Roots"))
    first = next(
        grey for grey in led.each("Heap", "Grey", led.reached[1] + 1, led.reached[2]) if grey.any()
    )
    assert set(np.flatnonzero(first).tolist()) <= set(roots.tolist())
    marked = np.flatnonzero(led.values(3, "Heap", "Marked"))
    live = np.flatnonzero(led.values(2, "Heap", "Live"))
    assert marked.tolist() != live[: len(marked)].tolist()


def marksweep_4(led: Led) -> None:
    """Marking scanned live objects, and nothing else; the sweep left each where it was."""
    marked, objects = led.total(5, "Heap", "Marked"), led.total(5, "Heap", "Objects")
    assert marked * 24 <= led.total(5, "Heap", "Live") < marked * 25
    assert marked < objects / 3
    assert (led.values(7, "Heap", "Live") == led.values(5, "Heap", "Live")).all()
    assert (led.values(7, "Heap", "Used space") == led.values(5, "Heap", "Live")).all()


def test_the_sweep_halfway_has_a_boundary(led: Callable[[str], Led]) -> None:
    one = led("marksweep")
    used, live = one.values(6, "Heap", "Used space"), one.values(6, "Heap", "Live")
    boundary = int(np.flatnonzero(used == 1024)[0])
    behind = used[boundary + 2 :]
    assert 64 < boundary < 192
    assert (used[: boundary - 1] == live[: boundary - 1]).all()
    assert (behind >= 1008).all()


def freelists_2(led: Led) -> None:
    """Every second list is empty, and no other is; at every event."""
    lengths = led.values(2, "Free lists", "Length")
    assert (lengths[1:-1:2] == 0).all()
    assert (lengths[0:-1:2] > 0).all()
    assert all(
        (one[1:-1:2] == 0).all() for one in led.each("Free lists", "Length", 1, led.reached[-1])
    )


def where_it_allocates(led: Led, first: int, last: int) -> float:
    """How the tiles that the program allocates in change with time: below 0 it goes towards the first tile."""
    places = [
        float(np.average(np.arange(len(new)), weights=new))
        for new in led.each("Heap", "New", first, last)
        if new.any()
    ]
    return float(np.mean(np.sign(np.diff(places))))


def diagonals_2(led: Led) -> None:
    """It allocates from the last tile backwards; before, it went forwards."""
    assert where_it_allocates(led, 1, led.reached[1]) > 0.9
    assert strongest_direction(led, led.reached[2] - 60, led.reached[2]) < 0
    # The line after the first collection that runs forwards: one large cell.
    assert strongest_direction(led, 100, 126) > 0


def diagonals_3(led: Led) -> None:
    """In the order of addresses it goes the other way."""
    assert strongest_direction(led, led.reached[3] - 60, led.reached[3]) > 0


def strongest_direction(led: Led, first: int, last: int) -> float:
    """How far the tile with most new bytes moves from an event to the next, as a rule."""
    places = [int(new.argmax()) for new in led.each("Heap", "New", first, last) if new.max() > 400]
    return float(np.median(np.diff(places)))


def copying_2(led: Led) -> None:
    """One solid piece at the beginning of the other half; before, the first half was full."""
    count = len(led.values(2, "Semi-spaces", "Used space"))
    before, after = (
        led.values(2, "Semi-spaces", "Used space"),
        led.values(4, "Semi-spaces", "Used space"),
    )
    assert before[: count // 2].all()
    assert not after[: count // 2].any()
    solid = int((after[count // 2 :] == 1024).sum())
    assert solid > 5
    assert (after[count // 2 : count // 2 + solid] == 1024).all()
    assert not after[count // 2 + solid + 1 :].any()


def generations_2(led: Led) -> None:
    """It copies what lives, and what a dead old object refers to: nepotism."""
    live = led.total(2, "Young generation", "Live")
    copied = led.total(3, "Young generation", "Used space")
    dead_and_old = led.total(2, "Old", "Used space") - led.total(2, "Old", "Live")
    assert copied > 20 * live
    assert dead_and_old > 0


def generations_4(led: Led) -> None:
    """Before, the old generation stood still; then it fills, and what lives in it does not."""
    used = [int(one.sum()) for one in led.each("Old", "Used space", led.reached[2], led.reached[3])]
    assert used[0] > 0
    assert used[-8:] == [used[-1]] * 8
    assert led.total(5, "Old", "Used space") > 4 * used[-1]
    assert led.total(5, "Old", "Live") < 1.5 * led.total(4, "Old", "Live")


def barrier_2(led: Led) -> None:
    """Nearly all cards of the table are dirty."""
    table = led.values(2, "Old", "Used space")
    cards = led.values(3, "Card table", "State") != 0
    assert cards[: int(table.sum()) // 128].mean() > 0.8


def train_1(led: Led) -> None:
    """One or two trains have most of the cars."""
    lengths = np.sort(led.values(2, "Trains", "Length"))[::-1]
    assert lengths[:2].sum() > 0.8 * lengths.sum()
    assert lengths[0] >= 16


def fragmentation_2(led: Led) -> None:
    """There is enough memory, and no piece of it is large enough."""
    free = led.values(3, "Free lists", "Free bytes")
    assert free.sum() > 90 << 10
    assert led.values(3, "Free lists", "Largest cell").max() < 72
    assert "72 bytes do not fit" in led.state(5).state_reason or "72 bytes do not fit" in str(
        led.state(5).last_event
    )


def counting_1(led: Led) -> None:
    """Dropped objects that are not in a cycle are freed at once; dropped cycles are not."""
    made = 4 * 16 << 10
    assert led.total(1, "Heap", "Used space") < made / 3
    assert led.total(2, "Heap", "Used space") > 4 * led.total(2, "Heap", "Live")


def counting_2(led: Led) -> None:
    """Exactly what nothing refers to is freed."""
    assert (
        led.total(3, "Heap", "Used space")
        == led.total(3, "Heap", "Live")
        == led.total(2, "Heap", "Live")
    )


def cause(led: Led, step: int) -> str:
    event = led.state(step).last_event
    assert event is not None
    return event.cause


def tricolour_1(led: Led) -> None:
    """The program stored references that marking would have missed: the barrier had work."""
    assert int(cause(led, 4).split(" barrier hits")[0].split()[-1]) > 0


def tricolour_2(led: Led) -> None:
    """Whites became grey at stores, so that at the end nothing live is white."""
    assert led.total(2, "Heap", "Grey") > 0
    # Of the objects that live, each is marked: what is not is swept.
    assert led.total(4, "Heap", "Objects") >= led.total(3, "Heap", "Marked")
    assert led.total(4, "Heap", "Live") == led.total(3, "Heap", "Live"), "no live object was lost"


def markcompact_1(led: Led) -> None:
    """Objects slide to the first addresses, in their order: the first tiles are full and the others empty."""
    used = led.values(3, "Heap", "Used space")
    full = int((used == 1024).sum())
    assert (used[:full] == 1024).all()
    assert not used[full + 1 :].any()


def markcompact_3(led: Led) -> None:
    """The next objects lie right behind the last one."""
    before = int(led.total(3, "Heap", "Used space"))
    first = next(
        new for new in led.each("Heap", "New", led.reached[2] + 1, led.reached[3]) if new.any()
    )
    assert np.flatnonzero(first)[0] == before // 1024


def immix_1(led: Led) -> None:
    """Lines without a mark are free: the lines in use are a bit more than what lives in them."""
    lines, live = led.total(2, "Block table", "Used space"), led.total(2, "Blocks", "Live")
    assert lines % 128 == 0
    assert live < lines < led.total(1, "Block table", "Used space") / 2
    assert "0 copied objects" in cause(led, 2)
    assert "66 copied objects" in cause(led, 4)


def idle_2(led: Led) -> None:
    """The collection frees none of what was not used: exactly that is left."""
    unused = led.total(2, "Semi-spaces", "Not accessed")
    assert unused > 0
    assert led.total(3, "Semi-spaces", "Used space") == unused
    assert led.total(3, "Semi-spaces", "Live") == unused


def idle_4(led: Led) -> None:
    """The collector copied the tree each time although nothing used it: it is as large as before."""
    assert led.total(4, "Semi-spaces", "Live") == led.total(3, "Semi-spaces", "Live")
    assert led.total(4, "Semi-spaces", "Not accessed") < 1.1 * led.total(
        2, "Semi-spaces", "Not accessed"
    )
    assert led.values(4, "Semi-spaces", "Idle").max() == 6


def stacks_1(led: Led) -> None:
    """With Dijkstra's barrier the roots of both threads are read again after marking."""
    read_again = led.total(1, "Heap", "Marked") - led.total(1, "Heap", "Grey")
    assert read_again > 0
    assert led.lesson.simulation["threads"] == 2


def floating(led: Led, step: int) -> int:
    return led.total(step, "Heap", "Used space") - led.total(step, "Heap", "Live")


def stacks_2(led: Led) -> None:
    """What died meanwhile floats; `test_planted_beside` hides an object behind a black one with this barrier and stacks read in turns."""
    assert floating(led, 2) > 15_000


def stacks_3(led: Led) -> None:
    """A store shades both, and what died floats."""
    assert floating(led, 3) > 15_000
    mutator = Mutator(make_plan("incremental", Heap(8192, roots=4), threads=2, barrier="hybrid"))
    for slot in range(3):
        mutator.new(slot, 1)
    mutator.store(0, 0, 1)
    mutator.plan.begin()
    mutator.plan.step(2)
    mutator.plan.step(1)
    mutator.plan.step(1)
    mutator.store(0, 0, 2)
    colours = mutator.plan.objects().colours.tolist()
    assert colours.count(WHITE) == 0


def regions_1(led: Led) -> None:
    """No region but eden was read: what is remembered of others is all that a young collection starts from, besides roots."""
    assert led.total(1, "Regions", "Live") > 0
    assert "remembered references" in cause(led, 2)


def regions_2(led: Led) -> None:
    """It copied objects, and freed nothing; some of them were dead."""
    assert "1,022 copied objects" in cause(led, 2)
    assert ", 0 freed words" in cause(led, 2)
    assert led.total(2, "Regions", "Live") < 0.6 * led.total(2, "Regions", "Used space")


def regions_3(led: Led) -> None:
    """The marking freed regions and forgot fields of dead objects."""
    assert "11 freed regions" in cause(led, 4)
    assert led.total(4, "Region table", "Remembered") < led.total(3, "Region table", "Remembered")


def relocation_1(led: Led) -> None:
    """Fields were healed when they were loaded."""
    assert "28 fields healed" in cause(led, 4)


def relocation_2(led: Led) -> None:
    """The program moved some of the objects."""
    assert "255 moved objects" in cause(led, 4)
    assert "23 moved by the program" in cause(led, 4)


def relocation_3(led: Led) -> None:
    """The regions were kept until the references were put right."""
    assert led.total(3, "Regions", "Old copies") == led.total(2, "Regions", "Old copies") > 0
    assert led.total(4, "Regions", "Old copies") == 0


def ambiguous_1(led: Led) -> None:
    """Dead objects are kept, and nothing was moved."""
    kept = led.values(2, "Objects", "Reachable")
    assert int((kept == 0).sum()) == 7


def ambiguous_2(led: Led) -> None:
    """All but one of the dead objects that are kept are referred to by another dead one."""
    reachable = led.values(2, "Objects", "Reachable")
    sources, targets = led.values(2, "References", "From"), led.values(2, "References", "To")
    dead = set(np.flatnonzero(reachable == 0).tolist())
    held = {
        target
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True)
        if source in dead
    }
    assert len(dead - held) == 1


def costs_1(led: Led) -> None:
    """One wait, several times as long as the longest of the other collector."""
    stopped = led.values(2, "Pauses", "Length")
    assert int((stopped > 0).sum()) == 1
    assert stopped.max() > 5 * led.values(2, "incremental: Pauses", "Length").max()


def costs_2(led: Led) -> None:
    """Throughput says the opposite of what the least share in short windows says."""
    assert led.values(2, "Costs", "Value")[0] > led.values(2, "incremental: Costs", "Value")[0]
    stopped = led.state(2)
    least = [
        next(iter(one.streams.values())).values.tolist()[3]
        for one in stopped.spaces.values()
        if one.space.name.endswith("Utilisation")
    ]
    assert least[0] == 0 < least[1]


def cpython_1(led: Led) -> None:
    """Objects that no list has were freed, and nothing was collected."""
    assert led.total(1, "Generations", "Collections") == 0
    assert led.total(1, "Heap", "Objects") == led.total(1, "Generations", "Containers")


def cpython_3(led: Led) -> None:
    """Both collected as often, up to one."""
    ours, theirs = (
        led.total(4, space, "Collections") for space in ("Generations", "Real Python: Generations")
    )
    assert ours == 12
    assert abs(ours - theirs) <= 1


def increments_1(led: Led) -> None:
    """What was visited is in none of the increments that follow."""
    young, pending, visited = led.values(1, "Generations", "Containers").tolist()
    assert (pending, visited) == (0, 693)
    assert "698 increment" in cause(led, 2)
    assert young < 10


def increments_2(led: Led) -> None:
    """A collection of the second generation is the longest pause, by far."""
    longest = led.values(3, "cpython: Pauses", "Length").max()
    assert longest > 3 * led.values(3, "Pauses", "Length").max()


def finalisers_1(led: Led) -> None:
    """As many finalisers were called as weak references cleared, by counts alone."""
    assert led.values(1, "Finalisation", "Count").tolist() == [4, 14, 14, 14, 0]
    assert led.total(1, "Generations", "Collections") == 0


def finalisers_2(led: Led) -> None:
    """All finalisers were called, and nothing was freed."""
    assert led.values(3, "Finalisation", "Count")[3] == 14 + 16
    assert led.total(3, "Heap", "Used space") == led.total(2, "Heap", "Used space")


def finalisers_3(led: Led) -> None:
    """A phoenix that is dropped is freed without a call: `test_cpython` has this in the Python that runs it, too."""
    assert led.values(4, "Finalisation", "Count")[4] == 2
    plan = make_plan("cpython", Heap(8192, roots=8))
    mutator = Mutator(plan)
    mutator.finalise("Phoenix", 5)
    mutator.new(0, 1, type_id=mutator.heap.type_id("Phoenix"))
    mutator.store(0, 0, 0)
    mutator.clear(0)
    plan.collect()
    assert mutator.holds(5)
    mutator.clear(5)
    plan.collect()
    assert len(plan.objects()) == 0


def popular_1(led: Led) -> None:
    """One car has most references of all; its object moves when the car is collected, unless it is popular."""
    remembered = led.values(1, "Car table", "Remembered")
    assert remembered.max() == 764 > 0.3 * remembered.sum()
    assert (led.values(1, "Car table", "Type") != 2).all()
    assert int((led.values(2, "Car table", "Type") == 2).sum()) == 6


def site(led: Led, step: int, line: int, stream: str = "Executions") -> int:
    """Return a value of the only site of a line of the counted function."""
    return int(led.values(step, "Sites", stream)[(2, 6, 8, 10, 12, 14).index(line)])


def paths_1(led: Led) -> None:
    """The tuples of line 6 are the lists of line 8 and the dicts of line 10; no other count follows from others."""
    for step in (1, 2, 3):
        assert site(led, step, 6) == site(led, step, 8) + site(led, step, 10)
    assert [site(led, 3, line, "Counters") for line in (2, 12)] == [1, 1]


def paths_2(led: Led) -> None:
    """A counter for each block is as many counters, and as many increments."""
    counters, increments = (led.values(2, "Plans", name) for name in ("Counters", "Increments"))
    assert counters[0] == counters[1] == 6
    assert increments[0] == increments[1] == 28


def paths_3(led: Led) -> None:
    """The edge into the loop's body carries nothing, and is computed."""
    taken, carries = (led.values(3, "Edges", name) for name in ("Taken", "Carries"))
    assert (taken[3], carries[3]) == (24, 0)
    computed = led.values(3, "Edges", "Computed")
    assert computed.tolist() == taken.tolist()


def paths_4(led: Led) -> None:
    """The block of line 6 was entered once more than its tuple was made; no other site is behind a site that was missed."""
    blocks = led.values(4, "Blocks", "Entered")
    assert blocks[2] == site(led, 4, 6) + 1
    assert blocks[3] == site(led, 4, 8)
    assert blocks[4] == site(led, 4, 10)
    assert site(led, 4, 14) == 0


def paths_5(led: Led) -> None:
    """The edge into line 12 is taken less often than that past it."""
    taken = led.values(5, "Edges", "Taken")
    past, into = taken[8], taken[9]
    assert into == site(led, 5, 12) < past / 3


def paths_6(led: Led) -> None:
    """Twelve blocks and the world outside need twelve edges; of 18 one is counted by the call of the handler."""
    assert len(led.values(6, "Edges", "Taken")) == 18
    assert len(led.values(6, "Blocks", "Entered")) == 12
    assert led.values(6, "Plans", "Counters").tolist() == [6, 6, 5, 5, 5]


PROOFS = (
    paths_1, paths_2, paths_3, paths_4, paths_5, paths_6,
    popular_1,
    cpython_1, cpython_3, increments_1, increments_2, finalisers_1, finalisers_2, finalisers_3,
    costs_1, costs_2,
    stacks_1, stacks_2, stacks_3, regions_1, regions_2, regions_3, relocation_1, relocation_2, relocation_3, ambiguous_1, ambiguous_2,
    tiles_2, tiles_5, marksweep_2, marksweep_4, freelists_2, diagonals_2, diagonals_3, copying_2, generations_2, generations_4, barrier_2, train_1,
    fragmentation_2, counting_1, counting_2, tricolour_1, tricolour_2, markcompact_1, markcompact_3, immix_1, idle_2, idle_4,
)  # fmt: skip


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_the_right_answer_to_a_question_is_right(
    proof: Callable[[Led], None], led: Callable[[str], Led]
) -> None:
    proof(led(proof.__name__.partition("_")[0]))


def test_each_question_has_its_proof() -> None:
    asked = {
        f"{one.name}_{number}"
        for one in shipped_lessons()
        for number, step in enumerate(one.steps, start=1)
        if step.question is not None
    }
    assert asked == {proof.__name__ for proof in PROOFS}


# ---------------------------------------------------------------------------------- in a window


def _stands_at(window: MainWindow, step: int, event: int) -> bool:
    progress = window.lessons.progress
    led = progress.arrived and progress.at == step
    return (
        led and window.session.number == event and window.session.live.state is ControlState.PAUSED
    )


def test_a_recorded_lesson_that_plays_already_is_led_from_its_beginning_to_its_end(
    led: Callable[[str], Led],
    make_window: Callable[..., MainWindow],
    qtbot: QtBot,
    socket_directory: Path,
) -> None:
    there = led("counting")
    path = lesson_recording("counting")
    assert path is not None
    played = f"unix:{socket_directory}/played.sock"
    with serve_recording(Recording.open(path), played, beginning=PlaybackStart(number=60)):
        window = make_window(played)
        progress = window.lessons.progress
        qtbot.waitUntil(lambda: progress.lesson is not None, timeout=PATIENCE_MILLIS)
        for step, event in enumerate(there.reached):
            qtbot.waitUntil(partial(_stands_at, window, step, event), timeout=PATIENCE_MILLIS)
            while progress.asks:
                progress.answer_shown(len(progress.tries.get(step, ())))
            progress.next()
        assert progress.reached == dict(enumerate(there.reached))
        assert progress.why_not_next == "this is the last step"
