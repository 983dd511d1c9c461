"""Serves a simulated heap: collector, program and server interpreter in this process, until stopped.

Knows the simulator's session; the command line and lessons choose the simulation.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcspy.hosts.web_pages import web_gateway
from gcspy_session.network.address import default_address

if TYPE_CHECKING:
    from gcspy_drivers.simulator.driver import Lockstep, SimulationOptions

    from gcspy_client.lessons import Lesson
    from gcspy_server.api import ServedSession, Server

__all__ = ["SimulatingOptions", "fields_of_lesson", "simulate", "simulation_of"]

_LOOK_SECS = 0.1
"""How often a wait for the first client checks whether it should end."""

_SIZES = {"heap": "heap_bytes", "tile": "tile_bytes", "clock": "clock_bytes"}
_NUMBERS = {"align": "align_bytes", "pace": "pace_millis", "options": "plan"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatingOptions:
    """The options of a simulation and its server.

    Attributes:
        simulation: Fields of the simulator's options that differ from the defaults.
        listen: Addresses; empty takes the local default of this process.
        token: The secret for TCP; None where only Unix sockets are used.
        linger: Keep serving the gathered data after the program ended.
        wait: Begin with the first client.
        longest_hold_secs: Longest single stop of the program; None: unlimited.
        pause_at: A condition at which it pauses, as a trigger of lessons, which a lesson's
            controller replaces.
        versus: Fields in which another simulation differs, which keeps step with this one; empty: there is none.
        versus_listen: Addresses of that one.
        web: Addresses at which web browsers get a page of the session.
        web_lesson: File of a lesson whose text the page has besides those that come with GCspy; empty: none.
    """

    simulation: Mapping[str, Any] = field(default_factory=dict)
    listen: tuple[str, ...] = ()
    token: str | None = None
    linger: bool = True
    wait: bool = True
    longest_hold_secs: float | None = None
    pause_at: str = ""
    versus: Mapping[str, Any] = field(default_factory=dict)
    versus_listen: str = ""
    web: tuple[str, ...] = ()
    web_lesson: str = ""


def fields_of_lesson(lesson: Lesson) -> dict[str, Any]:
    """The simulation of a lesson, as fields of the simulator's options.

    Raises:
        LocalProtocolError: A size is invalid.
    """
    from gcspy_drivers.simulator.driver.options import parse_size

    found: dict[str, Any] = {"lesson": lesson.name}
    for key, value in lesson.simulation.items():
        found[_SIZES.get(key, _NUMBERS.get(key, key))] = (
            parse_size(value) if key in _SIZES else value
        )
    for key in ("collector", "program"):
        # A file stands beside the lesson, wherever the command is called.
        if str(found.get(key, "")).endswith(".py"):
            found[key] = str(Path(lesson.path).parent / found[key])
    return found


def simulation_of(fields: Mapping[str, Any]) -> SimulationOptions:
    """The simulator's options."""
    from gcspy_drivers.simulator.driver import SimulationOptions

    return SimulationOptions(**fields)


def simulate(
    options: SimulatingOptions,
    *,
    stop: threading.Event,
    on_ready: Callable[[Server, ServedSession], None],
) -> str:
    """Simulate and serve until `stop` is set or the program ends.

    Args:
        options: The simulation and its addresses.
        stop: Set by another thread or a signal handler.
        on_ready: Called once, when clients can connect.

    Returns:
        Why it ended, for a human.

    Raises:
        LocalProtocolError: There is no such collector or program, or it cannot have these options.
        LinkError: An address cannot be listened on.
    """
    # only simulating loads numpy and trio
    from gcspy_drivers.simulator.driver import Lockstep, SimulatorSession

    lockstep = Lockstep() if options.versus else None
    session = SimulatorSession(
        simulation_of(options.simulation),
        longest_hold_secs=options.longest_hold_secs,
        lockstep=lockstep,
    )
    if options.pause_at:
        from gcspy_client.lessons.lesson import TRIGGER
        from gcspy_server.api import Trigger

        session.server.set_trigger(
            Trigger(id=TRIGGER, expression=options.pause_at, note="the lesson begins")
        )
        session.server.wait_for_leaders()
    addresses = options.listen or (str(default_address(os.getpid())),)
    with ExitStack() as stack:
        if lockstep is not None:
            stack.enter_context(_beside(options, lockstep, stop))
        listening = stack.enter_context(session.server.serve(*addresses, token=options.token))
        listening.pages = stack.enter_context(
            web_gateway(
                listening.addresses[0],
                options.web,
                options.token,
                title=session.server.name,
                lesson=options.web_lesson,
            )
        )
        on_ready(session.server, listening)
        while options.wait and not stop.is_set() and not session.server.wait_for_client(_LOOK_SECS):
            pass
        session.server.let_go_when(lambda: "the simulation was stopped" if stop.is_set() else "")
        ended = session.run(stop)
        if not stop.is_set():
            session.server.end(ended)
            if options.linger:
                stop.wait()
        return ended


@contextmanager
def _beside(
    options: SimulatingOptions, lockstep: Lockstep, stop: threading.Event
) -> Iterator[None]:
    """Serve the simulation that keeps step, in a thread of its own, which ends with the body of the `with`."""
    from gcspy_drivers.simulator.driver import SimulatorSession

    # The other one's pace is enough for both.
    fields = {**options.simulation, "plan": {}, **options.versus, "pace_millis": 0}
    other = SimulatorSession(simulation_of(fields), lockstep=lockstep, leads=False)
    over = threading.Event()

    def ends() -> bool:
        return stop.is_set() or over.is_set()

    def run() -> None:
        while not ends() and not other.server.wait_for_client(_LOOK_SECS):
            pass
        ended = other.run(stop)
        if not ends():
            other.server.end(ended)

    other.server.let_go_when(lambda: "the simulation was stopped" if ends() else "")
    with other.server.serve(options.versus_listen):
        thread = threading.Thread(target=run, name="gcspy simulation beside")
        thread.start()
        try:
            yield
        finally:
            over.set()
            stop.set()
            thread.join()
