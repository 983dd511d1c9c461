"""`gcspy check-driver`: run a driver in this process with every check on, and report what it shows, or its mistakes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import click
from gcspy_protocol.errors import DriverError

from gcspy.output.terminal import say

__all__ = ["command"]

_TICKS = 3

_MOST_SECS = 30.0
"""Time limit for three events; a driver that exceeds it hangs."""

_LOOK_SECS = 0.2


@click.command()
@click.argument("name")
@click.argument("pid", type=click.IntRange(1))
def command(name: str, pid: int) -> None:
    """Check the driver NAME against the process PID, and show what it would display.

    The driver runs in this process: it is loaded, attached and asked for three events. Exit code 10 if the driver is faulty.
    """
    check = _Check(name, pid)
    thread = threading.Thread(target=check.run, name="gcspy check-driver", daemon=True)
    thread.start()
    waited = 0.0
    while thread.is_alive() and not (slow := check.slow_text(waited)):
        thread.join(_LOOK_SECS)
        waited += _LOOK_SECS
    if thread.is_alive():
        raise DriverError(slow)
    if check.error is not None:
        raise check.error


class _Check:
    """One run of a driver, in a thread of its own, which is abandoned if it never ends.

    Attributes:
        error: Its exception; None: it succeeded, or has not ended.
    """

    def __init__(self, name: str, pid: int) -> None:
        self._name = name
        self._pid = pid
        self._slow: Callable[[], str] = str
        self.error: BaseException | None = None

    def slow_text(self, waited_secs: float) -> str:
        """Return what takes too long; empty: nothing does."""
        if text := self._slow():
            return text
        if waited_secs < _MOST_SECS:
            return ""
        return f"driver {self._name}: it did not complete {_TICKS} events within {_MOST_SECS:g} s"

    def run(self) -> None:
        """Run it, and store its exception."""
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001  # handed to the thread that waits
            self.error = error

    def _run(self) -> None:
        from gcspy.connection.target import attach_group
        from gcspy_server.api import AttachOptions
        from gcspy_server.driver_options import announced_options
        from gcspy_server.driver_recognition import find_recognisers
        from gcspy_server.hosting.recognition import DriverBench

        faults: list[str] = []
        bench = DriverBench(faults.append, (self._name,))
        recognised = bench.recognise(self._pid)
        if faults:
            raise DriverError(faults[0])
        announced = announced_options().get(self._name)
        if isinstance(announced, str):
            raise DriverError(
                f"driver {self._name}: the options that its package announces {announced}"
            )
        if announced is not None and announced != bench.load(self._name).declared_options:
            raise DriverError(
                f"driver {self._name}: the options that its package announces are not its declared_options"
            )
        announced_recognition = find_recognisers().get(self._name)
        if announced_recognition is not None and recognised:
            answers = (bench.load(self._name).recognise(self._pid), recognised[0].recognition)
            if len({(one.runtime, one.supported, one.specificity) for one in answers}) > 1:
                raise DriverError(
                    f"driver {self._name}: {announced_recognition.value} does not answer as its recognise does"
                )
        if not recognised:
            say(f"driver {self._name} does not recognise process {self._pid}")
        group = attach_group(self._pid, AttachOptions(), (self._name,))
        try:
            described = group.describe()
            server = described.server()
            causes: list[str] = []
            group.open(server)
            self._slow = group.slow_text
            server.add_observer(lambda event: causes.append(event.cause))
            for _ in range(_TICKS):
                group.tick()
            say(f"{described.name}: {described.mode.value}, events {', '.join(described.events)}")
            for space in server.spaces:
                say(f"  {space.name}: {space.count:,} tiles")
                for stream in space.streams:
                    gathered = "gathered" if stream.gathered else "not gathered"
                    say(f"    {stream.name}: {gathered}")
            if not server.spaces:
                raise DriverError(
                    f"driver {self._name}: it adds no spaces, so there is nothing to show"
                )
            faults = [cause for cause in causes if cause.startswith(f"driver {self._name}")]
            if faults:
                raise DriverError(faults[0])
            if len(causes) < _TICKS:
                raise DriverError(
                    f"driver {self._name}: {len(causes) or 'no'} event in {_TICKS} ticks; each tick finishes the clock's event"
                )
        finally:
            group.close()
