"""Accesses that a program in C notes itself, compared with what it says that it accessed: every chunk, reads too; in C and in Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.malloc.driver import MallocDriver
from gcspy_drivers.native_heap import chunk_walk
from gcspy_drivers.native_heap.malloc_reader import MallocReader
from gcspy_drivers.published.include_folder import include_folder
from gcspy_drivers.remote.pages import access_table
from gcspy_drivers.remote.pages.access_table import AccessTable, TableAges
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError

from gcspy_server.api import AttachOptions

_PROGRAM = r"""
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
struct item { struct item *next; long number; atomic_int count; char text[200]; };
enum { COUNT = 5000 };
static struct item *items[COUNT];
static long sum;
static void *touch(void *which)
{
    long *range = which;
    for (long at = range[0]; at < range[1]; at++)
        switch (range[2]) {
        case 0: sum += items[at]->number; break;
        case 1: items[at]->text[at % 200] = 1; break;
        case 2: atomic_fetch_add(&items[at]->count, 1); break;
        }
    return NULL;
}
int main(void)
{
    long range[3];
    char line[80];
    for (int at = 0; at < COUNT; at++) {
        items[at] = calloc(1, sizeof **items);
        items[at]->number = at;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%ld %ld %ld", range, range + 1, range + 2) == 3) {
        pthread_t thread;
        pthread_create(&thread, NULL, touch, range);
        pthread_join(thread, NULL);
        printf("%ld\n", sum);
        fflush(stdout);
    }
    return 0;
}
"""
_COUNT, _CHUNK_BYTES = 5000, 240
_SECOND = 1_000_000_000


_HOOKS = {
    "hooks": (["-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0"], []),
    "in place": (
        [
            "-fsanitize=kernel-address",
            "-fasan-shadow-offset=0x200000000000",
            *("--param", "asan-stack=0", "--param", "asan-globals=0"),
            *("--param", "asan-instrument-allocas=0"),
            *("--param", "asan-instrumentation-with-call-threshold=1000000"),
        ],
        ["-DGCSPY_ACCESSES_IN_PLACE"],
    ),
}


@pytest.fixture(scope="module", params=list(_HOOKS))
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("accesses")
    (folder / "program.c").write_text(_PROGRAM)
    hooks, choice = _HOOKS[request.param]
    steps = (
        ["-O2", *hooks, "-c", "program.c"],
        [
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            *choice,
            "-c",
            include_folder() / "gcspy_accesses.c",
        ],
        ["program.o", "gcspy_accesses.o", "-o", "program", "-pthread"],
    )
    for step in steps:
        subprocess.run([compiler, *step], cwd=folder, check=True)
    return folder / "program"


@contextmanager
def started(program: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def touch(process: subprocess.Popen[str], first: int, end: int, how: int) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{first} {end} {how}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


@pytest.mark.parametrize("in_c", [True, False], ids=["c", "python"])
def test_chunks_are_as_old_as_their_last_access(
    program: Path, in_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_c:
        monkeypatch.setattr(chunk_walk, "malloc_library", lambda: None)
    now = [_SECOND]
    with started(program) as child, Process(child.pid) as process:
        table = AccessTable.find(process)
        assert table is not None
        reader = MallocReader(process)
        reader.ages = TableAges(table, time_nanos=lambda: now[0])

        def chunks() -> list[int]:
            walks = [walk for each in reader.read(3).walks for walk in each]
            aged = np.sum([walk.aged for walk in walks], axis=0)
            return [int(one) // _CHUNK_BYTES for one in aged[:, _CHUNK_BYTES >> 4]]

        assert chunks()[0] >= _COUNT
        others = chunks()[0] - _COUNT
        now[0] += 3600 * _SECOND
        assert touch(child, 1000, 1400, 0) == sum(range(1000, 1400))  # reads
        touch(child, 3000, 3011, 1)
        touch(child, 4990, 5000, 2)
        assert chunks() == [421, 0, 0, 0, _COUNT - 421 + others]
        now[0] += 20 * _SECOND
        touch(child, 1000, 1001, 0)
        assert chunks() == [1, 420, 0, 0, _COUNT - 421 + others]
        now[0] += 20 * _SECOND
        assert chunks() == [0, 421, 0, 0, _COUNT - 421 + others]
        reader.close()


def test_the_driver_prefers_the_programs_own_table(program: Path) -> None:
    with started(program) as child:
        options = AttachOptions(level=3, values={"mode": "passive", "ages": "on"})
        driver = MallocDriver.attach(child.pid, options)
        assert isinstance(driver, MallocDriver)
        try:
            driver.open(driver.describe().server())
            driver.server.add_observer(lambda _sent: None)
            driver.tick()
            names = {one.schema.name for one in driver._classes.space.streams}
            assert "Not accessed for a minute" in names
            assert "followed for" in driver._arenas.space.info
        finally:
            driver.close()
        assert touch(child, 0, 2, 0) == 1  # it goes on


def test_numbers_of_periods_come_again_and_lose_no_access(program: Path) -> None:
    with started(program) as child, Process(child.pid) as process:
        table = AccessTable.find(process)
        assert table is not None
        table.period = (1 << 16) - 2
        seen = []
        for _ in range(3):
            table.advance()
            seen.append(table.period)
        assert seen == [(1 << 16) - 1, 1, 2]
        again = AccessTable.find(process)
        assert again is not None
        assert again.period == 2


def test_a_table_of_another_version_is_refused(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_table, "_VERSION", 3)
    with (
        started(program) as child,
        Process(child.pid) as process,
        pytest.raises(TargetError, match="another version"),
    ):
        AccessTable.find(process)


def test_other_programs_have_no_table() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child, Process(child.pid) as process:
        assert AccessTable.find(process) is None
        child.kill()
