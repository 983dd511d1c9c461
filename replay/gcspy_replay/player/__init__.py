"""Serves a recording: any number of clients, each with a playback of its own or another's (SPEC.md 8.5).

`serve_recording` does it in a thread of its own; `Player` runs in that thread.
"""

from __future__ import annotations

from gcspy_replay.player.player import PlaybackStart, Player
from gcspy_replay.player.player_thread import PlayerThread, serve_recording
from gcspy_replay.player.questions import Shown, TraceQueryService

__all__ = [
    "PlaybackStart",
    "Player",
    "PlayerThread",
    "Shown",
    "TraceQueryService",
    "serve_recording",
]
