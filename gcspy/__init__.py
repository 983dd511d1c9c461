"""GCspy: see the heap of a running process, live; and later, from a recording.

`gcspy.open(FILE)` reads a recording in a script or a notebook.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcspy_replay.file.notebook import SavedSession

__all__ = ["open"]


def open(*paths: Path | str) -> SavedSession:
    """Open a recording: a file, the files of a split one, or the folder of a ring.

    Events and arrays are read when they are asked for; see `gcspy_replay.file.notebook`.

    Raises:
        RecordingError: It is none, is damaged at its beginning, or cannot be read.
    """
    # Imported here, so that `import gcspy` stays cheap for a program that embeds it.
    from gcspy_replay.file.notebook import SavedSession

    return SavedSession.open(*paths)
