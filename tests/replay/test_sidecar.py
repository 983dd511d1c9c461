"""The sidecar: what was written is read, what was damaged or made up is refused, what is unknown is kept."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import (
    Bookmark,
    ChunkRule,
    PartFacts,
    Recording,
    RingStore,
    Sidecar,
    SplitStore,
    carry_sidecar,
    put_sidecar,
    read_sidecar,
    sidecar_of,
    sidecar_path,
    write_sidecar,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.recorded import FACTS, Small, small

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3)
    ),
    max_leaves=9,
)
OTHERS = st.dictionaries(st.text(max_size=9).map(lambda key: "later " + key), JSON, max_size=2)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
BOOKMARKS = st.builds(
    Bookmark,
    number=st.integers(1, 2**62),
    title=TEXTS,
    note=TEXTS,
    colour=st.none() | st.tuples(*[st.integers(0, 255)] * 3),
    others=OTHERS,
)
SIDECARS = st.builds(
    Sidecar,
    recording=st.just(b"") | st.binary(min_size=16, max_size=16),
    bookmarks=st.lists(BOOKMARKS, max_size=5, unique_by=lambda mark: mark.number).map(
        lambda marks: tuple(sorted(marks, key=lambda mark: mark.number))
    ),
    notes=TEXTS,
    layout=st.dictionaries(st.text(max_size=9), JSON, max_size=3),
    others=OTHERS,
)

GOOD: dict[str, Any] = {
    "version": 1,
    "recording": "00" * 16,
    "bookmarks": [{"event": 3, "title": "here"}],
    "notes": "",
    "layout": {},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.gcspy.json"


@given(SIDECARS)
def test_what_is_written_is_read(sidecar: Sidecar) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.gcspy.json"
        write_sidecar(path, sidecar)
        assert read_sidecar(path) == sidecar
        assert list(path.parent.iterdir()) == [path]


def test_there_is_none_where_there_is_none(path: Path) -> None:
    assert read_sidecar(path) is None


def test_cut_short_or_with_any_byte_changed_it_is_refused_or_makes_sense(path: Path) -> None:
    write_sidecar(
        path,
        Sidecar(recording=bytes(16), bookmarks=(Bookmark(number=3, title="a", colour=(1, 2, 3)),)),
    )
    whole = path.read_bytes()
    changed = [whole[:size] for size in range(len(whole) - 1)]
    changed += [
        whole[:i] + bytes([byte]) + whole[i + 1 :]
        for i in range(len(whole))
        for byte in (0, 0x22, 0x39, 0xFF)
    ]
    refused = []
    for data in changed:
        path.write_bytes(data)
        try:
            found = read_sidecar(path)
        except RecordingError as error:
            refused.append(str(error))
        else:
            assert isinstance(found, Sidecar)
            write_sidecar(path, found)
    assert len(refused) > len(whole)
    assert all(str(path) in message for message in refused)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": None}, "its version is None"),
        ({"version": True}, "its version is True"),
        ({"version": 2}, "it has version 2, this GCspy reads up to 1"),
        ({"recording": "xy"}, "not 32 hexadecimal digits"),
        ({"recording": 5}, "recording is not a text"),
        ({"layout": []}, "layout is not an object"),
        ({"notes": 1}, "notes is not a text"),
        ({"notes": "x" * 100_001}, "notes has 100001 characters"),
        ({"notes": "\ud800"}, "notes has an unpaired surrogate"),
        ({"bookmarks": {}}, "bookmarks is not a list"),
        ({"bookmarks": [3]}, "bookmark 1 is not an object"),
        ({"bookmarks": [{}]}, "bookmark 1: event is None"),
        ({"bookmarks": [{"event": 0}]}, "bookmark 1: event is 0"),
        ({"bookmarks": [{"event": 1.5}]}, "bookmark 1: event is 1.5"),
        ({"bookmarks": [{"event": 2**63}]}, "not the number of an event"),
        ({"bookmarks": [{"event": 1}, {"event": 1}]}, "event 1 has two bookmarks"),
        ({"bookmarks": [{"event": 1, "colour": "red"}]}, "not like #ff8800"),
        ({"bookmarks": [{"event": 1, "title": "x" * 501}]}, "bookmark 1: title has 501 characters"),
        (
            {"bookmarks": [{"event": n} for n in range(1, 10_002)]},
            "10001 bookmarks, more than 10000",
        ),
    ],
)
def test_every_field_is_checked(path: Path, change: dict[str, Any], message: str) -> None:
    path.write_text(json.dumps(GOOD))
    assert read_sidecar(path) is not None
    path.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(RecordingError) as caught:
        read_sidecar(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "1",
        '{"version": 1, "later": NaN}',
        '{"version": 1, "later": -Infinity}',
        '{"version": 1, "later": 1e999}',
        '{"version": 1, "later": ' + "9" * 5000 + "}",
        '{"version": 1, "later": ' + "[" * 60 + "]" * 60 + "}",
        '{"version": 1, "later": ' + "[" * 200_000 + "]" * 200_000 + "}",
    ],
)
def test_what_could_not_be_written_again_is_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(RecordingError, match="correct the file, or remove it"):
        read_sidecar(path)


def test_a_file_that_is_too_large_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # of holes: reading it whole would take a terabyte
    with pytest.raises(RecordingError, match="more than the 8388608 bytes"):
        read_sidecar(path)


@pytest.mark.parametrize(
    "sidecar",
    [
        Sidecar(layout={"window": object()}),
        Sidecar(layout={"window": float("nan")}),
        Sidecar(bookmarks=(Bookmark(number=1, title="x" * 501),)),
        Sidecar(bookmarks=(Bookmark(number=2), Bookmark(number=2))),
        Sidecar(layout={"a": "x" * (9 << 20)}),
    ],
)
def test_what_would_not_be_read_is_not_written(path: Path, sidecar: Sidecar) -> None:
    path.write_text("precious")
    with pytest.raises(RecordingError):
        write_sidecar(path, sidecar)
    assert path.read_text() == "precious"


def test_a_writing_that_fails_leaves_what_was_there(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sidecar(path, Sidecar(notes="before"))

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RecordingError, match="No space left"):
        write_sidecar(path, Sidecar(notes="after"))
    assert read_sidecar(path) == Sidecar(notes="before")
    assert list(path.parent.iterdir()) == [path]


def test_it_lies_beside_a_file_beside_the_first_part_or_in_the_folder_of_a_ring(
    tmp_path: Path,
) -> None:
    one = tmp_path / "one.gcspy"
    one.write_bytes(small(5))
    assert sidecar_of([one]) == sidecar_path(one) == tmp_path / "one.gcspy.json"
    store = SplitStore(tmp_path / "split.gcspy", part_bytes=2000)
    Small(store, rule=ChunkRule(most_events=3)).events(30).writer.close()
    assert len(store.paths) > 2
    assert sidecar_of(reversed(store.paths)) == tmp_path / "split.gcspy.json"
    ring = RingStore(tmp_path / "ring", keep_bytes=5000)
    Small(ring, rule=ChunkRule(most_events=3)).events(30).writer.close()
    assert sidecar_of([ring.folder]) == tmp_path / "ring" / "ring.gcspy.json"
    write_sidecar(sidecar_of([ring.folder]), Sidecar(notes="of the ring"))
    with Recording.open(ring.folder) as recording:  # it is not taken for a part
        assert recording.last == 30


def test_one_of_another_recording_is_not_carried_nor_wiped_out(path: Path) -> None:
    other = path.with_name("b.gcspy.json")
    mine, theirs = FACTS.recording, PartFacts(recording=b"x" * 16).recording
    marks = tuple(Bookmark(number=n) for n in (2, 5, 9))
    write_sidecar(path, Sidecar(recording=mine, bookmarks=marks, notes="n"))
    assert carry_sidecar(path, other, theirs, 1, 99) is None
    assert not other.exists()
    write_sidecar(other, Sidecar(recording=theirs, notes="precious"))
    assert carry_sidecar(path, other, mine, 3, 5) == 1
    carried = read_sidecar(other)
    assert carried is not None
    assert ([mark.number for mark in carried.bookmarks], carried.notes, carried.recording) == (
        [5],
        "n",
        mine,
    )
    old = read_sidecar(other.with_name("b.gcspy.json.old"))
    assert old is not None
    assert old.notes == "precious"


def test_nothing_is_written_where_nothing_was_added(path: Path) -> None:
    put_sidecar(path, Sidecar(recording=bytes(16)))
    assert not path.exists()
