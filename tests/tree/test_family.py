"""The processes of a tree: found, kept when their parent ends, and told apart when a number is used again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from gcspy.tree.family import Family, Relative, private_and_shared
from gcspy.tree.growth_record import GrowthRecord, GrowthState

MIB = 1 << 20


class Machine:
    """A machine's processes: number to parent and start."""

    def __init__(self, **processes: tuple[int, int]) -> None:
        self.processes = {int(name[1:]): found for name, found in processes.items()}

    def __call__(self) -> Iterator[Relative]:
        for pid, (parent, started) in self.processes.items():
            yield Relative(pid, parent, started, "x", 0)


def ids(family: Family) -> list[int]:
    return [one.pid for one in family.look()]


def test_descendants_are_found_and_others_are_not() -> None:
    machine = Machine(p1=(0, 1), p10=(1, 2), p11=(10, 3), p12=(11, 3), p20=(1, 2))
    assert ids(Family(10, machine)) == [10, 11, 12]


def test_a_worker_outlives_its_master_and_its_own_children_belong_to_the_tree() -> None:
    machine = Machine(p1=(0, 1), p10=(1, 2), p11=(10, 3))
    family = Family(10, machine)
    assert ids(family) == [10, 11]
    machine.processes = {1: (0, 1), 11: (1, 3), 12: (11, 9)}
    assert ids(family) == [11, 12]


def test_a_number_that_is_used_again_is_another_process() -> None:
    machine = Machine(p1=(0, 1), p10=(1, 2), p11=(10, 3))
    family = Family(10, machine)
    assert ids(family) == [10, 11]
    machine.processes[11] = (1, 99)
    assert ids(family) == [10]


def test_nothing_is_found_again_when_all_have_ended() -> None:
    machine = Machine(p1=(0, 1), p10=(1, 2))
    family = Family(10, machine)
    assert ids(family) == [10]
    machine.processes = {1: (0, 1)}
    assert ids(family) == []


def test_circles_in_the_list_do_not_hang() -> None:
    machine = Machine(p10=(11, 1), p11=(10, 1))
    assert sorted(ids(Family(10, machine))) == [10, 11]


def test_a_real_child_with_brackets_in_its_name_is_found() -> None:
    code = "import sys, ctypes; ctypes.CDLL(None).prctl(15, b') S 1 (', 0, 0, 0); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = {one.pid: one for one in Family(os.getpid()).look()}
        assert found[child.pid].name == ") S 1 ("
        assert found[child.pid].parent == os.getpid()
        assert (found[child.pid].resident or 0) > MIB
        assert found[child.pid].age_secs >= 0
        private, share = private_and_shared(child.pid) or (0, 0)
        assert private > 0
        assert share >= 0
        child.communicate()


def test_memory_of_a_process_that_does_not_exist_is_not_known() -> None:
    assert private_and_shared(1 << 22) is None


def grown(*sizes: int) -> GrowthRecord:
    record = GrowthRecord()
    for second, size in enumerate(sizes):
        record.note(float(second), size)
    return record


def test_a_saw_tooth_is_steady_and_a_staircase_grows() -> None:
    saw = [50 * MIB + (second % 5) * 4 * MIB for second in range(40)]
    assert grown(*saw).state is GrowthState.STEADY
    stairs = [size + second * MIB for second, size in enumerate(saw)]
    assert grown(*stairs).state is GrowthState.GROWING
    assert grown(*reversed(stairs)).state is GrowthState.SHRINKING


def test_too_few_sizes_say_nothing() -> None:
    assert grown(1, 100 * MIB).state is GrowthState.UNKNOWN
    assert grown(1, 100 * MIB).bytes_per_minute is None
    assert grown(1).grew is None


def test_a_long_record_stays_small_and_keeps_the_rate() -> None:
    record = grown(*(second * MIB for second in range(5000)))
    assert len(record._sizes) < 100
    assert record.bytes_per_minute == 60 * MIB
    assert record.grew == 4999 * MIB
