"""`gcspy check-driver`: run a driver in this process with every check on, and say what it shows, or what is wrong."""

from __future__ import annotations

import click
from gcspy_protocol.errors import DriverError

from gcspy.terminal import say

__all__ = ["command"]

_TICKS = 3


@click.command()
@click.argument("name")
@click.argument("pid", type=click.IntRange(1))
def command(name: str, pid: int) -> None:
    """Check the driver NAME against the process PID, and show what it would display.

    The driver runs in this process: it is loaded, attached and asked for three events. Exit code 10 if the driver is faulty.
    """
    from gcspy.target import attach_group
    from gcspy_server.api import AttachOptions

    group = attach_group(pid, AttachOptions(), (name,))
    try:
        described = group.describe()
        server = described.server()
        events: list[str] = []
        group.open(server)
        server.add_observer(lambda event: events.append(event.cause))
        for _ in range(_TICKS):
            group.tick()
        say(f"{described.name}: {described.mode.value}, events {', '.join(described.events)}")
        for space in server.spaces:
            say(f"  {space.name}: {space.count:,} tiles")
            for stream in space.streams:
                gathered = "gathered" if stream.gathered else "not gathered"
                say(f"    {stream.name}: {gathered}")
        if not server.spaces:
            raise DriverError(f"driver {name}: it adds no spaces, so nothing of it can be seen")
        if len(events) < _TICKS:
            raise DriverError(f"driver {name}: {len(events)} events in {_TICKS} ticks")
        faults = [cause for cause in events if cause.startswith(f"driver {name}")]
        if faults:
            raise DriverError(faults[0])
    finally:
        group.close()
