"""The agent counts every collection of a VM that it is listened to in, also one that comes while it is busy with another thread.

The library runs in a process of its own, in which `played_vm` plays the VM.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.agent.agent import library
from gcspy_drivers.hotspot.cooperative_driver import GC_START
from gcspy_protocol.messages import Event

from tests.drivers.hotspot.agents import Told, need_agent
from tests.drivers.hotspot.jvms import Jvm

PLAYED = Path(__file__).with_name("played_vm.py")


def test_what_comes_while_the_agent_is_busy_is_counted_and_joins_no_two_collections(
    tmp_path: Path,
) -> None:
    need_agent()
    path = library()
    if path is None:
        pytest.skip("the agent for JVMs is not built")
    with subprocess.Popen(
        [sys.executable, "-I", str(PLAYED), str(path), str(tmp_path / "line")],
        stdout=subprocess.PIPE,
        text=True,
    ) as played:
        try:
            assert played.stdout is not None
            came, before, busy, after, next_one, left = map(json.loads, played.stdout)
        finally:
            played.kill()
    assert came == left == [0], "the agent came in, and left"
    assert before == [0, 0], "an end without its start is not of our time"
    starts, ends, *meanwhile = busy
    assert starts == ends + 1
    assert meanwhile == [starts, ends], "while it is busy it does not touch the page"
    assert after == [starts + 1, ends + 2], "an end and a start came meanwhile, and then an end"
    assert next_one == [starts + 2, ends + 3]


def test_whenever_it_comes_into_a_busy_jvm_it_counts_each_collection(
    java: str, classes: Path
) -> None:
    """Attaching and detaching overlap with collections: none is counted twice, or left out."""
    need_agent()
    with Jvm(java, classes, "-XX:+UseSerialGC", "-Xmx48m") as jvm:
        jvm.tell("churn", 2)
        for _ in range(6):
            with Told(jvm.pid) as told:
                seen: list[tuple[int, int, int]] = []
                told.server.add_observer(partial(note, told, seen))
                while len(seen) < 8:
                    told.holder.wait(1.0)
                lost = told.server._core.lost
            for before, after in pairwise(seen):
                starts, young, full = (now - then for then, now in zip(before, after, strict=True))
                # A young collection that is not enough becomes a full one in the same pause.
                assert max(young, full) <= starts <= young + full, (before, after)
            assert lost == 0


def note(told: Told, seen: list[tuple[int, int, int]], event: Event) -> None:
    """Note what the agent has counted and what the JVM has, at a start, at which it stands still."""
    if event.event == GC_START:
        counter = told.driver._collections
        assert counter is not None
        now = counter.now()
        assert now is not None
        young, full = now.invocations
        seen.append((told.holder._events.line.counts[0], young, full))
