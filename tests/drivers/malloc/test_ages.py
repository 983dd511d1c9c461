"""Ages of pages of a native heap, compared with what the program says that it wrote; in C and in Python."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.malloc.driver import MallocDriver
from gcspy_drivers.native_heap import chunk_walk
from gcspy_drivers.native_heap.malloc_reader import MallocReader, MallocReading
from gcspy_drivers.remote.pages import unprepared_process
from gcspy_drivers.remote.pages.memory_ages import AGE_SECS
from gcspy_drivers.remote.pages.page_ages import PageAges
from gcspy_drivers.remote.pages.trial import PageTrial, try_pages, try_soft_dirty
from gcspy_drivers.remote.process import Process

from gcspy_server.api import AttachOptions

_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { COUNT = 3000, BYTES = 3000, LARGE = 1 << 20 };
static char *blocks[COUNT + 1];
int main(void)
{
    int first, count;
    char line[64];
    for (int at = 0; at <= COUNT; at++) {
        int bytes = at == COUNT ? LARGE : BYTES;
        blocks[at] = memset(malloc(bytes), 1, bytes);
        printf("%p\n", (void *)blocks[at]);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%d %d", &first, &count) == 2) {
        for (int at = first; at < first + count; at++)
            blocks[at][0]++; /* its first byte: one page of each */
        puts("done");
        fflush(stdout);
    }
    return 0;
}
"""
_CHUNKS, _BYTES, _LARGE = 3000, 3008, 1 << 20
_SHARED_BYTES = 2 * 4096
"""Of pages that the small chunks share with buffers of the C library, which are written as well."""

_SECOND = 1_000_000_000
I64 = npt.NDArray[np.int64]


@dataclass
class _Program:
    process: subprocess.Popen[str]
    blocks: I64

    def write(self, first: int, count: int) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{first} {count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    if not try_pages().works and not try_soft_dirty().works:
        pytest.skip(f"{try_pages().refusal}; {try_soft_dirty().refusal}")
    folder = tmp_path_factory.mktemp("ages")
    source = folder / "ages.c"
    source.write_text(_SOURCE)
    subprocess.run([compiler, "-O1", "-o", folder / "ages", source], check=True)
    return folder / "ages"


@pytest.fixture
def program(built: Path) -> Iterator[_Program]:
    with subprocess.Popen(
        [built], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        blocks = []
        while (line := process.stdout.readline()) != "ready\n":
            blocks.append(int(line, 16))
        try:
            yield _Program(process, np.array(blocks, dtype=np.int64))
        finally:
            process.kill()


def _unwritten(blocks: I64, written: I64) -> int:
    """Sum the bytes of the small chunks on pages of which no block's first byte was written."""
    begin = blocks[:_CHUNKS] - 16
    end = begin + _BYTES
    dirty = np.unique(written // 4096)
    total = 0
    for low, high in zip(begin.tolist(), end.tolist(), strict=True):
        for page in range(low // 4096, -(-high // 4096)):
            if page not in dirty:
                total += min(high, (page + 1) * 4096) - max(low, page * 4096)
    return total


def _aged(reading: MallocReading) -> I64:
    """Sum the small chunks by age, (ages,)."""
    found = sum(walk.aged.astype(np.int64) for each in reading.walks for walk in each)
    assert isinstance(found, np.ndarray)
    index = 48 + (_BYTES >> 6)
    return np.asarray(found[:, index])


@pytest.mark.parametrize("in_c", [True, False], ids=["c", "python"])
def test_bytes_by_age_are_those_that_the_program_did_not_write(
    program: _Program, in_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_c:
        monkeypatch.setattr(chunk_walk, "malloc_library", lambda: None)
    now = [_SECOND]
    with Process(program.process.pid) as process:
        reader = MallocReader(process)
        pages, fault_nanos = unprepared_process.open_written_pages(process)
        assert fault_nanos >= 0
        try:
            reader.ages = PageAges(pages, 0, time_nanos=lambda: now[0])
            reader.read(3)
            now[0] += 20 * _SECOND
            program.write(100, 800)
            aged = _aged(reader.read(3))
            expected = _unwritten(program.blocks, program.blocks[100:900])
            assert aged.sum() == _CHUNKS * _BYTES
            assert aged[[2, 3, 4]].tolist() == [0, 0, 0]
            assert 0 <= expected - aged[1] <= _SHARED_BYTES
            now[0] += 3600 * _SECOND
            program.write(_CHUNKS, 1)
            program.write(50, 100)
            reading = reader.read(3)
            again = program.blocks[50:150]
            never = _unwritten(program.blocks, np.union1d(program.blocks[100:900], again))
            lately = _CHUNKS * _BYTES - _unwritten(program.blocks, again)
            aged = _aged(reading)
            assert 0 <= aged[0] - lately <= _SHARED_BYTES
            assert aged[0] + aged[4] == _CHUNKS * _BYTES
            assert never < aged[4]
            mapped, chunks = reading.mapped_aged, reading.mapped
            assert mapped is not None
            assert chunks is not None
            assert mapped[0].tolist() == [4096]
            assert int(mapped[4].sum()) == chunks.total_bytes - 4096
        finally:
            pages.close()
            reader.close()
    program.write(0, _CHUNKS)  # it goes on


def test_the_driver_tells_bytes_by_size_class_and_no_age_that_nobody_could_have_seen(
    program: _Program,
) -> None:
    options = AttachOptions(level=3, values={"mode": "passive", "ages": "on"})
    driver = MallocDriver.attach(program.process.pid, options)
    assert isinstance(driver, MallocDriver)
    try:
        driver.open(driver.describe().server())
        driver.server.add_observer(lambda _sent: None)
        driver.tick()
        streams = {one.schema.name: one for one in driver._classes.space.streams}
        known = streams["Not written for 10 seconds"].known
        assert known is not None
        assert not known.any()
        ages = driver._reader.ages
        assert isinstance(ages, PageAges)
        ages.begun_nanos -= 20 * _SECOND
        ages._written_at -= 20 * _SECOND
        ages._next_look = 0
        program.write(0, 10)
        driver.tick()
        bytes_in_use = int(streams["Bytes in use"].data.sum())
        old = int(streams["Not written for 10 seconds"].data.sum())
        assert bytes_in_use * 0.9 < old < bytes_in_use - 10 * 2000
        assert "not written for 10 seconds" in driver._arenas.space.info
        minute = streams["Not written for a minute"].known
        assert minute is not None
        assert not minute.any()
        heap = {one.schema.name: one for one in driver._heap.space.streams}
        assert int(heap["Not written for"].data.max()) >= 20
    finally:
        driver.close()


_KILLED = """
import sys
from gcspy_drivers.malloc.driver import MallocDriver
from gcspy_server.api import AttachOptions
options = AttachOptions(level=3, values={"mode": "passive", "ages": "on"})
driver = MallocDriver.attach(int(sys.argv[1]), options)
driver.open(driver.describe().server())
driver.server.add_observer(lambda _sent: None)
driver.tick()
print(driver._reader.ages.begun_nanos > 0, flush=True)
sys.stdin.readline()
"""


def _protected(pid: int) -> int:
    """Count the mappings that are registered with a userfaultfd for protection."""
    return Path(f"/proc/{pid}/smaps").read_text().count(" uw")


def test_a_program_goes_on_when_gcspy_was_killed_and_nothing_of_it_is_protected(
    program: _Program,
) -> None:
    pid = program.process.pid
    before = set(Path(f"/proc/{pid}/fd").iterdir())
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as sidecar:
        try:
            assert sidecar.stdout is not None
            assert sidecar.stdout.readline() == "True\n"
            followed = _protected(pid)
            assert followed > 0 or not try_pages().works
        finally:
            sidecar.send_signal(signal.SIGKILL)
    assert _protected(pid) == 0
    program.write(0, _CHUNKS + 1)  # each page that was protected can be written
    assert program.process.poll() is None
    assert set(Path(f"/proc/{pid}/fd").iterdir()) == before
    # And it can be followed again.
    with Process(pid) as process:
        pages, _ = unprepared_process.open_written_pages(process)
        pages.close()
    program.write(0, 1)


def test_a_refusal_is_told_and_the_rest_is_shown(
    program: _Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    no = PageTrial(works=False, refusal="not here")
    monkeypatch.setattr(unprepared_process, "try_pages", lambda: no)
    monkeypatch.setattr(unprepared_process, "try_soft_dirty", lambda: no)
    options = AttachOptions(level=3, values={"mode": "passive", "ages": "on"})
    driver = MallocDriver.attach(program.process.pid, options)
    assert isinstance(driver, MallocDriver)
    try:
        driver.open(driver.describe().server())
        driver.server.add_observer(lambda _sent: None)
        driver.tick()
        assert "not here" in driver._arenas.space.info
        assert int(driver._classes.space.streams[0].data.sum()) > 0
        assert len(AGE_SECS) == 4
        assert not [
            one for one in driver._classes.space.streams if "Not written" in one.schema.name
        ]
    finally:
        driver.close()
