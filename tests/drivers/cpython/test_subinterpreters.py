"""Sub-interpreters: listed, each with its own collector, and with separate arenas where they have them."""

from __future__ import annotations

import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.target import Target

from gcspy_server.api import AttachOptions
from tests.drivers.conftest import Start
from tests.drivers.cpython.test_truth import assert_heap_is
from tests.drivers.targets import TELL, find_python

# The module's name and its arguments changed with each version; what they do did not.
MAKE = f"""
source = {TELL!r}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
def make(isolated):
    try:
        return interpreters.create("isolated" if isolated else "legacy")
    except (TypeError, ValueError):
        return interpreters.create(isolated=isolated)
def run(ident, text):
    run_one = getattr(interpreters, "exec", None) or interpreters.run_string
    run_one(ident, text)
"""


def test_interpreters_are_listed_and_each_has_its_own_collector(python: str, start: Start) -> None:
    child = start(
        python,
        MAKE
        + """
first, second = make(False), make(False)
run(first, "import gc; gc.set_threshold(111, 22, 3)")
run(second, "import gc; gc.disable()")
tell()
interpreters.destroy(first)
tell()
""",
    )
    child.wait_still()
    with Target(child.pid) as target:
        interpreters = target.interpreters()
        assert interpreters is not None
        assert [one.ident for one in interpreters] == [0, 1, 2]
        main, first, second = target.generations(interpreters)
        assert main.generations is not None
        assert main.generations.enabled
        assert first.generations is not None
        assert first.generations.threshold.tolist() == [111, 22, 3]
        assert second.generations is not None
        assert not second.generations.enabled
        child.go_on()
        child.wait_still()
        assert [one.ident for one in target.interpreters() or ()] == [0, 2]


def test_interpreters_that_share_pymalloc_have_one_heap(python: str, start: Start) -> None:
    child = start(
        python,
        MAKE + 'other = make(False)\nrun(other, "x = [bytes(100) for _ in range(20000)]")\ntell()',
    )
    truth = child.wait_still()
    with Target(child.pid) as target:
        interpreters = target.interpreters() or ()
        assert len(interpreters) == 2
        (heap,) = target.heaps(interpreters)
        assert heap.owner == 0
        assert_heap_is(truth, heap.reading)


def test_an_isolated_interpreter_has_arenas_of_its_own_and_tells_the_truth_about_them(
    start: Start,
) -> None:
    for version in ("3.12", "3.13"):
        python = find_python(version)
        if python is None:
            continue
        child = start(
            python,
            MAKE
            + 'other = make(True)\ntell()\nrun(other, source + "keep = [bytes(100) for _ in range(30000)]\\ntell()")',
        )
        truth = child.wait_still()
        with Target(child.pid) as target:
            interpreters = target.interpreters() or ()
            main, other = target.heaps(interpreters)
            assert (main.owner, other.owner) == (0, 1)
            assert_heap_is(truth, main.reading)
            child.go_on()
            truth = child.wait_still()
            assert truth.classes[8][1] >= 30_000  # 133 bytes each
            main, other = target.heaps(interpreters)
            assert_heap_is(truth, other.reading)
            assert not set(main.reading.arenas.address.tolist()) & set(
                other.reading.arenas.address.tolist()
            )
            assert target.owners(interpreters) == (0, 1)


def test_spaces_come_and_go_with_interpreters(python: str, start: Start) -> None:
    child = start(
        python,
        MAKE + "tell()\nother = make(True)\ntell()\ninterpreters.destroy(other)\ntell()",
    )
    child.wait_still()
    driver = CPythonDriver.attach(child.pid, AttachOptions())
    try:
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(lambda event: None)
        driver.tick()
        before = [space.name for space in server.spaces]
        assert before == [
            "pymalloc arenas",
            "Size classes",
            "Whole arenas",
            "GC generations",
            "Process memory",
            "Memory over time",
        ]
        child.go_on()
        child.wait_still()
        driver.tick()
        added = [space.name for space in server.spaces if space.name not in before]
        assert "GC generations (interpreter 1)" in added
        own = len(driver._target.owners(driver._target.interpreters() or ())) == 2
        assert ("pymalloc arenas (interpreter 1)" in added) == own
        for space in server.spaces:
            if space.name == "pymalloc arenas (interpreter 1)":
                assert space.count > 0
        child.go_on()
        child.wait_still()
        driver.tick()
        assert [space.name for space in server.spaces] == before
    finally:
        driver.close()


def test_objects_and_references_of_an_isolated_interpreter_are_in_its_own_pools(
    start: Start,
) -> None:
    python = find_python("3.13") or find_python("3.12")
    if python is None:
        pytest.skip(
            "no Python 3.12 or 3.13 on PATH or in ~/.pyenv/versions: isolated interpreters are not tested here"
        )
    child = start(
        python,
        MAKE
        + """
one = make(True)
run(one, '''
class Mine:
    __slots__ = ("before",)
last = None
keep = []
for number in range(5_000):
    mine = Mine(); mine.before = last; last = mine
    keep.append(mine)
mine = last = None
''')
class Main:
    __slots__ = ()
keep = [Main() for _ in range(3_000)]
tell()
""",
    )
    child.wait_still()
    with Target(child.pid) as target:
        interpreters = target.interpreters() or ()
        heaps = target.heaps(interpreters)
        assert target.warm(heaps)
        copies = target.copy_objects(heaps, interpreters)
        found = target.objects(heaps, interpreters, references=True, copies=copies)
    assert found.lists is not None
    assert found.lists.complete
    assert found.owners == (0, 1)
    assert found.references is not None
    counts = []
    for one in found.heaps:
        named = {
            found.types.names[kind]: kind for kind in set(one.objects.type.tolist()) if kind >= 0
        }
        counts.append(
            [
                int(one.objects.count[one.objects.type == named.get(name, -2)].sum())
                for name in ("Main", "Mine")
            ]
        )
        references = found.references[one.pools_before :][: len(one.heap.reading.pools)].sum(axis=0)
        assert references[1] == references[2], (
            "nothing leads from one interpreter's pools to another's"
        )
        if named.get("Mine"):
            assert references[:2].sum() >= 4_999
    assert counts == [[3_000, 0], [0, 5_000]]
