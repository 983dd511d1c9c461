"""What is read of a Boehm heap is what GC_dump and GC_get_prof_stats say, block by block."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.boehm.block_table import BlockTable
from gcspy_drivers.boehm.collector import Collector
from gcspy_drivers.boehm.driver import BoehmDriver
from gcspy_drivers.boehm.recognition import recognise
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, Unsupported
from gcspy_protocol.model import Control

from gcspy_server.api import AttachOptions
from tests.drivers.boehm.programs import BoehmProgram, started
from tests.drivers.published.programs import started as started_other
from tests.waiting import wait_until

COVERED = np.uint64(22)  # bits of the addresses that one of the collector's indices has


def as_dumped(table: BlockTable) -> list[tuple[int, int, int, int]]:
    """Return the blocks in the order in which GC_dump visits them: indices up, blocks of each down."""
    used = ~table.free
    address = table.address[used]
    order = np.lexsort((np.uint64(2**63) - address, address >> COVERED))
    columns = (table.kind, table.object_bytes, table.marked, table.objects)
    return list(zip(*(column[used][order].tolist() for column in columns), strict=True))


@pytest.mark.parametrize("marks", [False, True], ids=["counts", "bytes"])
@pytest.mark.parametrize("then", ["collect", "keep 30000", "free 9000", "unmap"])
def test_blocks_are_those_of_the_dump_one_by_one(then: str, marks: bool, tmp_path: Path) -> None:
    with started() as program, Process(program.pid) as process:
        program.do(then)
        collector = Collector(process)
        dump = program.dump(tmp_path / "dump")
        stats = program.do("nothing")
        table = collector.blocks(marks=marks)
        assert table.unknown == 0
        assert not table.overlaps.any()
        assert as_dumped(table) == dump.blocks
        free = sorted(zip(table.address[table.free].tolist(), table.span_bytes[table.free].tolist(), strict=True))  # fmt: skip
        assert free == sorted(dump.free)
        assert table.bytes_in_all == collector.heap_bytes() == stats.heap_bytes == dump.heap_bytes
        assert int(table.span_bytes[table.free].sum()) == stats.free_bytes
        assert int(table.span_bytes[table.unmapped].sum()) == stats.unmapped_bytes
        assert collector.number() == stats.number
        if then == "unmap":
            assert stats.unmapped_bytes > 0


def test_objects_that_were_freed_are_in_the_free_lists() -> None:
    with started() as program, Process(program.pid) as process:
        collector = Collector(process)
        before = collector.free_lists()
        program.do("free 3000")
        after = collector.free_lists()
        assert before is not None
        assert after is not None
        assert before.complete
        assert after.complete
        assert after.lengths.sum() >= before.lengths.sum() + 500  # large objects are not in a list


def test_the_session_shows_all_of_the_heap(tmp_path: Path) -> None:
    with started() as program:
        driver = BoehmDriver.attach(program.pid, AttachOptions(level=3))
        try:
            server = driver.describe().server(budget=None)
            driver.open(server)
            causes: list[str] = []
            server.add_observer(lambda event: causes.append(event.cause))
            driver.tick()
            program.do("unmap")
            driver.tick()
            stats = program.do("nothing")
            dump = program.dump(tmp_path / "dump")
            heap, kinds, free, _ = server.spaces
            values = {stream.name: stream._values.astype(np.int64) for stream in heap.streams}
            assert values["Size"].sum() == stats.heap_bytes
            assert values["In blocks"].sum() == stats.heap_bytes - stats.free_bytes
            assert values["Marked objects"].sum() == sum(one[2] for one in dump.blocks)
            assert (values["Marked"] <= values["Size"]).all()
            assert "all" in heap.info
            unused = (heap.control & Control.UNUSED) != 0
            assert values["Size"][unused].sum() == stats.unmapped_bytes
            assert sum(kinds.streams[1]._values) == sum(one[2] for one in dump.blocks)
            assert sum(free.streams[0]._values) == stats.free_bytes
            assert causes[1].startswith("collection")
        finally:
            driver.close()


def test_guile_is_read_without_preparation() -> None:
    guile = shutil.which("guile")
    if guile is None:
        pytest.skip("there is no guile (Debian: guile-3.0): no program of others is tested")
    code = '(define kept (iota 50000)) (gc) (display "ready\\n") (force-output) (sleep 600)'
    program = subprocess.Popen(
        [guile, "--no-auto-compile", "-c", code], stdout=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        assert recognise(program.pid).runtime == "Boehm GC"
        with Process(program.pid) as process:
            collector = Collector(process)

            def whole() -> bool:  # its finalizer thread may still allocate
                return collector.blocks(marks=True).bytes_in_all == collector.heap_bytes()

            wait_until(whole, "the blocks are all of the heap")
            table = collector.blocks(marks=True)
            assert table.marked.sum() >= 50_000
    finally:
        program.kill()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()


def test_a_process_without_libgc_is_refused() -> None:
    with started_other() as other:
        assert recognise(other.pid).runtime == ""
        with pytest.raises(Unsupported, match="no libgc"):
            BoehmDriver.attach(other.pid, AttachOptions())


def test_a_table_that_does_not_agree_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a version that keeps its blocks otherwise."""
    with started() as program, Process(program.pid) as process:
        monkeypatch.setattr("gcspy_drivers.boehm.collector._KEY_AT", 8200)
        with pytest.raises(TargetError, match="not as expected"):
            Collector(process)


def test_the_program_of_the_suite_answers() -> None:
    program = BoehmProgram()
    try:
        assert [program.ask(), program.ask()] == [1, 2]
    finally:
        program.end()
