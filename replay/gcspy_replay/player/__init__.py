"""Serving a recording: any number of clients, each with a playback of its own or another's (SPEC.md 8.5).

`serve_recording` does it in a thread of its own; `Player` is what runs in there.
"""

from __future__ import annotations

from gcspy_replay.player.player import Beginning, Player
from gcspy_replay.player.questions import Shown, Teller
from gcspy_replay.player.serving import Playing, serve_recording

__all__ = ["Beginning", "Player", "Playing", "Shown", "Teller", "serve_recording"]
