"""A recording opens as it was left: panels, spaces, views, zoom and the displayed event, by the recording's identity.

Kept in the settings; nothing is written into the recording or beside it.

Knows what users can choose in a window; does not know how any of it is drawn.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from gcspy_protocol.interpreter import SpaceState
from PySide6.QtCore import QTimer

from gcspy_client.model.shell.recorded_view import (
    RecordedView,
    SpaceView,
    latest_last,
    read_view,
)
from gcspy_client.model.view_states import TILES
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.spaces.views import TITLES, known_renderers

__all__ = ["RecordedViews"]

_ORDER: Final = "recordings.viewed"
_ONE: Final = "recordings.view."


class RecordedViews(Part):
    """Keeps and restores the views of recordings."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._restored = ""  # the session whose recording's view was restored, or had none
        self._identity = ""  # that recording
        self._stopped = False
        desk.bookmarks.leaving.connect(self.store)

    def refresh(self) -> None:
        """Restore the view of a recording once its first event is displayed."""
        desk = self._desk
        welcome = desk.session.live.welcome
        if self._stopped or welcome is None or welcome.session == self._restored:
            return
        active = desk.session.active_space()
        if active is None or not desk.spaces.is_current(active.space.id):
            return
        self._restored = welcome.session
        self._identity = desk.bookmarks.identity if desk.session.is_playback else ""
        if not self._identity or not desk.settings.flag("layout.restore", True):
            return
        view = read_view(desk.settings.value(_ONE + self._identity))
        if view is not None:
            self._use(view)

    def store(self) -> None:
        """Keep the present view of the recording, if one is displayed."""
        identity, self._identity = self._identity, ""
        if not identity:
            return
        settings = self._desk.settings
        order, forgotten = latest_last(settings.texts(_ORDER), identity)
        for one in forgotten:
            settings.forget(_ONE + one)
        settings.store(_ORDER, order)
        settings.store(_ONE + identity, self.current().to_dict())
        settings.write()

    def current(self) -> RecordedView:
        """The view as it is now."""
        desk = self._desk
        active = desk.session.active_space()
        spaces = {}
        for number, panel in desk.spaces.panels.items():
            state = desk.session.interpreter.spaces.get(number)
            if state is not None:
                place = panel.shown.place()
                spaces[state.space.name] = SpaceView(
                    view=desk.session.looks.of(number).view,
                    stream=self._stream_name(state),
                    place=place if isinstance(place, tuple) else (),
                )
        return RecordedView(
            panels=desk.docks.open_names,
            opened=desk.spaces.opened,
            active="" if active is None else active.space.name,
            number=desk.session.number,
            spaces=spaces,
            hidden=desk.spaces.hidden,
        )

    def _stream_name(self, state: SpaceState) -> str:
        chosen = self._desk.session.chosen_stream(state.space.id)
        return "" if chosen is None else state.streams[chosen].schema.name

    def _use(self, view: RecordedView) -> None:
        desk = self._desk
        for name in desk.docks:
            if desk.docks.is_open(name) and name not in view.panels:
                desk.docks[name].close()
        for name in view.panels:
            if name in desk.docks and not desk.docks.is_open(name):
                desk.docks.show(name)
        by_name = {state.space.name: state for state in desk.session.interpreter.spaces.values()}
        for name, one in view.spaces.items():
            if name in by_name:
                self._use_space(by_name[name], one)
        desk.spaces.use_opened({name: on for name, on in view.opened.items() if name in by_name})
        desk.spaces.use_hidden(view.hidden)
        if view.active in by_name:
            desk.selection.turn_to(by_name[view.active].space.id)
        playback = desk.session.live.playback
        if playback is not None and 0 < view.number <= playback.last:
            desk.navigator.go_to(view.number)
        # Views have their sizes only when all is laid out.
        QTimer.singleShot(0, self, partial(self._use_places, view))

    def _use_space(self, state: SpaceState, view: SpaceView) -> None:
        desk, number = self._desk, state.space.id
        stream = next(
            (one.schema.id for one in state.streams.values() if one.schema.name == view.stream),
            None,
        )
        if stream is not None:
            desk.session.choose_stream(number, stream)
            desk.spaces.show_stream(number)
        known = view.view in TITLES or view.view in known_renderers()
        if known and view.view != TILES:
            look = desk.session.looks.of(number)
            desk.session.looks.by_space[number] = replace(look, view=view.view)
            desk.spaces.show_look(number)

    def _use_places(self, view: RecordedView) -> None:
        if self._stopped:
            return
        for state in self._desk.session.interpreter.spaces.values():
            panel = self._desk.spaces.panels.get(state.space.id)
            one = view.spaces.get(state.space.name)
            if panel is not None and one is not None and one.place:
                panel.use_place(one.place)
        self._desk.updater.speak_soon()

    def stop(self) -> None:
        """The window closes: keep the view."""
        if not self._stopped:
            self.store()
        self._stopped = True
