"""`gcspy attach`: monitor a running process, with a window or as a server only."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_protocol.text.visible import Lines

from gcspy.connection.original_server import OriginalServer, names_original_server
from gcspy.connection.tokens import own_token
from gcspy.gui import load_window, require_window
from gcspy.hosts.launcher import front_door
from gcspy.hosts.process_host import LONGEST_HOLD_SECS, ServingOptions, serve_target
from gcspy.hosts.sidecar import start_sidecar
from gcspy.hosts.stop_signals import stop_at_signals
from gcspy.options import (
    CONDITION,
    DriverCommand,
    class_options,
    count_option,
    driver_options,
    driver_values_of,
    inject_option,
    language_option,
    listen_option,
    loads_stub,
    mode_option,
    no_window_option,
    original_port_option,
    read_token,
    sampling_options,
    theme_option,
    token_option,
    tree_option,
    tree_refusal,
    web_option,
)
from gcspy.output.share_lines import reachable_ones, say_addresses
from gcspy.output.terminal import say, say_aside
from gcspy_client.interruption import interruption_held_back
from gcspy_session.network.address import default_address

if TYPE_CHECKING:
    from gcspy_server.api import ServedSession, Server

__all__ = ["command"]


class _Target(click.ParamType[int | OriginalServer]):
    """A process, or a server of GCspy 1.0."""

    name = "target"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | OriginalServer:
        """Convert the user's argument."""
        if names_original_server(str(value)):
            return OriginalServer.parse(value)
        pid: int = click.IntRange(1).convert(value, param, ctx)
        return pid


_TRACE_MILLIS = 20
"""Between two events of a trace that is still written: what it has already is passed quickly."""


@click.command(cls=DriverCommand)
@click.argument("target", metavar="PID|gcspy666://HOST:PORT", type=_Target())
@tree_option
@no_window_option("the session")
@web_option
@listen_option
@click.option(
    "--trigger",
    "triggers",
    type=CONDITION,
    multiple=True,
    metavar="CONDITION",
    help="Pause when this condition becomes true, such as "
    "'sum(\"pymalloc arenas\".Used) > 64MiB'. Repeatable. A trigger pauses only while a client is in control; otherwise it is only reported.",
)
@driver_options
@inject_option
@count_option
@sampling_options
@mode_option
@original_port_option
@token_option
@language_option
@theme_option
@class_options
@click.pass_context
def command(
    context: click.Context,
    target: int | OriginalServer,
    tree: bool,
    no_window: bool,
    listen: tuple[str, ...],
    web: tuple[str, ...],
    triggers: tuple[str, ...],
    drivers: tuple[str, ...],
    share_events: bool,
    driver_values: tuple[str, ...],
    inject: str | None,
    count: bool,
    clock_hz: float,
    tiles: int,
    level: int,
    budget: int,
    mode: str | None,
    original_port: int | None,
    token_file: Path | None,
    theme: str | None,
    person: str,
    successor: str,
) -> int:
    """Attach to the running process PID, or to a server of GCspy 1.0 (2002), and show its heap.

    The process needs no preparation. By default it is never stopped and nothing is loaded into it;
    --inject and --mode stopped change that. Attaching needs the same permissions as a debugger.
    The process keeps running when the window is closed, at Ctrl-C, and when gcspy is killed.

    A process that was started by `gcspy trace` is shown from its trace file: every object, with its
    allocation site and its history. --driver NAME attaches to the process itself.
    """
    values = driver_values_of(driver_values, inject=inject, mode=mode, count=count)
    if tree:
        tree_refusal(drivers, share_events=share_events, inject=loads_stub(values))
    is_original = isinstance(target, OriginalServer)
    if isinstance(target, OriginalServer):
        if drivers or values:
            raise click.UsageError(f"{target} has no drivers and no options: omit them")
        if tree:
            raise click.UsageError(f"{target} has no descendants: omit --tree")
        pid, local = os.getpid(), target.session_address()
    else:
        pid, local = target, default_address(target)
    if not is_original and not (drivers or values or tree or triggers):
        from gcspy.tracer.running_traces import trace_of

        trace = trace_of(pid)
        if trace is not None:
            from gcspy.commands.replay import command as replay

            say_aside(f"process {pid} is traced: showing {trace}; --driver NAME attaches to it")
            shared = {
                "no_window": no_window, "listen": listen, "web": web, "original_port": original_port, "token_file": token_file,
                "theme": theme, "person": person, "successor": successor,
            }  # fmt: skip
            shown: int = context.invoke(
                replay, files=(trace,), pace="fixed", interval_millis=_TRACE_MILLIS, **shared
            )
            return shown
    if not no_window:
        require_window()
    addresses = tuple(parse_address(address) for address in listen)
    with ExitStack() as stack:
        token = None
        if web or any(isinstance(address, TcpAddress) for address in addresses):
            token = read_token(token_file, ask=False) or stack.enter_context(own_token(pid))
        options = ServingOptions(
            pid=0 if is_original else pid,
            tree=tree,
            original=str(target) if is_original else "",
            listen=(str(local), *(str(address) for address in addresses)),
            token=token,
            web=web,
            tiles=tiles,
            level=level,
            budget=budget,
            clock_hz=clock_hz,
            linger=not no_window,
            triggers=triggers,
            drivers=drivers,
            share_events=share_events,
            values=values,
            original_port=original_port,
            longest_hold_secs=LONGEST_HOLD_SECS
            if no_window and (is_original or loads_stub(values))
            else None,  # sampling may be held indefinitely
        )
        if no_window:
            return _serve(options)
        sidecar = stack.enter_context(start_sidecar(options))
        # Loaded while the sidecar starts: both take about half a second.
        with interruption_held_back():
            load_window()
            from gcspy_client.app import run_window
            from gcspy_client.model.attendance import ClassOptions

        say_addresses(sidecar.addresses[1:], original_port=original_port, pages=sidecar.pages)
        class_options = ClassOptions(
            person=person, successor=successor, addresses=reachable_ones(sidecar.addresses[1:])
        )
        return run_window(
            sidecar.addresses[0], theme=theme, front=front_door(), class_options=class_options
        )


def _serve(options: ServingOptions) -> int:
    """Serve in this process until the target ends, Ctrl-C or SIGTERM."""
    stop = stop_at_signals()

    def ready(server: Server, listening: ServedSession) -> None:
        from gcspy_server.api import Mode  # loaded by now; the command line does not need it

        say(
            f"gcspy: monitoring {server.name}, {server.mode.value}; a pause stops the {server.pause_acts_on.value}"
        )
        if loads_stub(options.values) and server.mode is not Mode.COOPERATIVE:
            say(Lines.of(f"gcspy: {server.general_info}"))
        say_addresses(
            listening.addresses, original_port=options.original_port, pages=listening.pages
        )

    ended = serve_target(options, stop=stop, on_ready=ready)
    say(f"gcspy: {ended}")
    return 0
