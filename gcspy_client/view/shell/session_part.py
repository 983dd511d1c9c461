"""The session as users see and control it: the target, the event, errors, pausing, connecting.

Knows the link and the widgets that speak of the session; does not know tiles.
"""

from __future__ import annotations

from functools import partial

from gcspy_protocol.messages import Error, Follow, Pause, Resume, Step, TakeControl, Welcome
from gcspy_protocol.model import ControlState

from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.dialogs import ask_one_of
from gcspy_client.view.shell.announcer import Announcer
from gcspy_client.view.shell.event_bar import EventBar
from gcspy_client.view.shell.footer import Footer
from gcspy_client.view.shell.notices import Banner, StatePage, banner_words
from gcspy_client.view.start.session_opener import SessionOpener

__all__ = ["QuitPart", "SessionPart"]

_SESSION = "&Session"
_NO_SERVER = "this window was never connected"


class SessionPart(Part):
    """The session of a window.

    Args:
        desk: The window's desk.
        opener: Opens other sessions.
        announcer: Messages for some seconds.

    Attributes:
        event_bar: The line above the tiles: the target, and the event.
        banner: The banner for problems.
        page: Replaces tiles while there are none.
        footer: Pause, step, and the state of the connection.
    """

    def __init__(self, desk: Desk, opener: SessionOpener, announcer: Announcer) -> None:
        super().__init__(desk)
        self._opener, self._announcer = opener, announcer
        self._seen: tuple[str, Welcome] | None = None
        self.event_bar = EventBar(desk.session)
        self.banner = Banner()
        self.page = StatePage()
        self.footer = Footer(desk.session)
        link = desk.link
        link.status_changed.connect(self._status_changed)
        link.refused.connect(self._refused)
        opener.child.ready.connect(self._forget_session)  # of a child: its address is used again
        self.event_bar.live_asked.connect(desk.navigator.last)
        self.page.start_asked.connect(opener.open_page)
        self.footer.pause_toggled.connect(self.toggle_pause)
        self.footer.stepped.connect(self.step)
        self.footer.disconnect_asked.connect(link.close)
        for widget in (self.footer, self.page):
            widget.connect_asked.connect(partial(opener.ask_where, ""))
            widget.reconnect_asked.connect(link.reconnect)

    def refresh(self) -> None:
        """Update all texts."""
        status, session = self._desk.link.status, self._desk.session
        self._notice_another(status)
        has_tiles = self._desk.updater.has_tiles
        text, kind = banner_words(status, session) if has_tiles else ("", "")
        said = self._announcer.text
        self.page.refresh(status, session)
        self.banner.say(said or text, "warning" if said else kind)
        self.event_bar.refresh(self._desk.navigator.past_words())
        self.footer.refresh(status)

    def _status_changed(self, status: LinkStatus) -> None:
        if status.phase is LinkPhase.IDLE:
            self._announcer.forget()

    def _forget_session(self) -> None:
        """The user opens another session: that another one answers is no news."""
        self._seen = None

    def _notice_another(self, status: LinkStatus) -> None:
        """Say so when an address leads to another session than before."""
        welcome = self._desk.session.live.welcome
        if status.phase is not LinkPhase.LIVE or welcome is None:
            return
        before, self._seen = self._seen, (status.address, welcome)
        if before is None or before[0] != status.address or before[1].session == welcome.session:
            return
        self._announcer.say(
            f"Another session answers at {status.address} now: {welcome.server}. "
            f"It was: {before[1].server}."
        )

    def _refused(self, error: Error) -> None:
        remedy = f": {error.remedy}" if error.remedy else ""
        self._desk.say(f"Refused: {error.message}{remedy}")

    # --------------------------------------------------------------------- actions of users

    def toggle_pause(self) -> None:
        """Pause after the next event, or continue."""
        if not self.footer.pause.isEnabled():
            return
        paused = self._desk.session.live.state in (ControlState.PAUSING, ControlState.PAUSED)
        self._desk.link.send(Resume() if paused else Pause())

    def step(self) -> None:
        """Continue until after the next event; only while paused."""
        if self.footer.step.isEnabled():
            self._desk.link.send(Step())

    def take_control(self) -> None:
        """Ask for control."""
        self._desk.link.send(TakeControl())

    def ask_whom(self) -> None:
        """Ask whose playback to see from now on."""
        others = self._desk.navigator.others()
        names = [f"{client.name} ({client.id})" for client in others]
        chosen = ask_one_of(self._desk.frame, "Follow", "Follow the playback of:", names)
        if chosen is not None:
            self.follow_client(others[chosen].id)

    def follow_client(self, client: int | None) -> None:
        """See the playback of another client from now on; None: have one of this window's own."""
        self._desk.link.send(Follow(client=client))

    def actions(self) -> tuple[Action, ...]:
        """The actions of the session."""
        return (*self._link_actions(), *self._control_actions())

    def _link_actions(self) -> tuple[Action, ...]:
        link = self._desk.link
        return (
            Action(
                name="session.connect",
                menu=_SESSION,
                text="&Connect…",
                run=self._opener.ask_where,
                keys=("Ctrl+J",),
            ),
            Action(
                name="session.reconnect",
                menu=_SESSION,
                text="&Reconnect",
                run=link.reconnect,
                keys=("Ctrl+R",),
                enabled=lambda: link.address is not None,
                why_not=_NO_SERVER,
            ),
            Action(
                name="session.disconnect",
                menu=_SESSION,
                text="&Disconnect",
                run=link.close,
                keys=("Ctrl+D",),
                enabled=lambda: link.address is not None,
                why_not=_NO_SERVER,
            ),
        )

    def _control_actions(self) -> tuple[Action, ...]:
        session = self._desk.session
        return (
            Action(
                name="session.pause",
                menu=_SESSION,
                text="&Pause or resume",
                run=self.toggle_pause,
                begins_group=True,
                enabled=self.footer.pause.isEnabled,
                why_not="only the client in control of a connected session may pause it",
            ),
            Action(
                name="session.step",
                menu=_SESSION,
                text="&Step",
                run=self.step,
                enabled=self.footer.step.isEnabled,
                why_not="the session is not paused, or this client does not control it",
            ),
            Action(
                name="session.control",
                menu=_SESSION,
                text="&Take control",
                run=self.take_control,
                keys=("Ctrl+T",),
            ),
            Action(
                name="session.follow",
                menu=_SESSION,
                text="&Follow another viewer…",
                about="follow the playback of another viewer of this recording",
                run=self.ask_whom,
                enabled=lambda: bool(self._desk.navigator.others()),
                why_not="there is no other viewer of this recording",
            ),
            Action(
                name="session.own",
                menu=_SESSION,
                text="Stop f&ollowing",
                run=partial(self.follow_client, None),
                enabled=lambda: session.is_playback and not session.live.is_controller(),
                why_not="this window does not follow another viewer",
            ),
        )


class QuitPart(Part):
    """The end of the window."""

    def actions(self) -> tuple[Action, ...]:
        """Quit."""
        return (
            Action(
                name="session.quit",
                menu=_SESSION,
                text="&Quit",
                about="quit; the target keeps running",
                run=self._desk.frame.close,
                keys=("Ctrl+Q",),
                begins_group=True,
            ),
        )
