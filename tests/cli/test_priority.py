"""The priority of a recorder: lower beside the program, usual on another machine."""

from __future__ import annotations

import os
import threading

import pytest

from gcspy.recorder.priority import give_way


@pytest.mark.parametrize(("address", "lowered"), [("unix:/run/s.sock", 5), ("192.0.2.1:7777", 0)])
def test_it_gives_way_to_a_program_of_this_machine(address: str, lowered: int) -> None:
    found: list[int] = []

    def record() -> None:  # a thread has its own priority
        give_way(address)
        found.append(os.getpriority(os.PRIO_PROCESS, 0))

    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    assert found == [max(lowered, os.getpriority(os.PRIO_PROCESS, 0))]
