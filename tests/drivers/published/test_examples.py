"""The examples: they build, need at most 40 lines, and what is shown is what they count themselves."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gcspy_drivers.published.include_folder import include_folder
from gcspy_drivers.published.recognition import recognise
from gcspy_protocol.model import Control

from tests.drivers.published.programs import EXAMPLES, STRICT, ExampleProgram, find_tool
from tests.drivers.published.session import Seen, watching
from tests.house.rooms import ROOT
from tests.waiting import wait_until

LINES = 40
"""Most lines that an author adds."""


def _used_bytes(seen: Seen) -> int:
    return int(seen["Slab", "Used"].sum())


def _region_bytes(seen: Seen) -> int:
    assert (seen["Regions", "Used"] <= seen["Regions", "Size"]).all()
    return int(seen["Regions", "Used"].sum())


def _cached_pages(seen: Seen) -> int:
    return int((seen["Pages", "State"] > 0).sum())


def _rust_bytes(seen: Seen) -> int:
    assert (seen["Size classes", "Bytes"] >= seen["Size classes", "Live"]).all()
    return int(seen["Size classes", "Bytes"].sum())


TRUTHS = {
    "slab": (_used_bytes, 64),
    "region": (_region_bytes, 1),
    "page_cache": (_cached_pages, 1),
    "arena": (_rust_bytes, 1),
}
"""What is shown, and how much of it one is that the example counts."""


@pytest.mark.parametrize("name", TRUTHS)
def test_what_an_example_shows_is_what_it_counts(name: str) -> None:
    shown, unit = TRUTHS[name]
    program = ExampleProgram(name)
    try:
        with watching(program.pid) as watch, ThreadPoolExecutor(1) as other:
            for _ in range(8):
                have = len(watch.seen)
                asked = other.submit(program.ask)  # it waits in its event, where it can
                while not asked.done():
                    watch.driver.wait(0.05)
                watch.driver.wait(0)
                # Of the slab nothing is known that was overwritten; the last event of a round is there.
                assert len(watch.seen) > have
                assert shown(watch.seen[-1]) == program.said[1] * unit
                assert all(known is None for known in watch.seen[-1].known.values())
    finally:
        program.end()


def test_a_free_slot_is_unused() -> None:
    program = ExampleProgram("page_cache")
    try:
        with watching(program.pid) as watch, ThreadPoolExecutor(1) as other:
            for _ in range(3):
                asked = other.submit(program.ask)
                while not asked.done():
                    watch.driver.wait(0.05)
            space = next(one for one in watch.server.spaces if one.name == "Pages")
            empty = watch.seen[-1]["Pages", "State"] == 0
            assert ((space.control == Control.UNUSED) == empty).all()
    finally:
        program.end()


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.[cr]*")), ids=lambda path: path.name)
def test_an_author_adds_at_most_forty_lines(path: Path) -> None:
    marked = [line for line in path.read_text().splitlines() if line.rstrip().endswith(("/* gcspy */", "// gcspy"))]  # fmt: skip
    assert len(marked) <= LINES
    assert marked or path.name == "shim.c"


def test_the_header_is_strict_c99_and_cpp(tmp_path: Path) -> None:
    source = '#define GCSPY_IMPLEMENTATION\n#include "gcspy.h"\nint main(void) { gcspy g; (void)sizeof g; return 0; }\n'
    for compiler, name, flags in (
        (find_tool("cc", "gcc"), "one.c", STRICT),
        (find_tool("g++", "c++"), "one.cpp", ("-std=c++11", "-pedantic", "-Wall", "-Wextra", "-Werror")),
        (find_tool("cc", "gcc"), "elsewhere.c", (*STRICT, "-U__linux__")),
    ):  # fmt: skip
        path = tmp_path / name
        path.write_text(source)
        done = subprocess.run(
            [compiler, *flags, f"-I{include_folder()}", str(path), "-o", str(tmp_path / "made")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        subprocess.run([tmp_path / "made"], check=True)


def test_the_program_of_the_guide_is_built_and_shown(tmp_path: Path) -> None:
    text = (ROOT / "docs/gcspy-h.md").read_text()
    source = tmp_path / "pool.c"
    source.write_text(text.partition("```c pool.c\n")[2].partition("```")[0])
    program = tmp_path / "pool"
    subprocess.run([find_tool("cc", "gcc"), "-O2", "-Wall", "-Wextra", "-Werror", f"-I{include_folder()}", str(source), "-o", str(program)], check=True)  # fmt: skip
    running = subprocess.Popen([program])
    try:
        wait_until(lambda: recognise(running.pid).supported, "it has opened")
        with watching(running.pid) as watch:
            assert 0 < watch.next_of(1)["Pool", "Used"].sum() <= 4096 * 64
    finally:
        running.kill()
        running.wait()
