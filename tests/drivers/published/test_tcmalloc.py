"""The library that shows tcmalloc: its bytes are those that tcmalloc says to the program."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.native_heap.malloc_reader import MallocReader
from gcspy_drivers.published.include_folder import include_folder
from gcspy_drivers.published.recognition import recognise
from gcspy_drivers.remote import Process
from gcspy_protocol.errors import Unsupported

from gcspy_server.api import StringNames
from tests.drivers.published.programs import find_tool
from tests.drivers.published.session import watching
from tests.once import made_once
from tests.waiting import wait_until

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


def built() -> Path:
    """Return the folder with the library and the program."""
    compiler = find_tool("cc", "gcc")

    def build(folder: Path) -> None:
        strict = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
        source = str(include_folder() / "gcspy_tcmalloc.c")
        shown = [compiler, *strict, "-shared", "-fPIC", source, "-o", str(folder / "shown.so")]
        subprocess.run(shown, check=True)
        target = str(Path(__file__).with_name("tcmalloc_target.c"))
        subprocess.run([compiler, *strict, target, "-o", str(folder / "target")], check=True)

    return made_once("gcspy-tcmalloc", build)


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    tcmalloc = sorted(LIBRARIES.glob("libtcmalloc_minimal.so.*"))
    if not tcmalloc:
        pytest.skip("there is no libtcmalloc (Debian: libtcmalloc-minimal4)")
    preloaded = f"{tcmalloc[0]} {built() / 'shown.so'}"
    process = subprocess.Popen(
        [built() / "target"],
        env={"LD_PRELOAD": preloaded},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_the_bytes_are_those_that_tcmalloc_says(program: subprocess.Popen[str]) -> None:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write("\n")
    program.stdin.flush()
    used, free_pages = map(int, program.stdout.readline().split())
    wait_until(lambda: recognise(program.pid).supported, "it shows itself")
    with watching(program.pid) as watch:
        watch.driver.tick()
        seen = watch.next_of(1)
        memory = next(one for one in watch.server.spaces if one.name == "Memory")
        assert isinstance(memory.names, StringNames)
        by_name = {
            memory.names.names[tile]: int(size)
            for tile, size in enumerate(seen["Memory", "Bytes"].tolist())
        }
        assert by_name["in use by application"] == used
        assert by_name["in page heap freelist"] == free_pages
        assert int(seen["Page heap", "Bytes"].sum()) <= free_pages
        freed = by_name["in central cache freelist"] + by_name["in transfer cache freelist"]
        freed += by_name["in thread cache freelists"]
        # Overhead of spans counts as free in the central cache, and is in no object.
        objects = int(seen["Free objects", "Bytes"].sum())
        assert 0 < objects <= freed
    with Process(program.pid) as process, pytest.raises(Unsupported, match="tcmalloc"):
        MallocReader(process)
