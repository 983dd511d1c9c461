"""Changes of large heaps that are kept as their server compressed them: the same values as received, for both readers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcspy_protocol import ClientInterpreter, Connection
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode_event
from gcspy_protocol.errors import CorruptChunk, GCspyError
from gcspy_protocol.model import EventKind, Mode, Naming, PauseActsOn, Role, Space, Stream
from gcspy_protocol.streams.tiles import pack_tiles
from gcspy_protocol.streams.values import Stamp, StreamEncoder
from gcspy_replay.file import (
    ChunkRule,
    MemorySource,
    MemoryStore,
    Recording,
    RecordingWriter,
    WireTap,
    repack,
)
from gcspy_replay.file.records import body
from gcspy_replay.file.records.fields import FieldReader
from numpy.typing import NDArray

from tests.replay.test_independent_reader import assert_agree_everywhere

TILES = 300_000
"""Of 4 bytes: the state has more than 1 MiB."""
EVENTS = 14
FEW = 30
RULE = ChunkRule(most_events=6)

WELCOME = m.Welcome(
    server="test",
    session="test",
    client_id=1,
    controller=False,
    mode=Mode.EMBEDDED,
    pause_acts_on=PauseActsOn.PROGRAM,
    events=(EventKind(id=0, name="event"),),
)
SPACE = Space(
    id=1,
    name="heap",
    streams=(
        Stream(id=0, name="Used", dtype="i4", maximum=1 << 20),
        Stream(id=1, name="Kind", dtype="u1", maximum=9),
    ),
)

Truth = list[tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any]]]


def tiles() -> m.Tiles:
    none = np.empty(0, dtype="<u4")
    return m.Tiles(
        space=1,
        count=TILES,
        old_starts=none,
        new_starts=none,
        lengths=none,
        naming=Naming.UNIFORM,
        base=1 << 40,
        tile_bytes=64,
    )


def recorded() -> tuple[bytes, Truth]:
    """A recording of a large heap, and its values at each event."""
    rng = np.random.default_rng(3)
    server, client, session = Connection(Role.SERVER), Connection(Role.CLIENT), ClientInterpreter()
    client.send(m.Hello(client="test"))
    store, tap = MemoryStore(), WireTap()
    writer = RecordingWriter(store, session, rule=RULE, tap=tap)

    def take(data: bytes) -> None:
        client.receive_data(data)
        tap.receive_data(data)
        for message in client.messages():
            session.apply(message)
            writer.add(message)

    take(server.preamble())
    for message in (WELCOME, m.SpaceDefined(space=SPACE), m.EpochEnd(epoch=1)):
        take(server.send(message))
    used = rng.integers(0, 1 << 20, TILES, dtype=np.int32)
    known = np.ones(TILES, dtype=np.bool_)
    kinds = np.zeros(TILES, dtype=np.uint8)
    encoders = [
        StreamEncoder(1, 0, dtype="i4", default=0, count=TILES),
        StreamEncoder(1, 1, dtype="u1", default=0, count=TILES),
    ]
    truth: Truth = []
    for sequence in range(1, EVENTS + 1):
        # Few are not compressed by their server, so that differences follow changes that are kept as sent.
        changed = FEW if sequence % 4 == 2 else 4_000
        where = rng.integers(0, TILES, changed)
        used[where] = np.where(rng.random(changed) < 0.5, 0, rng.integers(0, 1 << 20, changed))
        known[where[:300]] = rng.random(len(where[:300])) < (0.3 if sequence % 4 else 1.0)
        kinds[where[:20]] = sequence
        stamp = Stamp(sequence=sequence, time_nanos=sequence * 1_000, event=0, occurrence=sequence)
        frames = [pack_tiles(tiles())] if sequence == 1 else []
        frames.append(encoders[0].encode(used, known, stamp))
        if sequence % 3:  # at the others the second stream is not gathered
            frames.append(encoders[1].encode(kinds, None, stamp))
        take(
            encode_event(
                m.Event(
                    sequence=sequence,
                    time_nanos=sequence * 1_000,
                    event=0,
                    occurrence=sequence,
                    epoch=1,
                ),
                frames,
            )
        )
        state = session.spaces[1].streams
        truth.append((used.copy(), known.copy(), state[1].values.copy()))
    writer.close()
    return bytes(store.data), truth


@pytest.fixture(scope="module")
def large() -> tuple[bytes, Truth]:
    return recorded()


def test_each_event_has_the_values_that_were_received(
    large: tuple[bytes, Truth], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, truth = large
    kept: list[int] = []
    read = body._read_packed

    def counted(*arguments: Any) -> m.StreamDelta:
        kept.append(1)
        return read(*arguments)

    monkeypatch.setattr(body, "_read_packed", counted)
    cursor = Recording([MemorySource(data)]).cursor()
    order = [*range(1, EVENTS + 1), 3, 14, 7, 2, 12]
    for number in order:
        streams = cursor.seek(number).spaces[1].streams
        used, known, kinds = truth[number - 1]
        found = streams[0].known
        assert np.array_equal(np.ones(TILES, np.bool_) if found is None else found, known)
        assert np.array_equal(streams[0].values[known], used[known])
        assert np.array_equal(streams[1].values, kinds)
    assert len(kept) >= EVENTS - 9, "the first of a chunk is whole, and four have few changes"


def test_the_independent_reader_agrees(large: tuple[bytes, Truth]) -> None:
    data, _ = large
    assert assert_agree_everywhere(data) == EVENTS


def test_packed_by_column_they_are_differences_again(large: tuple[bytes, Truth]) -> None:
    data, truth = large
    store = MemoryStore()
    with Recording([MemorySource(data)]) as recording:
        repack(recording, store, level=1)
    cursor = Recording([MemorySource(bytes(store.data))]).cursor()
    for number in (1, 9, EVENTS):
        used, known, _ = truth[number - 1]
        assert np.array_equal(cursor.seek(number).spaces[1].streams[0].values[known], used[known])


def test_damaged_changes_are_refused(
    large: tuple[bytes, Truth], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the compressed bytes are, the error is one of ours."""
    data, _ = large
    rng = np.random.default_rng(5)
    taken = FieldReader.packed_bytes

    def damaged(self: Any, most: int) -> bytes:
        found = bytearray(taken(self, most))
        for _ in range(3):
            found[int(rng.integers(len(found)))] = int(rng.integers(256))
        return bytes(found)

    monkeypatch.setattr(FieldReader, "packed_bytes", damaged)
    outcomes = [outcome(data) for _ in range(10)]
    assert set(outcomes) <= {CorruptChunk, None}
    assert CorruptChunk in outcomes


def outcome(data: bytes) -> type[GCspyError] | None:
    """The kind of the error of reading an event, None: there is none."""
    try:
        Recording([MemorySource(data)]).cursor().seek(5)
    except GCspyError as error:
        return type(error)
    return None
