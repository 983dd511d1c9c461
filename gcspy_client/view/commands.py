"""The table of what users can do in the window; see `actions`.

Knows which part of the window does what; does not know how.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gcspy_protocol.playback import Direction

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.filters import FilterPart
from gcspy_client.model.session import ordered_streams
from gcspy_client.view.actions import Action, Gesture
from gcspy_client.view.classroom.part import actions_of_class
from gcspy_client.view.classroom.presenting import actions_of_presenting
from gcspy_client.view.compare.comparing import actions_of_comparing
from gcspy_client.view.history.menus import HISTORY_GESTURES, actions_of_history
from gcspy_client.view.lessons.part import actions_of_lessons
from gcspy_client.view.panels.copying import actions_of_copying
from gcspy_client.view.panels.cost import actions_of_cost
from gcspy_client.view.panels.following_object import actions_of_objects
from gcspy_client.view.panels.telling import actions_of_telling
from gcspy_client.view.shell.command_palette import Entry
from gcspy_client.view.shell.preferences import actions_of_preferences
from gcspy_client.view.shell.starting import actions_of_starting
from gcspy_client.view.spaces.looking import LOOKING_GESTURES, actions_of_looking
from gcspy_client.view.triggers.part import actions_of_triggers

if TYPE_CHECKING:
    from gcspy_client.view.window import MainWindow

__all__ = ["GESTURES", "actions_of", "entries_of"]

_SESSION, _TIME, _VIEW, _HELP = "&Session", "&Time", "&View", "&Help"

_NO_TIME = "there is no event yet to go to"
_NO_SERVER = "this window never was connected"

_REMOVALS = (
    (FilterPart.OFF, "Event filters: &enable all"),
    (FilterPart.PERIOD, "Event filters: reset periods"),
    (FilterPart.DELAY, "Event filters: clear delays"),
    (FilterPart.PAUSE, "Event filters: clear pauses"),
)

GESTURES = (
    Gesture(_TIME, "Click, drag on the timeline", "go there"),
    Gesture(_TIME, "Arrows on the timeline", "previous, next event; with Shift ten"),
    Gesture(_TIME, "Shift + drag on the timeline", "choose a range"),
    Gesture(_TIME, "Wheel, Shift + wheel on the timeline", "look closer, move along"),
    Gesture(_VIEW, "Arrows, Page up / down", "move the selected tile"),
    Gesture(_VIEW, "Ctrl+Home, Ctrl+End", "select the first, the last tile"),
    *HISTORY_GESTURES,
    *LOOKING_GESTURES,
)


def actions_of(window: MainWindow) -> tuple[Action, ...]:
    """What can be done in a window."""
    return (
        *_session_actions(window),
        *actions_of_triggers(window),
        *actions_of_cost(window),
        *actions_of_comparing(window),
        *_time_actions(window),
        *_view_actions(window),
        *actions_of_presenting(window),
        *actions_of_looking(window),
        *actions_of_telling(window),
        *actions_of_objects(window),
        *actions_of_class(window),
        *window.docks.actions(),
        *actions_of_history(window),
        *actions_of_lessons(window),
        *_help_actions(window),
    )


def _session_actions(window: MainWindow) -> tuple[Action, ...]:
    link, footer = window.link, window.footer
    return (
        *actions_of_starting(window),
        Action(
            name="session.connect",
            menu=_SESSION,
            text="&Connect…",
            run=window.ask_where,
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
        Action(
            name="session.pause",
            menu=_SESSION,
            text="&Pause or resume",
            run=window.toggle_pause,
            begins_group=True,
            enabled=footer.pause.isEnabled,
            why_not="only the client in control of a connected session may pause it",
        ),
        Action(
            name="session.step",
            menu=_SESSION,
            text="&Step",
            run=window.step,
            enabled=footer.step.isEnabled,
            why_not="the session is not paused, or this client does not control it",
        ),
        Action(
            name="session.control",
            menu=_SESSION,
            text="&Take control",
            run=window.take_control,
            keys=("Ctrl+T",),
        ),
        Action(
            name="session.follow",
            menu=_SESSION,
            text="&Follow another viewer…",
            about="see the playback of another viewer of the recording",
            run=window.ask_whom,
            enabled=lambda: bool(window.timing.others()),
            why_not="nobody else views this recording",
        ),
        Action(
            name="session.own",
            menu=_SESSION,
            text="Follow no&body",
            run=partial(window.follow_client, None),
            enabled=lambda: window.session.is_playback and not window.session.live.is_controller(),
            why_not="this window follows nobody",
        ),
        *(
            Action(
                name=f"session.filters-{part.name.lower()}",
                menu=_SESSION,
                text=text,
                run=partial(window.details.filters.remove_all, part),
                enabled=partial(window.details.filters.in_force, part),
                why_not="no such filter is in force, or this client does not control the session",
                begins_group=part is FilterPart.OFF,
            )
            for part, text in _REMOVALS
        ),
        *actions_of_preferences(window),
        Action(
            name="session.quit",
            menu=_SESSION,
            text="&Quit",
            about="quit; the target goes on",
            run=window.close,
            keys=("Ctrl+Q",),
            begins_group=True,
        ),
    )


def _time_actions(window: MainWindow) -> tuple[Action, ...]:
    timing = window.timing
    backwards = partial(timing.play, Direction.BACKWARDS)
    return (
        Action(
            name="time.play-or-pause",
            menu=_TIME,
            text="&Pause or go on",
            about="pause or go on: the past, while it is shown, else the session; never goes live",
            run=window.play_or_pause,
            keys=("Space",),
        ),
        Action(
            name="time.play",
            menu=_TIME,
            text="P&lay, or hold the picture",
            about="Play, or hold the picture; a live session goes on meanwhile",
            run=timing.play,
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.reverse",
            menu=_TIME,
            text="Play &backwards",
            run=backwards,
            keys=("Shift+Space",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.back",
            menu=_TIME,
            text="Previous &event",
            run=partial(timing.step, -1),
            keys=(",",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
            begins_group=True,
        ),
        Action(
            name="time.forward",
            menu=_TIME,
            text="&Next event",
            about="next event; of a paused live session: let one happen",
            run=window.next_event,
            keys=(".",),
        ),
        Action(
            name="time.first",
            menu=_TIME,
            text="&First event",
            run=timing.first,
            keys=("Home",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.last",
            menu=_TIME,
            text="Go li&ve, or to the last event",
            run=timing.last,
            keys=("End", "L"),
        ),
        Action(
            name="time.next-same",
            menu=_TIME,
            text="Next event of the same kind",
            run=partial(timing.same_kind, backwards=False),
            keys=(">",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.previous-same",
            menu=_TIME,
            text="Previous event of the same kind",
            run=partial(timing.same_kind, backwards=True),
            keys=("<",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.go-to",
            menu=_TIME,
            text="&Go to event…",
            about="go to an event by number, time or name",
            run=window.ask_event,
            keys=("Ctrl+G",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.loop",
            menu=_TIME,
            text="Play over and over",
            about="play the chosen range, or everything, over and over",
            run=timing.toggle_loop,
            keys=("Ctrl+L",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
            checked=lambda: timing.playing.manner.loop is not None,
            begins_group=True,
        ),
        Action(
            name="time.begin-range",
            menu=_TIME,
            text="Range begins here",
            run=timing.begin_range,
            keys=("Shift+[", "{"),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.end-range",
            menu=_TIME,
            text="Range ends here",
            run=timing.end_range,
            keys=("Shift+]", "}"),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.forget-range",
            menu=_TIME,
            text="No range",
            run=timing.forget_range,
            enabled=lambda: timing.chosen is not None,
            why_not="no range is chosen",
        ),
        Action(
            name="time.bookmark",
            menu=_TIME,
            text="&Bookmark this event",
            about="bookmark this event; again: write its title",
            run=window.bookmark,
            keys=("B",),
            begins_group=True,
            enabled=lambda: window.session.number > 0,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.next-bookmark",
            menu=_TIME,
            text="Next bookmark",
            run=window.bookmarking.next,
            keys=("Ctrl+Right",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.previous-bookmark",
            menu=_TIME,
            text="Previous bookmark",
            run=window.bookmarking.previous,
            keys=("Ctrl+Left",),
            enabled=lambda: timing.usable,
            why_not=_NO_TIME,
        ),
        Action(
            name="time.save",
            menu=_TIME,
            text="&Save session…",
            about="save the session, whole or the chosen range",
            run=window.save_session,
            keys=("Ctrl+S",),
            begins_group=True,
            enabled=lambda: timing.offer() is not None,
            why_not="nothing is kept that could be saved",
        ),
        Action(
            name="time.whole",
            menu=_TIME,
            text="Whole session in the timeline",
            run=window.time_panel.strip.show_whole,
            enabled=lambda: window.time_panel.strip.zoomed,
            why_not="all of it is in view",
        ),
    )


def _view_actions(window: MainWindow) -> tuple[Action, ...]:
    themes = (
        ("view.theme-system", "&Follow the system", None),
        ("view.theme-dark", "Da&rk", Theme.DARK),
        ("view.theme-light", "L&ight", Theme.LIGHT),
        ("view.theme-contrast-dark", "High contrast, dar&k", Theme.CONTRAST_DARK),
        ("view.theme-contrast-light", "High contrast, li&ght", Theme.CONTRAST_LIGHT),
    )
    undo = window.undo
    return (
        Action(
            name="view.undo",
            menu=_VIEW,
            text="&Undo",
            about="take back the last change of the view",
            run=undo.undo,
            keys=("Ctrl+Z",),
            enabled=lambda: undo.can_undo,
            why_not="nothing was changed",
            words_now=lambda: f"&Undo {undo.next_words[0]}",
        ),
        Action(
            name="view.redo",
            menu=_VIEW,
            text="Re&do",
            about="do again what was taken back",
            run=undo.redo,
            keys=("Ctrl+Shift+Z", "Ctrl+Y"),
            enabled=lambda: undo.can_redo,
            why_not="nothing was taken back",
            words_now=lambda: f"Re&do {undo.next_words[1]}",
        ),
        Action(
            name="view.next-space",
            menu=_VIEW,
            text="&Next space",
            run=partial(window.next_space, 1),
            keys=("N",),
            begins_group=True,
        ),
        Action(
            name="view.previous-space",
            menu=_VIEW,
            text="&Previous space",
            run=partial(window.next_space, -1),
            keys=("P",),
        ),
        Action(
            name="view.next-stream",
            menu=_VIEW,
            text="Next &stream",
            about="next stream of the active space",
            run=partial(window.next_stream, 1),
            keys=("]",),
        ),
        Action(
            name="view.previous-stream",
            menu=_VIEW,
            text="Previous s&tream",
            about="previous stream of the active space",
            run=partial(window.next_stream, -1),
            keys=("[",),
        ),
        *actions_of_copying(window),
        Action(name="view.no-tile", menu=_VIEW, text="Select no tile", run=window.deselect),
        Action(
            name="view.larger",
            menu=_VIEW,
            text="&Larger tiles",
            run=partial(window.zoom, 1),
            keys=("+",),
            begins_group=True,
        ),
        Action(
            name="view.smaller",
            menu=_VIEW,
            text="S&maller tiles",
            run=partial(window.zoom, -1),
            keys=("-",),
        ),
        Action(
            name="view.all-tiles",
            menu=_VIEW,
            text="&All tiles in view",
            run=partial(window.zoom, 0),
            keys=("0",),
        ),
        *(
            Action(
                name=name,
                menu=_VIEW,
                text=text,
                run=partial(window.choose_theme, theme),
                checked=partial(window.theme_is_chosen, theme),
                begins_group=theme is None,
            )
            for name, text, theme in themes
        ),
    )


def _help_actions(window: MainWindow) -> tuple[Action, ...]:
    return (
        Action(
            name="help.palette",
            menu=_HELP,
            text="&Command palette…",
            about="find anything that can be done by typing",
            run=window.palette_sheet.open,
            keys=("Ctrl+K",),
        ),
        Action(
            name="help.guide",
            menu=_HELP,
            text="&Guide",
            about="the guide",
            run=window.show_guide,
            keys=("F1",),
        ),
        Action(
            name="help.keys",
            menu=_HELP,
            text="&Keys",
            about="this sheet",
            run=window.show_keys,
            keys=("?",),
        ),
    )


def entries_of(window: MainWindow) -> list[Entry]:
    """Everything that can be done, for the command palette: all actions, and what is to be seen now."""
    entries = window.actions_table.entries()
    for space_id, space in window.session.interpreter.spaces.items():
        entries.append(Entry("Space", space.space.name, partial(window.turn_to, space_id)))
        for stream in ordered_streams(space):
            name = f"{space.space.name} · {stream.name}"
            entries.append(Entry("Stream", name, partial(_look_at, window, space_id, stream.id)))
    for mark in window.bookmarking.marks.all:
        title = f"event {mark.number:,}" + (f" · {mark.title}" if mark.title else "")
        entries.append(
            Entry("Bookmark", title, partial(window.bookmarking.asked.emit, mark.number))
        )
    return entries


def _look_at(window: MainWindow, space_id: int, stream_id: int) -> None:
    window.turn_to(space_id)
    window.choose_stream(space_id, stream_id)
