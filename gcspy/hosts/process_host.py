"""Serves one attached process: driver and server interpreter, until stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gcspy_protocol.address import UnixAddress
from gcspy_protocol.errors import CommandError, ExpressionError

from gcspy.connection.original_server import OriginalServer
from gcspy.hosts.original_gateway import original_gateway
from gcspy.hosts.web_pages import web_gateway
from gcspy_session.network.address import default_address

if TYPE_CHECKING:
    from gcspy_server.api import Driver, ServedSession, Server
    from gcspy_server.hosting.driver_group import DriverGroup

__all__ = ["BUDGET", "LONGEST_HOLD_SECS", "ServingOptions", "serve_target"]

_LOOK_SECS = 0.1
"""How often a wait for the first client checks whether it should end."""


BUDGET = 50
"""Default maximum share of a program's time for monitoring, in thousandths."""

LONGEST_HOLD_SECS = 30.0
"""Longest single stop of a program by a client, if it has no window of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingOptions:
    """How a process is monitored and served.

    Attributes:
        pid: The target.
        tree: Whether all descendants of the target are monitored too.
        original: Instead of a process, a server of GCspy 1.0: its address.
        listen: Addresses; empty takes the local default of the PID.
        token: The secret for TCP; None where only Unix sockets are used.
        tiles: Approximate maximum of tiles per space.
        clock_hz: Samples per second.
        level: The level.
        budget: Maximum share of the target's time for monitoring, in thousandths; 1000: no limit.
        linger: Keep serving the gathered data after the target ended.
        triggers: Conditions at which it pauses; they are evaluated while there are clients.
        stub_fd: A socket whose other end a stub in the target has; this takes ownership. None:
            there is none.
        wait: Begin with the first client.
        longest_hold_secs: Longest single stop of the target; None: unlimited.
        drivers: Names of the drivers, the leading one first; none: the most specific one.
        share_events: Each driver gathers at the exact events of the others, too.
        values: Options of the drivers: ``NAME=VALUE`` or ``DRIVER.NAME=VALUE``.
        original_port: TCP port of this machine for visualisers of GCspy 1.0; None: none.
        web: Addresses at which web browsers get a page of the session.
    """

    pid: int
    tree: bool = False
    original: str = ""
    listen: tuple[str, ...] = ()
    token: str | None = None
    tiles: int = 65536
    clock_hz: float = 10.0
    level: int = 2
    budget: int = BUDGET
    linger: bool = False
    triggers: tuple[str, ...] = ()
    stub_fd: int | None = None
    wait: bool = False
    longest_hold_secs: float | None = None
    drivers: tuple[str, ...] = ()
    share_events: bool = False
    values: tuple[str, ...] = ()
    original_port: int | None = None
    web: tuple[str, ...] = ()


def serve_target(
    options: ServingOptions,
    *,
    stop: threading.Event,
    on_ready: Callable[[Server, ServedSession], None],
) -> str:
    """Attach, serve, and sample until `stop` is set or the target ends.

    Args:
        options: The options of monitoring.
        stop: Set by another thread or a signal handler.
        on_ready: Called once, when clients can connect.

    Returns:
        Why it ended, for a human.

    Raises:
        TargetError: The process cannot be monitored.
        LinkError: An address cannot be listened on.
        CommandError: The condition of a trigger is ambiguous, or none.
    """
    # Imported only to serve: much code needs the options alone.
    from gcspy_server.api import Trigger
    from gcspy_server.sampler import run_driver

    driver, server = _opened(options)
    try:
        for number, condition in enumerate(options.triggers, start=1):
            try:
                server.set_trigger(Trigger(id=number, expression=condition))
            except ExpressionError as error:
                raise CommandError(f"--trigger: {error}") from error
        addresses = options.listen or (str(_local_address(options)),)
        with (
            server.serve(*addresses, token=options.token) as listening,
            original_gateway(listening.addresses[0], options.original_port, options.token),
            web_gateway(
                listening.addresses[0], options.web, options.token, title=server.name
            ) as listening.pages,
        ):
            on_ready(server, listening)
            while (
                options.wait
                and not stop.is_set()
                and driver.alive()
                and not server.wait_for_client(_LOOK_SECS)
            ):
                pass
            ended = run_driver(driver, server, options.clock_hz, stop)
            if ended is None:
                return "stopped; the target keeps running"
            if options.linger:
                stop.wait()
            return ended
    finally:
        driver.close()


def _local_address(options: ServingOptions) -> UnixAddress:
    if options.original:
        return OriginalServer.parse(options.original).session_address()
    return default_address(options.pid)


def _opened(options: ServingOptions) -> tuple[Driver | DriverGroup, Server]:
    if options.original:
        return _opened_original(options)
    return _opened_tree(options) if options.tree else _opened_process(options)


def _opened_process(options: ServingOptions) -> tuple[DriverGroup, Server]:
    """The drivers of a process, and their server."""
    from gcspy.connection.target import attach_group, explain_memory, investigate
    from gcspy_server.api import AttachOptions
    from gcspy_server.driver_options import named_values

    driver = attach_group(
        options.pid,
        AttachOptions(
            tiles=options.tiles,
            clock_hz=options.clock_hz,
            level=options.level,
            stub_fd=options.stub_fd,
        ),
        options.drivers,
        share_events=options.share_events,
        given=named_values(options.values),
    )
    server = _server_of(driver, options)
    known = partial(investigate, driver.names, options.pid)
    server.investigate_with(driver.investigator() or known)
    server.explain_memory_with(partial(explain_memory, driver.names, options.pid))
    return driver, server


def _server_of(driver: Driver | DriverGroup, options: ServingOptions) -> Server:
    """Open a driver, and return its server; a driver that cannot be opened is closed."""
    try:
        server = driver.describe().server(
            longest_hold_secs=options.longest_hold_secs, budget=options.budget
        )
        driver.open(server)
    except BaseException:
        driver.close()
        raise
    return server


def _opened_tree(options: ServingOptions) -> tuple[Driver, Server]:
    """The driver of a tree of processes, and its server."""
    from gcspy.connection.target import attach_one
    from gcspy.tree.family import Family
    from gcspy.tree.tree_driver import TreeDriver
    from gcspy.tree.tree_question import explain_leading
    from gcspy_server.api import AttachOptions
    from gcspy_server.driver_options import named_values

    given = named_values(options.values)
    sampling = AttachOptions(tiles=options.tiles, clock_hz=options.clock_hz, level=options.level)
    (name,) = options.drivers or ("",)

    def attach(pid: int) -> tuple[str, Driver]:
        chosen, found, taken = attach_one(pid, sampling, name, given)
        if name and given.keys() - taken:
            found.close()
            raise CommandError(
                f"option {min(given.keys() - taken)}: driver {chosen} has no such option"
            )
        return chosen, found

    driver = TreeDriver(Family(options.pid), attach, sampling)
    server = _server_of(driver, options)
    server.explain_memory_with(partial(explain_leading, driver))
    return driver, server


def _opened_original(options: ServingOptions) -> tuple[Driver, Server]:
    """The driver of a server of GCspy 1.0, and its server; there is no budget, since the program has gathered before we know."""
    from gcspy_drivers.original.driver import OriginalDriver

    place = OriginalServer.parse(options.original)
    driver = OriginalDriver(place.host, place.port)
    try:
        server = driver.describe().server(longest_hold_secs=options.longest_hold_secs)
        driver.open(server)
    except BaseException:
        driver.close()
        raise
    return driver, server
