"""`gcspy run`: start a Python program, or a JVM, that reports each collection, and monitor it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_protocol.errors import CommandError, GCspyError

from gcspy.connection.tokens import own_token
from gcspy.gui import load_window, require_window
from gcspy.hosts.process_host import LONGEST_HOLD_SECS, ServingOptions, serve_target
from gcspy.hosts.sidecar import start_sidecar
from gcspy.options import (
    CONDITION,
    DriverCommand,
    count_option,
    driver_options,
    driver_values_of,
    listen_option,
    no_window_option,
    original_port_option,
    read_token,
    sampling_options,
    theme_option,
    token_option,
    tree_option,
    tree_refusal,
)
from gcspy.output.share_lines import say_addresses
from gcspy.output.terminal import say_aside
from gcspy_client.interruption import interruption_held_back
from gcspy_session.network.address import default_address

if TYPE_CHECKING:
    from gcspy_server.api import ServedSession, Server

__all__ = ["command"]

_ENDING_SECS = 1.0
"""Time limit for the end of a program that could not start."""


@click.command(cls=DriverCommand, context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", is_flag=True, help="Run PROGRAM as a module, like python -m.")
@click.option("-c", "code", is_flag=True, help="Run PROGRAM as Python source text, like python -c.")
@no_window_option("the session")
@listen_option
@tree_option
@click.option("--wait", is_flag=True, help="Start the program when the first client connects.")
@click.option(
    "--longest-hold",
    "longest_hold_secs",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Longest single stop of the program. 0: unlimited. Default: 30; with a window 0.",
)
@click.option(
    "--python",
    default=sys.executable,
    help="Python interpreter of the program. Default: the one that runs gcspy.",
)
@click.option(
    "--trigger",
    "triggers",
    type=CONDITION,
    multiple=True,
    metavar="CONDITION",
    help="Pause the program at the first collection at which this condition is true. Repeatable.",
)
@driver_options
@count_option
@sampling_options
@original_port_option
@token_option
@theme_option
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    module: bool,
    code: bool,
    no_window: bool,
    listen: tuple[str, ...],
    tree: bool,
    wait: bool,
    longest_hold_secs: float | None,
    python: str,
    triggers: tuple[str, ...],
    drivers: tuple[str, ...],
    share_events: bool,
    driver_values: tuple[str, ...],
    count: bool,
    clock_hz: float,
    tiles: int,
    level: int,
    budget: int,
    original_port: int | None,
    token_file: Path | None,
    theme: str | None,
    program: str,
    arguments: tuple[str, ...],
) -> int:
    """Start a program and show its heap with exact events.

    PROGRAM is a Python program, or `java` with its arguments. A small stub in the program reports the start and the end of each collection. The program waits
    while its heap is read, so that the values are exact; pause and step stop the program itself.
    The program keeps running when the window is closed or gcspy is killed. The exit code is the
    program's. With --tree the program may be any, and starts without a stub: it and its descendants
    are read while they run.
    """
    if module and code:
        raise CommandError("-m and -c exclude each other: give one of them")
    if not no_window:
        require_window()
    if tree:
        tree_refusal(drivers, share_events=share_events, inject=False)
        if count:
            raise click.UsageError("--count needs a stub, and --tree has none: omit one of them")
        if wait:
            raise click.UsageError("--wait needs a stub, and --tree has none: omit one of them")
    driver_values = driver_values_of(driver_values, count=count)
    form = "module" if module else "code" if code else ""
    addresses = tuple(parse_address(address) for address in listen)
    if longest_hold_secs is None:
        longest_hold_secs = LONGEST_HOLD_SECS if no_window else 0
    with ExitStack() as stack:
        running = stack.enter_context(
            _started_plainly(python, form, program, arguments)
            if tree
            else _program(python, form, program, arguments, driver_values)
        )
        process = running.process
        token = None
        if any(isinstance(address, TcpAddress) for address in addresses):
            token = read_token(token_file, ask=False) or stack.enter_context(own_token(process.pid))
        options = ServingOptions(
            pid=process.pid,
            tree=tree,
            listen=(str(default_address(process.pid)), *(str(address) for address in addresses)),
            token=token,
            tiles=tiles,
            level=level,
            budget=budget,
            clock_hz=clock_hz,
            linger=not no_window,
            triggers=triggers,
            stub_fd=None if tree else running.ours.fileno(),
            wait=wait,
            longest_hold_secs=longest_hold_secs or None,
            drivers=drivers,
            share_events=share_events,
            values=driver_values,
            original_port=original_port,
        )
        try:
            if no_window:
                _serve(options, running)
            else:
                _watch(options, running, theme)
        except GCspyError as error:
            if not _ended(process):
                raise
            say_aside(str(error))  # it has reported itself what is wrong
        return _exit_code(process.wait())


@dataclass
class _Program:
    """The started program.

    Attributes:
        process: Its process.
        ours: Our end of its socket.
        second: A duplicate of it, closed when the program is monitored: until then the program must
            not be released if the monitoring process ends.
        told_to_end: Whether SIGTERM was received, and forwarded to it.
    """

    process: subprocess.Popen[bytes]
    ours: socket.socket
    second: socket.socket
    told_to_end: bool = False

    def end(self, _number: int, _frame: FrameType | None) -> None:
        """Forward SIGTERM."""
        self.told_to_end = True
        self.process.terminate()


def _serve(options: ServingOptions, program: _Program) -> None:
    """Serve in this process until the program ends."""

    def ready(_server: Server, listening: ServedSession) -> None:
        program.second.close()
        say_addresses(listening.addresses, original_port=options.original_port)

    program.ours.detach()  # the driver's now
    serve_target(options, stop=threading.Event(), on_ready=ready)


def _watch(options: ServingOptions, program: _Program, theme: str | None) -> None:
    """Show it in a window; closing that ends the monitoring, but not the program."""
    with start_sidecar(options, pass_fds=(program.ours.fileno(),)) as sidecar:
        program.ours.close()
        program.second.close()
        with interruption_held_back():
            load_window()
            from gcspy_client.app import run_window

        say_addresses(sidecar.addresses[1:], original_port=options.original_port)
        address = sidecar.addresses[0]
        # From here on SIGTERM closes the window, and leaves the program alone, as closing the
        # window does. Before, it ends the program, since there is no window to close.
        if not program.told_to_end:
            run_window(address, theme=theme)


@contextmanager
def _program(
    python: str, form: str, program: str, arguments: tuple[str, ...], values: tuple[str, ...]
) -> Iterator[_Program]:
    """Start the program; it waits before its first line. It is ended only if it could not be monitored at all."""
    from gcspy.connection.target import command_of
    from gcspy_server.api import ProgramStart

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, ours.dup() as second:
        with theirs:
            command_line = command_of(
                ProgramStart(
                    program=program,
                    arguments=arguments,
                    form=form,
                    interpreter=python,
                    stub_fd=theirs.fileno(),
                ),
                values,
            )
            try:
                process = subprocess.Popen(command_line, pass_fds=(theirs.fileno(),))
            except OSError as error:
                raise CommandError(
                    f"cannot start {command_line[0]}: {error.strerror}; give --python"
                ) from error
        with _followed(process, ours, second) as running:
            yield running


@contextmanager
def _followed(
    process: subprocess.Popen[bytes], ours: socket.socket, second: socket.socket
) -> Iterator[_Program]:
    """Leave Ctrl-C, which the terminal sends to the whole group, to the program, and forward SIGTERM; kill it after an error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running = _Program(process, ours, second)
    signal.signal(signal.SIGTERM, running.end)
    try:
        yield running
    except BaseException:
        process.kill()
        process.wait()
        raise


@contextmanager
def _started_plainly(
    python: str, form: str, program: str, arguments: tuple[str, ...]
) -> Iterator[_Program]:
    """Start the program without a stub, so it need not be of a runtime that has one; see `_program`."""
    if form or program.endswith(".py"):
        option = {"module": ["-m"], "code": ["-c"]}.get(form, [])
        command_line = [python, *option, program, *arguments]
    else:
        command_line = [program, *arguments]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, ours.dup() as second:
        try:
            process = subprocess.Popen(command_line)
        except OSError as error:
            raise CommandError(f"cannot start {command_line[0]}: {error.strerror}") from error
        with _followed(process, ours, second) as running:
            yield running


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the program ends by itself, without having been monitored."""
    try:
        process.wait(_ENDING_SECS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _exit_code(status: int) -> int:
    """The exit code as in a shell: 128 plus the number of the signal that ended it."""
    return 128 - status if status < 0 else status
