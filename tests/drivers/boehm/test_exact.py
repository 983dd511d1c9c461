"""The library that publishes exact collections: each is an event, at which the heap stands still and is whole."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gcspy_drivers.boehm.collector import Collector
from gcspy_drivers.published.include_folder import include_folder
from gcspy_drivers.remote.process import Process

from tests.drivers.boehm.programs import BoehmProgram
from tests.drivers.published.programs import find_tool
from tests.drivers.published.session import watching
from tests.once import made_once

GC_START, GC_END = 1, 2


def library() -> Path:
    compiler = find_tool("cc", "gcc")
    source = str(include_folder() / "gcspy_boehm.c")

    def build(folder: Path) -> None:
        flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
        subprocess.run([compiler, *flags, source, "-o", str(folder / "exact.so")], check=True)

    return made_once("gcspy-boehm", build) / "exact.so"


def test_each_collection_is_two_events_at_which_the_heap_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(library()))
    program = BoehmProgram()
    try:
        with Process(program.pid) as process, watching(program.pid) as watch:
            collector = Collector(process)
            wholes: list[bool] = []

            def read(_event: object) -> None:
                table = collector.blocks(marks=True)
                wholes.append(table.bytes_in_all == collector.heap_bytes() and not table.unknown)

            watch.server.add_observer(read)
            with ThreadPoolExecutor(1) as other:
                asked = other.submit(program.do, "collect")
                while not asked.done():
                    watch.driver.wait(0.05)
                stats = asked.result()
            watch.driver.wait(0)
            kinds = [seen.event.event for seen in watch.seen]
            assert kinds == [GC_START, GC_END] * (len(kinds) // 2)
            assert len(kinds) >= 2
            assert all(wholes)
            last = watch.seen[-1]
            assert last["Collector", "Bytes"][:3].tolist() == list(stats[:3])
            assert last.event.program_clock == ("collections", stats.number)
    finally:
        program.end()
