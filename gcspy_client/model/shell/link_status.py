"""The state of the link to the server, in words that help the user.

    IDLE ──▶ CONNECTING ──▶ GREETING ──▶ LIVE ──▶ LOST ──▶ CONNECTING …
                 └──────────────┴──▶ FAILED        └──▶ ENDED (goodbye, or the target ended)

Knows words; does not know sockets or widgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gcspy_protocol.model import ControlState, Mode, PauseActsOn

__all__ = [
    "LinkPhase",
    "LinkStatus",
    "end_words",
    "flow_words",
    "mode_words",
    "pause_words",
    "retry_delay_secs",
]


class LinkPhase(Enum):
    """The state of the link; see the diagram at the top of the module."""

    IDLE = "not connected"
    CONNECTING = "connecting"
    GREETING = "waiting for the server's greeting"
    LIVE = "connected"
    LOST = "connection lost"
    ENDED = "ended"
    FAILED = "could not connect"

    @property
    def connected(self) -> bool:
        """Whether commands can be sent."""
        return self is LinkPhase.LIVE


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkStatus:
    """The link's state for the footer and the banner.

    Attributes:
        phase: The state.
        address: The server's address.
        message: The event, one sentence.
        remedy: The remedy, one sentence; may be empty.
        attempt: How many times connecting was tried in a row.
        retry_secs: Until the next try; None when there is none.
    """

    phase: LinkPhase
    address: str = ""
    message: str = ""
    remedy: str = ""
    attempt: int = 0
    retry_secs: float | None = None


_FIRST_RETRY_SECS = 0.25
_LONGEST_RETRY_SECS = 5.0


def retry_delay_secs(attempt: int) -> float:
    """How long to wait before a try: 0.25 s, doubled each time, never above 5 s."""
    return min(_LONGEST_RETRY_SECS, _FIRST_RETRY_SECS * 2.0 ** min(max(attempt, 0), 16))


def pause_words(acts_on: PauseActsOn) -> str:
    """The word for a pause, for a button: held sampling is never called a paused program."""
    return {
        PauseActsOn.PROGRAM: "program",
        PauseActsOn.SAMPLING: "sampling",
        PauseActsOn.PLAYBACK: "playback",
    }[acts_on]


def end_words(*, driver_failed: bool) -> str:
    """Why a session has ended, as a sentence without its full stop."""
    return "The driver has failed" if driver_failed else "The target has ended"


def flow_words(
    state: ControlState, acts_on: PauseActsOn, reason: str, *, driver_failed: bool = False
) -> str:
    """The state of the control flow as a phrase: ``Sampling paused``."""
    what = pause_words(acts_on).capitalize()
    phrase = {
        ControlState.RUNNING: f"{what} running",
        ControlState.PAUSING: f"{what} about to pause",
        ControlState.PAUSED: f"{what} paused",
        ControlState.ENDED: "Driver failed" if driver_failed else "Target ended",
    }[state]
    return f"{phrase} · {reason}" if reason else phrase


def mode_words(mode: Mode) -> str:
    """How the target is monitored, in a sentence for a tooltip."""
    return {
        Mode.PASSIVE: "Passive: memory is read while the program runs; values that change meanwhile are shown as unknown.",
        Mode.STOPPED: "Stopped: all threads are stopped while memory is read.",
        Mode.COOPERATIVE: "Cooperative: the program waits at its events while they are read; the picture is exact.",
        Mode.EMBEDDED: "Embedded: the memory manager itself reports; the picture is exact.",
        Mode.PLAYBACK: "Playback: a recording, not a running program.",
    }[mode]
