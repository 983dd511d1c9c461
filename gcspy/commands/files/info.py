"""`gcspy info`: a summary of a recording."""

from __future__ import annotations

import json
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.text.visible import Lines, visible

from gcspy.options import json_option, stored_files_argument
from gcspy.output.terminal import say
from gcspy.recorder.named_recordings import opened

if TYPE_CHECKING:
    from gcspy_protocol.interpreter import ClientInterpreter
    from gcspy_replay.file import Recording
    from numpy.typing import NDArray

__all__ = ["command"]

_SAMPLED = 12
_COLUMNS = 80
_INDENT = 10
_LAST_YEAR_NANOS = 253_000_000_000 * 10**9
"""Dates beyond the year 9987 cannot be represented; a recording may contain any time."""


@click.command()
@stored_files_argument
@json_option
def command(files: tuple[Path | str, ...], as_json: bool) -> None:
    """Summarise a recording.

    Shows target, spaces, streams, events, duration, size and integrity. Reads only the index. FILE may
    be an address such as s3://BUCKET/NAME or https://HOST/NAME, of which only ranges are read. `gcspy verify` checks every byte.
    """
    with opened(files) as recording:
        facts = facts_of(recording) | _added(files, recording.facts.recording)
    say(json.dumps(facts) if as_json else Lines(*lines_of(facts)))


def facts_of(recording: Recording) -> dict[str, Any]:
    """The summary as plain JSON values."""
    import numpy as np  # imported only to read a recording, not for help
    from gcspy_replay.file import compensated_nanos

    welcome, events = recording.welcome, recording.events
    session = _last_state(recording)
    names = [kind.name for kind in welcome.events]
    counts = np.bincount(events["event"], minlength=len(names)).tolist()
    times = events["time_nanos"]
    gaps = np.flatnonzero(np.diff(events["number"].astype(np.int64)) > 1)
    return {
        "server": welcome.server,
        "session": welcome.session,
        "mode": welcome.mode.value,
        "target": welcome.target,
        "software": recording.facts.software,
        "note": recording.facts.note,
        "created_wall_nanos": recording.facts.created or None,
        "bytes": recording.size_bytes,
        "bytes_an_event": recording.size_bytes / len(events) if len(events) else None,
        "snapshot_bytes": _snapshot_bytes(recording),
        "parts": len(recording.parts),
        "chunks": len(recording.chunks),
        "events": len(events),
        "first": recording.first,
        "last": recording.last,
        "events_by_name": dict(zip(names, counts, strict=False)),
        "start_wall_nanos": int(times[0]) + welcome.wall_offset_nanos
        if len(times) and welcome.wall_offset_nanos  # 0: the times are unrelated to the wall clock
        else None,
        "duration_nanos": int(times[-1]) - int(times[0]) if len(times) else 0,
        "program_nanos": int(compensated_nanos(events)[-1]) if len(times) else 0,
        "spaces": [_space(state) for state in session.spaces.values()] if session else [],
        "triggers_fired": session.triggers.fired if session else None,
        "budget": session.budget.as_dict() if session and session.budget else None,
        "missed": int(events["missed"].sum()),
        "not_recorded": _not_recorded(events, names),
        "lost": [[int(events["number"][i]) + 1, int(events["number"][i + 1]) - 1] for i in gaps],
        "closed": recording.finished,
        "indexed": recording.indexed,
        "torn_bytes": recording.torn_bytes,
        "damages": [
            {"file": name, "start": d.start, "end": d.end, "what": d.what}
            for name, d in recording.damages
        ],
    }


def _not_recorded(events: NDArray[Any], names: list[str]) -> dict[str, int]:
    """Return the number of missing events of each kind between the first and the last recorded one, computed from occurrence numbers."""
    import numpy as np

    found = {}
    for kind, name in enumerate(names):
        occurrences = np.unique(events["occurrence"][events["event"] == kind])
        if len(occurrences):
            found[name] = int(occurrences[-1]) - int(occurrences[0]) + 1 - len(occurrences)
    return found


def _snapshot_bytes(recording: Recording) -> float | None:
    """Bytes of the plain values of all streams at an event: the mean over beginnings of chunks spread over the file."""
    with_events = [at for at in recording.chunks if at.place.events]
    sizes = []
    for at in with_events[:: max(1, len(with_events) // _SAMPLED)]:
        try:
            session = recording.seek(at.place.first)
        except RecordingError:
            continue  # damaged, which is reported elsewhere
        sizes.append(
            sum(
                stream.values.nbytes
                for s in session.spaces.values()
                for stream in (*s.streams.values(), s.control)
            )
        )
    return sum(sizes) / len(sizes) if sizes else None


def _added(files: tuple[Path | str, ...], recording: bytes) -> dict[str, Any]:
    """The content of the sidecar file."""
    from gcspy_replay.file import Sidecar, read_sidecar, sidecar_of

    found, wrong = Sidecar(), ""
    try:
        paths = [one for one in files if isinstance(one, Path)]
        path = sidecar_of(paths) if len(paths) == len(files) else Path()
        there = read_sidecar(path) if paths else None
        if there is not None and not there.belongs_to(recording):
            wrong = f"{path} belongs to another recording, {there.recording.hex()}"
        elif there is not None:
            found = there
    except RecordingError as error:
        wrong = str(error)  # the recording can be summarised without it
    return {
        "bookmarks": [
            {
                "event": mark.number,
                "title": mark.title,
                "note": mark.note,
                "colour": None
                if mark.colour is None
                else "#{:02x}{:02x}{:02x}".format(*mark.colour),
            }
            for mark in found.bookmarks
        ],
        "notes": found.notes,
        "sidecar_error": wrong,
    }


def _last_state(recording: Recording) -> ClientInterpreter | None:
    try:
        if not len(recording):
            return None
        cursor = recording.cursor()
        cursor.seek(recording.last)
        cursor.step()  # notices after it
        return cursor.session
    except RecordingError:
        return None  # the damage is reported below; the rest can be summarised


def _space(state: Any) -> dict[str, Any]:
    return {
        "name": state.space.name,
        "driver": state.space.driver,
        "tiles": state.count,
        "streams": [
            one.name
            for one in sorted(
                (s.schema for s in state.streams.values()), key=lambda one: (one.order, one.id)
            )
        ],
    }


def lines_of(facts: dict[str, Any]) -> list[str]:
    """The summary as text, with lines of at most 80 columns where words allow it."""
    lines = []
    for line in _lines(facts) + _added_lines(facts):
        indent = max(_INDENT, len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(
            visible(line),
            _COLUMNS,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return lines


def _lines(facts: dict[str, Any]) -> list[str]:
    secs = facts["duration_nanos"] / 1e9
    tiles = sum(space["tiles"] for space in facts["spaces"])
    program = facts["program_nanos"] / 1e9
    own = (
        f" ({program:,.1f} s of program time)"
        if facts["program_nanos"] < 0.99 * facts["duration_nanos"]
        else ""
    )
    lines = [
        f"{facts['server']}  ({facts['mode']})",
        *(f"  {name}: {value}" for name, value in sorted(facts["target"].items())),
        *_recorded_line(facts),
        f"events    {facts['events']:,} over {secs:,.1f} s{own}, numbers {facts['first']} to {facts['last']}",
        *(f"  {count:>9,}  {name}" for name, count in facts["events_by_name"].items() if count),
        f"spaces    {len(facts['spaces'])}, {tiles:,} tiles at the last event",
        *(f"  {s['tiles']:>9,}  {s['name']}: {', '.join(s['streams'])}" for s in facts["spaces"]),
        *(
            [f"triggers  fired {facts['triggers_fired']:,} times"]
            if facts["triggers_fired"]
            else []
        ),
        *([f"budget    {facts['budget']['words']}"] if facts["budget"] else []),
        f"size      {facts['bytes']:,} bytes in {facts['chunks']:,} chunks"
        + _parts(facts)
        + _density(facts),
        *(f"{'          ' if i else 'gaps      '}{gap}" for i, gap in enumerate(_gaps(facts))),
        f"integrity {_integrity(facts)}",
    ]
    lines += [f"  {d['file']}: {d['what']}" for d in facts["damages"]]
    if facts["note"]:
        lines.append(f"note      {facts['note']}")
    return lines


def _recorded_line(facts: dict[str, Any]) -> list[str]:
    nanos = facts["start_wall_nanos"] or facts["created_wall_nanos"]
    if nanos is None or not 0 <= nanos < _LAST_YEAR_NANOS:
        return []
    when = datetime.fromtimestamp(nanos / 1e9, tz=UTC).astimezone()
    return [f"recorded  {when:%Y-%m-%d %H:%M:%S %Z} by {facts['software']}"]


def _density(facts: dict[str, Any]) -> str:
    if not facts["bytes_an_event"]:
        return ""
    each = facts["bytes_an_event"]
    text = f"; {each:,.0f} bytes an event"
    if facts["snapshot_bytes"]:
        ratio = facts["snapshot_bytes"] / each
        text += f", {ratio:,.{1 if ratio < 10 else 0}f} : 1 of plain values (estimated)"
    return text


def _added_lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    if facts["bookmarks"]:
        lines.append(f"bookmarks {len(facts['bookmarks'])}")
        for mark in facts["bookmarks"]:
            lines.append(f"  {mark['event']:>9,}  {mark['title']}".rstrip())
            lines += [f"             {line}" for line in mark["note"].splitlines()]
    if facts["notes"]:
        lines += ["notes", *(f"  {line}" for line in facts["notes"].splitlines())]
    if facts["sidecar_error"]:
        lines.append(f"bookmarks not shown: {facts['sidecar_error']}")
    return lines


def _parts(facts: dict[str, Any]) -> str:
    return f" of {facts['parts']} files" if facts["parts"] > 1 else ""


def _gaps(facts: dict[str, Any]) -> list[str]:
    told = (
        [f"{facts['missed']:,} events were dropped before the recorder"] if facts["missed"] else []
    )
    absent = {name: count for name, count in facts["not_recorded"].items() if count}
    lost = sum(last - first + 1 for first, last in facts["lost"])
    filtered = sum(absent.values()) - facts["missed"] - lost
    if filtered > 0:
        which = ", ".join(f"{count:,} {name}" for name, count in absent.items())
        told.append(
            f"{filtered:,} were not sent because of filters, the budget or subscriptions (not in the file: {which})"
        )
    if facts["lost"]:
        told.append(
            "lost since: " + ", ".join(f"{first} to {last}" for first, last in facts["lost"])
        )
    return told or ["none"]


def _integrity(facts: dict[str, Any]) -> str:
    if facts["damages"]:
        return f"damaged in {len(facts['damages'])} places; gcspy repair recovers the rest"
    if facts["indexed"]:
        return "closed, index present"
    if facts["closed"]:
        return "closed; the index is damaged and was rebuilt"
    torn = (
        f", the last {facts['torn_bytes']:,} bytes are an incomplete event"
        if facts["torn_bytes"]
        else ""
    )
    return f"not closed: the recorder was killed or is still writing; the index was rebuilt{torn}"
