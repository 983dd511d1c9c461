"""The programs: on each collector they find what they stored, keep alive what they announce, and anybody can write one."""

from __future__ import annotations

from pathlib import Path

import pytest
from gcspy_drivers.simulator.heap import FREE, WORD_BYTES, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import OutOfHeap
from gcspy_drivers.simulator.plans import PLANS, make_plan
from gcspy_drivers.simulator.programs import PROGRAMS, make_run
from gcspy_protocol.errors import CommandError, LocalProtocolError

from tests.drivers.simulator.variants import over, wrong_of

HEAP_BYTES = 48 << 10


def make(
    program: str,
    plan: str = "marksweep",
    *,
    heap_bytes: int = HEAP_BYTES,
    threads: int = 1,
    seed: int = 1,
) -> Mutator:
    mutator, _ = over(
        make_plan(plan, Heap(heap_bytes, roots=96 * threads), threads=threads),
        seed=seed,
        watched=False,
    )
    return mutator


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_program_runs_on_and_its_heap_is_right(program: str) -> None:
    heap_bytes = HEAP_BYTES if program != "paraffins" else 128 << 10
    mutator = make(program, "cpython" if program == "files" else "marksweep", heap_bytes=heap_bytes)
    run = make_run(program, mutator)
    try:
        while mutator.heap.allocated_words * WORD_BYTES < 3 * heap_bytes:
            assert run.step()
    except OutOfHeap:
        assert program in {"leak", "fragmentation"}
    assert mutator.plan.collections >= 2
    assert wrong_of(mutator) == []
    run.close()
    for slot in range(len(mutator.heap.roots)):
        assert not mutator.holds(slot), "what a program held goes with it"


@pytest.mark.parametrize("plan", sorted(PLANS))
@pytest.mark.parametrize("program", ["reptile", "gcold"])
def test_two_threads_run_a_program_on_every_collector(program: str, plan: str) -> None:
    mutator = make(program, plan, threads=2, heap_bytes=64 << 10)
    run = make_run(program, mutator)
    # Not more than fits without any collection.
    while mutator.heap.allocated_words * WORD_BYTES < 56 << 10:
        assert run.step()
    assert wrong_of(mutator) == []


def test_the_same_seed_makes_the_same_objects_on_every_collector() -> None:
    shapes = set()
    for plan in sorted(PLANS):
        mutator = make("lru", plan, heap_bytes=64 << 10)
        run = make_run("lru", mutator)
        for _ in range(20):
            run.step()
        assert mutator.shadow is not None
        reachable = mutator.shadow.reachable()
        shapes.add(
            tuple(
                (number, tuple(mutator.shadow.objects[number].fields))
                for number in sorted(reachable)
            )
        )
    assert len(shapes) == 1


@pytest.mark.parametrize("program", ["gcold", "queue"])
def test_what_a_program_keeps_alive_follows_its_knob(program: str) -> None:
    found = []
    for live in (10, 40):
        mutator = make(program, heap_bytes=2 * HEAP_BYTES)
        run = make_run(program, mutator)
        run.program.turn("live", live)
        while mutator.heap.allocated_words * WORD_BYTES < 3 * HEAP_BYTES:
            run.step()
        mutator.plan.collect()
        objects = mutator.plan.objects()
        found.append(int(objects.where(~objects.having(FREE)).sizes.sum()))
    assert 2 * found[0] < found[1] < mutator.plan.heap_words * 3 // 4


def test_popular_objects_are_referred_to_by_almost_all_others() -> None:
    mutator = make("paraffins", heap_bytes=128 << 10)
    run = make_run("paraffins", mutator)
    for _ in range(60):
        run.step()
    assert mutator.shadow is not None
    counts: dict[int, int] = {}
    for number in mutator.shadow.reachable():
        for target in mutator.shadow.objects[number].fields:
            counts[target] = counts.get(target, 0) + 1
    counts.pop(0)
    most, *others = sorted(counts.values(), reverse=True)
    assert most > 5 * sorted(others)[len(others) // 2]


def test_a_program_of_one_s_own_is_a_function_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my_list.py"
    file.write_text(
        '"A list that grows."\n'
        "def work(stack, dice):\n"
        "    with stack.scope() as whole:\n"
        "        head = whole.empty()\n"
        "        for _ in range(5):\n"
        "            with stack.scope() as here:\n"
        "                node = here.new('Node', fields=1, data=int(dice.integers(3)))\n"
        "                node[0] = head\n"
        "                head.be(node)\n"
        "            yield\n"
    )
    mutator = make("")
    run = make_run(str(file), mutator)
    assert run.program.name == "my_list"
    assert run.program.about == "A list that grows."
    while run.step():
        pass
    assert run.over
    assert mutator.heap.identities == 5
    file.write_text("x = 1\n")
    with pytest.raises(CommandError, match="has no function work"):
        make_run(str(file), mutator)
    with pytest.raises(CommandError, match="gcspy lesson template program"):
        make_run(str(tmp_path / "none.py"), mutator)
    with pytest.raises(LocalProtocolError, match="no program 'none'"):
        make_run("none", mutator)
    with pytest.raises(LocalProtocolError, match="from 1 to 90"):
        make_run("reptile", mutator).program.turn("live", 91)


def test_too_many_references_at_once_are_refused_with_a_remedy() -> None:
    mutator = Mutator(make_plan("nogc", Heap(4096, roots=3)))
    file_less = make_run("queue", mutator)
    with pytest.raises(LocalProtocolError, match="open a scope"):
        make_run("reptile", mutator).step()
    assert file_less.step()


def test_the_page_of_the_simulator_names_every_collector_and_every_program() -> None:
    page = (Path(__file__).parents[3] / "docs/simulator.md").read_text()
    assert [name for name in (*PLANS, *PROGRAMS) if f"`{name}`" not in page] == []
