"""The sidecar: driver and server, a simulation, or a player, in a process of their own, beside the window or the text client.

A window that draws must not delay the sampling or the playing, and its memory must not be near the
target's. The child lives as long as its standard input is open: when the parent ends, in whatever
way, the child reads end of file, stops, and the target keeps running. Options, including the token,
are sent through that pipe and never appear on a command line.

    parent ──one JSON line of options──▶ child
           ◀─JSON lines: how far it is, and last: ready, or what was wrong──
           ──end of file──▶ child stops
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcspy_protocol.errors import CommandError, GCspyError

from gcspy.exit_codes import ExitCode, exit_code_of
from gcspy.hosts.playback_host import PlayingOptions, play
from gcspy.hosts.process_host import ServingOptions, serve_target
from gcspy.hosts.simulation_host import SimulatingOptions, simulate
from gcspy.objects.trace_conversion import named_trace
from gcspy.recorder.original_traces import named_original

if TYPE_CHECKING:
    from gcspy_replay.file import Recording
    from gcspy_replay.player import PlayerThread

    from gcspy_server.api import ServedSession, Server

__all__ = ["SidecarProcess", "command_of_sidecar", "first_line", "start_sidecar"]

_PROGRESS_SECS = 0.1
_STOP_SECS = 5.0
"""A child that has not stopped by then is killed, which is harmless."""


class SidecarProcess:
    """A sidecar that was started; made by `start_sidecar`.

    Attributes:
        pid: Its process.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.pid = process.pid
        self._process = process

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its addresses, the local one first; waits until it listens.

        Do other slow work, such as loading Qt, before this call.

        Raises:
            CommandError: The child's error, with its exit code.
        """
        return tuple(self._ready["addresses"])

    @property
    def notes(self) -> tuple[str, ...]:
        """Its messages for the user, one line each; waits as `addresses` does.

        Raises:
            CommandError: See `addresses`.
        """
        return tuple(self._ready["notes"])

    @property
    def pages(self) -> tuple[str, ...]:
        """Addresses of its page, for web browsers; waits as `addresses` does.

        Raises:
            CommandError: See `addresses`.
        """
        return tuple(self._ready["pages"])

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it made of a trace, valid while it runs; empty if it plays the given files. Waits as `addresses` does.

        Raises:
            CommandError: See `addresses`.
        """
        return tuple(map(Path, self._ready["files"]))

    def exit_code(self) -> int | None:
        """Return its exit code, if it ended by itself within a moment; None: it still runs."""
        try:
            return self._process.wait(_STOP_SECS)
        except subprocess.TimeoutExpired:
            return None

    @cached_property
    def _ready(self) -> dict[str, list[str]]:
        """The child's message when it was ready."""
        assert self._process.stdout is not None
        while True:
            answer = self._process.stdout.readline()
            if not answer:
                code = self._process.wait(_STOP_SECS)
                raise CommandError(
                    f"the sidecar ended at once (exit code {code})", exit_code=ExitCode.FAILED
                )
            ready = json.loads(answer)
            if "error" in ready:
                raise CommandError(ready["error"], exit_code=ready["exit_code"])
            if "addresses" in ready:
                return {
                    "addresses": ready["addresses"],
                    "notes": ready["notes"],
                    "files": ready.get("files", []),
                    "pages": ready.get("pages", []),
                }


def command_of_sidecar() -> tuple[str, ...]:
    """The command that starts a sidecar."""
    return sys.executable, "-P", "-m", "gcspy.hosts.sidecar"


def first_line(options: ServingOptions | PlayingOptions | SimulatingOptions) -> str:
    """The first line for a sidecar; process 0 means the demonstration's program, which the sidecar starts."""
    does = (
        "plays"
        if isinstance(options, PlayingOptions)
        else "simulates"
        if isinstance(options, SimulatingOptions)
        else "watches"
    )
    return json.dumps({"does": does, **asdict(options)})


@contextmanager
def start_sidecar(
    options: ServingOptions | PlayingOptions | SimulatingOptions, *, pass_fds: tuple[int, ...] = ()
) -> Iterator[SidecarProcess]:
    """Start a sidecar for the body of the `with`; it stops with the body, and inherits the descriptors `pass_fds`."""
    # A session of its own, so that Ctrl-C in the terminal reaches us and not the child.
    with subprocess.Popen(
        command_of_sidecar(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        pass_fds=pass_fds,
        text=True,
    ) as child:
        assert child.stdin is not None
        try:
            with suppress(BrokenPipeError):  # `addresses` reports a child that ended at once
                child.stdin.write(first_line(options) + "\n")
                child.stdin.flush()
            yield SidecarProcess(child)
        finally:
            with suppress(BrokenPipeError):
                child.stdin.close()
            try:
                child.wait(_STOP_SECS)
            except subprocess.TimeoutExpired:
                child.kill()


def _answer(**fields: object) -> None:
    """Answer the parent; one that has ended needs no answer, and standard input ends as well."""
    try:
        os.write(sys.stdout.fileno(), (json.dumps(fields) + "\n").encode())
    except BrokenPipeError:
        # Nothing is left in a buffer, so that nothing is written when Python ends.
        logging.getLogger("gcspy").debug("the process that started this sidecar has ended")


def _stop_at_eof(stop: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stop.set()


def _say_listening(_server: Server, listening: ServedSession) -> None:
    _answer(addresses=list(listening.addresses), notes=[], pages=list(listening.pages))


def _say_playing(
    named: tuple[str, ...], recording: Recording, playing: PlayerThread, notes: tuple[str, ...]
) -> None:
    made = (
        []
        if named_trace(named) is None and named_original(named) is None
        else [str(Path(part.window.source.name).absolute()) for part in recording.parts]
    )
    _answer(
        addresses=list(playing.addresses),
        notes=list(notes),
        files=made,
        pages=list(playing.pages),
    )


class _WarningLines(logging.Handler):
    """Reports, until it is ready, what delays it, so that the parent can show it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Send it as progress."""
        _answer(progress=[record.getMessage(), 0, 1])


class _ProgressLines:
    """Reports its progress, some ten times a second, so that the parent can show it."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        if total > 0 and (now := time.monotonic()) >= self._next:
            self._next = now + _PROGRESS_SECS
            _answer(progress=[what, done, total])


@contextmanager
def _target(options: ServingOptions) -> Iterator[ServingOptions]:
    """The process to monitor; the demonstration's program runs for the body of the `with`."""
    if options.pid or options.original:
        yield options
        return
    from gcspy.demo.demo_process import running_workload

    with running_workload(sys.executable, seed=1) as pid:
        yield replace(options, pid=pid)


def main() -> int:
    """The child: read the options, serve until standard input ends.

    With ``--apart`` it is not a child: its starter waits for a moment only, and has no child to
    wait for later. Then its first line is its own process id, because the starter may have to allow
    it to read the target first.
    """
    if sys.argv[1:] == ["--apart"]:
        child = os.fork()
        if child:
            os.write(sys.stdout.fileno(), b"%d\n" % child)
            os._exit(0)
    logging.basicConfig(level=logging.WARNING, format="gcspy: %(message)s")
    # Byte by byte: the thread would wait in vain for bytes that a buffered reader took.
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(sys.stdin.fileno(), 1)
        if not more:
            return ExitCode.USAGE
        line += more
    fields: dict[str, Any] = json.loads(line)
    fields = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    stop = threading.Event()
    threading.Thread(target=_stop_at_eof, args=(stop,), daemon=True).start()
    try:
        does = fields.pop("does")
        if does == "plays":
            playing = PlayingOptions(**fields)
            play(
                playing,
                stop=stop,
                on_ready=partial(_say_playing, playing.files),
                on_progress=_ProgressLines(),
            )
        elif does == "simulates":
            simulate(SimulatingOptions(**fields), stop=stop, on_ready=_say_listening)
        else:
            warnings = _WarningLines()
            logging.getLogger("gcspy").addHandler(warnings)

            def ready(server: Server, listening: ServedSession) -> None:
                logging.getLogger("gcspy").removeHandler(warnings)
                _say_listening(server, listening)

            with _target(ServingOptions(**fields)) as options:
                serve_target(options, stop=stop, on_ready=ready)
    except GCspyError as error:
        _answer(error=str(error), exit_code=int(exit_code_of(error)))
        return exit_code_of(error)
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
