"""Opening something in a window: a process, recordings, a server, the demonstration; and the start page from which that is asked.

A window shows one session. Opening another one leaves it: the target keeps running, the child that
served it ends. An opened item is stored when the server has greeted.

Knows the destination of each request; the launcher knows how to monitor a process or play a file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_protocol.errors import CommandError, GCspyError
from PySide6.QtCore import QProcess, Signal

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import FrontDoor, Launch, Offer
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.model.shell.process_book import ProcessBook
from gcspy_client.model.shell.processes import ProcessRow
from gcspy_client.model.shell.recent import Recent, latest_first, recent_of
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.dialogs import ask_files
from gcspy_client.view.start.children import ProcessWatcher, Ready, ServingChild
from gcspy_client.view.start.connect_dialog import ConnectDialog
from gcspy_client.view.start.file_drop import TRACE_SUFFIXES
from gcspy_client.view.start.options_dialog import OptionsDialog
from gcspy_client.view.start.start_page import StartPage
from gcspy_client.view.start.thumbnails import ThumbnailStore

__all__ = ["SUFFIX", "SessionOpener"]

SUFFIX = ".gcspy"
_AGAIN_MILLIS = 4_000
"""Time before the list of processes is started again, if its command ended."""
_RECORDINGS, _SERVERS = "recent.recordings", "recent.servers"
_MENU = "&Session"


class SessionOpener(Part):
    """Opens sessions in a window.

    Signals:
        changed: The start page may have become necessary or unnecessary.

    Args:
        desk: The services of the window.
        front: The commands that the window can start; None: only servers can be joined.
    """

    changed = Signal()

    def __init__(self, desk: Desk, front: FrontDoor | None) -> None:
        super().__init__(desk)
        self._link, self._settings = desk.link, desk.settings
        self.front = front
        self.page = StartPage(desk.theme, processes=front is not None)
        self.page.demo.setVisible(front is not None and front.demo is not None)
        self.page.open.setVisible(front is not None)
        with_options = front is not None and front.attach_with is not None
        self.page.processes.options.setVisible(with_options)
        self.child = ServingChild(self)
        self.thumbnails = ThumbnailStore(
            None if self._settings.cache is None else self._settings.cache / "thumbnails"
        )
        self._listing = ProcessWatcher(_AGAIN_MILLIS, self)
        self._book = ProcessBook()
        self._asked = False
        self._opening: Recent | None = None
        self._shown: Recent | None = None
        self._stopped = False
        self._served = ""  # where the child serves
        self._wire()
        self.show_recent()

    def _wire(self) -> None:
        page = self.page
        page.processes.attach_asked.connect(self.attach)
        page.processes.options_asked.connect(self.ask_options)
        page.processes.everything_asked.connect(self._list)
        page.recording_asked.connect(self.ask_recording)
        page.connect_asked.connect(self.ask_where)
        page.demo_asked.connect(self.demo)
        page.recent_asked.connect(self.open_recent)
        page.offer_asked.connect(self._open_offer)
        page.forget_asked.connect(self.forget_recent)
        page.cancel_asked.connect(self.cancel)
        page.back_asked.connect(self.close_page)
        self.child.ready.connect(self._ready)
        self.child.failed.connect(self._failed)
        self.child.progressed.connect(self._progressed)
        self._listing.begun.connect(self._begin_book)
        self._listing.printed.connect(self._listed)
        self._listing.failed.connect(page.processes.show_problem)
        self._link.status_changed.connect(self._follow)

    # ---------------------------------------------------------------------- the page

    @property
    def wanted(self) -> bool:
        """Whether the start page is what the window should show."""
        nothing = self._link.status.phase is LinkPhase.IDLE and not self._desk.updater.has_tiles
        return (
            self._asked
            or self.child.starting is not None
            or (nothing and self._link.address is None)
        )

    def open_page(self) -> None:
        """Show the start page; the current session continues."""
        self._asked = True
        self._keep_picture()
        self.show_recent()
        self.changed.emit()

    def close_page(self) -> None:
        """Back to the session."""
        self._asked = False
        self.changed.emit()

    def page_shown(self, *, shown: bool) -> None:
        """List processes while the page can be seen, and not otherwise."""
        self.page.back.setVisible(self._desk.updater.has_tiles)
        if shown and not self._stopped:
            self._list()
        else:
            self._listing.stop()

    def _list(self, _everything: bool = False) -> None:
        if self.front is not None:
            more = (self.front.everything,) if self.page.processes.everything.isChecked() else ()
            self._listing.start((*self.front.processes, *more))

    def _begin_book(self) -> None:
        self._book = ProcessBook()

    def _listed(self, lines: list[bytes]) -> None:
        page, book = self.page.processes, self._book
        try:
            for line in lines:
                book.apply(line)
        except CommandError as error:
            page.show_problem(str(error))
            return
        # A window that watches itself never comes to rest.
        own = (os.getpid(), self.child.pid, self._listing.pid)
        everything = page.everything.isChecked()
        rows = [row for row in book.rows if row.pid not in own and (everything or not row.own)]
        page.show_rows(rows, None if book.rounds else book.examined)

    # -------------------------------------------------------------------- what is opened

    def ask_options(self, row: ProcessRow, driver: str = "") -> None:
        """Ask what the driver of a process lets the user choose, and watch it so.

        Args:
            row: The process, with the options of that driver.
            driver: The driver; empty: the best one.
        """
        dialog = OptionsDialog(row.pid, row.options, self.page)
        dialog.accepted.connect(lambda: self.attach(row.pid, driver, dialog.values()))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def attach(self, pid: int, driver: str = "", values: tuple[str, ...] = ()) -> None:
        """Monitor a process; if a server monitors it already, join there.

        Args:
            pid: The process.
            driver: The driver; empty: the best one.
            values: Values of the driver's options.
        """
        if self.front is None:
            return
        with_values = self.front.attach_with
        try:
            how = (
                with_values(pid, values, (driver,) if driver else ())
                if (values or driver) and with_values is not None
                else self.front.attach(pid)
            )
        except GCspyError as error:
            self._say(str(error))
            return
        if not isinstance(how, str):
            self._start(how, None)
        elif self._shows(how):
            self.close_page()
        else:
            self._open_at(how, None)

    def _shows(self, address: str) -> bool:
        """Whether the session at an address is the one of this window."""
        link = self._link
        return (
            link.status.phase is LinkPhase.LIVE
            and link.address is not None
            and str(link.address) == str(parse_address(address))
        )

    def play(self, paths: Sequence[Path]) -> None:
        """Play a recording: a file, or the files of one session."""
        if self.front is None:
            self._say("This window cannot play files: open them with `gcspy replay`.")
            return
        files = tuple(sorted(path.absolute() for path in paths))
        gone = [
            path for path in files if not os.path.exists(path)
        ]  # nor is one whose name is too long
        if gone:
            self._say(f"{gone[0]} no longer exists: it was moved or deleted.")
            self.show_recent()
            return
        try:
            how = self.front.play(files)
        except GCspyError as error:
            self._say(str(error))
            return
        self._start(how, Recent(files=files))

    def demo(self) -> None:
        """Start the demonstration's program and watch it."""
        if self.front is not None and self.front.demo is not None:
            self._start(self.front.demo, None)

    def ask_recording(self) -> None:
        """Ask for the files of a recording, and play them."""
        traces = " ".join(f"*{suffix}" for suffix in TRACE_SUFFIXES)
        filters = f"Recordings and object traces (*{SUFFIX} {traces} trace trace_*);;Recordings (*{SUFFIX});;All files (*)"
        paths = ask_files(
            self._desk.frame, "Open recording", filters, self._settings.text("recent.folder")
        )
        if paths:
            self._settings.store("recent.folder", str(Path(paths[0]).parent))
            self.play([Path(path) for path in paths])

    def open_recent(self, recent: Recent) -> None:
        """Open something again."""
        if recent.files:
            self.play(recent.files)
            return
        try:
            address = parse_address(recent.address)
        except CommandError as error:
            self.page.say(str(error))
            return
        if isinstance(address, TcpAddress):
            self.ask_where(recent.address)  # a token is requested, never stored
        else:
            self._open_at(recent.address, recent)

    def ask_where(self, address: str = "") -> None:
        """Ask for an address, beginning with one, and connect there."""
        now = self._link.address
        dialog = ConnectDialog(address or ("" if now is None else str(now)), self._desk.frame)
        if dialog.exec() and dialog.address is not None:
            self.connect_to(
                str(dialog.address),
                token=dialog.token.text() or None,
                control=dialog.control.isChecked(),
            )
        dialog.deleteLater()

    def connect_to(self, address: str, *, token: str | None = None, control: bool = True) -> None:
        """Join a server."""
        self._open_at(address, Recent(address=address), token=token, control=control)

    def opened(self, recent: Recent) -> None:
        """Store an item that other code is opening, once the server has greeted."""
        self._opening = recent

    def cancel(self) -> None:
        """Leave what is being started."""
        self.child.stop()
        self.page.say("")
        self.changed.emit()

    def another_window(self) -> None:
        """Open another window, which shows its start page."""
        if self.front is not None and self.front.another:
            QProcess.startDetached(self.front.another[0], list(self.front.another[1:]))

    def _open_offer(self, offer: Offer) -> None:
        self.play([offer.path])

    def _open_at(
        self, address: str, recent: Recent | None, *, token: str | None = None, control: bool = True
    ) -> None:
        """Join a server that is there already."""
        self._keep_picture()
        self._shown = None
        if address != self._served:  # else it is our child's
            self.child.leave()
        self._join(address, recent, (), token=token, control=control)

    def _start(self, launch: Launch, recent: Recent | None) -> None:
        self._keep_picture()
        self._shown = None
        self._link.close()
        self._served = ""
        self._opening = recent
        self.page.say(f"{launch.title}…", "warning", busy=True)
        self.child.start(launch)
        self.changed.emit()

    def _progressed(self, launch: Launch, what: str, share: float) -> None:
        self.page.say(f"{launch.title}: {what}, {100 * share:.0f} %", "warning", busy=True)

    def _ready(self, launch: Launch, ready: Ready) -> None:
        self._served = ready.address
        self._join(ready.address, self._opening, ready.files or launch.files)
        for note in ready.notes:
            self._desk.say(note)

    def _join(
        self,
        address: str,
        recent: Recent | None,
        files: tuple[Path, ...],
        *,
        token: str | None = None,
        control: bool = True,
    ) -> None:
        self._opening, self._asked = recent, False
        self.page.say("")
        self._desk.bookmarks.use_files(*files)
        self._link.open(parse_address(address), token=token, wants_control=control)
        self.changed.emit()

    def _failed(self, launch: Launch, why: str) -> None:
        self._opening = None
        self._say(f"{launch.title} failed: {why}")

    def _say(self, problem: str) -> None:
        """Show an error on the page, where the user can try again."""
        self._asked = True
        self.page.say(problem)
        self.changed.emit()

    def _follow(self, status: LinkStatus) -> None:
        if status.phase is LinkPhase.LIVE and self._opening is not None:
            self._remember(self._opening)
            self._shown, self._opening = self._opening, None

    # ------------------------------------------------------------------ recently opened

    def recent(self) -> list[Recent]:
        """Recently opened items, recordings first."""
        recordings = recent_of(self._settings.texts(_RECORDINGS), servers=False)
        return recordings + recent_of(self._settings.texts(_SERVERS), servers=True)

    def show_recent(self) -> None:
        """List recently opened items again: files may be gone."""
        recent = self.recent()
        self.page.show_recent(recent, [self.thumbnails.picture(one.text) for one in recent])
        self.page.show_samples(() if self.front is None else self.front.samples())

    def forget_recent(self) -> None:
        """Forget recently opened items."""
        for name in (_RECORDINGS, _SERVERS):
            self._settings.forget(name)
        self.thumbnails.forget()
        self.show_recent()

    def _keep_picture(self) -> None:
        """Keep a picture of the session that is shown, for the list of recent ones."""
        if self._shown is not None and self._desk.updater.has_tiles:
            self.thumbnails.store(self._shown.text, self._desk.spaces.grab().toImage())

    def _remember(self, recent: Recent) -> None:
        name = _SERVERS if recent.address else _RECORDINGS
        self._settings.store(name, latest_first(self._settings.texts(name), recent))

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self.page.set_theme(theme)

    def stop(self) -> None:
        """The window closes: no process and no timer is left."""
        if not self._stopped:
            self._keep_picture()
        self._stopped = True
        self._listing.stop()
        self.page.processes.stop()
        self.child.stop()

    def actions(self) -> tuple[Action, ...]:
        """Actions that open something."""
        can = self.front is not None
        no_front = "this window was opened without the gcspy program that runs it"
        return (
            Action(
                name="session.start",
                menu=_MENU,
                text="Start pa&ge",
                about="list of processes, recordings and samples to open",
                run=self.open_page,
                keys=("Ctrl+Shift+O",),
            ),
            Action(
                name="session.open",
                menu=_MENU,
                text="&Open recording…",
                run=self.ask_recording,
                keys=("Ctrl+O",),
                enabled=lambda: can,
                why_not=no_front,
            ),
            Action(
                name="session.new-window",
                menu=_MENU,
                text="New &window",
                run=self.another_window,
                keys=("Ctrl+Shift+N",),
                enabled=lambda: self.front is not None and bool(self.front.another),
                why_not=no_front,
            ),
        )
