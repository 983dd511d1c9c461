"""Prints the events of a session as they happen, or those of a recording, for `gcspy tail`.

Knows the client interpreter and the text form of an event; does not know connections.
"""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path

from gcspy_protocol.errors import CommandError, DriverError, LinkError, TargetGone
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import (
    Error,
    ErrorCode,
    Event,
    Fired,
    Message,
    State,
    TileNames,
    TileNamesRequest,
    Tiles,
    Triggers,
    Welcome,
)
from gcspy_protocol.model import ControlState, Naming
from gcspy_protocol.text.visible import Lines
from gcspy_protocol.trigger_notices import TriggerNotices

from gcspy.connection.missed_total import MissedTotal
from gcspy.connection.reconnecting_link import ReconnectingLink
from gcspy.connection.stop_condition import Until
from gcspy.exit_codes import ExitCode
from gcspy.output.session_text import event_as_dict, event_as_lines, fired_as_line, info_lines
from gcspy.output.terminal import say, say_aside
from gcspy.recorder.named_recordings import opened

__all__ = ["Printer", "print_recording", "print_session"]


class Printer:
    """Prints events, up to a number of them, or until a condition holds."""

    def __init__(self, most: int | None, until: str | None, *, as_json: bool, values: bool) -> None:
        self.shown = 0
        self.most = most
        self.until = None if until is None else Until(until, say_aside)
        self._held = False
        self.values = values
        self._as_json = as_json
        self._told_infos: dict[int, str] = {}

    @property
    def done(self) -> bool:
        """Whether the requested number was shown, or the condition is true."""
        return self._held or self.shown == self.most

    @property
    def shortfall(self) -> str:
        """Why the request was not fulfilled; empty: it was, or there was none."""
        if self.done or (self.most is None and self.until is None):
            return ""
        events = f"{self.shown} of {self.most} events" if self.most else f"{self.shown} events"
        return events + (f", and {self.until.never()}" if self.until else "")

    def show(self, session: ClientInterpreter, event: Event) -> None:
        """Print one event, with the state right after it.

        Raises:
            CommandError: The condition to stop at is ambiguous; nothing was printed.
        """
        if self.until is not None:
            self.until.follow(session)
        if self._as_json:
            say(json.dumps(event_as_dict(session, event, values=self.values)))
        else:
            say(Lines(*event_as_lines(session, event), *info_lines(session, self._told_infos)))
        self.shown += 1
        self._held = self.until is not None and self.until.holds(session)

    def show_fired(self, fired: Fired) -> None:
        """Print that a trigger fired at the event that was shown; as text only: a line of JSON is an event."""
        if not self._as_json:
            say(fired_as_line(fired))


def _say_end(session: ClientInterpreter) -> None:
    say_aside(_end_words(session))


def _end_words(session: ClientInterpreter) -> str:
    what = "the driver failed" if session.driver_failed else "the target ended"
    return session.state_reason or what


def print_recording(paths: list[Path], printer: Printer) -> None:
    """Print the events of a recording, as a viewer would receive them.

    Raises:
        RecordingError: It is not a recording, or it is damaged.
        CommandError: It ends before the condition is true, or the condition is ambiguous.
    """
    with opened(paths) as recording:
        if recording.chunks:
            cursor = recording.cursor()
            while not printer.done and (step := cursor.step()) is not None:
                printer.show(cursor.session, step.change.event)
            if not printer.done and cursor.session.state is ControlState.ENDED:
                _say_end(cursor.session)
    if printer.until is not None and printer.shortfall:
        raise CommandError(
            f"the recording ended after {printer.shortfall}", exit_code=ExitCode.FAILED
        )


def print_session(link: ReconnectingLink, printer: Printer) -> None:
    """Print events until the requested number is reached or the session ends.

    Raises:
        LinkError: The connection was lost, or the server ended the session, before the requested
            number.
        TargetGone: The target ended before the requested number.
        DriverError: The driver failed.
        CommandError: The condition to stop at is ambiguous.
    """
    notices = TriggerNotices()
    session, before = ClientInterpreter(), None
    missed = MissedTotal()
    waiting: deque[Message] = deque()
    state = session.state
    while (message := waiting.popleft() if waiting else link.receive()) is not None:
        if isinstance(message, Welcome) and session.welcome is not None:
            # After a reconnection to the same session, the first event may be known already.
            before = session.last_event if message.session == session.welcome.session else None
            # Another session, or the same one: its server counts missed events from here on.
            missed = missed if before is not None else MissedTotal()
            missed.connected()
            session = ClientInterpreter()
        change = session.apply(missed.follow(message))
        session.missed_total = missed.total
        if isinstance(message, Fired):
            printer.show_fired(message)
        if isinstance(message, Triggers):
            for line in notices.lines(message):
                say_aside(line)
        if isinstance(message, State) and message.state is state and message.reason:
            say_aside(message.reason)  # nothing changed: it says why no event comes
        state = session.state
        if isinstance(message, State) and message.state is ControlState.ENDED:
            if message.driver_failed:
                raise DriverError(
                    _end_words(session)
                    + (f", after {printer.shortfall}" if printer.shortfall else "")
                )
            if printer.shortfall:
                raise TargetGone(f"{_end_words(session)}, after {printer.shortfall}")
            _say_end(session)
            return
        if change is None or (
            before is not None and change.event.cached and change.event.sequence == before.sequence
        ):
            continue
        if printer.values:
            _fetch_names(link, session, waiting)
        printer.show(session, change.event)
        if printer.done:
            return
    if printer.shortfall:
        raise LinkError(f"the server ended the session after {printer.shortfall}")


def _fetch_names(
    link: ReconnectingLink, session: ClientInterpreter, waiting: deque[Message]
) -> None:
    """Request missing texts of tiles, before the event that uses them is printed.

    Args:
        link: The connection.
        session: The state right after the event.
        waiting: Messages that arrive meanwhile, not applied yet.
    """
    asked = 0
    for number, space in session.spaces.items():
        if space.space.naming is not Naming.STRINGS:
            continue
        texts, page = space.names.texts(), CLIENT_LIMITS.names_page
        for first in range(0, space.count, page):
            count = min(page, space.count - first)
            if any(tile not in texts for tile in range(first, first + count)):
                link.send(TileNamesRequest(space=number, first=first, count=count))
                asked += 1
    renumbered: set[int] = set()
    while asked and (message := link.receive()) is not None:
        match message:
            case TileNames():
                asked -= 1
                if message.space not in renumbered:
                    session.apply(message)
                continue
            case Error() if message.code is ErrorCode.BAD_REQUEST and not message.fatal:
                asked -= 1
            case Tiles() if message.old_starts.tolist() != message.new_starts.tolist():
                renumbered.add(message.space)  # names that arrive now are of other tiles
            case Welcome() | State() if isinstance(message, Welcome) or (
                message.state is ControlState.ENDED
            ):
                asked = 0
        waiting.append(message)
