"""`gcspy info`: what is in a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.errors import RecordingError

from gcspy.options import files_argument
from gcspy.recorded import opened

if TYPE_CHECKING:
    from gcspy_protocol.interpreter import ClientInterpreter
    from gcspy_replay.file import Recording

__all__ = ["command"]


@click.command()
@files_argument
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(files: tuple[Path, ...], as_json: bool) -> None:
    """Say what is in a recording: target, spaces, events by name, duration, size, gaps, integrity.

    Reads the index, not every byte: `gcspy verify` does that.
    """
    with opened(files) as recording:
        facts = facts_of(recording) | _added(files, recording.facts.recording)
    click.echo(json.dumps(facts) if as_json else "\n".join(lines_of(facts)))


def facts_of(recording: Recording) -> dict[str, Any]:
    """What there is to say, as plain JSON values."""
    import numpy as np  # by who reads a recording, and not by who asks how to
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
        "bytes": recording.size_bytes,
        "parts": len(recording.parts),
        "chunks": len(recording.chunks),
        "events": len(events),
        "first": recording.first,
        "last": recording.last,
        "events_by_name": dict(zip(names, counts, strict=False)),
        "start_wall_nanos": int(times[0]) + welcome.wall_offset_nanos if len(times) else None,
        "duration_nanos": int(times[-1]) - int(times[0]) if len(times) else 0,
        "program_nanos": int(compensated_nanos(events)[-1]) if len(times) else 0,
        "spaces": [_space(state) for state in session.spaces.values()] if session else [],
        "triggers_fired": session.triggers.fired if session else None,
        "missed": int(events["missed"].sum()),
        "lost": [[int(events["number"][i]) + 1, int(events["number"][i + 1]) - 1] for i in gaps],
        "closed": recording.finished,
        "indexed": recording.indexed,
        "torn_bytes": recording.torn_bytes,
        "damages": [
            {"file": name, "start": d.start, "end": d.end, "what": d.what} for name, d in recording.damages
        ],
    }


def _added(files: tuple[Path, ...], recording: bytes) -> dict[str, Any]:
    """What somebody added in the sidecar."""
    from gcspy_replay.file import Sidecar, read_sidecar, sidecar_of

    found, wrong = Sidecar(), ""
    try:
        path = sidecar_of(files)
        there = read_sidecar(path)
        if there is not None and not there.belongs_to(recording):
            wrong = f"{path} was made for another recording, {there.recording.hex()}"
        elif there is not None:
            found = there
    except RecordingError as error:
        wrong = str(error)  # the recording can be told of without it
    return {
        "bookmarks": [
            {
                "event": mark.number,
                "title": mark.title,
                "note": mark.note,
                "colour": None if mark.colour is None else "#{:02x}{:02x}{:02x}".format(*mark.colour),
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
        cursor.step()  # what was said after it
        return cursor.session
    except RecordingError:
        return None  # the damage is told below; everything else can be told without it


def _space(state: Any) -> dict[str, Any]:
    return {
        "name": state.space.name,
        "driver": state.space.driver,
        "tiles": state.count,
        "streams": [stream.schema.name for stream in state.streams.values()],
    }


def lines_of(facts: dict[str, Any]) -> list[str]:
    """The same for a human."""
    secs = facts["duration_nanos"] / 1e9
    tiles = sum(space["tiles"] for space in facts["spaces"])
    lines = [
        f"{facts['server']}  ({facts['mode']})",
        *(f"  {name}: {value}" for name, value in sorted(facts["target"].items())),
        f"events    {facts['events']:,} over {secs:,.1f} s, numbers {facts['first']} to {facts['last']}",
        *(f"  {count:>9,}  {name}" for name, count in facts["events_by_name"].items() if count),
        f"spaces    {len(facts['spaces'])}, {tiles:,} tiles at the last event",
        *(f"  {s['tiles']:>9,}  {s['name']}: {', '.join(s['streams'])}" for s in facts["spaces"]),
        *([f"triggers  fired {facts['triggers_fired']:,} times"] if facts["triggers_fired"] else []),
        f"size      {facts['bytes']:,} bytes in {facts['chunks']:,} chunks" + _parts(facts),
        f"gaps      {_gaps(facts)}",
        f"integrity {_integrity(facts)}",
    ]
    lines += [f"  {d['file']}: {d['what']}" for d in facts["damages"]]
    if facts["note"]:
        lines.append(f"note      {facts['note']}")
    return lines + _added_lines(facts)


def _added_lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    if facts["bookmarks"]:
        lines.append(f"bookmarks {len(facts['bookmarks'])}")
        for mark in facts["bookmarks"]:
            lines.append(f"  {mark['event']:>9,}  {_printable(mark['title'])}".rstrip())
            lines += [f"             {_printable(line)}" for line in mark["note"].splitlines()]
    if facts["notes"]:
        lines += ["notes", *(f"  {_printable(line)}" for line in facts["notes"].splitlines())]
    if facts["sidecar_error"]:
        lines.append(f"bookmarks not shown: {facts['sidecar_error']}")
    return lines


def _printable(text: str) -> str:
    """Text of anybody's without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _parts(facts: dict[str, Any]) -> str:
    return f" of {facts['parts']} files" if facts["parts"] > 1 else ""


def _gaps(facts: dict[str, Any]) -> str:
    missed = f"{facts['missed']:,} events were missed by the recorder" if facts["missed"] else "none while recording"
    if not facts["lost"]:
        return missed
    return missed + "; lost since: " + ", ".join(f"{first} to {last}" for first, last in facts["lost"])


def _integrity(facts: dict[str, Any]) -> str:
    if facts["damages"]:
        return f"damaged in {len(facts['damages'])} places; gcspy repair saves the rest"
    if facts["indexed"]:
        return "closed, with its index"
    if facts["closed"]:
        return "closed; the index is damaged and was rebuilt"
    torn = f", the last {facts['torn_bytes']:,} bytes are no whole event" if facts["torn_bytes"] else ""
    return f"not closed: the recorder was killed, or still writes; the index was rebuilt{torn}"
