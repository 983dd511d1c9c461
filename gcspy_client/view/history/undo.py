"""Undoing changes of the history graphs: the set of graphs, their options, and the visible part.

Knows the panel and its changes; does not know how graphs are made.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QObject

from gcspy_client.model.history.tracks import TrackSpec
from gcspy_client.view.history.panel import HistoryPanel
from gcspy_client.view.history.track import HistoryTrack
from gcspy_client.view.shell.view_undo import ViewUndo

__all__ = ["HistoryUndo"]


class _Track(NamedTuple):
    spec: TrackSpec
    tiles: tuple[float, float] | None
    tile_pixels: float | None
    every: int
    at_kind: int | None
    marks: bool


class _State(NamedTuple):
    """All that can be taken back at once."""

    span: tuple[float, float] | None
    by_time: bool
    tracks: tuple[_Track, ...]


class HistoryUndo(QObject):
    """Remembers what a user changed.

    Args:
        panel: The graphs.
        undo: The changes that can be undone.
    """

    def __init__(self, panel: HistoryPanel, undo: ViewUndo) -> None:
        super().__init__(panel)
        self._panel, self._undo = panel, undo
        self._before = self._state()
        panel.tracks_changed.connect(partial(self._note, "history graphs", None))
        panel.tiles_changed.connect(
            partial(self._note, "tiles of history graphs", "tiles of history graphs")
        )
        panel.time.chosen.connect(
            lambda _span: self._note("time in history graphs", "time in history graphs")
        )

    def _state(self) -> _State:
        tracks = [(track.spec, track.canvas) for track in self._panel.tracks]
        return _State(
            self._panel.time.span,
            self._panel.time.by_time,
            tuple(
                _Track(spec, c.tiles, c.tile_pixels, c.every, c.at_kind, c.marks)
                for spec, c in tracks
            ),
        )

    def _note(self, text: str, merge_key: str | None) -> None:
        before, now = self._before, self._state()
        self._before = now
        if now != before:
            self._undo.done(
                text, partial(self._restore, now), partial(self._restore, before), merge_key
            )

    def _restore(self, state: _State) -> None:
        panel = self._panel
        for place, wanted in enumerate(state.tracks):
            if place == len(panel.tracks):
                panel.add_track(wanted.spec)
            track = panel.tracks[place]
            if track.spec != wanted.spec:
                track.spec = wanted.spec
            _look_like(track, wanted)
        while len(panel.tracks) > len(state.tracks):
            panel.remove_track(panel.tracks[-1])
        panel.refresh()
        for track in panel.tracks:
            track.canvas.request()
        if state.by_time == panel.time.by_time:
            panel.time.show(state.span)
        self._before = self._state()


def _look_like(track: HistoryTrack, wanted: _Track) -> None:
    canvas = track.canvas
    canvas.tiles, canvas.tile_pixels = wanted.tiles, wanted.tile_pixels
    canvas.every, canvas.at_kind, canvas.marks = wanted.every, wanted.at_kind, wanted.marks
