"""From what the user named, an address or a PID, to an address that a client can join."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gcspy_protocol.errors import GCspyError

from gcspy.link import connect
from gcspy.serving import ServingOptions
from gcspy.sidecar import start_sidecar
from gcspy_server.address import default_address

__all__ = ["joinable"]


@contextmanager
def joinable(address_or_pid: str, *, clock_hz: float, tiles: int) -> Iterator[str]:
    """An address to join for the body of the `with`.

    A PID that somebody watches already is joined there; otherwise a sidecar watches it for
    as long as the body runs. Anything but a number is an address and stays what it is.

    Args:
        address_or_pid: What the user named.
        clock_hz: Events of the clock a second, for a sidecar.
        tiles: About how many tiles a space should have at most, for a sidecar.

    Raises:
        TargetError: The process cannot be watched.
    """
    if not address_or_pid.isdecimal():
        yield address_or_pid
        return
    pid = int(address_or_pid)
    watched = _watched_already(pid)
    if watched is not None:
        yield watched
        return
    with start_sidecar(ServingOptions(pid=pid, clock_hz=clock_hz, tiles=tiles, linger=True)) as sidecar:
        yield sidecar.addresses[0]


def _watched_already(pid: int) -> str | None:
    """Address of the server that watches the process, if there is one and it answers."""
    address = default_address(pid)
    try:
        connect(address, client="gcspy, asking who is there", timeout_secs=2.0).close()
    except GCspyError:
        return None
    return str(address)
