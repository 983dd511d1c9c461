"""GCspy: see the heap of a running process, live; and later, from a recording.

`gcspy.open(FILE)` reads a recording in a script or a notebook; `gcspy.listen()` makes a program
available for monitoring.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this

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
    """Make this program available for monitoring with exact events, until the result is closed; see `gcspy.hosts.listener`.

    Args:
        address: Additional address for clients: ``127.0.0.1:7777``, ``tls:0.0.0.0:7777``,
            ``unix:/path``.
        wait: Return when the first client has connected.
        longest_hold_secs: Longest single stop of the program; None: unlimited.
        budget: Maximum share of this program's time for monitoring, until a client changes it;
            None: no limit.
        token: The token for TCP clients; None takes GCSPY_TOKEN.

    Raises:
        CommandError: The sidecar cannot monitor this process, and why; or a token is missing.
        RuntimeError: This Python runs without a GIL.
    """
    from gcspy.hosts.listener import listen as listen_here

    return listen_here(
        address, wait=wait, longest_hold_secs=longest_hold_secs, budget=budget, token=token
    )


def open(*paths: Path | str) -> SavedSession:
    """Open a recording: a file, the files of a split one, or the folder of a ring.

    Events and arrays are read on demand; see `gcspy_replay.file.notebook`.

    Raises:
        RecordingError: It is not a recording, is damaged at its beginning, or cannot be read.
    """
    # Imported here, so that `import gcspy` stays cheap for a program that embeds it.
    from gcspy_replay.file.notebook import SavedSession

    return SavedSession.open(*paths)
