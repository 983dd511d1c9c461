"""The agent counts every collection of a VM that it is listened to in, also one that comes while it is busy with another thread.

The library runs in a process of its own, where this file plays the VM: a table of four JVMTI functions, and calls of the callbacks.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from gcspy_drivers.hotspot.agent.agent import library
from gcspy_drivers.hotspot.cooperative_driver import GC_START
from gcspy_protocol.messages import Event

from tests.drivers.hotspot.agents import ROOT, Told, need_agent
from tests.drivers.hotspot.jvms import Jvm

_WORD = ctypes.c_void_p
_START, _FINISH = 31, 32
"""Where JVMTI has the callbacks of a collection among those of all events, of which the first is number 50."""

_CALLBACK = ctypes.CFUNCTYPE(None, _WORD)
_PLAYED = (
    "import sys; from tests.drivers.hotspot.test_agent_counts import play; play(*sys.argv[1:])"
)


class PlayedVm:
    """What the agent needs of a VM.

    Args:
        path: The library.
    """

    def __init__(self, path: Path) -> None:
        self.starts: Callable[[int], None] = _unset
        self.ends: Callable[[int], None] = _unset
        self._kept: list[Any] = []
        self._env = self._table(
            160,
            {
                1: (self._answer, 4),
                121: (self._take_callbacks, 3),
                126: (self._answer, 1),
                141: (self._answer, 2),
            },
        )
        self._vm = self._table(8, {6: (self._give_env, 3)})
        self._library = ctypes.CDLL(str(path))

    def agent(self, options: str) -> int:
        """Load the agent, as a running VM does; returns what it answers."""
        return int(self._library.Agent_OnAttach(self._vm, options.encode(), None))

    def _table(self, count: int, functions: dict[int, tuple[Callable[..., int], int]]) -> Any:
        made = (_WORD * count)()
        for place, (function, arguments) in functions.items():
            called = ctypes.CFUNCTYPE(ctypes.c_int, *[_WORD] * arguments)(function)
            self._kept.append(called)
            made[place] = ctypes.cast(called, _WORD).value
        holder = _WORD(ctypes.addressof(made))
        self._kept += [made, holder]
        return ctypes.byref(holder)

    def _answer(self, *_: int) -> int:
        return 0

    def _give_env(self, _vm: int, place: int, _version: int) -> int:
        ctypes.cast(place, ctypes.POINTER(_WORD))[0] = ctypes.cast(self._env, _WORD).value
        return 0

    def _take_callbacks(self, _env: int, callbacks: int, _size: int) -> int:
        words = ctypes.cast(callbacks, ctypes.POINTER(_WORD))
        self.starts, self.ends = _CALLBACK(words[_START]), _CALLBACK(words[_FINISH])
        return 0


def _unset(_env: int) -> None:
    raise AssertionError("the agent has set no callbacks")


def say(*numbers: int) -> None:
    """Report to the test."""
    sys.stdout.write(json.dumps(numbers) + "\n")
    sys.stdout.flush()


def play(path: str, where: str) -> None:
    """Play a VM that collects while its agent is busy, and print the counts of the shared page, each time."""
    vm = PlayedVm(Path(path))
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as listener:
        listener.bind(where)
        listener.listen(1)
        say(vm.agent(f"connect:{where}"))
        line, _ = listener.accept()
    with closing(line):
        _, (timer, memory), _, _ = socket.recv_fds(line, 256, 2)
        page = memoryview(mmap.mmap(memory, mmap.PAGESIZE)).cast("Q")
        vm.ends(0)  # of a collection that began before
        say(*page[:2])
        page[2] = 1  # each start is reported, and waited for
        while True:
            holding = threading.Thread(target=vm.starts, args=(0,))
            holding.start()
            assert len(line.recv(256)) == 40
            before = tuple(page[:2])
            # Both find the agent busy, as long as the thread waits for our answer: that is 2 s, which may be over.
            vm.ends(0)
            vm.starts(0)
            still = not select.select([timer], [], [], 0)[0]
            counted = tuple(page[:2])
            line.send(b"g")
            holding.join()
            if still:
                break
            vm.ends(0)
        say(*before, *counted)
        page[2] = 0
        vm.ends(0)
        say(*page[:2])
        vm.starts(0)
        vm.ends(0)
        say(*page[:2])
        say(vm.agent("stop"))
        os.close(timer)
        os.close(memory)


def test_what_comes_while_the_agent_is_busy_is_counted_and_joins_no_two_collections(
    tmp_path: Path,
) -> None:
    need_agent()
    path = library()
    if path is None:
        pytest.skip("the agent for JVMs is not built")
    with subprocess.Popen(
        [sys.executable, "-c", _PLAYED, str(path), str(tmp_path / "line")],
        cwd=ROOT,
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
