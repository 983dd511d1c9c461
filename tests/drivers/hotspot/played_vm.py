"""A VM that is played for the agent: a table of four JVMTI functions, and calls of the callbacks; run as a program of its own.

It imports nothing but the standard library, so that it begins at once.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import select
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

_WORD = ctypes.c_void_p
_START, _FINISH = 31, 32
"""Where JVMTI has the callbacks of a collection among those of all events, of which the first is number 50."""

_CALLBACK = ctypes.CFUNCTYPE(None, _WORD)


class PlayedVm:
    """A simulated VM with the functions that the agent needs.

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
        page[2] = 1  # each start is told, and waited for
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


if __name__ == "__main__":
    play(*sys.argv[1:])
