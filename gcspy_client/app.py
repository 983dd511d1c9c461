"""Starts the window, or takes its picture: what `gcspy view`, `attach` and `screenshot` call.

It brings no thread: Ctrl-C is noticed because Python runs for a moment several
times a second, and followed then and not before: see `gcspy_client.interruption`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gcspy_protocol.address import parse_address
from gcspy_protocol.errors import CommandError, LinkError, RecordingError
from gcspy_protocol.messages import Pause
from gcspy_protocol.playback import Seek
from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QEventLoop,
    QMessageLogContext,
    QTimer,
    QtMsgType,
    qInstallMessageHandler,
)
from PySide6.QtWidgets import QApplication

from gcspy_client.error_report import errors_reported
from gcspy_client.interruption import Interruption, interruption_held_back
from gcspy_client.model.attendance import ClassOptions
from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import FrontDoor
from gcspy_client.model.shell.link_status import LinkPhase
from gcspy_client.model.shell.recent import Recent
from gcspy_client.settings import UserSettings
from gcspy_client.view.garbage import GarbageTimer
from gcspy_client.view.png_file import write_png
from gcspy_client.view.shell.preferences import scale_of
from gcspy_client.view.spaces.views import TITLES, known_renderers
from gcspy_client.view.window import MainWindow

__all__ = ["LARGE_HEIGHT", "application", "run_window", "take_screenshot"]

_SCALE_FACTOR = "QT_SCALE_FACTOR"

_LOOK_MILLIS = 200
"""Period of the check for Ctrl-C and SIGTERM."""

LARGE_HEIGHT = 1800
"""From here on a screenshot is taken at twice the scale, as such a screen would be used."""


def application(*, scale: float | None = None) -> QApplication:
    """The one QApplication of this process; made on the first call.

    Args:
        scale: Device pixels a logical pixel; only heeded by the call that makes it.
    """
    there = QApplication.instance()
    if isinstance(there, QApplication):
        return there
    told = os.environ.get(_SCALE_FACTOR)
    if scale is not None:
        os.environ[_SCALE_FACTOR] = str(scale)
    if sys.platform == "linux" and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        os.environ.setdefault(
            "QT_QPA_PLATFORM", "offscreen"
        )  # Qt would abort the process for want of a display
    qInstallMessageHandler(_qt_says)
    made = QApplication(sys.argv[:1])
    if told is not None:
        os.environ[_SCALE_FACTOR] = told
    else:
        os.environ.pop(
            _SCALE_FACTOR, None
        )  # a window that is opened from this one reads its own settings
    GarbageTimer(made)
    made.setApplicationName("GCspy")
    made.setStyle(
        "Fusion"
    )  # the one style that looks alike on every system, so one style sheet suits
    font = made.font()
    if font.pointSizeF() < 9.5:
        font.setPointSizeF(9.5)
        made.setFont(font)
    return made


def _qt_says(kind: QtMsgType, _context: QMessageLogContext, text: str) -> None:
    """Pass on what Qt complains of, but for what the offscreen platform says of every window it shows."""
    if "propagateSizeHints" not in text and kind is not QtMsgType.QtDebugMsg:
        sys.stderr.write(f"{text}\n")


def _theme(name: str | None) -> Theme | None:
    if name is None or name == "system":
        return None
    try:
        return Theme(name)
    except ValueError:
        raise CommandError(
            f"there is no theme {name!r}: use dark, light, dark-contrast, light-contrast or system"
        ) from None


def run_window(
    address: str | None,
    *,
    token: str | None = None,
    theme: str | None = None,
    size: tuple[int, int] | None = None,
    control: bool = True,
    recording: Sequence[Path] = (),
    opened: Sequence[Path] = (),
    compare: Sequence[Path] = (),
    front: FrontDoor | None = None,
    remember: bool = False,
    class_options: ClassOptions | None = None,
    on_ready: Callable[[MainWindow], None] | None = None,
) -> int:
    """Show a window until it is closed.

    Args:
        address: The address to connect to; None shows the start page.
        token: The session's token, where one is needed.
        theme: ``dark``, ``light``, each with ``-contrast`` behind it, or None: as the system.
        size: Width and height of the window, in logical pixels.
        control: Whether to ask for control.
        recording: The files that a player at this address plays: bookmarks are kept beside them.
        opened: The file or address that the user named, listed on the start page; by default the
            recording.
        compare: The files of a recording to put beside the session.
        front: The programs that can be started from the window.
        remember: Whether the address is listed on the start page from now on; a recording's files always are.
        class_options: The options of a class.
        on_ready: Called once with the window, when it is shown.

    Returns:
        The process's exit code.

    Raises:
        CommandError: The address or the theme is invalid.
    """
    where = None if address is None else parse_address(address)
    wanted = _theme(theme)
    with interruption_held_back(default_too=True) as interruption:
        settings = UserSettings.of_user()
        scale = scale_of(settings)
        app = application(
            scale=scale / 100 * float(os.environ.get(_SCALE_FACTOR) or 1) if scale != 100 else None
        )
        window = MainWindow(wanted, settings, front, scaled=scale)
        if theme is None:
            window.preferences.use_stored_theme()
        if size is None:
            window.layout_part.restore_place()
        else:
            window.resize(*size)
        window.show()
        if recording:
            window.bookmark_store.use_files(*recording)
            window.opener.opened(
                Recent(files=tuple(path.absolute() for path in opened or recording))
            )
        elif where is not None and remember:
            window.opener.opened(Recent(address=str(where)))
        if compare:
            window.compare.open_soon(*compare)
        if class_options is not None:
            window.classroom.class_options(class_options)
        if where is not None:
            window.link.open(where, token=token, wants_control=control)
        if on_ready is not None:
            on_ready(window)
        try:
            with errors_reported(window.announcer.say):
                return _run_until_interrupted(app, window, interruption)
        finally:
            _delete(app, window)


def _run_until_interrupted(
    app: QApplication, window: MainWindow, interruption: Interruption
) -> int:
    """Qt's loop, left by closing the window, by Ctrl-C, or by SIGTERM; also by one that came before it began."""

    def look() -> None:
        if interruption.number:
            interruption.number = 0  # this is what follows
            window.close()
            app.quit()

    breath = QTimer()
    breath.timeout.connect(look)  # Python's signal handlers run too, where no event comes
    breath.start(_LOOK_MILLIS)
    try:
        return app.exec()
    finally:
        breath.stop()
        # Closing the last window has posted one, which would end the next loop of this process at once.
        QCoreApplication.removePostedEvents(app, QEvent.Type.Quit.value)


def _delete(app: QApplication, window: MainWindow) -> None:
    """Close a window and delete it; there is no loop that would."""
    window.close()
    window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    app.processEvents()


def take_screenshot(
    address: str,
    path: str | Path,
    *,
    size: tuple[int, int] = (1600, 1000),
    theme: str | None = "dark",
    token: str | None = None,
    timeout_secs: float = 30.0,
    settle_events: int = 1,
    settle_secs: float = 0.0,
    event: int | None = None,
    view: str | None = None,
    arrange: Callable[[MainWindow], None] | None = None,
    control: bool = False,
) -> None:
    """Write a picture of the window on a session to a PNG file.

    Args:
        address: The address to connect to.
        path: The file.
        size: Width and height of the picture in pixels.
        theme: ``dark`` or ``light``.
        token: The session's token, where one is needed.
        timeout_secs: How long to wait for the events.
        settle_events: How many events to wait for.
        settle_secs: How long to keep watching after those.
        event: Go to the event of this number first, if it is a recording that is played there.
        view: How the active space is drawn, as `choose_view` names it; None: as it would be.
        arrange: Actions before the picture, as a user would do them; called when the events have
            arrived.
        control: Ask for control, for what only the client in control may do.

    Raises:
        LinkError: No connection came about, or not enough events came in time.
        RecordingError: A recording is played that has no events.
        CommandError: The address or theme is invalid, the file cannot be written, or there is no
            such event.
    """
    where = parse_address(address)
    wanted = _theme(theme)
    if view is not None and view not in (views := [*TITLES, *known_renderers()]):
        raise CommandError(f"there is no view {view!r}: use {', '.join(dict.fromkeys(views))}")
    with interruption_held_back() as interruption:
        app = application(scale=2.0 if size[1] >= LARGE_HEIGHT else None)
        window = MainWindow(wanted)
        scale = window.devicePixelRatioF()
        window.resize(round(size[0] / scale), round(size[1] / scale))
        window.show()
        try:
            window.link.open(where, token=token, wants_control=control)
            _wait_for_events(window, settle_events, timeout_secs, interruption)
            if event is not None:
                _go_to(window, event, timeout_secs, interruption)
            if view is not None:
                window.views.choose_view(view)
            if arrange is not None:
                arrange(window)
            if settle_secs > 0:
                _let_run(settle_secs, interruption)
            window.settle()
            app.processEvents()
            window.settle()  # of events that came in that moment tiles were painted, and texts come later
            picture = window.grab()
            interruption.follow()
            try:
                write_png(picture.toImage(), Path(path))
            except OSError as error:
                raise CommandError(
                    f"cannot write {path}: {error.strerror}; check that the folder exists and may be written to"
                ) from error
        finally:
            _delete(app, window)


def _run_loop(loop: QEventLoop, secs: float, interruption: Interruption) -> None:
    """Run a loop until it is left, up to a time limit.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM came.
    """
    patience, breath = QTimer(), QTimer()
    patience.setSingleShot(True)
    patience.timeout.connect(loop.quit)
    breath.timeout.connect(lambda: loop.quit() if interruption.number else None)
    patience.start(round(secs * 1000))
    breath.start(_LOOK_MILLIS)
    loop.exec()
    patience.stop()
    breath.stop()
    interruption.follow()


def _let_run(secs: float, interruption: Interruption) -> None:
    _run_loop(QEventLoop(), secs, interruption)


def _wait_for_events(
    window: MainWindow, events: int, timeout_secs: float, interruption: Interruption
) -> None:
    """Wait until this many events were shown, or something makes that impossible."""
    loop = QEventLoop()
    window.event_shown.connect(
        lambda _event: loop.quit() if window.session.events_seen >= events else None
    )
    window.link.status_changed.connect(
        lambda status: loop.quit() if _hopeless(status.phase) else None
    )
    window.link.received.connect(lambda _messages: loop.quit() if _has_none(window) else None)
    if window.session.events_seen < events and not _hopeless(window.link.status.phase):
        _run_loop(loop, timeout_secs, interruption)
    seen, status = window.session.events_seen, window.link.status
    if seen >= events or (seen and status.phase is LinkPhase.ENDED):
        return
    if _has_none(window):
        raise RecordingError("the recording has no events: there is nothing to draw")
    if _hopeless(status.phase):
        remedy = f": {status.remedy}" if status.remedy else ""
        raise LinkError(f"{status.address}: {status.message}{remedy}")
    raise LinkError(
        f"{status.address}: {seen} of {events} events arrived within {timeout_secs:g} s; is the session paused or "
        "the target stopped?"
    )


def _has_none(window: MainWindow) -> bool:
    """Whether a recording without events is played, to which none will come."""
    playback = window.session.live.playback
    return playback is not None and not playback.first and not playback.growing


def _go_to(window: MainWindow, event: int, timeout_secs: float, interruption: Interruption) -> None:
    """Show an event of the recording that is played, and wait for it."""
    session = window.session.live
    playback = session.playback
    if playback is None:
        raise CommandError("only a recording has events to go to: this session is live")
    if not playback.first <= event <= playback.last:
        raise CommandError(
            f"there is no event {event}: the recording has {playback.first} to {playback.last}"
        )
    loop = QEventLoop()
    look = QTimer()
    # The number of an event comes behind the event, and has no signal of its own.
    look.timeout.connect(lambda: loop.quit() if session.position == event else None)
    window.link.send(Pause())
    window.link.send(Seek(number=event))
    look.start(10)
    _run_loop(loop, timeout_secs, interruption)
    look.stop()
    if session.position != event:
        raise CommandError(
            f"event {event} did not arrive: the recording is at event {session.position}"
        )


def _hopeless(phase: LinkPhase) -> bool:
    return phase in (LinkPhase.FAILED, LinkPhase.ENDED, LinkPhase.IDLE)
