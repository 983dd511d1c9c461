"""Bookmarks: in a file or in memory alike, found from any event, never at the cost of another user's."""

from __future__ import annotations

from pathlib import Path

import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import Bookmark, Sidecar, read_sidecar, sidecar_path, write_sidecar
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.playback.bookmarks import Bookmarks

ID = bytes(range(16))


@pytest.fixture(params=["memory", "file"])
def marks(request: pytest.FixtureRequest, tmp_path: Path) -> Bookmarks:
    return Bookmarks(tmp_path / "a.gcspy" if request.param == "file" else None, recording=ID)


def numbers(marks: Bookmarks) -> list[int]:
    return [mark.number for mark in marks.all]


def test_they_are_added_changed_and_removed(marks: Bookmarks) -> None:
    version = marks.version
    marks.add(9, "nine", note="long", colour=(1, 2, 3))
    marks.add(3, "three")
    assert numbers(marks) == [3, 9]
    marks.rename(9, "neuf")
    assert marks.at(9) == Bookmark(number=9, title="neuf", note="long", colour=(1, 2, 3))
    marks.change(9, note="short")
    marks.change(77, title="there is none")
    assert marks.at(9) == Bookmark(number=9, title="neuf", note="short", colour=(1, 2, 3))
    marks.add(3, "again")
    assert [mark.title for mark in marks.all] == ["again", "neuf"]
    marks.remove(3)
    marks.remove(4)
    assert numbers(marks) == [9]
    marks.say("of the whole")
    marks.arrange({"rows": 3})
    assert (marks.notes, marks.layout) == ("of the whole", {"rows": 3})
    assert marks.version > version
    if marks.path is not None:
        assert numbers(Bookmarks(marks.path.with_name("a.gcspy"), recording=ID)) == [9]


@given(st.sets(st.integers(1, 40), max_size=8), st.integers(0, 41))
def test_the_next_and_the_previous_are_the_nearest_on_either_side(
    there: set[int], number: int
) -> None:
    marks = Bookmarks()
    for one in there:
        marks.add(one)
    following, before = marks.next(number), marks.previous(number)
    assert (following.number if following else None) == min(
        (n for n in there if n > number), default=None
    )
    assert (before.number if before else None) == max(
        (n for n in there if n < number), default=None
    )
    assert (marks.at(number) is not None) == (number in there)


def test_two_windows_on_one_file_keep_each_other_s(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy"
    one, other = Bookmarks(path, recording=ID), Bookmarks(path, recording=ID)
    one.add(1, "one")
    other.add(2, "two")
    assert numbers(other) == [1, 2]
    assert numbers(one) == [1]
    assert one.refresh()
    assert numbers(one) == [1, 2]
    assert not one.refresh()


def test_what_a_later_version_wrote_survives_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy"
    mark = Bookmark(number=5, title="t", others={"shape": "star"})
    write_sidecar(
        sidecar_path(path), Sidecar(recording=ID, bookmarks=(mark,), others={"later": [1]})
    )
    marks = Bookmarks(path, recording=ID)
    marks.rename(5, "u")
    found = read_sidecar(sidecar_path(path))
    assert found is not None
    assert found.others == {"later": [1]}
    assert found.bookmarks[0].others == {"shape": "star"}
    assert found.bookmarks[0].title == "u"


def test_those_of_another_recording_are_neither_shown_nor_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy"
    write_sidecar(sidecar_path(path), Sidecar(recording=b"x" * 16, notes="precious"))
    with pytest.raises(RecordingError, match="made for another recording"):
        Bookmarks(path, recording=ID)
    sidecar_path(path).unlink()
    marks = Bookmarks(path, recording=ID)
    write_sidecar(sidecar_path(path), Sidecar(recording=b"x" * 16, notes="precious"))
    with pytest.raises(RecordingError, match="made for another recording"):
        marks.add(1)
    assert numbers(marks) == []
    found = read_sidecar(sidecar_path(path))
    assert found is not None
    assert found.notes == "precious"


def test_what_cannot_be_kept_changes_nothing(marks: Bookmarks) -> None:
    marks.add(1, "one")
    with pytest.raises(RecordingError, match="501 characters"):
        marks.add(2, "x" * 501)
    assert numbers(marks) == [1]


def test_those_of_a_live_session_go_with_what_is_saved(tmp_path: Path) -> None:
    marks = Bookmarks()
    for number in (1, 5, 9):
        marks.add(number)
    path = tmp_path / "a.gcspy"
    marks.save(path, ID, 2, 9)
    assert numbers(Bookmarks(path, recording=ID)) == [5, 9]
    marks.forget_before(5)
    assert numbers(marks) == [5, 9]
    marks.clear()
    assert numbers(marks) == []
    marks.save(tmp_path / "b.gcspy", ID, 1, 9)
    assert not sidecar_path(tmp_path / "b.gcspy").exists()
