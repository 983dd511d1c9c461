"""The rings of a 3.15's collector: exact times where they were read whole, and none where they were not."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess

import numpy as np
import pytest
from gcspy_drivers.cpython.collector.collection_rings import ToldTime, read_rings, times_text
from gcspy_drivers.cpython.driver import COLLECTIONS, CPythonDriver
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

from gcspy_server.api import AttachOptions, Event
from tests.drivers.targets import find_python

# When each collection began and ended, at most: the callbacks are called around what is written down.
TIMED = """
import gc, json, sys, time
gc.disable()
kept = [{} for _ in range(50000)]
print(json.dumps(gc.get_stats()), flush=True)
sys.stdin.readline()
seen = []
gc.callbacks.append(lambda phase, info: seen.append([phase, info["generation"], time.monotonic_ns()]))
for generation in (0, 1, 0, 2):
    gc.collect(generation)
print(json.dumps([seen, gc.get_stats()]), flush=True)
sys.stdin.readline()
"""


def test_times_are_those_that_the_program_itself_measures() -> None:
    python = find_python("3.15")
    if python is None:
        pytest.skip(
            "no Python 3.15 on PATH or in ~/.pyenv/versions: its rings are not tested on a real one"
        )
    with subprocess.Popen(
        [python, "-I", "-c", TIMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            driver = CPythonDriver.attach(process.pid, AttachOptions(level=1))
            server = driver.describe().server()
            events: list[Event] = []
            server.add_observer(events.append)
            driver.open(server)
            driver.tick()
            process.stdin.write("go on\n")
            process.stdin.flush()
            seen, stats = json.loads(process.stdout.readline())
            driver.tick()
            with Target(process.pid) as target:
                (reading,) = target.generations(target.interpreters() or ())
            driver.close()
        finally:
            process.kill()
    assert reading.generations is not None
    times = reading.generations.times
    assert times is not None
    pairs = list(zip(seen[::2], seen[1::2], strict=True))
    for one, (start, end) in zip(times.recent[-4:], pairs, strict=True):
        assert int(one["generation"]) == start[1]
        assert start[2] <= int(one["start"]) <= int(one["stop"]) <= end[2]
    expected = [round(one["duration"] * 1e9) for one in stats]
    assert times.total_nanos.tolist() == pytest.approx(expected, abs=1)
    last = [event for event in events if event.event == COLLECTIONS][-1]
    assert last.cause.startswith("gen0 +2, gen1 +1, gen2 +1; gen0 at ")
    assert last.cause.count(" ms") == 4
    (space,) = (space for space in server.spaces if space.name == "GC generations")
    (spent,) = (stream for stream in space.streams if stream.name == "Collecting")
    assert spent.data.tolist() == (times.total_nanos // 1000).tolist()
    assert spent.known is None


def made(*, sequence: int = 8, stop: int = 2_000_000) -> ctypes.Array[ctypes.c_char]:
    rings = ctypes.create_string_buffer(1120)
    for number in range(1, 4):
        begin = number * 10_000_000
        struct.pack_into(
            "<6qdq",
            rings,
            64 * (number - 1),
            begin,
            begin + stop,
            number,
            number,
            0,
            0,
            2e-3 * number,
            0,
        )
    struct.pack_into("<I", rings, 1112, sequence)
    return rings


def test_what_was_being_written_has_totals_and_no_times() -> None:
    with Process(os.getpid()) as process:
        memory = Memory(process)
        for rings, known in ((made(), True), (made(sequence=9), False), (made(stop=-1), False)):
            found = read_rings(memory, ctypes.addressof(rings))
            assert found is not None
            assert found.stats["collections"].tolist() == [3, 0, 0]
            assert (found.times is not None) == known
            if found.times is not None:
                assert ToldTime(found.times).total_micros.tolist() == [6000, 0, 0]
                assert ToldTime(found.times).last_micros.tolist() == [2000, 0, 0]
                assert (
                    times_text(found.times, np.array([1, 0, 0]))
                    == "gen0 at 0.020000 s for 2.000 ms, gen0 at 0.030000 s for 2.000 ms"
                )
        assert times_text(None, np.zeros(3, dtype=np.int64)) == ""
