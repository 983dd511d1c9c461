"""Bookmarks of a trace that is played are kept beside it, by the events of the trace."""

from __future__ import annotations

import json
from pathlib import Path

from gcspy.objects.trace_bookmarks import TraceBookmarks
from gcspy_client.model.playback.bookmarks import Bookmarks

RUN, OTHER = bytes(range(16)), bytes(16)


def test_a_bookmark_returns_at_the_same_event_of_a_trace_that_has_grown(tmp_path: Path) -> None:
    trace = tmp_path / "server.gctrace"
    first = TraceBookmarks(trace, RUN, tmp_path / "one.gcspy", [0, 100, 200])
    first.begin()
    Bookmarks(tmp_path / "one.gcspy").add(2, "here", note="why")
    first.look()
    kept = json.loads((tmp_path / "server.gctrace.json").read_text())
    assert kept["recording"] == RUN.hex()
    assert [(one["title"], one["trace_event"]) for one in kept["bookmarks"]] == [("here", 100)]

    events: list[int] = []
    window = Bookmarks(tmp_path / "two.gcspy")
    second = TraceBookmarks(trace, RUN, tmp_path / "two.gcspy", events)
    second.begin()
    assert not window.follow_file()
    events += [0, 50]
    second.look()
    assert not window.follow_file()
    window.add(1, "new")  # the other one waits
    second.look()
    events += [100, 150]
    second.look()
    assert window.follow_file()
    assert [(one.number, one.title, one.note) for one in window.all] == [
        (1, "new", ""),
        (3, "here", "why"),
    ]
    window.remove(3)
    second.look()
    kept = json.loads((tmp_path / "server.gctrace.json").read_text())
    assert [(one["title"], one["trace_event"]) for one in kept["bookmarks"]] == [("new", 0)]


def test_bookmarks_of_another_trace_under_the_same_name_stay_where_they_are(tmp_path: Path) -> None:
    trace = tmp_path / "server.gctrace"
    first = TraceBookmarks(trace, RUN, tmp_path / "one.gcspy", [0, 100])
    with first.following():
        Bookmarks(tmp_path / "one.gcspy").add(2, "here")
    second = TraceBookmarks(trace, OTHER, tmp_path / "two.gcspy", [0, 100])
    second.begin()
    assert not Bookmarks(tmp_path / "two.gcspy").all
    Bookmarks(tmp_path / "two.gcspy").add(1, "other")
    second.look()
    assert "here" in (tmp_path / "server.gctrace.json.old").read_text()
    assert "other" in (tmp_path / "server.gctrace.json").read_text()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    there = TraceBookmarks(tmp_path / "a.gctrace", RUN, tmp_path / "one.gcspy", [0])
    assert there.note is None
    gone = TraceBookmarks(tmp_path / "gone" / "a.gctrace", RUN, tmp_path / "one.gcspy", [0])
    assert "cannot be written" in str(gone.note)
