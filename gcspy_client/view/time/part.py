"""Time in the window: transport and timeline as users work with them, going to an event, saving.

Knows the navigator and the bottom of the window; does not know how one gets to another event.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gcspy_protocol.playback import Direction

from gcspy_client.model.palette import Theme
from gcspy_client.view.actions import Action, Actions, Gesture
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.dialogs import ask_text
from gcspy_client.view.shell.session_part import SessionPart
from gcspy_client.view.time.bookmark_part import BookmarkPart
from gcspy_client.view.time.panel import TimePanel
from gcspy_client.view.time.save_dialog import SaveDialog

__all__ = ["TimePart"]

_TIME = "&Time"
_NO_TIME = "there are no events yet"
_BUTTONS = ("first", "back", "reverse", "play", "forward", "last", "loop", "bookmark", "save")


class TimePart(Part):
    """Time in a window.

    Args:
        desk: The services of the window.
        panel: Transport and timeline.
        session: Pauses and steps a live session.
        bookmarks: The list of bookmarks.
    """

    def __init__(
        self, desk: Desk, panel: TimePanel, session: SessionPart, bookmarks: BookmarkPart
    ) -> None:
        super().__init__(desk)
        self._panel, self._session_part, self._bookmarks = panel, session, bookmarks
        self._dialog: SaveDialog | None = None

    def use_actions(self, actions: Actions) -> None:
        """Let the buttons of the transport do what actions do, and show their keys."""
        transport = self._panel.transport
        transport.pressed.connect(actions.run)
        transport.set_tips((f"time.{name}", actions.tip(f"time.{name}")) for name in _BUTTONS)

    def play_or_pause(self) -> None:
        """Pause or resume: the playback of the past, else the session. Never goes live."""
        if self._desk.navigator.looks_back:
            self._desk.navigator.play()
        else:
            self._session_part.toggle_pause()

    def next_event(self) -> None:
        """Show the next event of the past; live, step by one event."""
        if self._desk.navigator.is_live:
            self._session_part.step()
        else:
            self._desk.navigator.step(1)

    def ask_event(self) -> None:
        """Ask which event to show."""
        question = "Number, time (12.5 s, 1:30) or name of an event:"
        words = ask_text(self._desk.frame, "Go to event", question)
        if words is not None:
            self._desk.navigator.go_to_words(words)

    def save_session(self) -> SaveDialog | None:
        """Ask for the range and the file; the window continues meanwhile."""
        offer = self._desk.navigator.offer()
        if offer is None:
            return None
        if self._dialog is not None:
            self._dialog.close()
            self._dialog.deleteLater()
        self._dialog = SaveDialog(offer, Path.cwd(), self._desk.frame)
        self._dialog.keep_out_of_the_way()
        return self._dialog

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self._panel.set_theme(theme)

    def stop(self) -> None:
        """The window closes: no timer and no thread is left."""
        if self._dialog is not None:
            self._dialog.close()
        self._desk.navigator.stop()

    def gestures(self) -> tuple[Gesture, ...]:
        """Mouse and key gestures on the timeline."""
        return (
            Gesture(_TIME, "Click, drag on the timeline", "go there"),
            Gesture(_TIME, "← →, ↓ ↑ on the timeline", "previous, next event; ten events back, on"),
            Gesture(_TIME, "Shift + drag on the timeline", "choose a range"),
            Gesture(_TIME, "Wheel, Shift + wheel on the timeline", "zoom, scroll"),
        )

    def actions(self) -> tuple[Action, ...]:
        """Actions about time."""
        return (
            *self._play_actions(),
            *self._step_actions(),
            *self._range_actions(),
            *self._bookmarks.time_actions(),
            *self._file_actions(),
        )

    def _play_actions(self) -> tuple[Action, ...]:
        navigator = self._desk.navigator
        return (
            Action(
                name="time.play-or-pause",
                menu=_TIME,
                text="&Pause or go on",
                about="pause or resume: playback while earlier events are shown, otherwise the session",
                run=self.play_or_pause,
                keys=("Space",),
            ),
            Action(
                name="time.play",
                menu=_TIME,
                text="P&lay or stop playback",
                about="Play or stop playback; a live session continues meanwhile",
                run=navigator.play,
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.reverse",
                menu=_TIME,
                text="Play &backwards",
                run=partial(navigator.play, Direction.BACKWARDS),
                keys=("Shift+Space",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
        )

    def _step_actions(self) -> tuple[Action, ...]:
        navigator = self._desk.navigator
        return (
            Action(
                name="time.back",
                menu=_TIME,
                text="Previous &event",
                run=partial(navigator.step, -1),
                keys=(",",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
                begins_group=True,
            ),
            Action(
                name="time.forward",
                menu=_TIME,
                text="&Next event",
                about="next event; if a live session is paused, step by one event",
                run=self.next_event,
                keys=(".",),
            ),
            Action(
                name="time.first",
                menu=_TIME,
                text="&First event",
                run=navigator.first,
                keys=("Home",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.last",
                menu=_TIME,
                text="Go li&ve, or to the last event",
                run=navigator.last,
                keys=("End", "L"),
            ),
            Action(
                name="time.next-same",
                menu=_TIME,
                text="Next event of the same kind",
                run=partial(navigator.same_kind, backwards=False),
                keys=(">",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.previous-same",
                menu=_TIME,
                text="Previous event of the same kind",
                run=partial(navigator.same_kind, backwards=True),
                keys=("<",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.go-to",
                menu=_TIME,
                text="&Go to event…",
                about="go to an event by number, time or name",
                run=self.ask_event,
                keys=("Ctrl+G",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
        )

    def _range_actions(self) -> tuple[Action, ...]:
        navigator = self._desk.navigator
        return (
            Action(
                name="time.loop",
                menu=_TIME,
                text="Repeat playback",
                about="repeat the selected range, or all events",
                run=navigator.toggle_loop,
                keys=("Ctrl+L",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
                checked=lambda: navigator.playing.manner.loop is not None,
                begins_group=True,
            ),
            Action(
                name="time.begin-range",
                menu=_TIME,
                text="Range begins here",
                run=navigator.begin_range,
                keys=("Shift+[", "{"),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.end-range",
                menu=_TIME,
                text="Range ends here",
                run=navigator.end_range,
                keys=("Shift+]", "}"),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.range-before",
                menu=_TIME,
                text="Range from the first event to here",
                run=navigator.choose_before,
                keys=("Shift+Home",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.range-after",
                menu=_TIME,
                text="Range from here to the last event",
                run=navigator.choose_after,
                keys=("Shift+End",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.forget-range",
                menu=_TIME,
                text="No range",
                run=navigator.forget_range,
                enabled=lambda: navigator.chosen is not None,
                why_not="no range is selected",
            ),
        )

    def _file_actions(self) -> tuple[Action, ...]:
        navigator = self._desk.navigator
        return (
            Action(
                name="time.save",
                menu=_TIME,
                text="&Save session…",
                about="save the whole session or the selected range",
                run=self.save_session,
                keys=("Ctrl+S",),
                begins_group=True,
                enabled=lambda: navigator.offer() is not None,
                why_not="there are no stored events to save",
            ),
            Action(
                name="time.whole",
                menu=_TIME,
                text="Whole session in the timeline",
                run=self._panel.strip.show_whole,
                enabled=lambda: self._panel.strip.zoomed,
                why_not="the timeline already shows the whole session",
            ),
        )
