"""Collectors and programs in files of students: a right one runs, and each beginner's mistake is told with its line."""

from __future__ import annotations

import re
import threading
from collections import deque
from pathlib import Path

import pytest
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import OutOfHeap
from gcspy_drivers.simulator.plans import make_plan
from gcspy_drivers.simulator.programs import make_run
from gcspy_drivers.simulator.user_code.template import template
from gcspy_drivers.simulator.verify import verify
from gcspy_protocol.errors import CommandError

from gcspy_server.api import Server

RIGHT = """\
def mark(heap):
    grey = list(heap.roots)
    while grey:
        x = grey.pop()
        if not x.marked:
            x.marked = True
            grey.extend(x.references)
            yield

def sweep(heap):
    for x in heap.objects:
        if not x.marked:
            heap.free(x)
        yield
"""

INCREMENTAL = """\
incremental = True
grey = []

def mark(heap):
    global grey
    grey = list(heap.roots)
    while grey:
        x = grey.pop()
        if not x.marked:
            x.marked = True
            grey.extend(x.references)
        yield
    grey = list(heap.roots)
    while grey:
        x = grey.pop()
        if not x.marked:
            x.marked = True
            grey.extend(x.references)

def sweep(heap):
    for x in heap.objects:
        if not x.marked:
            heap.free(x)
        yield

def write(heap, holder, old, new):
    if new is not None and not new.marked:
        grey.append(new)
"""


def ran(tmp_path: Path, source: str, program: str = "reptile", *, heap: int = 16384) -> str:
    """Why a simulation with a collector of this source ended, without the folder of its file."""
    path = tmp_path / "my.py"
    path.write_text(source)
    options = SimulationOptions(
        collector=str(path), program=program, heap_bytes=heap, pace_millis=0, steps=120, level=1
    )
    session = SimulatorSession(options)
    assert isinstance(session.server, Server)
    ended = session.run(threading.Event())
    assert session.failed is (not ended.startswith("the program has ended")), ended
    return ended.replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("program", ["reptile", "binarytrees", "rings"])
def test_a_mark_sweep_in_thirty_lines_collects_and_its_heap_is_right(
    program: str, tmp_path: Path
) -> None:
    path = tmp_path / "my.py"
    source = template("collector")
    assert len(source.splitlines()) == 30
    path.write_text(source)
    plan = make_plan(str(path), Heap(16384, roots=256))
    mutator = Mutator(plan, shadow=True)
    run = make_run(program, mutator)
    assert mutator.shadow is not None
    collected = 0
    for _ in range(150):
        run.step()
        assert verify(plan, mutator.shadow) == []
        if plan.collections > collected:
            collected = plan.collections
    plan.collect()
    assert verify(plan, mutator.shadow, collected=True) == []
    assert collected > 2


def test_an_incremental_collector_with_a_barrier_runs_beside_the_program(tmp_path: Path) -> None:
    assert ran(tmp_path, INCREMENTAL, "gcold").startswith("the program has ended")


def test_an_incremental_collector_without_a_barrier_loses_an_object_and_is_told_which(
    tmp_path: Path,
) -> None:
    source = INCREMENTAL.split("def write")[0]
    told = ran(tmp_path, source, "gcold")
    assert re.fullmatch(
        r"my\.py:23: object \d+ was freed and is reachable from `stack\[\d+\]`(, field \d of object \d+|, …)*",
        told,
    )


MISTAKES = {
    "a colon is missing": (
        RIGHT.replace("def mark(heap):", "def mark(heap)"),
        "my.py:1: expected ':'",
    ),
    "a function is missing": (
        RIGHT.replace("def sweep", "def sweeep"),
        "my.py:1: the collector has no function sweep: write def sweep(heap):",
    ),
    "no argument": (
        RIGHT.replace("def mark(heap)", "def mark()"),
        "my.py:1: mark takes no argument: write def mark(heap):",
    ),
    "no yield at all": (
        RIGHT.replace("            yield\n", ""),
        "my.py:1: mark has no yield: write one where it may be paused, in its innermost loop",
    ),
    "a loop without end": (
        RIGHT.replace("        x = grey.pop()", "        x = grey[0]").replace(
            "            yield\n", "    yield\n"
        ),
        r"my\.py:\d: 300,000 lines ran without a yield: a loop here does not end, or needs a yield in it",
    ),
    "the same objects for ever": (
        RIGHT.replace("if not x.marked:\n            x.marked = True", "if True:\n            grey.append(x)"),
        r"my\.py:8: this phase has taken [\d,]+ steps for \d+ objects: check that an object is not visited twice",
    ),
    "frees what is alive": (
        RIGHT.replace("if not x.marked:\n            heap", "if x.marked:\n            heap"),
        r"my\.py:13: object \d+ was freed and is reachable from `stack\[\d+\]`(, field \d of object \d+|, …)*",
    ),
    "marks the roots only": (
        RIGHT.replace("            grey.extend(x.references)\n", ""),
        r"my\.py:12: object \d+ was freed and is reachable from `stack\[\d+\]`(, field \d of object \d+|, …)+",
    ),
    "frees twice": (
        RIGHT.replace("heap.free(x)\n", "heap.free(x)\n            heap.free(x)\n"),
        r"my\.py:14: object \d+ was freed in line 13: it must not be used any more",
    ),
    "frees nothing": (
        RIGHT.replace("heap.free(x)", "pass"),
        r"my\.py:10: sweep has ended, and \d+ objects that nothing refers to were not freed \(0 were\): object \d+ \(\w+, not marked\) is the first",
    ),
    "an attribute is misspelt": (
        RIGHT.replace("x.references", "x.reference"),
        r"my\.py:7: HeapObject has no 'reference' \(did you mean 'references'\?\): it has colour, fields, marked, number, references, size, type",
    ),
    "a field that holds nothing": (
        RIGHT.replace("x.references", "x.fields"),
        "my.py:5: None has no 'marked': a field may hold nothing; references leaves those out",
    ),
    "a name is misspelt": (
        RIGHT.replace("x = grey.pop()", "x = gray.pop()"),
        r"my\.py:4: the name 'gray' is not defined \(did you mean 'grey'\?\)",
    ),
    "frees a number": (
        RIGHT.replace("heap.free(x)", "heap.free(x.number)"),
        r"my\.py:13: free takes an object, and this is \d+",
    ),
    "recursion": (
        "def visit(x):\n    x.marked = True\n    visit(x)\n\n" + RIGHT.replace("x.marked = True", "visit(x)"),
        r"my\.py:[23]: a function calls itself too often: keep a list of what is left to do instead",
    ),
    "a colour that there is not": (
        RIGHT.replace("x.marked = True", 'x.colour = "gray"'),
        "my.py:6: an object cannot be 'gray': use one of white, grey, black",
    ),
    "an error of Python": (
        RIGHT.replace("grey = list(heap.roots)", "grey = list(heap.roots) + 1"),
        'my.py:2: TypeError: can only concatenate list (not "int") to list',
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_beginners_mistake_is_told_with_its_line(mistake: str, tmp_path: Path) -> None:
    source, words = MISTAKES[mistake]
    try:
        told = ran(tmp_path, source)
    except CommandError as error:  # before anything ran
        told = str(error).replace(f"{tmp_path}/", "")
    assert told == words or re.fullmatch(words, told), told
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == [tmp_path / "my.py"], "nothing is left beside the file"


def program_ran(tmp_path: Path, source: str) -> str:
    path = tmp_path / "prog.py"
    path.write_text(source)
    options = SimulationOptions(program=str(path), heap_bytes=16384, pace_millis=0, steps=50)
    try:
        ended = SimulatorSession(options).run(threading.Event())
    except CommandError as error:
        ended = str(error)
    return ended.replace(f"{tmp_path}/", "")


HEAD = (
    "def work(stack, dice):\n    with stack.scope() as here:\n        a = here.new('A', fields=1)\n"
)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (template("program"), "the program has ended, after 50 steps"),
        (HEAD + "        a[3] = a\n        yield\n", "prog.py:4: field 3 of slot 0, which holds an object with 1 fields: the program has a defect"),
        (HEAD + "        while True:\n            a[0] = a\n        yield\n", "prog.py:5: 300,000 lines ran without a yield: a loop here does not end, or needs a yield in it"),
        (HEAD.replace(", dice", ""), "prog.py:1: work takes stack: write def work(stack, dice):"),
        (HEAD, "prog.py:1: work has no yield: write one where it may be paused, in its innermost loop"),
        ("x = 1 / 0\n", "prog.py:1: ZeroDivisionError: division by zero"),
        (HEAD + "        yield\n        None.foo\n", "prog.py:5: None has no 'foo': a field may hold nothing; references leaves those out"),
    ],
)  # fmt: skip
def test_a_program_of_ones_own_is_told_its_mistakes(
    source: str, words: str, tmp_path: Path
) -> None:
    told = program_ran(tmp_path, source)
    if words.startswith("prog.py:5: 300"):
        told = re.sub(r"prog\.py:[45]:", "prog.py:5:", told)
    assert told == words


def test_a_full_heap_is_no_mistake_of_the_program(tmp_path: Path) -> None:
    source = HEAD + "        while True:\n            here.new('B', data=50)\n            yield\n"
    path = tmp_path / "prog.py"
    path.write_text(source)
    plan = make_plan("marksweep", Heap(8192, roots=256))
    run = make_run(str(path), Mutator(plan))
    with pytest.raises(OutOfHeap, match="do not fit"):
        deque(iter(run.step, False), maxlen=0)


def test_a_loop_ends_when_the_session_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "prog.py"
    path.write_text(HEAD + "        while True:\n            pass\n        yield\n")
    session = SimulatorSession(SimulationOptions(program=str(path), pace_millis=0))
    guard = session.program.guard
    assert guard is not None
    guard.stopped = lambda: True
    with pytest.raises(CommandError, match="stopped"):
        make_run_step(session)


def make_run_step(session: SimulatorSession) -> None:
    session._run.step()


def test_a_file_that_is_not_there_is_told_how_to_get_one(tmp_path: Path) -> None:
    path = tmp_path / "none.py"
    with pytest.raises(CommandError, match=f"gcspy lesson template collector -o {path}"):
        make_plan(str(path), Heap(8192))
