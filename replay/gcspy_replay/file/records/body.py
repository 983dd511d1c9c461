"""The body of a record: tiles, values, summaries and texts of all spaces (FORMAT.md section 10).

Values are differences to what a reader has already: the writer keeps a copy of that, the reader's
own client interpreter is it. Of a stream that was not gathered, or did not change, one number is
told. No frame of the wire is in a body, so that the wire may change and the files stay.

Knows the client's state; does not know blocks or files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import add
from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.codec import unpack
from gcspy_protocol.compiled.stream_changes import (
    PackedDifferences,
    pack_all,
    pack_changes,
    put_values,
)
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.frame import FLAG_ZSTD, Header
from gcspy_protocol.interpreter import ClientInterpreter, EventChange, SpaceState, StreamState
from gcspy_protocol.limits import CLIENT_LIMITS, Limits
from gcspy_protocol.messages import Message
from gcspy_protocol.model import CONTROL_STREAM, Naming
from gcspy_protocol.streams.values import decode_delta
from numpy.typing import NDArray

from gcspy_replay.file.keyframe import tiles_of
from gcspy_replay.file.records.fields import FieldReader, FieldWriter
from gcspy_replay.file.records.numbers import narrow, signed

__all__ = [
    "ABSENT",
    "HOW",
    "SUMMARIES",
    "KnownState",
    "pass_streams",
    "pass_tiles_and_texts",
    "read_body",
    "summary_of",
    "write_body",
]

_TILES, _INFO, _NAMES, _STREAMS, SUMMARIES = 1, 2, 4, 8, 16
"""Flags of a space: the parts of it that follow."""

ABSENT, _SAME, _SOME, _ALL = 0, 1, 2, 3
"""A stream: not gathered; gathered and unchanged; differences of some tiles; of all."""
HOW = 3
_STAMPED, _PARTLY_KNOWN, _SAME_TILES, _RUNNING, _PACKED = 4, 8, 16, 32, 64
"""Flags of a stream: its stamp is not the event's; bits tell which of these values are known; the
tiles are those of the stream before; each difference is to the one of the tile before; tiles and
values are as their server compressed them."""

_ALL_FROM = 2
"""Differences of all tiles are written if at least one in this many changed."""

_NAME_CHARS = 1024
_MOST_TOLD = 4096
"""Most zeros of an array of tiles that one code may stand for."""

_RUNNING_FROM = 64

_KEPT_SHARE = 2
"""Changes are kept unapplied, compressed, up to one in this many of the bytes of a stream's values."""

_NO_TILES = np.empty(0, dtype=np.int64)


class KnownState:
    """The state of a reader before the next event: a copy of the spaces, which follows the session.

    Values whose changes are stored as they came are not needed for that: their changes are kept,
    and applied when differences to them are needed. Call `catch_up` before reading values.

    Args:
        session: The session.
    """

    def __init__(self, session: ClientInterpreter) -> None:
        self._spaces: dict[int, tuple[SpaceState, SpaceState]] = {
            number: (space, space.copy()) for number, space in session.spaces.items()
        }
        self._late: dict[tuple[int, int], list[bytes]] = {}
        self.last_event = session.last_event

    def rebind(self, session: ClientInterpreter) -> None:
        """Follow another session whose state is the same."""
        for number, space in session.spaces.items():
            if number in self._spaces:
                self._spaces[number] = (space, self._spaces[number][1])

    def follow_schema(self, session: ClientInterpreter) -> None:
        """Drop spaces that are gone, and begin new ones without tiles."""
        for number in [one for one in self._spaces if one not in session.spaces]:
            del self._spaces[number]
            self._forget_late(number)
        for number, space in session.spaces.items():
            if number not in self._spaces or self._spaces[number][0] is not space:
                self._spaces[number] = (space, SpaceState(space.space))
                self._forget_late(number)

    def space(self, number: int) -> SpaceState:
        """The reader's state of a space."""
        return self._spaces[number][1]

    def replace(self, space: SpaceState) -> None:
        """Copy a space anew."""
        number = space.space.id
        self._spaces[number] = (space, space.copy())
        self._forget_late(number)

    def put_later(self, number: int, one: int, now: StreamState, delta: m.StreamDelta) -> None:
        """Keep changes of a stream.

        Args:
            number: Its space.
            one: Its id.
            now: Its state in the session, with these changes.
            delta: The changes, of the values that this state has with all changes that are kept.
        """
        late = self._late.setdefault((number, one), [])
        assert delta.packed is not None
        late.append(delta.packed)
        values = self.space(number).stream(one).values
        if sum(map(len, late)) * _KEPT_SHARE > values.nbytes:
            np.copyto(values, now.values)
            late.clear()

    def catch_up(self, number: int, one: int) -> None:
        """Apply the changes of a stream that are kept."""
        for packed in self._late.pop((number, one), ()):
            delta = _unpack_delta(packed, number, one, CLIENT_LIMITS)
            values = self.space(number).stream(one).values
            if not put_values(values, delta.indices, delta.values):
                values[delta.indices] = delta.values

    def _forget_late(self, number: int) -> None:
        for key in [key for key in self._late if key[0] == number]:
            del self._late[key]

    def note_names(self, space: SpaceState) -> None:
        """Names of tiles came between events."""
        known = self._spaces.get(space.space.id)
        if known is not None and known[0] is space:
            known[1].names = space.names.copy()


def _streams(space: SpaceState) -> list[tuple[int, StreamState]]:
    return [*space.streams.items(), (CONTROL_STREAM, space.control)]


def _is_of(stream: StreamState, event: m.Event) -> bool:
    """Whether the stamp of a stream is that of an event."""
    return (
        stream.sequence == event.sequence
        and stream.time_nanos == event.time_nanos
        and stream.event == event.event
        and stream.occurrence == event.occurrence
    )


# ------------------------------------------------------------------ writing


def write_body(
    out: FieldWriter,
    session: ClientInterpreter,
    event: m.Event,
    known: KnownState | None,
    change: EventChange | None,
    packed: Mapping[tuple[int, int], m.StreamDelta | None] | None = None,
) -> None:
    """Write what changed since the state that a reader has, and let that follow.

    Args:
        out: Where to.
        session: The session right after the event.
        event: The event.
        known: The reader's state; None: it has only the schema, and everything is written.
        change: What the event changed; None: everything is written.
        packed: By space and stream changes that are stored as their server compressed them, if they can be.
    """
    for number, space in session.spaces.items():
        if known is None or change is None or number in change.resized_again:
            _write_whole(out, space, event, None if known is None else known.space(number))
            if known is not None:
                known.replace(space)
        else:
            _write_changes(out, space, event, known, change, packed or {})


def _write_whole(
    out: FieldWriter, space: SpaceState, event: m.Event, known: SpaceState | None
) -> None:
    texts = space.names.texts() if space.space.naming is Naming.STRINGS else {}
    streams = [(one, stream) for one, stream in _streams(space) if stream.sequence]
    told = [(one, stream) for one, stream in _streams(space) if stream.told is not None]
    flags = _TILES
    flags |= _INFO if space.info != ("" if known is None else known.info) else 0
    flags |= _NAMES if texts else 0
    flags |= _STREAMS if streams else 0
    flags |= SUMMARIES if told else 0
    out.integers.append(flags)
    _write_tiles(out, tiles_of(space))
    if flags & _INFO:
        out.text(space.info)
    if texts:
        _write_names(out, dict(texts))
    if streams:
        tiles = _Tiles()
        for _, stream in _streams(space):
            if not stream.sequence:
                out.integers.append(ABSENT)
                continue
            every = _all_differences(stream.values, None, signed(stream.defined.default))
            _write_stream(out, stream, event, tiles, _NO_TILES, every)
    if told:
        for one, stream in _streams(space):
            before = None if known is None else known.stream(one).told
            _write_summary(out, one, stream.told, before, event)


def _write_changes(
    out: FieldWriter,
    space: SpaceState,
    event: m.Event,
    reader: KnownState,
    change: EventChange,
    packed: Mapping[tuple[int, int], m.StreamDelta | None],
) -> None:
    number = space.space.id
    known = reader.space(number)
    tiles = change.resized.get(number)
    if tiles is not None:
        for one, _ in _streams(known):
            reader.catch_up(number, one)
        known.resize(tiles)
    texts: dict[int, str] = {}
    if number in change.renamed and space.space.naming is Naming.STRINGS:
        before = known.names.texts()
        texts = {
            tile: text for tile, text in space.names.texts().items() if before.get(tile) != text
        }
        known.names = space.names.copy()
    fresh = any((number, one) in change.changed for one, _ in _streams(space))
    told = any(
        stream.told is not old.told
        for (_, stream), (_, old) in zip(_streams(space), _streams(known), strict=True)
    )
    flags = _TILES if tiles is not None else 0
    flags |= _INFO if space.info != known.info else 0
    flags |= _NAMES if texts else 0
    flags |= _STREAMS if fresh else 0
    flags |= SUMMARIES if told else 0
    out.integers.append(flags)
    if tiles is not None:
        _write_tiles(out, tiles)
    if flags & _INFO:
        out.text(space.info)
        known.info = space.info
    if texts:
        _write_names(out, texts)
    if fresh:
        shared = _Tiles()
        for (one, stream), (_, old) in zip(_streams(space), _streams(known), strict=True):
            if (number, one) not in change.changed:
                out.integers.append(ABSENT)
                continue
            delta = packed.get((number, one)) if tiles is None else None
            if delta is not None and _write_packed(out, stream, old, event, delta):
                reader.put_later(number, one, stream, delta)
            else:
                reader.catch_up(number, one)
                _write_changed(out, stream, old, event, shared, change.changed[number, one])
    if told:
        for (one, stream), (_, old) in zip(_streams(space), _streams(known), strict=True):
            summary = None if stream.told is old.told else stream.told
            _write_summary(out, one, summary, old.told, event)
            old.told = stream.told


def _steps(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number less the one before it, the first less 0, modulo 2**64."""
    steps = numbers.copy()
    steps[1:] -= numbers[:-1]
    return steps


class _Tiles:
    """The tiles of the previous stream of a space, which the next one often shares."""

    def __init__(self) -> None:
        self.latest: NDArray[np.int64] | None = None


def _write_changed(
    out: FieldWriter,
    stream: StreamState,
    old: StreamState,
    event: m.Event,
    shared: _Tiles,
    indices: NDArray[np.int64] | None,
) -> None:
    """Write the differences between two states of a stream, and make the old one the new one."""
    now, before = stream.values, old.values
    if indices is None:
        differ = now != before
        if stream.known is not None or old.known is not None:
            differ |= _bits(stream) != _bits(old)
        indices = np.flatnonzero(differ)
    if len(indices) * _ALL_FROM > len(now):
        packed = _all_differences(now, before, 0)
        np.copyto(before, now)
        indices = _NO_TILES
    else:
        packed = _some_differences(now, before, indices)
    _write_stream(out, stream, event, shared, indices, packed)
    known = stream.known
    old.known = None if known is None else known.copy()
    old.sequence = stream.sequence


def _write_packed(
    out: FieldWriter, stream: StreamState, old: StreamState, event: m.Event, delta: m.StreamDelta
) -> bool:
    """Write the changes of a stream as they came, and make the old state the new one without its values; False: they are not all that changed."""
    if (
        delta.packed is None
        or delta.base_sequence != old.sequence
        or delta.count != len(old.values)
        or delta.values.dtype != old.values.dtype
        or not (_is_of(stream, event) and delta.sequence == event.sequence)
    ):
        return False
    out.integers.append(_SOME | _PACKED)
    out.packed_bytes(delta.packed)
    old.known = None if stream.known is None else stream.known.copy()
    old.sequence = stream.sequence
    return True


def _some_differences(
    now: NDArray[Any], before: NDArray[Any], indices: NDArray[np.int64]
) -> PackedDifferences | None:
    """Pack the differences of some tiles, and let the values before follow; None: there are none."""
    if not len(indices):
        return None
    packed = pack_changes(now, before, indices)
    if packed is not None:
        return packed
    differences = now[indices].astype(np.int64) - before[indices].astype(np.int64)
    before[indices] = now[indices]
    gap_code, gaps = narrow(np.diff(indices, prepend=-1) - 1)
    value_code, values = narrow(differences)
    return PackedDifferences(value_code, values, gap_code, gaps)


def _all_differences(
    now: NDArray[Any], before: NDArray[Any] | None, start: int
) -> PackedDifferences | None:
    """Pack the differences of all tiles, to `start` where there are no values before; None: there are no tiles."""
    if not len(now):
        return None
    packed = pack_all(now, before, start, _RUNNING_FROM)
    if packed is not None:
        return packed
    differences = now.astype(np.int64) - (start if before is None else before.astype(np.int64))
    running = False
    if len(differences) >= _RUNNING_FROM:
        steps = _steps(differences)
        # A level that changes here and there costs less as steps; noise costs more.
        running = bool(np.count_nonzero(steps) < np.count_nonzero(differences))
        differences = steps if running else differences
    code, values = narrow(differences)
    return PackedDifferences(code, values, running=running)


def _bits(stream: StreamState) -> NDArray[np.bool_]:
    return np.ones(len(stream.values), dtype=np.bool_) if stream.known is None else stream.known


def _write_stream(
    out: FieldWriter,
    stream: StreamState,
    event: m.Event,
    shared: _Tiles,
    indices: NDArray[np.int64],
    packed: PackedDifferences | None,
) -> None:
    """Write a gathered stream.

    Args:
        indices: Shape (changed,), strictly increasing tiles; empty if the differences are those of all tiles.
        packed: The differences; None: there are none.
    """
    whole = packed is not None and not len(indices)
    how = _ALL if whole else _SOME if len(indices) else _SAME
    known = stream.known
    bits = None if known is None or how == _SAME else known if whole else known[indices]
    if bits is not None and bool(bits.all()):
        bits = None
    stamped = not _is_of(stream, event)
    same_tiles = (
        how == _SOME and shared.latest is not None and np.array_equal(shared.latest, indices)
    )
    running = packed is not None and packed.running
    flags = how | (_STAMPED if stamped else 0) | (_PARTLY_KNOWN if bits is not None else 0)
    flags |= (_SAME_TILES if same_tiles else 0) | (_RUNNING if running else 0)
    out.integers.append(flags)
    if stamped:
        out.integers += (
            signed(stream.sequence - event.sequence),
            signed(stream.time_nanos - event.time_nanos),
            stream.event,
            signed(stream.occurrence),
        )
    if packed is not None:
        if how == _SOME:
            out.integers.append(len(indices))
            if not same_tiles:
                out.packed_gaps(packed.gap_code, packed.gaps)
                shared.latest = indices
        out.packed_values(packed.value_code, packed.values)
    if bits is not None:
        out.bits(bits)


def _write_summary(
    out: FieldWriter, one: int, told: m.Summary | None, before: m.Summary | None, event: m.Event
) -> None:
    if one == CONTROL_STREAM and told is None:
        return
    if told is None:
        out.integers.append(ABSENT)
        return
    length = len(told.values)
    old = before.values if before is not None and len(before.values) == length else (0,) * length
    covered = told.covered - (before.covered if before is not None else 0)
    steps = [signed(a - b) for a, b in zip(told.values, old, strict=True)]
    stamped = (told.sequence, told.time_nanos) != (event.sequence, event.time_nanos)
    differs = covered != 0 or any(steps)
    out.integers.append((_SOME if differs else _SAME) | (_STAMPED if stamped else 0))
    if stamped:
        out.integers += (
            signed(told.sequence - event.sequence),
            signed(told.time_nanos - event.time_nanos),
        )
    if differs:
        out.sums.append(covered)
        out.sums += steps


def _write_tiles(out: FieldWriter, tiles: m.Tiles) -> None:
    runs = len(tiles.lengths)
    named = 0 if tiles.bases is None or tiles.sizes is None else len(tiles.bases) + 1
    out.integers += (tiles.count, runs, signed(tiles.base), signed(tiles.tile_bytes), named)
    if runs:
        for starts in (tiles.old_starts, tiles.new_starts, tiles.lengths):
            out.gaps(_steps(starts.astype(np.int64)))
    if tiles.bases is not None and tiles.sizes is not None:
        bases, sizes = tiles.bases.astype(np.uint64), tiles.sizes.astype(np.uint64)
        ends = bases + sizes
        bases[1:] -= ends[:-1]  # modulo 2**64
        out.gaps(bases.view(np.int64))
        out.gaps(_steps(sizes.view(np.int64)))


def _write_names(out: FieldWriter, texts: dict[int, str]) -> None:
    order = sorted(texts)
    out.integers.append(len(order))
    last = -1
    for tile in order:
        out.integers.append(tile - last - 1)
        last = tile
        out.text(texts[tile])


# ------------------------------------------------------------------ reading


def read_body(
    given: FieldReader,
    session: ClientInterpreter,
    event: m.Event,
    limits: Limits,
    *,
    passing: bool = False,
) -> Iterator[Message]:
    """The messages of a body; apply each to the session before the next is asked for.

    Args:
        given: The record's fields.
        session: The session before the event.
        event: The event.
        limits: Limits on the content.
        passing: Nobody looks at this event on the way to a later one: values and summaries are
            applied here, and only the other messages are handed out.

    Raises:
        ValueError: It is not one.
        RemoteProtocolError: It contradicts the session.
    """
    for number, space in session.spaces.items():
        flags = given.integer(0, 31)
        if flags & _TILES:
            yield _read_tiles(given, number, space.space.naming, limits)
        if flags & _INFO:
            yield m.SpaceInfo(
                space=number,
                sequence=event.sequence,
                time_nanos=event.time_nanos,
                text=given.text(limits.text_chars),
            )
        if flags & _NAMES:
            yield from _read_names(given, number, space, event, limits)
        if flags & _STREAMS:
            yield from _read_streams(given, space, event, limits, passing=passing)
        if flags & SUMMARIES:
            yield from _read_summaries(given, space, event, passing=passing)


def _read_streams(
    given: FieldReader, space: SpaceState, event: m.Event, limits: Limits, *, passing: bool
) -> Iterator[Message]:
    """The values of a space; while passing, they are applied here."""
    latest: NDArray[np.int64] | None = None
    for one, stream in _streams(space):
        how = given.integer(0, 127)
        if how & HOW == ABSENT:
            continue
        if passing and how == _SAME:
            stream.stamp(event)
            continue
        if passing and how & ~_SAME_TILES == _SOME and stream.known is None:
            indices, values = _read_some(given, how, stream, latest)
            if not put_values(stream.values, indices, values):
                stream.values[indices] = values
            stream.stamp(event)
            latest = indices
            continue
        who = (space.space.id, one, how)
        message: m.StreamKey | m.StreamDelta
        if how & _PACKED:
            message = _read_packed(given, who, event, limits)
        else:
            message, latest = _read_stream(given, who, stream, event, latest)
        if not passing:
            yield message
        elif isinstance(message, m.StreamDelta):
            stream.update(message)
        else:
            stream.replace(message)


def _read_summaries(
    given: FieldReader, space: SpaceState, event: m.Event, *, passing: bool
) -> Iterator[Message]:
    """The summaries of a space; while passing, they are applied here."""
    for one, stream in space.streams.items():
        how = given.integer(0, 7)
        if how & HOW == ABSENT:
            continue
        summary = _read_summary(given, (space.space.id, one, how), stream, event)
        if passing:
            stream.told = summary
        else:
            yield summary


def _read_tiles(given: FieldReader, number: int, naming: Naming, limits: Limits) -> m.Tiles:
    count = given.integer(0, limits.tiles)
    runs = given.integer(0, count)
    base, tile_bytes = given.unsigned(), given.unsigned()
    named = given.integer(0, count + 1)
    arrays = [np.empty(0, dtype="<u4")] * 3
    if runs:
        starts = [np.cumsum(_of_tiles(given, runs), dtype=np.int64) for _ in range(3)]
        _check_runs(starts, count, limits)
        arrays = [array.astype("<u4") for array in starts]
    bases = sizes = None
    if named:
        steps = _of_tiles(given, named - 1).astype(np.int64).view(np.uint64)
        sizes = np.cumsum(_of_tiles(given, named - 1), dtype=np.int64).view(np.uint64)
        before = np.zeros(named - 1, dtype=np.uint64)
        before[1:] = sizes[:-1]
        bases = np.cumsum(steps + before, dtype=np.uint64)
        kept = int(arrays[2].sum(dtype=np.int64)) if runs else 0
        if naming is not Naming.EXTENTS or named - 1 != count - kept:
            raise RemoteProtocolError(
                f"space {number}: {named - 1} addresses for {count - kept} new tiles"
            )
    elif naming is Naming.EXTENTS:
        raise RemoteProtocolError(f"space {number}: tiles without their addresses")
    return m.Tiles(
        space=number,
        count=count,
        old_starts=arrays[0],
        new_starts=arrays[1],
        lengths=arrays[2],
        naming=naming,
        base=base,
        tile_bytes=tile_bytes,
        bases=bases,
        sizes=sizes,
    )


def _of_tiles(given: FieldReader, count: int) -> NDArray[Any]:
    """An array of a Tiles message, which must be in the bytes if it is long: its tiles are not limited yet."""
    return given.gaps(count, most_told=_MOST_TOLD)


def _check_runs(starts: list[NDArray[np.int64]], count: int, limits: Limits) -> None:
    """Check the runs of kept tiles as the wire does: they are in order, do not overlap, and lie in the space."""
    old, new, lengths = starts
    good = (
        int(lengths.min()) >= 1
        and int(old.min()) >= 0
        and int(new[0]) >= 0
        and int(max(old.max(), lengths.max())) <= limits.tiles
        and int((new + lengths).max()) <= count
        and bool((new[1:] >= new[:-1] + lengths[:-1]).all())
    )
    if not good:
        raise ValueError("runs of tiles that overlap, or leave the space")


def _read_names(
    given: FieldReader, number: int, space: SpaceState, event: m.Event, limits: Limits
) -> Iterator[m.NewNames]:
    count = given.integer(0, space.count)
    first, run, tile = 0, list[str](), -1

    def page() -> m.NewNames:
        return m.NewNames(
            space=number,
            sequence=event.sequence,
            time_nanos=event.time_nanos,
            first=first,
            names=tuple(run),
        )

    for _ in range(count):
        gap = given.integer(0, space.count)
        tile += 1 + gap
        if run and (gap or len(run) == limits.names_page):
            yield page()
            run = []
        if not run:
            first = tile
        if tile >= space.count:
            raise ValueError(f"a name of tile {tile} of {space.count}")
        run.append(given.text(_NAME_CHARS))
    if run:
        yield page()


def _read_stream(
    given: FieldReader,
    who: tuple[int, int, int],
    stream: StreamState,
    event: m.Event,
    latest: NDArray[np.int64] | None,
) -> tuple[m.StreamKey | m.StreamDelta, NDArray[np.int64] | None]:
    number, one, flags = who
    how = flags & HOW
    stamp = (event.sequence, event.time_nanos, event.event, event.occurrence)
    if flags & _STAMPED:
        stamp = (
            given.moved(event.sequence),
            given.moved(event.time_nanos),
            given.integer(0, 0xFFFF),
            given.unsigned(),
        )
    old = stream.values
    count = len(old)
    indices = np.empty(0, dtype=np.int64)
    if how == _SOME:
        indices, values = _read_some(given, flags, stream, latest)
        latest = indices
    elif how == _ALL:
        # Modulo the size of the type, as differences of 64 bits would be cut to it.
        steps = given.values(count)
        if flags & _RUNNING:
            steps = np.cumsum(steps, dtype=stream.dtype)
        values = old + steps.astype(stream.dtype, copy=False)
    else:
        values = np.empty(0, dtype=stream.dtype)
    known = given.bits(len(values)) if flags & _PARTLY_KNOWN else None
    sequence, time_nanos, kind, occurrence = stamp
    if how == _ALL:
        return m.StreamKey(
            space=number,
            stream=one,
            sequence=sequence,
            time_nanos=time_nanos,
            event=kind,
            occurrence=occurrence,
            values=values,
            known=known,
        ), latest
    return m.StreamDelta(
        space=number,
        stream=one,
        sequence=sequence,
        time_nanos=time_nanos,
        event=kind,
        occurrence=occurrence,
        base_sequence=stream.sequence,
        count=count,
        indices=indices,
        values=values,
        known=known,
    ), latest


def _read_some(
    given: FieldReader, flags: int, stream: StreamState, latest: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Tiles that changed, and their values."""
    old = stream.values
    changed = given.integer(1, len(old))
    if not flags & _SAME_TILES:
        latest = _read_indices(given, changed, len(old))
    elif latest is None or len(latest) != changed or int(latest[-1]) >= len(old):
        raise ValueError("a stream shares the tiles of another stream, which does not exist")
    return latest, (old[latest].astype(np.int64) + given.values(changed)).astype(stream.dtype)


def _read_packed(
    given: FieldReader, who: tuple[int, int, int], event: m.Event, limits: Limits
) -> m.StreamDelta:
    """The changes of a stream that were stored as they came: the compressed payload of a DELTA (SPEC.md section 6)."""
    number, one, flags = who
    if flags != _SOME | _PACKED:
        raise ValueError(f"changes as they came, with flags {flags}")
    data = given.packed_bytes(limits.payload_bytes)
    delta = _unpack_delta(
        data, number, one, limits, sequence=event.sequence, time_nanos=event.time_nanos
    )
    if (delta.event, delta.occurrence) != (event.event, event.occurrence):
        raise ValueError("changes of another event")
    return replace(delta, packed=data)


def _unpack_delta(
    data: bytes, number: int, one: int, limits: Limits, *, sequence: int = 0, time_nanos: int = 0
) -> m.StreamDelta:
    """The changes in the compressed payload of a DELTA of a stream."""
    header = Header(
        len(data), m.FrameType.STREAM_DELTA, FLAG_ZSTD, number, one, 0, sequence, time_nanos
    )
    return decode_delta(header, unpack(header, data, limits, 0), limits)


def _read_indices(given: FieldReader, changed: int, count: int) -> NDArray[np.int64]:
    gaps = given.gaps(changed)
    if int(gaps.min()) < 0 or int(gaps.max()) >= count:
        raise ValueError("tiles out of order")
    indices: NDArray[np.int64] = np.cumsum(gaps.astype(np.int64) + 1) - 1
    if int(indices[-1]) >= count:
        raise ValueError(f"tile {indices[-1]} of {count}")
    return indices


def _read_summary(
    given: FieldReader, who: tuple[int, int, int], stream: StreamState, event: m.Event
) -> m.Summary:
    number, one, how = who
    told = stream.told
    if told is None:
        before: tuple[tuple[int, ...], int] = ((0,) * stream.defined.summary_length, 0)
    else:
        before = (told.values, told.covered)
    return summary_of(given, how, (number, one), before, event)


def summary_of(
    given: FieldReader,
    how: int,
    where: tuple[int, int],
    before: tuple[tuple[int, ...], int],
    event: m.Event,
) -> m.Summary:
    """The summary of a stream.

    Args:
        given: The record's fields.
        how: Its flags.
        where: Space and stream.
        before: The numbers of the summary before, and the tiles covered; zeros if there was none.
        event: The event.

    Raises:
        ValueError: It is not one.
    """
    sequence, time_nanos = event.sequence, event.time_nanos
    if how & _STAMPED:
        sequence, time_nanos = given.moved(sequence), given.moved(time_nanos)
    values, covered = before
    if how & HOW == _SOME:
        steps = given.sums(1 + len(values))
        covered += steps[0]
        values = tuple(map(signed, map(add, values, steps[1:])))
        if not 0 <= covered < 1 << 32:
            raise ValueError(f"a summary of {covered} tiles")
    return m.Summary(
        space=where[0],
        stream=where[1],
        sequence=sequence,
        time_nanos=time_nanos,
        values=values,
        covered=covered,
    )


# ------------------------------------------------------------------ skipping fields


def pass_tiles_and_texts(given: FieldReader, flags: int, limits: Limits) -> None:
    """Skip the fields of a space that precede its streams.

    Raises:
        ValueError: It is not a body.
        IndexError: It ends too early.
    """
    if flags & _TILES:
        given.integer(0, limits.tiles)
        runs = given.integer(0, limits.tiles)
        given.unsigned()
        given.unsigned()
        named = given.integer(0, limits.tiles + 1)
        given.skip((3 if runs else 0) + (2 if named else 0))
    if flags & _INFO:
        given.data(4 * limits.text_chars)
    if flags & _NAMES:
        for _ in range(given.integer(0, limits.tiles)):
            given.skip(1)
            given.data(4 * _NAME_CHARS)


def pass_streams(given: FieldReader, flags: int, streams: int) -> None:
    """Pass over the streams of a space, of which there are so many, the control stream included.

    Raises:
        ValueError: It is not a body.
        IndexError: It ends too early.
    """
    if not flags & _STREAMS:
        return
    for _ in range(streams):
        how = given.integer(0, 127)
        if how & _PACKED:
            given.skip(1)
            continue
        if how & _STAMPED:
            given.skip(4)
        if how & HOW == _SOME:
            given.skip(2 if how & _SAME_TILES else 3)
        elif how & HOW == _ALL:
            given.skip(1)
