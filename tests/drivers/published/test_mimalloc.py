"""The library that shows mimalloc, in a program whose blocks are known."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.published.allocator_library import load_allocator_library
from gcspy_drivers.published.include_folder import include_folder
from gcspy_drivers.published.recognition import recognise
from gcspy_drivers.remote import Process

from tests.drivers.published.programs import find_tool
from tests.drivers.published.session import watching
from tests.once import made_once
from tests.waiting import wait_until

BLOCK_BYTES, BLOCKS = 2560, 2 * 1000
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


def built() -> Path:
    """Return the folder with the library and the program."""
    compiler = find_tool("cc", "gcc")

    def build(folder: Path) -> None:
        strict = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
        source = str(include_folder() / "gcspy_mimalloc.c")
        shown = [compiler, *strict, "-shared", "-fPIC", source, "-o", str(folder / "shown.so")]
        subprocess.run(shown, check=True)
        target = str(Path(__file__).with_name("mimalloc_target.c"))
        subprocess.run([compiler, *strict, target, "-o", str(folder / "target")], check=True)

    return made_once("gcspy-mimalloc", build)


@pytest.fixture(params=["when it starts", "while it runs"])
def program(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    mimalloc = sorted(LIBRARIES.glob("libmimalloc.so.*"))
    if not mimalloc:
        pytest.skip("there is no libmimalloc (Debian: libmimalloc2.0)")
    preloaded = str(mimalloc[0])
    if request.param == "when it starts":
        preloaded += f" {built() / 'shown.so'}"
    process = subprocess.Popen([built() / "target"], env={"LD_PRELOAD": preloaded})
    if request.param == "while it runs":
        # Before that it has made no block yet.
        maps = Path(f"/proc/{process.pid}/maps")
        wait_until(
            lambda: all(name in maps.read_text() for name in ("mimalloc", "libc.so")),
            "it has its allocator, and its C library",
        )
        with Process(process.pid) as target:
            load_allocator_library(target)
    yield process
    process.kill()
    process.wait()


def test_the_blocks_of_all_threads_are_those_that_the_program_holds(
    program: subprocess.Popen[bytes], request: pytest.FixtureRequest
) -> None:
    by_loader = 2 if "runs" in request.node.name else 0
    wait_until(lambda: recognise(program.pid).supported, "it shows itself")
    with watching(program.pid) as watch:

        def agrees() -> bool:
            """Both threads have answered."""
            watch.driver.tick()
            seen = watch.next_of(1)
            used, room = seen["Block sizes", "Used"], seen["Block sizes", "Pages' bytes"]
            assert (used <= room).all()
            ages = seen["Threads", "Age"]
            if len(ages) != 2 or (ages != 0).any():
                return False
            assert used.sum() == seen["Threads", "Used"].sum()
            of_size = seen["Block sizes", "Size"] == BLOCK_BYTES
            more = int(used[of_size].sum()) // BLOCK_BYTES - BLOCKS
            # What the loader itself has of this size when a library is loaded later.
            return 0 <= more <= by_loader

        wait_until(agrees, "both threads have answered")
