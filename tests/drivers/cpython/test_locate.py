"""pymalloc's state is found by its looks where neither symbol nor offset leads to it, and is the same one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.layouts import KNOWN, ObmallocHome, layout_for
from gcspy_drivers.cpython.pymalloc.location import Locator
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.kit.memory_map import MemoryKind
from gcspy_drivers.remote.elf.image import Image
from gcspy_protocol.errors import Unsupported

from gcspy_server.api import AttachOptions
from tests.drivers.conftest import Start
from tests.drivers.cpython.test_truth import BUSY, assert_heap_is
from tests.drivers.targets import find_python


def test_a_stripped_build_is_searched_and_read_exactly(stripped_python: str, start: Start) -> None:
    child = start(stripped_python, BUSY)
    truth = child.wait_still()
    with Target(child.pid) as target:
        (heap,) = target.heaps(target.interpreters() or ())
        assert_heap_is(truth, heap.reading)
        child.go_on()
        truth = child.wait_still()
        (heap,) = target.heaps(target.interpreters() or ())
        assert_heap_is(truth, heap.reading)


def test_the_search_finds_the_very_variables_that_the_symbol_table_names(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = find_python("3.11")
    if python is None:
        pytest.skip("no Python 3.11 on PATH or in ~/.pyenv/versions")
    child = start(python, BUSY)
    truth = child.wait_still()
    with Target(child.pid) as target:
        assert target._found is not None
        assert target._found.image is not None
        image = target._found.image
        with open(image.path, "rb") as file:
            symbols = ELFFile(file).get_section_by_name(".symtab")
            if not isinstance(symbols, SymbolTableSection):
                pytest.skip("this Python 3.11 is stripped")
            named = [symbols.get_symbol_by_name(name) or [] for name in ("arenas", "maxarenas")]
        main = (target.interpreters() or ())[0]
        found = target._locator.find(main.address)
        monkeypatch.setattr(Image, "static", lambda self, name: None)
        searched = target._locator.find(main.address)
        assert found is not None
        assert searched is not None
        assert (found.guessed, searched.guessed) == (False, True)
        for place in (found, searched):
            assert [[symbol["st_value"] + image.bias for symbol in each] for each in named] == [
                [place.arenas],
                [place.maxarenas],
            ]
    with Target(child.pid) as target:  # attaches without symbols
        (heap,) = target.heaps(target.interpreters() or ())
        assert_heap_is(truth, heap.reading)


@pytest.mark.parametrize("version", ["3.12", "3.13"])
@pytest.mark.parametrize("wrong_by", [-8, 8, 64, -3000])
def test_an_offset_that_does_not_hold_is_replaced_by_a_search(
    version: str, wrong_by: int, start: Start
) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on PATH or in ~/.pyenv/versions")
    child = start(python, BUSY)
    child.wait_still()
    with Target(child.pid) as target:
        layout = target._layout
        assert layout.interpreter_obmalloc is not None
        main = (target.interpreters() or ())[0]
        right = target._locator.find(main.address)
        assert target._found is not None
        assert target._found.image is not None
        shifted = replace(layout, interpreter_obmalloc=layout.interpreter_obmalloc + wrong_by)
        searched = Locator(target._memory, target._maps, shifted, target._found.image).find(
            main.address
        )
        assert searched == right


@pytest.mark.parametrize("setting", ["malloc", "malloc_debug"])
def test_without_pymalloc_there_are_no_arenas_and_it_is_said(
    python: str, start: Start, setting: str
) -> None:
    child = start(
        python, "x = [bytes(100) for _ in range(50_000)]\ntell()", {"PYTHONMALLOC": setting}
    )
    child.wait_still()
    driver = CPythonDriver.attach(child.pid, AttachOptions())
    try:
        description = driver.describe()
        assert f"PYTHONMALLOC={setting}" in description.general_info
        server = description.server()
        driver.open(server)
        server.add_observer(lambda event: None)
        driver.tick()
        assert [space.name for space in server.spaces] == [
            "GC generations",
            "Process memory",
            "Memory over time",
        ]
        assert [space.schema.main for space in server.spaces] == [False, True, False]
        memory = server.spaces[1]
        resident = memory.streams[0].data.tolist()
        assert resident[MemoryKind.ARENAS] == 0
        assert resident[MemoryKind.MALLOC] > 5_000_000
    finally:
        driver.close()
    found = CPythonDriver.recognise(child.pid)
    assert found.supported
    assert f"PYTHONMALLOC={setting}" in found.detail


def test_layouts_are_named_by_their_versions_and_others_refused() -> None:
    assert sorted(KNOWN) == [(3, minor) for minor in range(9, 16)]
    assert all(layout.version == version for version, layout in KNOWN.items())
    assert layout_for((3, 12, 99)).obmalloc_home is ObmallocHome.EMBEDDED
    with pytest.raises(Unsupported, match=r"CPython 3\.8\.2.*3\.11, 3\.12, 3\.13") as refused:
        layout_for((3, 8, 2))
    assert refused.value.found == "CPython 3.8.2"
