"""Numbers of names: names grow with a session, and are those of the shown event wherever one goes in its recording."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import ExpressionError
from gcspy_protocol.expression import bind, parse
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Naming, Space, Stream
from gcspy_protocol.streams.named_stream import MOST_FREQUENT, NamedStream, steady, tally
from gcspy_replay.file import FileStore, Recording, RecordingWriter, name_pages, new_names
from gcspy_replay.file.export.csv_file import write as write_csv
from gcspy_replay.file.export.tables import ExportSelection
from gcspy_replay.player import PlaybackStart, PlayerThread

from gcspy.connection.link import connect
from gcspy.output.session_text import event_as_dict, event_as_lines
from gcspy_server.api import Control, PaintStyle, Server, StringNames, UniformNames
from tests.replay.recorded import WELCOME
from tests.replay.watching import Watcher
from tests.waiting import PATIENCE_SECS

KINDS = ["(none)", "dict", "list", "tuple", "Leak", "set"]
EVENTS = 4
TILES = 40


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, ...]]]:
    """A session in which a kind appears at each event, and the live display of a client that asked for no name."""
    path = tmp_path_factory.mktemp("names") / "names.gcspy"
    server = Server("names", events=("Tick",))
    kinds = server.add_space("Kinds", names=StringNames(KINDS[:2]), tile_title="Kind ")
    heap = server.add_space("Heap", names=UniformNames(0x1000, 16, TILES))
    top = heap.add_stream(
        "Top kind", dtype="u2", maximum=65535, paint_style=PaintStyle.ZERO, names_from=kinds.id
    )
    live: list[tuple[str, ...]] = []
    with (
        server.serve(f"unix:{path.parent}/s") as listening,
        connect(listening.addresses[0], client="test") as link,
    ):
        session = ClientInterpreter()
        writer = RecordingWriter(FileStore(path), session)
        assert server.wait_for_client(30)
        for event in range(EVENTS):
            request = server.should_transmit(0)
            assert request is not None
            kinds.resize(StringNames(KINDS[: 3 + event]))
            heap.reset()
            top.data[:] = np.arange(TILES) % (3 + event)
            top.data[7] = 999
            top.set_unknown([8])
            heap.control[9] = Control.UNUSED
            server.finish(0)
            while len(live) == event:
                message = link.receive(PATIENCE_SECS)
                assert message is not None
                change = session.apply(message)
                writer.add(message)
                if change is not None:
                    live.append(told(session))
        writer.close()
    return path, live


def told(session: ClientInterpreter) -> tuple[str, ...]:
    """Return a client's summary of the stream: each name with its number of tiles."""
    assert session.last_event is not None
    heap = next(space for space in session.spaces.values() if space.space.name == "Heap")
    (stream,) = heap.streams.values()
    assert isinstance(stream.schema, NamedStream)
    summary = stream.summary
    assert summary is not None
    pairs = zip(stream.schema.enum_names, summary.values, strict=True)
    return tuple(f"{name} {count}" for name, count in pairs)


def test_names_come_with_the_event_that_brings_them_and_tiles_are_counted_by_name(
    recorded: tuple[Path, list[tuple[str, ...]]],
) -> None:
    _, live = recorded
    assert [len(one) for one in live] == [3, 4, 5, 6]
    # 40 tiles less one with a number that no name has, one unknown and one unused.
    values = [i % 6 for i in range(TILES) if i not in (7, 8, 9)]
    assert live[-1] == tuple(f"{name} {values.count(i)}" for i, name in enumerate(KINDS))


def test_wherever_one_goes_in_the_recording_names_and_counts_are_those_of_then(
    recorded: tuple[Path, list[tuple[str, ...]]],
) -> None:
    path, live = recorded
    with Recording.open(path) as recording:
        assert [told(session) for _, session in recording.steps()] == live
        for number in (3, 1, 4, 2):
            assert told(recording.seek(number)) == live[number - 1]


def test_a_player_tells_names_up_to_the_last_tile_and_refuses_those_beyond(
    recorded: tuple[Path, list[tuple[str, ...]]],
    play: Callable[..., PlayerThread],
    watch: Callable[..., Watcher],
) -> None:
    data = recorded[0].read_bytes()
    watcher = watch(play(data, beginning=PlaybackStart(running=False)), data)
    watcher.seek(EVENTS)
    watcher.until_position(EVENTS)
    ids = {state.space.name: number for number, state in watcher.state.spaces.items()}
    for first, names in ((0, KINDS), (4, ["Leak", "set"]), (5, ["set"])):
        watcher.send(m.TileNamesRequest(space=ids["Kinds"], first=first, count=10))
        told = watcher.next(m.TileNames)
        assert (told.first, list(told.names)) == (first, names)
    for name, first, why in (
        ("Kinds", 6, "names from tile 6 on: space 1 has 6 tiles"),
        ("Heap", 0, "its tiles have no string names"),
    ):
        watcher.send(m.TileNamesRequest(space=ids[name], first=first, count=1))
        refusal = watcher.next(m.Error)
        assert refusal.code is m.ErrorCode.BAD_REQUEST
        assert why in refusal.message


def test_text_and_tables_tell_names_and_no_sum_of_them(
    recorded: tuple[Path, list[tuple[str, ...]]], tmp_path: Path
) -> None:
    path, live = recorded
    with Recording.open(path) as recording:
        session = recording.seek(EVENTS)
        assert session.last_event is not None
        (stream,) = event_as_dict(session, session.last_event)["spaces"][1]["streams"]
        counts = dict(zip(stream["summary_names"], stream["summary"], strict=True))
        assert {f"{name} {count}" for name, count in counts.items()} == set(live[-1])
        assert stream["summary"] == sorted(stream["summary"], reverse=True)
        assert stream["unit"] == "names"
        heap = next(line for line in event_as_lines(session, session.last_event) if "Heap" in line)
        assert "Top kind: 7 × (none) / 6 × tuple" in heap
        table = tmp_path / "tiles.csv"
        write_csv(
            recording, table, ExportSelection(first=EVENTS, last=EVENTS, space="Heap", tiles=True)
        )
        rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
        assert [rows[i]["name"] for i in (4, 5, 7, 8)] == ["Leak", "set", "", ""]


@pytest.mark.parametrize(("tiles", "in_keyframe"), [(4096, True), (4097, False)])
def test_names_of_at_most_4096_tiles_are_in_the_keyframe(tiles: int, in_keyframe: bool) -> None:
    names = tuple(f"name {i}" for i in range(4096))
    none = np.empty(0, dtype="<u4")
    session = ClientInterpreter()
    event = m.Event(
        sequence=1, time_nanos=5, event=0, occurrence=1, epoch=1, gather_nanos=1, held_nanos=0
    )
    for message in (
        WELCOME,
        m.SpaceDefined(space=Space(id=1, name="Kinds", naming=Naming.STRINGS, streams=())),
        m.EpochEnd(epoch=1),
        m.Tiles(
            space=1,
            count=tiles,
            naming=Naming.STRINGS,
            old_starts=none,
            new_starts=none,
            lengths=none,
        ),
        m.NewNames(space=1, sequence=1, time_nanos=5, first=0, names=names),
        event,
    ):
        session.apply(message)
    state = session.spaces[1]
    told = [(one.first, one.names) for one in new_names(state, session.last_event)]
    pages = [(one.first, one.names) for one in name_pages(session, large_only=True)]
    assert (told, pages) == (([(0, names)], []) if in_keyframe else ([], [(0, names)]))


def test_places_are_kept_until_another_name_has_far_more_tiles() -> None:
    schema = Stream(
        id=1, name="Top", dtype="u2", maximum=65535, paint_style=PaintStyle.ZERO, names_from=1
    )
    counts = np.zeros(40, dtype=np.int64)
    counts[:14] = 10
    first = steady((), counts, schema)
    assert first == tuple(range(1, MOST_FREQUENT + 1)), "the zero value has a look of its own"
    counts[30] = 20
    assert steady(first, counts, schema) == first
    counts[30] = 21
    changed = steady(first, counts, schema)
    assert set(changed) - set(first) == {30}
    assert [a for a, b in zip(changed, first, strict=True) if a != b] == [30]


def test_only_tiles_in_use_with_a_known_name_are_counted() -> None:
    values = np.array([0, 1, 1, 2, -1, 5], dtype=np.int64)
    known = np.array([True, True, False, True, True, True])
    control = np.array([1, 1, 1, 4, 1, 1], dtype=np.uint8)
    assert tally(values, known, control, 3).tolist() == [1, 1, 0]


def test_a_condition_cannot_ask_for_the_sum_of_names(
    recorded: tuple[Path, list[tuple[str, ...]]],
) -> None:
    path, _ = recorded
    with Recording.open(path) as recording:
        spaces = [state.space for state in recording.seek(1).spaces.values()]
    with pytest.raises(ExpressionError, match="count tiles"):
        bind(parse('summary("Top kind") > 2'), spaces, None)
