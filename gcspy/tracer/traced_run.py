"""`TracedRun`: a program that runs with the library loaded, and the traces of it and of its children.

Knows processes, folders and when to look; does not know events.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gcspy_drivers.remote.leftover_folders import keep, remove_abandoned
from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode
from gcspy.tracer.drain import ForkedBlocks, SegmentDrain
from gcspy.tracer.ended_forks import EndedForks
from gcspy.tracer.process_trace import ProcessTrace, TraceSummary
from gcspy.tracer.running_traces import note_trace
from gcspy.tracer.segment_definitions import SegmentDefinitions
from gcspy_compiled.libraries import find_library

__all__ = ["JavaProgram", "PythonProgram", "TraceSettings", "TracedRun", "preloaded_library"]

_SHARED_MEMORY: Final = Path("/dev/shm")
_BUSY_BYTES: Final = 1 << 20
"""So many new bytes of records: look again at once."""
_READY_SECS: Final = 1.0
"""Longest wait for a segment that is not ready after all known processes have ended: its process may have been killed."""
_FORK_SECS: Final = 1.0
"""Longest wait for a fork that is not in the order of events yet: then what the child inherits is unknown."""
_SHORTEST_SECS, _LONGEST_SECS = 0.005, 0.1
"""Between looks: a busy program fills the memory that it begins with in some 40 ms."""
_WANTED_BYTES: Final = 3 << 18
"""So many should be new at each look: they fit into a cache, and looking costs a process something, too."""
_LIBRARY: Final = "gcspy-preloaded"


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceSettings:
    """Settings of a trace.

    Attributes:
        output: Path of the trace of the program itself; those of its children have ``.PID`` behind it.
        stacks: ``none``, ``caller`` or ``full``.
        children: Trace its children, too.
        keep_nanos: How much of a trace is kept at least; None: all.
    """

    output: Path
    stacks: str = "caller"
    children: bool = False
    keep_nanos: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonProgram:
    """A program of Python's, and how it is started.

    Attributes:
        interpreter: Path of the interpreter.
        form: ``script``, ``module`` or ``code``.
    """

    interpreter: str
    form: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JavaProgram:
    """A program of Java's: the command begins with the JVM's launcher.

    Attributes:
        agent: Path of the agent that tells its objects.
        sample_bytes: One object is traced for about so many bytes that are allocated; 0: each.
    """

    agent: Path
    sample_bytes: int


@dataclass(slots=True)
class _Running:
    """Traces of processes that run."""

    by_segment: dict[Path, ProcessTrace] = field(default_factory=dict)
    latest_of_pid: dict[int, Path] = field(default_factory=dict)
    begun: set[Path] = field(default_factory=set)
    ended_forks: EndedForks = field(default_factory=EndedForks)
    looked_at: int = 0
    unready: bool = True


def preloaded_library() -> Path:
    """Return the library that is loaded into the program.

    Raises:
        CommandError: It was not built.
    """
    found = find_library(_LIBRARY, Path(__file__).parent / "preloaded")
    if found is None:
        raise CommandError(
            "programs cannot be traced: gcspy's library for them is not built, or GCSPY_C_CODE=no; apt-get install gcc libc6-dev, and install gcspy again",
            exit_code=ExitCode.MISSING_PART,
        )
    return found


class TracedRun:
    """A program that is run and traced. A context manager: at its end the memory that it shared is removed.

    Args:
        command: The program and its arguments.
        settings: What is traced.
        how: It is a program of Python's, or of Java's; None: it is a native one.

    Raises:
        CommandError: The library is not there, or the program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        settings: TraceSettings,
        how: PythonProgram | JavaProgram | None = None,
    ) -> None:
        self.settings = settings
        self._sample_bytes = how.sample_bytes if isinstance(how, JavaProgram) else 0
        self.summaries: list[TraceSummary] = []
        self._run = secrets.token_hex(16)
        self._running = _Running()
        library = preloaded_library()
        place = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else Path("/tmp")
        self._folder, self._lock = _make_folder(place)
        variables = os.environ | {
            "GCSPY_TRACE_FOLDER": str(self._folder),
            "GCSPY_TRACE_FOLLOW": str(int(settings.children)),
        }
        if isinstance(how, PythonProgram):
            told = {
                "library": str(library),
                "folder": str(self._folder),
                "stacks": settings.stacks,
                "children": settings.children,
            }
            begin = str(Path(__file__).parent / "begin.py")
            command = [how.interpreter, begin, json.dumps(told), how.form, *command]
        elif how is not None:
            variables |= {
                "GCSPY_RUNTIME_LIBRARY": str(library),
                "GCSPY_RUNTIME_STACKS": settings.stacks,
                "GCSPY_RUNTIME_INTERVAL": str(how.sample_bytes),
            }
            command = [command[0], f"-agentpath:{how.agent}", *command[1:]]
        else:
            variables["GCSPY_TRACE_STACKS"] = settings.stacks
            preloads = [str(library), *os.environ.get("LD_PRELOAD", "").split()]
            variables["LD_PRELOAD"] = " ".join(preloads)
        try:
            self._process = subprocess.Popen(list(command), env=variables)
        except OSError as error:
            self._remove_folder()
            raise CommandError(f"cannot start {command[0]}: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        for trace in self._running.by_segment.values():
            trace.drain.stop()
        self._remove_folder()

    @property
    def pid(self) -> int:
        """Number of the program's process."""
        return self._process.pid

    @property
    def refusal(self) -> str | None:
        """Reason why the program refused to be traced; None: it did not."""
        with suppress(OSError):
            return (self._folder / "refused").read_text(encoding="utf-8")[:1000]
        return None

    def follow(self, resolve: Callable[[SegmentDefinitions], bytes]) -> int:
        """Write the traces until the program and all traced children have ended.

        Args:
            resolve: Returns definitions of frames as far as their places in the source are known.

        Returns:
            The program's exit code, as a shell reports it.
        """
        # The terminal sends Ctrl-C to the whole group: the program decides what it means.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._follow(resolve)
        finally:
            signal.signal(signal.SIGINT, before)
        status = self._process.wait()
        return 128 - status if status < 0 else status

    def _follow(self, resolve: Callable[[SegmentDefinitions], bytes]) -> None:
        pause, active = _SHORTEST_SECS, time.monotonic()
        before = active
        while True:
            over = self._process.poll() is not None
            self._find_segments()
            copied = 0
            for segment, trace in list(self._running.by_segment.items()):
                ended = trace.has_ended() or self._is_replaced(segment, trace)
                copied += trace.poll()
                if ended:
                    self.summaries.append(trace.finish(resolve, self._running.ended_forks))
                    del self._running.by_segment[segment]
            if over and not self._running.by_segment:
                # A child that was just forked may not have made its segment ready yet.
                if not self._running.unready or time.monotonic() > active + _READY_SECS:
                    return
            else:
                active = time.monotonic()
            now = time.monotonic()
            expected, before = (now - before) * _WANTED_BYTES / max(copied, 1), now
            if copied >= _BUSY_BYTES:
                continue
            # Slowly longer: a program that was idle may be busy from now on.
            pause = min(max(expected, _SHORTEST_SECS), pause * 1.5, _LONGEST_SECS)
            time.sleep(pause)

    def _is_replaced(self, segment: Path, trace: ProcessTrace) -> bool:
        """Whether the process executes another program now."""
        return self._running.latest_of_pid.get(trace.pid) != segment

    def _find_segments(self) -> None:
        known = self._running
        changed = self._folder.stat().st_mtime_ns
        if changed == known.looked_at and not known.unready:
            return
        known.looked_at, known.unready = changed, False
        for segment in sorted(self._folder.glob("*.segment")):
            if segment in known.begun:
                continue
            if not SegmentDrain.is_ready(segment):
                known.unready = True
                continue
            pid = int(segment.name.partition("-")[0])
            path = self._path_of(pid)
            known.begun.add(segment)  # whatever happens, it is begun once
            known.by_segment[segment] = ProcessTrace(
                segment,
                path,
                self.settings.stacks,
                self._run,
                self.settings.keep_nanos,
                inherited=self._inherited(segment),
                sample_bytes=self._sample_bytes,
            )
            known.latest_of_pid[pid] = segment
            with suppress(OSError):
                note_trace(segment, path)

    def _inherited(self, segment: Path) -> ForkedBlocks | None:
        """Return the blocks that a forked process has from its parent; None: it was not forked while traced, or they are not known."""
        origin, running = SegmentDrain.fork_of(segment), self._running
        if not origin.number:
            return None
        above = running.latest_of_pid.get(origin.parent)
        trace = None if above is None else running.by_segment.get(above)
        if trace is None or trace.facts.started_monotonic > origin.began:
            return running.ended_forks.take(*origin)
        # The fork was written before the child's segment was made. It may yet have to wait for events of other threads.
        until = time.monotonic() + _FORK_SECS
        while True:
            found = trace.drain.forked(origin.number)
            if found is not None or time.monotonic() > until:
                return found
            if not trace.poll():
                time.sleep(_SHORTEST_SECS)

    def _path_of(self, pid: int) -> Path:
        """Return the path of the next trace of a process; one of a program that it executed before gets out of the way."""
        path = self.settings.output
        if pid != self._process.pid:
            path = path.with_name(f"{path.name}.{pid}")
        if pid in self._running.latest_of_pid:
            number = 1
            while (aside := path.with_name(f"{path.name}.before-exec-{number}")).exists():
                number += 1
            with suppress(OSError):
                path.rename(aside)
            for trace in self._running.by_segment.values():
                if trace.path == path:
                    trace.path = aside
            self.summaries = [
                one._replace(path=aside) if one.path == path else one for one in self.summaries
            ]
        return path

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)


def _make_folder(place: Path) -> tuple[Path, int]:
    """Make a folder that the next gcspy removes if this one is killed; return it, and its lock."""
    with suppress(OSError):
        above = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            remove_abandoned(above)
        finally:
            os.close(above)
    folder = place / f"gcspy-{secrets.token_hex(8)}"
    folder.mkdir(mode=0o700)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    keep(lock)
    return folder, lock
