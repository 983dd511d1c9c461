"""Converts the user's argument, an address, a PID or a recording, to an address that a client can join."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from gcspy_protocol.address import UnixAddress
from gcspy_protocol.errors import CommandError, DriverError, LinkError, TargetGone

from gcspy.connection.original_server import OriginalServer, names_original_server
from gcspy.exit_codes import ExitCode
from gcspy.hosts.playback_host import LAST, PlayingOptions
from gcspy.hosts.process_host import BUDGET, LONGEST_HOLD_SECS, ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from gcspy.options import loads_stub
from gcspy.recorder.named_recordings import names_recording
from gcspy_session.network.address import default_address

__all__ = ["SessionAddress", "joinable", "somebody_listens"]

_LOOK_SECS = 2.0


class SessionAddress:
    """An address that clients can join; made by `joinable`.

    Args:
        address: Returns the address; may wait until a server listens there.
    """

    def __init__(self, address: Callable[[], str]) -> None:
        self._address = address

    @cached_property
    def address(self) -> str:
        """The address; waits until a server listens there.

        Do other slow work, such as loading Qt or numpy, before this call.

        Raises:
            CommandError: The sidecar could not start, with its exit code.
        """
        return self._address()


@contextmanager
def joinable(
    source: str,
    *,
    clock_hz: float,
    tiles: int,
    level: int = 2,
    budget: int = BUDGET,
    drivers: tuple[str, ...] = (),
    share_events: bool = False,
    values: tuple[str, ...] = (),
) -> Iterator[SessionAddress]:
    """An address to join during the body of the `with`.

    If a server monitors the PID already, that one is joined; otherwise a sidecar monitors it during
    the body. So does a server of GCspy 1.0. A sidecar plays a recording, paused at its last event. Anything else is an address and
    is returned unchanged.

    Args:
        source: The user's argument.
        clock_hz: Events of the clock per second, for a sidecar.
        tiles: Approximate maximum of tiles per space, for a sidecar.
        level: The level, for a sidecar.
        budget: Maximum share of the target's time for monitoring, in thousandths, for a sidecar.
        drivers: Names of the drivers, the leading one first, for a sidecar; none: the most specific
            one.
        share_events: Each driver gathers at the exact events of the others, too, for a sidecar.
        values: Options of the drivers, ``NAME=VALUE`` or ``DRIVER.NAME=VALUE``, for a sidecar.

    Raises:
        CommandError: Drivers were named for a source that no sidecar of ours reads.
    """
    if drivers and not source.isdecimal():
        raise CommandError(f"--driver needs a process: {source} is not a process ID")
    if names_recording(source):
        with start_sidecar(PlayingOptions(files=(source,), paused=True, event=LAST)) as player:
            yield SessionAddress(lambda: player.addresses[0])
        return
    if names_original_server(source):
        with _original(source, values) as place:
            yield place
        return
    if not source.isdecimal():
        yield SessionAddress(lambda: source)
        return
    pid = int(source)
    address = default_address(pid)
    if somebody_listens(address):
        if drivers:
            raise CommandError(
                f"process {pid} is already monitored by a session with its own drivers: omit --driver"
            )
        yield SessionAddress(lambda: str(address))
        return
    options = ServingOptions(
        pid=pid,
        clock_hz=clock_hz,
        tiles=tiles,
        level=level,
        budget=budget,
        drivers=drivers,
        share_events=share_events,
        values=values,
        linger=True,
        longest_hold_secs=LONGEST_HOLD_SECS if loads_stub(values) else None,
    )
    with start_sidecar(options) as sidecar:
        try:
            yield SessionAddress(lambda: sidecar.addresses[0])
        except (TargetGone, LinkError) as error:
            if sidecar.exit_code() == ExitCode.DRIVER:
                raise DriverError(str(error)) from error
            raise


@contextmanager
def _original(source: str, values: tuple[str, ...]) -> Iterator[SessionAddress]:
    """The session of a server of GCspy 1.0: one that is there, or a sidecar's."""
    if values:
        raise CommandError(f"{source} has no options of drivers: omit them")
    server = OriginalServer.parse(source)
    address = server.session_address()
    if somebody_listens(address):
        yield SessionAddress(lambda: str(address))
        return
    options = ServingOptions(
        pid=0, original=str(server), linger=True, longest_hold_secs=LONGEST_HOLD_SECS
    )
    with start_sidecar(options) as sidecar:
        yield SessionAddress(lambda: sidecar.addresses[0])


def somebody_listens(address: UnixAddress) -> bool:
    """Whether a server has this socket; it is not greeted, so that no other client notices."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(_LOOK_SECS)
        try:
            sock.connect(address.path)
        except OSError:
            return False
    return True
