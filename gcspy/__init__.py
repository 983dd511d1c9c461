"""GCspy: see the heap of a running process, live; and later, from a recording.

`gcspy.open(FILE)` reads a recording in a script or a notebook; `gcspy.listen()` lets a program be watched.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes longer to import than all of this

if TYPE_CHECKING:
    from pathlib import Path

    from gcspy_replay.file.notebook import SavedSession

    from gcspy.hosts.listener import ListeningProgram

__all__ = ["listen", "open"]


def listen(
    address: str | None = None,
    *,
    wait: bool = False,
    longest_hold_secs: float | None = 30.0,
    budget: float | None = 0.05,
    token: str | None = None,
) -> ListeningProgram:
    """Let this program be watched with exact events, until what is returned is closed; see `gcspy.hosts.listener`.

    Args:
        address: Where clients join besides the local default: ``127.0.0.1:7777``, ``tls:0.0.0.0:7777``, ``unix:/path``.
        wait: Return when the first client has come.
        longest_hold_secs: Longest single stop of the program; None: unlimited.
        budget: What watching may take of this program's time, until a client chooses otherwise; None: all of it.
        token: What TCP clients must know; None takes GCSPY_TOKEN.

    Raises:
        CommandError: The sidecar cannot watch this process, and why; or a token is missing.
        RuntimeError: This Python runs without its lock (GIL).
    """
    from gcspy.hosts.listener import listen as listen_here

    return listen_here(
        address, wait=wait, longest_hold_secs=longest_hold_secs, budget=budget, token=token
    )


def open(*paths: Path | str) -> SavedSession:
    """Open a recording: a file, the files of a split one, or the folder of a ring.

    Events and arrays are read when they are asked for; see `gcspy_replay.file.notebook`.

    Raises:
        RecordingError: It is none, is damaged at its beginning, or cannot be read.
    """
    # Imported here, so that `import gcspy` stays cheap for a program that embeds it.
    from gcspy_replay.file.notebook import SavedSession

    return SavedSession.open(*paths)
