"""Sessions of the programs in `programs/`, recorded as a user would: each in a file that the studies and the pictures read.

Knows compilers, processes and the command line; does not know what the recordings mean.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import Recording

from benchmarks.harness.environment import Unavailable

__all__ = ["JvmRun", "record_java", "record_native", "running_java"]

_PROGRAMS = Path(__file__).with_name("programs")
_PATIENCE_SECS = 90.0


class JvmRun:
    """Output of a JVM that was recorded.

    Attributes:
        recording: The file.
        log: Lines of its log of collections.
    """

    def __init__(self, recording: Path, log: Path) -> None:
        self.recording = recording
        self.log = log.read_text().splitlines()


def record_java(
    name: str,
    folder: Path,
    *,
    flags: Sequence[str],
    arguments: Sequence[str],
    options: Sequence[str],
    secs: float | None = None,
) -> JvmRun:
    """Record a Java program from its word "ready" to its word "done", or for a time.

    Args:
        name: Of the program; the recording has the name of the program and its arguments.
        folder: Where to compile and to record.
        flags: Of the JVM.
        arguments: Of the program.
        options: Of `gcspy record`.
        secs: How long; None: until the program says "done".

    Raises:
        Unavailable: There is no JDK on the path, or the program or the recorder failed.
    """
    if shutil.which("javac") is None or shutil.which("java") is None:
        raise Unavailable("there is no JDK on PATH: apt-get install openjdk-17-jdk-headless")
    subprocess.run(["javac", "-d", folder, str(_PROGRAMS / f"{name}.java")], check=True)
    made = folder / f"{'-'.join([name.lower(), *arguments[:1]])}.gcspy"
    log = made.with_suffix(".log")
    command = ["java", *flags, f"-Xlog:gc*:file={log}", "-cp", str(folder), name, *arguments]
    _record(command, made, options, secs)
    return JvmRun(made, log)


@contextmanager
def running_java(
    name: str, folder: Path, *, flags: Sequence[str], arguments: Sequence[str]
) -> Iterator[int]:
    """A Java program that has said "ready", for the block; it yields the process.

    Raises:
        Unavailable: There is no JDK on the path, or the program failed.
    """
    if shutil.which("javac") is None or shutil.which("java") is None:
        raise Unavailable("there is no JDK on PATH: apt-get install openjdk-17-jdk-headless")
    subprocess.run(["javac", "-d", folder, str(_PROGRAMS / f"{name}.java")], check=True)
    with _running(["java", *flags, "-cp", str(folder), name, *arguments]) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise Unavailable(f"{name} ended at once")
        yield process.pid


def record_native(name: str, folder: Path, *, options: Sequence[str]) -> Path:
    """Record a program in C from its word "ready" to its word "done".

    Raises:
        Unavailable: There is no C compiler, or the program or the recorder failed.
    """
    program, made = folder / name, folder / f"{name}.gcspy"
    try:
        subprocess.run(["cc", "-O1", "-o", program, str(_PROGRAMS / f"{name}.c")], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"no C compiler: apt-get install gcc libc6-dev ({error})") from error
    _record([str(program)], made, options, None)
    return made


def _record(command: Sequence[str], made: Path, options: Sequence[str], secs: float | None) -> None:
    with _running(command) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise Unavailable(f"{command[0]} ended at once")
        with _recorder(process, made, options) as recorder:
            if secs is None:
                _say(process)
                if not process.stdout.readline().startswith("done"):
                    raise Unavailable(f"{command[-1]} ended early")
                secs = 0.5
            _end(recorder, secs)
        _say(process)


def _say(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@contextmanager
def _running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _recorder(
    process: subprocess.Popen[str], made: Path, options: Sequence[str]
) -> Iterator[subprocess.Popen[str]]:
    """A recorder whose file has an event."""
    made.unlink(missing_ok=True)  # of an earlier run
    command = ["record", str(process.pid), "--force", "-o", str(made), *options]
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as recorder:
        try:
            until = time.monotonic() + _PATIENCE_SECS
            while not _has_event(made):
                if recorder.poll() is not None or time.monotonic() > until:
                    assert recorder.stderr is not None
                    raise Unavailable(f"the recorder failed: {recorder.stderr.read()[-400:]}")
                time.sleep(0.05)
            yield recorder
        finally:
            recorder.kill()


def _has_event(made: Path) -> bool:
    if not made.exists() or not made.stat().st_size:
        return False
    try:
        with Recording.open(made) as recording:
            return len(recording) > 0
    except RecordingError:
        return False  # its head is not complete yet


def _end(recorder: subprocess.Popen[str], secs: float) -> None:
    time.sleep(secs)
    recorder.terminate()
    try:
        recorder.wait(_PATIENCE_SECS)
    except subprocess.TimeoutExpired as late:
        raise Unavailable("the recorder does not end") from late
