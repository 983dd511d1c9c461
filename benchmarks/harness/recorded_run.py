"""A lossless recorder as the client of a session that is measured, and what its file says of the run afterwards.

The recorder is `gcspy record --lossless`, as a user would start it: no event may be left out, and if it does not keep up the
program waits. The counts in the file are compared with what the program's own collector counted.

Knows the command line and recordings; does not know the program.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gcspy_replay.file import Recording

from benchmarks.harness.environment import Unavailable

__all__ = ["RecordedEvents", "Recorder", "recorder"]

_PATIENCE_SECS = 30.0
_LOOKED_AT = 400
"""Events of which the streams are looked at, one by one: enough to see whether they were gathered."""


@dataclass(frozen=True, slots=True)
class RecordedEvents:
    """The contents of a recording in a period of time.

    Attributes:
        starts: Events "GC start".
        ends: Events "GC end".
        happened: Starts and ends that there were, as the program's stub or agent counted them, also those that
            it did not report.
        fresh: Share of the streams that were gathered at the very event, at the last of these events; 0 if there was none.
        missed: Events that the recorder did not get, in the whole file.
        held_secs: How long the program was held for the recorder.
        file_bytes: Size of the file.
    """

    starts: int
    ends: int
    happened: int
    fresh: float
    missed: int
    held_secs: float
    file_bytes: int


class Recorder:
    """A recorder that runs; made by `recorder`."""

    def __init__(self, process: subprocess.Popen[str], path: Path) -> None:
        self._process = process
        self._path = path

    def await_file(self) -> None:
        """Wait until the recorder is connected: an event is in its file.

        Raises:
            Unavailable: It is not, after some time.
        """
        until = time.monotonic() + _PATIENCE_SECS
        while not (self._path.exists() and self._path.stat().st_size):
            if self._process.poll() is not None or time.monotonic() > until:
                raise Unavailable("the recorder recorded nothing")
            time.sleep(0.01)

    def events(self, began_nanos: int, ended_nanos: int) -> RecordedEvents:
        """Wait for the end of the recorder, and count what is in the file between two times of the monotonic clock.

        Raises:
            Unavailable: The recorder failed.
        """
        try:
            said, complaints = self._process.communicate(timeout=_PATIENCE_SECS)
        except subprocess.TimeoutExpired as late:
            raise Unavailable("the recorder does not end") from late
        if not said.strip() or not self._path.exists():
            raise Unavailable(f"the recorder failed: {complaints.strip()[-300:]}")
        report = json.loads(said.splitlines()[-1])
        with Recording.open(self._path) as recording:
            names = [kind.name for kind in recording.welcome.events]
            events = recording.events[~recording.events["cached"]]
            times = events["time_nanos"]
            inside = (times >= began_nanos) & (times <= ended_nanos)
            starts, ends = (
                inside & (events["event"] == names.index(name)) for name in ("GC start", "GC end")
            )
            fresh = streams = happened = 0
            for which in (starts, ends):
                numbers_of = events["occurrence"][which].astype(np.int64)
                if len(numbers_of):
                    happened += int(numbers_of[-1] - numbers_of[0]) + 1
            wanted = events["number"][starts | ends][-_LOOKED_AT:]
            if len(wanted):
                numbers = set(wanted.tolist())
                for step, session in recording.steps(int(wanted[0]), int(wanted[-1])):
                    if step.number not in numbers:
                        continue
                    for space in session.spaces.values():
                        for stream in space.streams.values():
                            streams += 1
                            fresh += stream.is_fresh(step.change.event)
            return RecordedEvents(
                starts=int(np.count_nonzero(starts)),
                ends=int(np.count_nonzero(ends)),
                happened=happened,
                fresh=fresh / streams if streams else 0.0,
                missed=int(recording.events["missed"].sum()),
                held_secs=(report["lossless"] or {}).get("held_seconds", 0.0)
                + report["stopped_seconds"],
                file_bytes=recording.size_bytes,
            )


@contextmanager
def recorder(address: str, path: Path, *, lossless: bool = True) -> Iterator[Recorder]:
    """Record a session for the body of the `with`, which may begin a little later.

    Args:
        address: Of the session, on a Unix socket.
        path: The file.
        lossless: Whether no event may be left out.

    Raises:
        Unavailable: There is no session after some time.
    """
    socket = Path(address.removeprefix("unix:"))
    until = time.monotonic() + _PATIENCE_SECS
    while not socket.exists():
        if time.monotonic() > until:
            raise Unavailable("gcspy does not serve")
        time.sleep(0.01)
    command = [
        "record",
        address,
        *(["--lossless"] if lossless else []),
        "--force",
        "--json",
        "-o",
        str(path),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Recorder(process, path)
        finally:
            process.kill()
