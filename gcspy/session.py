"""From what the user named, an address or a PID, to an address that a client can join."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gcspy.serving import ServingOptions
from gcspy.sidecar import start_sidecar
from gcspy_server.address import default_address, is_live

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
    address = default_address(pid)
    if is_live(address):
        yield address
        return
    with start_sidecar(ServingOptions(pid=pid, clock_hz=clock_hz, tiles=tiles, linger=True)) as sidecar:
        yield sidecar.addresses[0]
