"""Following a session: messages update tiles at once, and texts a moment later.

Tiles are painted as events arrive, once for all that arrive together; texts and tables are updated
twice a second, since people do not read faster, and at once after a user's action. They are
not updated all in one turn of the loop, so that the map follows a user's hand meanwhile. While the
window cannot be seen, hidden or minimised, tiles do not follow and texts are updated every two
seconds; everything is shown again when it can be seen.

Knows the parts of the window that show received data; knows neither their places nor users' requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.messages import Message, TileNames
from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QWindow

from gcspy_client.link import WindowLink
from gcspy_client.model.session import ClientSession
from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.view.panels.details import Details
from gcspy_client.view.spaces.space_panel import SpacePanel
from gcspy_client.view.spaces.spaces import Spaces

__all__ = ["LiveUpdater"]

_TEXTS_MILLIS = 500
"""Between two updates of texts while events arrive."""

_UNSEEN_MILLIS = 2_000
"""The same while the window cannot be seen: titles, announcements and stored samples still follow."""

_DETAILS_MILLIS = 100
"""From an action of the user to the texts about it."""

_HOVER_MILLIS = 25
_GRAPH_MILLIS = 250
"""Between the first event and the loading of the graph, which takes a core for a moment."""


class LiveUpdater(QObject):
    """Keeps tiles and texts in step with a session.

    Signals:
        applied: An event arrived, and the session has applied it; its `EventChange`.
        event_shown: An event was shown; its `Event`.
        came: An event arrived while an earlier one is displayed.
        spoken: Texts were updated: other texts follow.

    Args:
        session: The received state.
        link: Source of messages, and destination of requests for names.
        spaces: The tiles.
        details: The texts about them.
    """

    applied = Signal(object)
    event_shown = Signal(object)
    came = Signal()
    spoken = Signal()

    def __init__(
        self,
        session: ClientSession,
        link: WindowLink,
        spaces: Spaces,
        details: Details,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._link = session, link
        self._spaces, self._details = spaces, details
        self._under_mouse: tuple[int, int] | None = None
        self._rebuild = True
        self._stopped = False
        self._behind = False
        self._watched: QWindow | None = None
        self._details_timer = self._single_timer(self._begin_refresh)
        self._steps: list[Callable[[], None]] = []
        self._step_timer = self._single_timer(self._take_step)
        self._graph_timer = self._single_timer(self._load_graph)
        spaces.hovered.connect(self._hovered)

    def _single_timer(self, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(slot)
        return timer

    # -------------------------------------------------------------------------- messages

    def take(self, messages: list[Message]) -> None:
        """Follow messages; all are applied, what they changed is painted once."""
        if self._stopped:
            return
        for message in messages:
            try:
                change = self._session.apply(message)
            except RemoteProtocolError as error:
                self._link.fail(error)
                return
            if change is not None:
                self.applied.emit(change)
                self.show(change)
        if any(isinstance(message, TileNames) for message in messages):
            self._spaces.repaint_names()
        self._speak_within(_TEXTS_MILLIS if self._is_seen() else _UNSEEN_MILLIS)

    def show(self, change: EventChange) -> None:
        """Show an event that the session has followed, unless the user looks back."""
        if not self._session.is_live:
            self.came.emit()
            return
        if self._rebuild:
            self._rebuild = False
            self._spaces.rebuild()
            self.focus_active()
        else:
            self._spaces.sync()
            if self._is_seen():
                self._spaces.follow(change)
            else:
                self._behind = True
        self.event_shown.emit(change.event)

    def look(self, change: EventChange | None) -> None:
        """Show the state that the session shows now.

        Args:
            change: The changes since the state on the screen; None: the whole state may differ.
        """
        if self._session.interpreter.last_event is None:
            return  # the bootstrap of another connection is coming: keep the display until then
        self._spaces.sync()
        if change is not None:
            self._spaces.follow(change)
        self.speak_soon()

    def _is_seen(self) -> bool:
        """Whether the window can be seen; one that was never shown may be painted into a picture."""
        handle = cast("QWindow | None", self._spaces.window().windowHandle())
        if handle is not None and handle is not self._watched:
            self._watched = handle
            handle.installEventFilter(self)
        return handle is None or handle.isExposed()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show everything when the window can be seen again; nothing is filtered out."""
        if self._behind and event.type() is QEvent.Type.Expose and self._is_seen():
            self._catch_up()
        return False

    def _catch_up(self) -> None:
        """Show the tiles and the texts of the session as it is now, after events that nobody saw."""
        self._behind = False
        if self._stopped:
            return
        self._spaces.renew()
        self.speak_soon()

    def restart(self) -> None:
        """A new bootstrap arrives: everything is made again with its first event."""
        self._session.restart()
        self._rebuild = True

    def speak_soon(self) -> None:
        """Update all texts soon: the user did something."""
        self._speak_within(_DETAILS_MILLIS)

    def _speak_within(self, millis: int) -> None:
        if self._stopped:
            return
        if self._details.graph.plot is None and not self._graph_timer.isActive():
            self._graph_timer.start(_GRAPH_MILLIS)
        if not self._details_timer.isActive() or self._details_timer.remainingTime() > millis:
            self._details_timer.start(millis)

    # ------------------------------------------------------------------------ refreshing

    @property
    def has_tiles(self) -> bool:
        """Whether there is anything to see, be it of the connection before."""
        return self._session.interpreter.last_event is not None or bool(self._spaces.panels)

    def active_picture(self) -> SpacePicture | None:
        """The picture of the active space."""
        space = self._session.active_space()
        panel = None if space is None else self._spaces.panels.get(space.space.id)
        return None if panel is None else panel.canvas.picture

    def refresh(self) -> None:
        """Update all texts now."""
        self._step_timer.stop()
        for step in self._all_steps():
            step()

    def _all_steps(self) -> list[Callable[[], None]]:
        """The parts of an update of all texts, in order."""
        return [self._refresh_spaces, self._refresh_details, self._refresh_trend, self.spoken.emit]

    def _begin_refresh(self) -> None:
        """Update all texts, some in each turn of the loop: what they cost together is a screen frame."""
        self._steps = self._all_steps()
        self._take_step()

    def _take_step(self) -> None:
        step = self._steps.pop(0)
        if self._steps:
            self._step_timer.start(0)
        step()

    def _shows_session(self) -> bool:
        """Whether the tiles are of this session: until its first event they are those of the connection before."""
        return not (self._rebuild and self._session.is_live and self._spaces.panels)

    def _refresh_spaces(self) -> None:
        if self._shows_session():
            self._fetch_names()
            self._spaces.mark_active()
            self._spaces.refresh()

    def _refresh_details(self) -> None:
        if self._shows_session():
            panel = self._described_panel()
            self._details.refresh(
                None if panel is None else panel.canvas.picture,
                self._tile_under_mouse(panel),
                None if panel is None else panel.view,
                connected=self._link.status.phase.connected,
            )

    def _refresh_trend(self) -> None:
        if self._shows_session():
            panel = self._described_panel()
            self._details.refresh_trend(None if panel is None else panel.canvas.picture)

    def _described_panel(self) -> SpacePanel | None:
        """The panel that the words are about: that under the mouse, else that of the active space."""
        if self._under_mouse is not None and self._under_mouse[0] in self._spaces.panels:
            return self._spaces.panels[self._under_mouse[0]]
        active = self._session.active_space()
        return None if active is None else self._spaces.panels.get(active.space.id)

    def _tile_under_mouse(self, panel: SpacePanel | None) -> int | None:
        if panel is None or self._under_mouse is None:
            return None
        space, tile = self._under_mouse
        return tile if space == panel.space_id and tile < panel.canvas.picture.space.count else None

    def _fetch_names(self) -> None:
        """Ask for the names of tiles that are shown by name."""
        for space_id, panel in self._spaces.panels.items():
            if space_id not in self._session.interpreter.spaces:
                continue  # removed; its panel goes with the next event
            layout = panel.canvas.picture.layout
            if panel.view is not None:
                ranges = panel.view.wants_names()
            else:
                ranges = [(layout.first, layout.last)] if layout.labelled else []
            ranges += [
                (tile, tile + 1)
                for tile in (panel.shown.under_mouse, panel.shown.selected)
                if tile is not None
            ]
            for first, last in ranges:
                for request in self._session.missing_names(space_id, first, last):
                    self._link.send(request)

    def _hovered(self, space_id: int, tile: int) -> None:
        self._under_mouse = None if tile < 0 else (space_id, tile)
        self._speak_within(_HOVER_MILLIS)

    def focus_active(self) -> None:
        """Give the keyboard to the tiles of the active space."""
        space = self._session.active_space()
        if space is not None and space.space.id in self._spaces.panels:
            self._spaces.panels[space.space.id].shown.setFocus(Qt.FocusReason.OtherFocusReason)

    def _load_graph(self) -> None:
        """Make the graph, once there are tiles to see: loading what draws it may not delay them."""
        if self._spaces.painted():
            self._details.graph.begin_load()
        elif self._spaces.panels:
            self._graph_timer.start(_GRAPH_MILLIS)

    def settle(self) -> None:
        """Say everything now that would be said a moment later: for a picture of the window."""
        if self._behind:
            self._catch_up()
        self._details_timer.stop()
        self._step_timer.stop()
        self._graph_timer.stop()
        self.refresh()
        self._details.graph.settle()

    def stop(self) -> None:
        """Follow nothing any more; no timer is left."""
        self._stopped = True
        self._details_timer.stop()
        self._step_timer.stop()
        self._graph_timer.stop()
