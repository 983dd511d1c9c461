"""From what the user named, an address, a PID or a recording, to an address that a client can join."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from gcspy_protocol.address import UnixAddress
from gcspy_protocol.errors import CommandError, DriverError, LinkError, TargetGone

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
    """Where a client can join; made by `joinable`.

    Args:
        address: Gives the address; may wait until somebody listens there.
    """

    def __init__(self, address: Callable[[], str]) -> None:
        self._address = address

    @cached_property
    def address(self) -> str:
        """The address; waits until somebody listens there.

        What else takes time, such as loading Qt or numpy, is best done before this is asked for.

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
    """A place to join for the body of the `with`.

    A PID that somebody watches already is joined there; otherwise a sidecar watches it for
    as long as the body runs. A recording is played by a sidecar, which stands still at its last event. Anything else
    is an address and stays what it is.

    Args:
        source: What the user named.
        clock_hz: Events of the clock a second, for a sidecar.
        tiles: About how many tiles a space should have at most, for a sidecar.
        level: How much is gathered at each event, for a sidecar.
        budget: What watching may take of the target's time, in thousandths, for a sidecar.
        drivers: Names of the drivers, the leading one first, for a sidecar; none: the one that knows the target best.
        share_events: Each driver gathers at the exact events of the others, too, for a sidecar.
        values: Options of the drivers, ``NAME=VALUE`` or ``DRIVER.NAME=VALUE``, for a sidecar.

    Raises:
        CommandError: Drivers were named for what no sidecar of ours reads.
    """
    if drivers and not source.isdecimal():
        raise CommandError(f"--driver needs a process: {source} is not a process ID")
    if names_recording(source):
        with start_sidecar(PlayingOptions(files=(source,), paused=True, event=LAST)) as player:
            yield SessionAddress(lambda: player.addresses[0])
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


def somebody_listens(address: UnixAddress) -> bool:
    """Whether a server has this socket; it is not greeted, so that no other client sees us come and go."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(_LOOK_SECS)
        try:
            sock.connect(address.path)
        except OSError:
            return False
    return True
