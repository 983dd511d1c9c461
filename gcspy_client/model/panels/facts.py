"""The content of the panels of facts: general information, timers, the connection.

A fact is a name and a value; a name alone is a heading. Unknown values are shown as unknown, never
as zero.

Knows the session and counts; does not know widgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.messages import Welcome
from gcspy_protocol.model import Naming

from gcspy_client.model.playback.time_shift import ShiftStatus, StorageState
from gcspy_client.model.playback.timers import Timers
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_meter import LinkMeter, Rates
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus, mode_words
from gcspy_client.model.text import duration, short_number

__all__ = ["PanelFact", "connection_facts", "facts_text", "general_facts", "timer_facts"]

_UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class PanelFact:
    """A fact, or a heading.

    Attributes:
        name: Its subject.
        text: Its value; None: the name is a heading.
        tip: More about it.
    """

    name: str
    text: str | None = None
    tip: str = ""


def facts_text(facts: Sequence[PanelFact]) -> str:
    """Facts as lines of text, to be copied."""
    wide = max((len(fact.name) for fact in facts if fact.text is not None), default=0)
    lines: list[str] = []
    for fact in facts:
        if fact.text is None:
            lines += ["", fact.name] if lines else [fact.name]
        else:
            lines.append(f"  {fact.name:<{wide}}  {fact.text}")
    return "\n".join(lines) + "\n"


def _bytes(amount: float) -> str:
    return f"{short_number(round(amount), 1024)}B"


# ------------------------------------------------------------------------ general info


def general_facts(session: ClientSession) -> list[PanelFact]:
    """The target, the mode, and the content of the session."""
    welcome = session.live.welcome
    if welcome is None:
        return []
    facts = [
        PanelFact("Target"),
        PanelFact("Name", welcome.server),
        *(
            PanelFact("PID" if name == "pid" else name.capitalize(), value)
            for name, value in welcome.target.items()
        ),
        PanelFact("Watching", mode_words(session.live.mode or welcome.mode)),
    ]
    if welcome.general_info:
        facts.append(PanelFact("About", welcome.general_info))
    facts += [
        PanelFact("Events", ", ".join(kind.name for kind in welcome.events) or "none"),
        PanelFact("Clock", f"{welcome.clock}, steps of {duration(welcome.clock_resolution_nanos)}"),
        PanelFact(
            "Began",
            _began(welcome, session),
            "Oldest event that can be shown, by the clock of the target's host, UTC",
        ),
    ]
    for space in session.interpreter.spaces.values():
        facts += _space_facts(space)
    return facts


def _began(welcome: Welcome, session: ClientSession) -> str:
    row = session.timeline.row(session.timeline.first)
    if row is None:
        return _UNKNOWN
    nanos = int(row["time_nanos"]) + welcome.wall_offset_nanos
    try:
        return f"{datetime.fromtimestamp(nanos / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return _UNKNOWN  # a clock that was never set


def _space_facts(space: SpaceState) -> list[PanelFact]:
    schema = space.space
    facts = [PanelFact(schema.name), PanelFact("Tiles", f"{space.count:,}")]
    if schema.naming is Naming.UNIFORM and space.count:
        facts.append(PanelFact("First tile", space.names.name(0)))
    if schema.driver:
        facts.append(PanelFact("Driver", schema.driver))
    if schema.description:
        facts.append(PanelFact("About", schema.description))
    if space.info and space.info != schema.description:
        facts.append(PanelFact("Now", space.info))
    facts.append(PanelFact("Streams", ", ".join(stream.name for stream in schema.streams)))
    return facts


# ------------------------------------------------------------------------------ timers


def timer_facts(timers: Timers | None) -> list[PanelFact]:
    """Elapsed, compensation, difference, at the event that is shown."""
    if timers is None:
        return []
    least = (
        f"{timers.missed:,} events in between were missed: their gathering time is unknown"
        if timers.missed
        else ""
    )
    about = "≥ " if timers.missed else ""
    most = "≤ " if timers.missed else ""
    per_event = timers.gathering_nanos // max(1, timers.last - timers.first)
    return [
        PanelFact(f"From event {timers.first:,} to event {timers.last:,}"),
        PanelFact("Elapsed", duration(timers.elapsed_nanos), "Time by the clock"),
        PanelFact(
            "Compensation",
            about + duration(timers.compensation_nanos),
            least or "Cost of monitoring: gathering and holds",
        ),
        PanelFact(
            "  gathering",
            f"{about}{duration(timers.gathering_nanos)}  ({duration(per_event)} an event)",
            least,
        ),
        PanelFact(
            "  held",
            duration(timers.held_nanos),
            "Delays, pauses, and waiting for lossless clients",
        ),
        PanelFact(
            "Difference",
            most + duration(max(0, timers.difference_nanos)),
            least or "The program's own time",
        ),
    ]


# -------------------------------------------------------------------------- connection


def connection_facts(
    session: ClientSession,
    status: LinkStatus,
    meter: LinkMeter,
    rates: Rates,
    shift: ShiftStatus,
    *,
    held: bool,
    version: int | None,
) -> list[PanelFact]:
    """The traffic of the connection.

    Args:
        session: Whose.
        status: State of the link.
        meter: Received data.
        rates: The same, a second.
        shift: Stored data.
        held: Whether nothing is read at the moment, because earlier data is not stored yet.
        version: Version of the protocol, once it is agreed on.
    """
    facts = [
        PanelFact("Connection"),
        PanelFact("Address", status.address or _UNKNOWN),
        PanelFact("State", status.phase.value + (f": {status.message}" if status.message else "")),
        PanelFact("Protocol", _UNKNOWN if version is None else f"version {version}"),
        PanelFact(
            "Round trip",
            _UNKNOWN if meter.round_trip_nanos is None else duration(meter.round_trip_nanos),
        ),
        PanelFact("Clients", _clients(session)),
        PanelFact("Traffic"),
        PanelFact(
            "Events",
            f"{_UNKNOWN if rates.events is None else f'{rates.events:,.1f} /s'}  ({meter.events:,} in all)",
        ),
        PanelFact(
            "Bytes",
            f"{_UNKNOWN if rates.wire_bytes is None else f'{_bytes(rates.wire_bytes)}/s'}  ({_bytes(meter.wire_bytes)} in all)",
        ),
        PanelFact(
            "Compression",
            _UNKNOWN if meter.ratio is None else f"{meter.ratio:,.1f} : 1",
            "Uncompressed size of all received stream values, relative to the bytes received",
        ),
        PanelFact(
            "Missed events",
            f"{meter.missed:,}",
            "Dropped by the server because this window or the network was too slow",
        ),
        PanelFact(
            "Waiting here",
            _bytes(shift.waiting_bytes) + (", reading holds" if held else ""),
            "Received but not stored yet; reading stops while there is too much of it",
        ),
        PanelFact(
            "Lossless holds",
            f"{duration(meter.waited_nanos)} in all" if meter.waited_nanos else "none",
            "Total time that the target waited for lossless clients since the server started",
        ),
        PanelFact("Kept", _kept(shift)),
        PanelFact("Gathering  (mean, longest)"),
    ]
    for kind, gathered in sorted(meter.gathered.items()):
        mean = duration(gathered.nanos // gathered.events)
        facts.append(
            PanelFact(
                session.live.event_name(kind),
                f"{mean}, {duration(gathered.most_nanos)}",
                _drivers(session),
            )
        )
    if not meter.gathered:
        facts.append(PanelFact("no event yet", _UNKNOWN))
    return facts if status.phase is not LinkPhase.IDLE or status.address else []


def _drivers(session: ClientSession) -> str:
    """An event has the cost of all its gathering; the spaces show which driver it was."""
    names = sorted(
        {space.space.driver for space in session.live.spaces.values() if space.space.driver}
    )
    return f"Drivers: {', '.join(names)}" if names else ""


def _clients(session: ClientSession) -> str:
    clients = session.live.clients
    if not clients.clients:
        return _UNKNOWN
    names = [
        f"{client.name} ({client.id}{', controls' if client.id == clients.controller else ''})"
        for client in clients.clients
    ]
    return f"{len(names)}: {', '.join(names)}"


def _kept(shift: ShiftStatus) -> str:
    if shift.keeping is not StorageState.ON:
        return shift.reason or shift.keeping.value
    events = shift.last - shift.first + 1 if shift.first else 0
    disk = f", {_bytes(shift.disk_bytes)} on disk" if shift.disk_bytes else ""
    return f"{events:,} events, {_bytes(shift.memory_bytes)} in memory{disk}"
