"""Two collectors under one program and seed keep step by allocated bytes, and what is set at the one is set at the other before the same step."""

from __future__ import annotations

import threading
from typing import Any

from gcspy_drivers.simulator.driver import Lockstep, SimulationOptions, SimulatorSession
from gcspy_drivers.simulator.driver.events import CLOCK

from gcspy_server.api import Event

STEPS = 60
FIELDS: dict[str, Any] = {
    "program": "lru",
    "heap_bytes": 64 << 10,
    "pace_millis": 0,
    "steps": STEPS,
    "level": 1,
}


def test_the_other_has_come_as_far_at_each_event_of_the_clock_and_never_further_and_takes_settings_at_the_same_step() -> (
    None
):
    lockstep = Lockstep()
    one = SimulatorSession(SimulationOptions(collector="marksweep", **FIELDS), lockstep=lockstep)
    other = SimulatorSession(
        SimulationOptions(collector="semispace", **FIELDS), lockstep=lockstep, leads=False
    )
    setting = next(setting for setting in one.server.settings if setting.name == "Words an entry")
    compared: list[tuple[int, int]] = []
    told: dict[str, list[tuple[str, int]]] = {"one": [], "other": []}

    def look(event: Event) -> None:
        if one.kinds.names[event.event] == CLOCK:
            compared.append((one.heap.allocated_words, other.heap.allocated_words))
            told["one"].append((CLOCK, one.heap.allocated_words))
            if event.occurrence == 5:
                one.server.set_setting(setting.id, 20)

    def look_there(event: Event) -> None:
        if other.kinds.names[event.event] == CLOCK:
            told["other"].append((CLOCK, other.heap.allocated_words))

    one.server.add_observer(look)
    other.server.add_observer(look_there)
    never = threading.Event()
    thread = threading.Thread(target=other.run, args=(never,))
    thread.start()
    one.run(never)
    thread.join(60)
    assert not thread.is_alive()
    assert len(compared) > 10
    assert all(mine == theirs for mine, theirs in compared)
    assert other.program.value("data") == one.program.value("data") == 20
    assert told["one"] == told["other"], "the same program, before and after the setting"


def test_the_one_that_is_left_goes_on_alone() -> None:
    lockstep = Lockstep()
    small = SimulatorSession(
        SimulationOptions(collector="nogc", **{**FIELDS, "heap_bytes": 16 << 10}),
        lockstep=lockstep,
        leads=False,
    )
    one = SimulatorSession(SimulationOptions(collector="marksweep", **FIELDS), lockstep=lockstep)
    never = threading.Event()
    thread = threading.Thread(target=small.run, args=(never,))
    thread.start()
    assert one.run(never) == f"the program has ended, after {STEPS} steps"
    thread.join(60)
    assert not thread.is_alive()
    assert "do not fit" in small.over
