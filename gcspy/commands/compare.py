"""`gcspy compare`: the difference of two recordings, or of two events of one, as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.errors import CommandError
from gcspy_protocol.text.visible import Lines, visible

from gcspy.options import json_option
from gcspy.output.terminal import say
from gcspy.recorder.named_recordings import opened

if TYPE_CHECKING:
    from gcspy_protocol.interpreter import ClientInterpreter
    from gcspy_replay.file import Recording

__all__ = ["command"]

_BY = ("number", "kind", "clock", "wall", "program")
_FILE = click.Path(exists=True, path_type=Path)
_NUMBER = click.IntRange(1)


@click.command()
@click.argument("left", metavar="A", type=_FILE)
@click.argument("right", metavar="B", type=_FILE)
@click.option(
    "--event",
    type=_NUMBER,
    default=None,
    metavar="N",
    help="Event of A. Default: the last, or the first if B is the same file.",
)
@click.option(
    "--other",
    type=_NUMBER,
    default=None,
    metavar="N",
    help="Event of B. Default: the last, or with --event the counterpart of A's event in another file.",
)
@click.option(
    "--by",
    type=click.Choice(_BY),
    default=None,
    help="Match events of A and B by event number, by the n-th event of the same kind, by time since the start, by time of day, or by a clock of the program such as allocated bytes.",
)
@click.option(
    "--tiles",
    type=click.Choice(["address", "place"]),
    default=None,
    help="Match tiles by address or by position. Default: by address if both recordings are of one process, otherwise by position.",
)
@json_option
def command(
    left: Path,
    right: Path,
    event: int | None,
    other: int | None,
    by: str | None,
    tiles: str | None,
    as_json: bool,
) -> None:
    """Compare two recordings stream by stream.

    Shows the sums of each stream, and how many tiles increased, decreased, appeared and
    disappeared. A and B are files or folders of rings. If they are the same, two events of it are
    compared: the first and the last, or those of --event and --other. The difference is B minus A.
    A window shows it tile by tile: `gcspy replay A --compare B`.
    """
    same = left.samefile(right)
    if by is not None:
        if other is not None:
            raise click.UsageError("--by and --other both select the event of B: use one of them")
        if event is None:
            raise click.UsageError("--by finds the counterpart of A's event: give --event as well")
        if same:
            raise click.UsageError("A and B are the same: select events with --event and --other")
    with opened((left,)) as one, opened((right,)) as two:
        first, second = _numbers(one, two, event, other, None if same else by or "number")
        facts = facts_of(one, two, first, second, tiles)
    say(json.dumps(facts) if as_json else Lines(*lines_of(facts)))


def _numbers(
    one: Recording, two: Recording, event: int | None, other: int | None, by: str | None
) -> tuple[int, int]:
    """The numbers of the two compared events; `by` is None for two events of one recording."""
    for name, recording in (("A", one), ("B", two)):
        if not len(recording):
            raise CommandError(f"{name} has no event to compare")
    first = event or (one.first if by is None else one.last)
    _check("A", one, first)
    second = other
    if second is None:
        second = two.last if event is None or by is None else _counterpart(one, two, first, by)
    _check("B", two, second)
    return first, second


def _check(name: str, recording: Recording, number: int) -> None:
    if not recording.first <= number <= recording.last:
        raise CommandError(
            f"{name} has no event {number}: it has {recording.first} to {recording.last}"
        )


def _counterpart(one: Recording, two: Recording, number: int, by: str) -> int:
    from gcspy_client.model.compare.pairs import Alignment, EventMatching, counterpart

    matching = dict(zip(_BY, EventMatching, strict=True))[by]
    sides = [
        _side(recording, with_clock=matching is EventMatching.PROGRAM) for recording in (one, two)
    ]
    found = counterpart(sides[0], sides[1], number, Alignment(matching))
    if found is None:
        raise CommandError(
            f"B has no event that matches event {number} of A by {matching.value}: name one with --other"
        )
    return found


def _side(recording: Recording, *, with_clock: bool) -> Any:
    import numpy as np
    from gcspy_protocol.playback import TIMELINE
    from gcspy_replay.file import events_with_clock

    from gcspy_client.model.compare.pairs import ComparedSession
    from gcspy_client.model.playback.program_clock import ProgramClock
    from gcspy_client.model.playback.timeline import EventTimeline

    events = recording.events
    rows = np.zeros(len(events), dtype=TIMELINE)
    for field in ("time_nanos", "occurrence", "event"):
        rows[field] = events[field]
    timeline = EventTimeline()
    timeline.extend(events["number"], rows)
    clock = ProgramClock.of(*events_with_clock(recording)) if with_clock else None
    return ComparedSession(
        timeline, recording.welcome.events, recording.welcome.wall_offset_nanos, clock
    )


def facts_of(
    one: Recording, two: Recording, first: int, second: int, tiles: str | None
) -> dict[str, Any]:
    """The comparison as plain JSON values."""
    from gcspy_client.model.compare.pairs import pair_spaces, same_process

    left, right = one.seek(first), two.seek(second)
    same = same_process(one.welcome, two.welcome)
    by_place = tiles == "place" or (tiles is None and not same)
    pairs = pair_spaces(
        [state.space for state in left.spaces.values()],
        [state.space for state in right.spaces.values()],
    )
    return {
        "a": _moment(one, left, first),
        "b": _moment(two, right, second),
        "tiles_by": "place" if by_place else "address",
        "spaces": [
            _space(left.spaces[pair.left], right.spaces[pair.right], by_place=by_place)
            for pair in pairs
            if pair.left is not None and pair.right is not None
        ],
        "only_a": [
            left.spaces[pair.left].space.name
            for pair in pairs
            if pair.left is not None and pair.right is None
        ],
        "only_b": [
            right.spaces[pair.right].space.name
            for pair in pairs
            if pair.right is not None and pair.left is None
        ],
    }


def _moment(recording: Recording, session: ClientInterpreter, number: int) -> dict[str, Any]:
    event = session.last_event
    return {
        "server": recording.welcome.server,
        "session": recording.welcome.session,
        "event": number,
        "name": "" if event is None else session.event_name(event.event),
        "occurrence": 0 if event is None else event.occurrence,
    }


def _space(left: Any, right: Any, *, by_place: bool) -> dict[str, Any]:
    from gcspy_client.model.compare.pairs import pair_streams

    pairs = pair_streams(left.space, right.space)
    streams = [
        _stream(left, right, pair.left, pair.right, by_place=by_place)
        for pair in pairs
        if pair.left is not None and pair.right is not None
    ]
    return {
        "name": right.space.name,
        "tiles": [left.count, right.count],
        "streams": streams,
        "only_a": [
            left.streams[pair.left].schema.name
            for pair in pairs
            if pair.left is not None and pair.right is None
        ],
        "only_b": [
            right.streams[pair.right].schema.name
            for pair in pairs
            if pair.right is not None and pair.left is None
        ],
    }


def _stream(left: Any, right: Any, mine: int, theirs: int, *, by_place: bool) -> dict[str, Any]:
    from gcspy_client.model.compare.difference import (
        alone_amount,
        difference,
        merged_names,
        summary_of,
    )
    from gcspy_client.model.tile_source import StreamSource

    one, two = left.streams[mine], right.streams[theirs]
    source, other = StreamSource(one.schema), StreamSource(two.schema)
    found = difference(left, right, source, other, by_place=by_place)
    told = summary_of(
        found,
        alone_amount(found.right[found.came], other, right)[1],
        alone_amount(found.left[found.went], source, left)[1],
    )
    sums = [
        None if state.summary is None or not state.summary.covered else list(state.summary.values)
        for state in (one, two)
    ]
    names = list(two.schema.enum_names) if found.named else []
    if two.schema.names_from is not None:
        merged, *numbers = merged_names(one.schema.enum_names, two.schema.enum_names)
        names = list(merged)
        sums = [
            counts and _by_name(counts, table.tolist(), len(names))
            for counts, table in zip(sums, numbers, strict=True)
        ]
    return {
        "name": two.schema.name,
        "unit": two.schema.suffix.strip(),
        "names": names,
        "summary": sums,
        "net": None if found.named else told.net,
        "gained": None if found.named else told.gained,
        "lost": None if found.named else told.lost,
        "appeared": None if found.named else told.appeared,
        "disappeared": None if found.named else told.disappeared,
        "same": told.same,
        "more": None if found.named else told.up,
        "less": None if found.named else told.down,
        "changed": told.changed,
        "came": told.only_right,
        "went": told.only_left,
        "unknown": told.unknown,
        "unused": told.unused,
    }


def _by_name(counts: list[int], numbers: list[int], names: int) -> list[int]:
    """Counts by the names of both sides."""
    found = [0] * names
    for count, number in zip(counts, numbers, strict=False):
        found[number] += count
    return found


def lines_of(facts: dict[str, Any]) -> list[str]:
    """The comparison as text."""
    lines = []
    for letter in ("a", "b"):
        side = facts[letter]
        name = f", {side['name']} #{side['occurrence']:,}" if side["name"] else ""
        lines.append(f"{letter.upper()}  event {side['event']:,}{name}  of  {side['server']}")
    lines.append(f"tiles matched by {facts['tiles_by']}; the difference is B minus A")
    for space in facts["spaces"]:
        before, after = space["tiles"]
        lines += [
            "",
            f"{space['name']}  {before:,} tiles, then {after:,}"
            if before != after
            else f"{space['name']}  {after:,} tiles",
        ]
        lines += [_line(stream) for stream in space["streams"]]
        for letter in ("a", "b"):
            if space[f"only_{letter}"]:
                lines.append(
                    f"  not compared, only in {letter.upper()}: {', '.join(space[f'only_{letter}'])}"
                )
    for letter in ("a", "b"):
        if facts[f"only_{letter}"]:
            lines += [
                "",
                f"not compared, only in {letter.upper()}: {', '.join(facts[f'only_{letter}'])}",
            ]
    return [visible(line) for line in lines]


def _line(stream: dict[str, Any]) -> str:
    unit = f" {stream['unit']}" if stream["unit"] else ""
    if stream["net"] is None:
        words = [f"{stream['changed']:,} changed names"]
    else:
        net = stream["net"]
        number = f"{net:+,}" if isinstance(net, int) else f"{net:+,.6g}"
        words = [
            f"{'0' if not net else number}{unit}",
            f"{stream['more']:,} more, {stream['less']:,} less",
        ]
    words.append(f"{stream['same']:,} the same")
    words += [
        f"{stream[key]:,} {word}"
        for key, word in (
            ("came", "appeared"),
            ("went", "disappeared"),
            ("unknown", "unknown"),
            ("unused", "unused"),
        )
        if stream[key]
    ]
    before, after = stream["summary"]
    if (
        before is not None
        and after is not None
        and len(before) == len(after) <= 2
        and not stream["names"]
    ):
        words.append(f"whole {_whole(before)} → {_whole(after)}")
    return f"  {stream['name']:<16} {'; '.join(words)}"


def _whole(summary: list[int]) -> str:
    """A sum, or percent of a total."""
    if len(summary) == 1:
        return f"{summary[0]:,}"
    return f"{100 * summary[0] / summary[1]:.1f} %" if summary[1] else "–"
