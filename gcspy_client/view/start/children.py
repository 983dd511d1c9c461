"""Child processes of the window: one that serves a session for it, and one that lists processes.

The serving child lives as long as its standard input is open, so it ends with the window, however the window ends. No method
blocks, except at the end of the program.

Knows processes and their first lines; does not know what they do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, QTimer, Signal

from gcspy_client.model.shell.launcher import Launch

__all__ = ["ProcessWatcher", "Ready", "ServingChild"]

_STOP_MILLIS = 5_000
"""Time after which a child that has not ended is killed; a kill loses no data."""

_LONGEST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Ready:
    """Report of a child that serves.

    Attributes:
        address: Address at which this window joins.
        notes: Messages to the user, one a line.
        files: The files that it plays, if they differ from the given ones: made from a trace.
    """

    address: str
    notes: tuple[str, ...]
    files: tuple[Path, ...] = ()


class ServingChild(QObject):
    """Starts one serving child at a time, after the previous one has ended.

    Signals:
        ready: The child serves: its `Launch` and a `Ready`.
        failed: The child cannot serve: its `Launch`, and the reason, in a sentence with the remedy.
        progressed: The child is starting: its `Launch`, the name of the current step, and the part of it that is done, 0 to 1.
    """

    ready = Signal(object, object)
    progressed = Signal(object, str, float)
    failed = Signal(object, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._child: QProcess | None = None
        self._launch: Launch | None = None
        self._next: Launch | None = None
        self._heard = b""
        self._answered = False
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.timeout.connect(self._kill)

    @property
    def pid(self) -> int:
        """The child's process; 0 if there is none."""
        return 0 if self._child is None else int(self._child.processId())

    @property
    def starting(self) -> Launch | None:
        """The launch whose child does not serve yet; None: there is none."""
        return self._next or (
            self._launch if self._child is not None and not self._answered else None
        )

    def start(self, launch: Launch) -> None:
        """Start a child, as soon as the one before has ended."""
        if self._child is not None:
            self._next = launch
            self.leave()
            return
        child = QProcess(self)
        child.setProcessChannelMode(QProcess.ProcessChannelMode.ForwardedErrorChannel)
        self._child, self._launch, self._heard, self._answered = child, launch, b"", False
        child.readyReadStandardOutput.connect(self._read)
        child.errorOccurred.connect(self._went_wrong)
        child.finished.connect(self._finished)
        child.started.connect(self._tell)
        child.start(launch.command[0], list(launch.command[1:]))

    def leave(self) -> None:
        """Ask the child to end, even if it has not started completely."""
        if self._child is not None and not self._patience.isActive():
            self._answered = True
            self._child.closeWriteChannel()
            self._patience.start(_STOP_MILLIS)

    def stop(self) -> None:
        """End the child and wait for its end; no process and no timer is left."""
        self._next = None
        child, self._child = self._child, None
        self._patience.stop()
        if child is None:
            return
        child.blockSignals(True)
        child.closeWriteChannel()
        if child.state() is not QProcess.ProcessState.NotRunning and not child.waitForFinished(
            _STOP_MILLIS
        ):
            child.kill()
            child.waitForFinished(_STOP_MILLIS)
        child.deleteLater()

    def _tell(self) -> None:
        if self._child is not None and self._launch is not None:
            self._child.write(self._launch.line.encode() + b"\n")

    def _read(self) -> None:
        if self._child is None:
            return
        data = bytes(self._child.readAllStandardOutput().data())
        if self._answered:
            return
        self._heard += data
        while not self._answered:
            line, whole, rest = self._heard.partition(b"\n")
            if not whole and len(line) <= _LONGEST_LINE:
                return
            self._heard = rest
            self._judge(line)

    def _judge(self, line: bytes) -> None:
        self._answered = True
        launch = self._launch
        assert launch is not None
        try:
            answer = json.loads(line)
            if "progress" in answer:
                what, done, total = answer["progress"]
                self._answered = False
                self.progressed.emit(
                    launch, str(what), min(1.0, max(0.0, int(done) / max(1, int(total))))
                )
                return
            if "error" in answer:
                self.failed.emit(launch, str(answer["error"]))
                return
            ready = Ready(
                str(answer["addresses"][0]),
                tuple(str(note) for note in answer.get("notes", ())),
                tuple(map(Path, answer.get("files", ()))),
            )
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            self.failed.emit(launch, f"{launch.command[0]} gave an invalid answer: {line[:200]!r}")
            return
        self.ready.emit(launch, ready)

    def _went_wrong(self, error: QProcess.ProcessError) -> None:
        if (
            error is QProcess.ProcessError.FailedToStart
            and self._child is not None
            and self._launch is not None
        ):
            words = f"cannot start {self._launch.command[0]}: {self._child.errorString()}"
            self._drop()
            self.failed.emit(self._launch, words)

    def _finished(self, code: int) -> None:
        answered, launch = self._answered, self._launch
        self._drop()
        if not answered and launch is not None:
            self.failed.emit(
                launch, f"it ended at once (exit code {code}); its messages are in the terminal"
            )
        following, self._next = self._next, None
        if following is not None:
            self.start(following)

    def _drop(self) -> None:
        self._patience.stop()
        child, self._child = self._child, None
        if child is not None:
            child.deleteLater()

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()


class ProcessWatcher(QObject):
    """Runs a command that prints lines for as long as its standard input is open; starts it again if it ends.

    Signals:
        begun: It was started: its earlier output is void.
        printed: Lines that it printed, a list of bytes.
        failed: The reason why it prints nothing.

    Args:
        again_millis: Time before it is started again.
    """

    begun = Signal()
    printed = Signal(object)
    failed = Signal(str)

    def __init__(self, again_millis: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command: tuple[str, ...] = ()
        self._child: QProcess | None = None
        self._rest = b""
        self._said = b""
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(again_millis)
        self._pause.timeout.connect(self._run)

    @property
    def runs(self) -> bool:
        """Whether the command runs, or will run again."""
        return self._child is not None or self._pause.isActive()

    @property
    def pid(self) -> int:
        """The child's process; 0 if there is none."""
        return 0 if self._child is None else int(self._child.processId())

    def start(self, command: tuple[str, ...]) -> None:
        """Run a command, instead of the one before, until `stop`."""
        self.stop()
        self._command = command
        self._run()

    def stop(self) -> None:
        """Run nothing more; no process and no timer is left."""
        self._pause.stop()
        child, self._child = self._child, None
        if child is not None:
            child.blockSignals(True)
            child.kill()
            child.waitForFinished(_STOP_MILLIS)
            child.deleteLater()

    def _run(self) -> None:
        child = self._child = QProcess(self)
        self._rest = self._said = b""
        child.readyReadStandardOutput.connect(self._read)
        child.readyReadStandardError.connect(self._hear)
        child.finished.connect(self._finished)
        child.errorOccurred.connect(self._went_wrong)
        self.begun.emit()
        child.start(self._command[0], list(self._command[1:]))

    def _read(self) -> None:
        if self._child is None:
            return
        *lines, self._rest = (self._rest + bytes(self._child.readAllStandardOutput().data())).split(
            b"\n"
        )
        if len(self._rest) > _LONGEST_LINE:
            self._rest = b""
            lines.append(b"")  # what is no line is reported as such
        if lines:
            self.printed.emit(lines)

    def _hear(self) -> None:
        if self._child is not None:
            said = self._said + bytes(self._child.readAllStandardError().data())
            self._said = said[-_LONGEST_LINE:]

    def _finished(self, code: int) -> None:
        self._read()
        self._hear()
        child, self._child = self._child, None
        if child is None:
            return
        child.deleteLater()
        self._pause.start()
        if code:
            said = self._said.decode("utf-8", "replace").strip()
            self.failed.emit(said.splitlines()[-1] if said else f"exit code {code}")

    def _went_wrong(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._child is not None:
            words = f"cannot start {self._command[0]}: {self._child.errorString()}"
            self._child.deleteLater()
            self._child = None
            self.failed.emit(words)
