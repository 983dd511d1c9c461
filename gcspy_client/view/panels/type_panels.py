"""Types in a window: the panels "What is in this tile" and "What grew", connected to the rest of it.

Connects the parts of the window; the model knows the questions and the growth.
"""

from __future__ import annotations

from time import monotonic

from gcspy_protocol.details import Answer, AnswerState
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Message
from gcspy_protocol.settings import SetSetting, Setting
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import Qt, QTimer, Signal

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.growth import (
    GrowthLog,
    TypeSample,
    counted_space,
    growing_space,
    growth,
    measures_of,
    sample_of,
)
from gcspy_client.model.panels.tile_questions import QuestionSubject, TileQuestions, kinds_of
from gcspy_client.model.session import tile_title
from gcspy_client.model.text import duration
from gcspy_client.view.actions import Action
from gcspy_client.view.compare.part import ComparePart
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.contents import ContentsPanel
from gcspy_client.view.panels.growth import GrowthPanel
from gcspy_client.view.part import Part

__all__ = ["TypePanels"]

_TYPES_LEVEL = 3
"""The level of objects, at which drivers report types."""

_AGAIN_SECS = 0.5
"""Between two questions about the same tile, as events come; another tile is asked about at once."""

_NOT_COUNTED = Lines(
    "Allocation sites are not counted here.",
    "Start a Python program with gcspy run --count, or attach with --count.",
)
_LEVEL = (
    "The driver may report types at a higher level: Session ▸ Level, or --level 3 when attaching."
)


class TypePanels(Part):
    """The two panels of a window.

    Signals:
        who_asked: Ask who holds the objects of a type; its name.

    Attributes:
        asking: The question and the answer.
        log: The counts of each type at past events.
        site_log: The counts of each allocation site at past events.
        contents: The content of a tile.
        growth: The growth of types.
    """

    who_asked = Signal(str)

    def __init__(self, desk: Desk, compare: ComparePart) -> None:
        super().__init__(desk)
        self._compare = compare
        self.asking = TileQuestions(desk.link.send)
        self.log = GrowthLog()
        self.site_log = GrowthLog()
        self.contents = ContentsPanel(desk.theme)
        self.growth = GrowthPanel(desk.theme)
        self.whole = self._stopped = False
        self._asked_at = 0.0
        self._asked: tuple[QuestionSubject | None, int] = (None, 0)
        self._identity = ""
        self._level_before: Setting | None = None
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.timeout.connect(self.refresh)
        bottom = Qt.DockWidgetArea.BottomDockWidgetArea
        about = "what is in this tile: types, objects and bytes"
        desk.docks.add(
            "contents",
            "What is in this tile",
            self.contents,
            bottom,
            keys=("Shift+C",),
            about=about,
        )
        about = "what grew: types by growth since an earlier event"
        desk.docks.add("growth", "What grew", self.growth, bottom, keys=("Shift+G",), about=about)
        self.contents.whole_asked.connect(self._show_whole)
        self.contents.kind_asked.connect(self.refresh)
        self.contents.opened.connect(self.refresh)
        self.growth.opened.connect(self.refresh)
        self.growth.turned.connect(self.refresh)
        self.growth.look_asked.connect(self.look_now)
        for panel in (self.contents, self.growth):
            panel.who_asked.connect(self.who_asked)
        desk.link.welcomed.connect(self.asking.forget)
        desk.link.received.connect(self._take)
        desk.updater.applied.connect(self._sample)

    def _show_whole(self, whole: bool) -> None:
        self.whole = whole
        self.refresh()

    def ask_whole(self) -> None:
        """Open the panel and show the whole space."""
        self._desk.docks.show("contents")
        self.contents.which.setCurrentIndex(1)
        self.refresh()

    def chosen_type(self) -> str:
        """The type of the selected row in the panel with the keyboard focus; empty: there is none."""
        panels = (self.growth, self.contents)
        return next((one.chosen_type() for one in panels if one.table.hasFocus()), "")

    def stop(self) -> None:
        """Ask nothing any more; no timer is left."""
        self._stopped = True
        self._again.stop()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.contents.set_theme(theme)
        self.growth.set_theme(theme)

    def refresh(self) -> None:
        """Update all visible texts."""
        if self._stopped:
            return
        if self.contents.isVisible():
            self._tell_contents()
        if self.growth.isVisible() and not self.growth.by_site:
            self._tell_growth()

    # -------------------------------------------------------------------------- contents

    def _take(self, messages: list[Message]) -> None:
        answers = [message for message in messages if isinstance(message, Answer)]
        for answer in answers:
            self.asking.take(answer)
        if answers:
            self.refresh()

    def _tell_contents(self) -> None:
        session = self._desk.session
        space, event = session.active_space(), session.interpreter.last_event
        if space is None or event is None:
            self.contents.say("No data yet.")
            return
        if not kinds_of(space.space.details):
            self.contents.say(self._none_here(space), space.space.name)
            return
        tile = None if self.whole else session.selected(space.space.id)
        if tile is None and not self.whole:
            gone = session.selection_gone(space.space.id)
            why = (
                "The selected tile is gone." if gone else "Select a tile to see its contents here."
            )
            self.contents.say(Lines(why, "Or choose the whole space."), space.space.name)
            return
        title = f"{space.space.name}, whole" if tile is None else tile_title(space, tile)
        subject = QuestionSubject(
            "" if session.live.welcome is None else session.live.welcome.session,
            space.space.id,
            self.contents.offer(kinds_of(space.space.details)),
            None if tile is None else space.names.key(tile),
        )
        self._request(subject)
        answer = self.asking.answer(
            event.sequence, live=session.is_live
        )  # of a playback the latest, until that of this event has come
        if answer is None:
            self.contents.say(self._why_nothing(), title)
        elif answer.state is AnswerState.ANSWERED:
            behind = event.sequence - answer.sequence
            ago = f"of {behind:,} {'event' if behind == 1 else 'events'} ago"
            when = (
                "of this event"
                if not behind
                else "from another event: updating…"
                if session.is_playback
                else ago
            )
            if answer.table.rows:
                self.contents.tell(answer.table, title, when)
            else:
                self.contents.say(answer.table.note or "It is empty.", title, when)
        else:
            self.contents.say(_WHY[answer.state].format(reason=answer.reason), title)

    def _request(self, subject: QuestionSubject) -> None:
        """Ask, unless the past is shown: the server knows the present only."""
        session, live = self._desk.session, self._desk.session.live.last_event
        if not session.is_live or live is None:
            self.asking.subject = subject
            return
        now = monotonic()
        if subject == self._asked[0] and now - self._asked_at < _AGAIN_SECS:
            self.asking.request(subject, self._asked[1], exact=session.is_playback)
            if live.sequence != self._asked[1] and not self._again.isActive():
                self._again.start(round(1000 * (_AGAIN_SECS - (now - self._asked_at))) + 1)
            return
        self._asked, self._asked_at = (subject, live.sequence), now
        self.asking.request(subject, live.sequence, exact=session.is_playback)

    def _why_nothing(self) -> str:
        if not self._desk.link.status.phase.connected:
            return "Not available: there is no connection."
        if not self._desk.session.is_live:
            return Lines(
                "Not recorded: no client requested this at that event.",
                "Press End to return to the present; What grew (Shift+G) works at every event.",
            )
        return "Asking…"

    def _none_here(self, space: SpaceState) -> str:
        others = [
            one.space.name
            for one in self._desk.session.interpreter.spaces.values()
            if kinds_of(one.space.details)
        ]
        where = f"Spaces that do: {', '.join(others)}." if others else _LEVEL
        return Lines(
            f"The space {space.space.name} has no data on the contents of its tiles.", where
        )

    # ---------------------------------------------------------------------------- growth

    def _sample(self, _change: EventChange) -> None:
        live = self._desk.session.live
        identity = "" if live.welcome is None else live.welcome.session
        if identity != self._identity:
            self._identity = identity
            self._level_before = None
            self.log.clear()
            self.site_log.clear()
        counted = counted_space(live)
        counts = None if counted is None else sample_of(live, counted)
        if counts is not None:
            self.site_log.add(counts)
        space = growing_space(live)
        sample = None if space is None else sample_of(live, space)
        if sample is not None:
            self.log.add(sample)
            self._lower_level()

    @property
    def _shown_log(self) -> GrowthLog:
        return self.site_log if self.growth.by_count else self.log

    def _then(self, space: int) -> tuple[TypeSample | None, str]:
        """The earlier event, and what it is called: A, where one is set, else the first that this window saw."""
        moment = self._compare.moment
        if moment is not None:
            state = moment.state.spaces.get(space)
            return (None if state is None else sample_of(moment.state, state)), "since A"
        samples = self._shown_log.samples
        return (samples[0] if samples else None), "since the first event in this window"

    def _tell_growth(self) -> None:
        shown = self._desk.session.interpreter
        by_count = self.growth.by_count
        space = counted_space(shown) if by_count else growing_space(shown)
        self.growth.offer_look(not by_count and self._level_to_raise() is not None)
        if space is None:
            self.growth.say(_NOT_COUNTED if by_count else Lines("No space here has types.", _LEVEL))
            return
        what = "site" if by_count else "type"
        now, age = sample_of(shown, space), ""
        if now is None and shown.last_event is not None:  # the latest known answer stays
            now = self._shown_log.latest(space.space.id, shown.last_event.sequence)
            if now is not None:
                age = (
                    f", as of {duration(max(0, shown.last_event.time_nanos - now.time_nanos))} ago"
                )
        then, called = self._then(space.space.id)
        if now is None or then is None:
            self._say_growth(
                f"{what.capitalize()}s were not gathered at this event."
                if now is None
                else f"{what.capitalize()}s were not gathered at A: set another event as A."
            )
            return
        if then.sequence >= now.sequence:
            self._say_growth(
                Lines(
                    "This event is not later than the earlier one.",
                    "Go to a later event, or set an earlier one as A (key A).",
                )
            )
            return
        rows = growth(then, now, space, self._shown_log.samples)
        if not rows:
            self._say_growth(f"No {what} changed {called}.")
            return
        took = duration(now.time_nanos - then.time_nanos)
        title = f"{space.space.name}: what grew {called}"
        self.growth.tell(rows, measures_of(space), title, took + age)

    def _say_growth(self, why_nothing: str) -> None:
        """Say why there are no rows; while types are asked for, when they come."""
        before = self._level_before
        if before is not None:
            why_nothing = (
                f"Looking: types come with the next event; then the level is {before.value} again."
            )
        self.growth.say(why_nothing)

    def _level(self) -> Setting | None:
        """The level of the session; None: it has none, or this client may not choose it."""
        live = self._desk.session.live
        if not live.is_controller():
            return None
        return next((one for one in live.settings.settings if one.name.casefold() == "level"), None)

    def _level_to_raise(self) -> Setting | None:
        """The level, where a higher one may report types and this client may choose it; None: there is nothing to raise."""
        level = self._level()
        return level if level is not None and level.value < _TYPES_LEVEL <= level.maximum else None

    def look_now(self) -> None:
        """Gather types once: raise the level to the first that may report them, until they have come."""
        level = self._level_to_raise()
        if level is not None:
            self._level_before = level
            self._desk.link.send(SetSetting(id=level.id, value=_TYPES_LEVEL))
            self._say_growth("")

    def _lower_level(self) -> None:
        """Types that were asked for have come: put the level back, unless another one was chosen meanwhile."""
        before, level = self._level_before, self._level()
        self._level_before = None
        if before is not None and level is not None and level.value == _TYPES_LEVEL:
            self._desk.link.send(SetSetting(id=before.id, value=before.value))

    def actions(self) -> tuple[Action, ...]:
        """The actions of the type panels."""
        return (
            Action(
                name="contents.whole",
                menu="&View",
                text="What is in this space",
                about="contents of the whole active space, by type",
                run=self.ask_whole,
                enabled=lambda: bool(
                    (space := self._desk.session.active_space()) is not None
                    and kinds_of(space.space.details)
                ),
            ),
        )


_WHY = {
    AnswerState.UNKNOWN: "Unknown: {reason}.",
    AnswerState.GONE: "Gone: {reason}.",
    AnswerState.REFUSED: "Not available: {reason}.",
    AnswerState.NOT_RECORDED: "Not recorded: {reason}. What grew (Shift+G) works at every event.",
}
