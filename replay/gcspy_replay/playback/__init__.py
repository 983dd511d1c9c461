"""Playing a recording, without sockets, clocks or windows: the player serves it, the window shifts time with it.

* `RecordingPlayback`: its position and its next event; a `Move` for each event that is shown.
* `Sender`: the bytes that bring viewers from one event to another; `keyframe_of` for viewers that
  join late.
* `Timetable`: which events there are, and when each happened.
"""

from __future__ import annotations

from gcspy_replay.playback.difference import DifferencePart, Sender, Transition, Wanted, keyframe_of
from gcspy_replay.playback.playback import END, Move, RecordingPlayback, ViewerState
from gcspy_replay.playback.timetable import TIMES, Timetable, shown_rows

__all__ = [
    "END",
    "TIMES",
    "ViewerState",
    "Move",
    "DifferencePart",
    "Transition",
    "RecordingPlayback",
    "Sender",
    "Timetable",
    "Wanted",
    "keyframe_of",
    "shown_rows",
]
