"""Make the recordings of the lessons again: ``python replay/samples/lessons.py [LESSON…]``.

Each lesson is run to its end, and the result is packed. Times are computed from the lesson's pace.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import closing
from pathlib import Path

from gcspy_replay.file import open_source, pack

from gcspy.recorder.lesson_recorder import record_lesson
from gcspy_client.lessons import find_lesson, lesson_names

FOLDER = Path(__file__).resolve().parent / "lessons"
LEVEL = 19


def main(names: list[str]) -> None:
    """Record these lessons; all, if none is named."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gcspy-lessons-") as folder:
        for name in names or lesson_names():
            path, packed = Path(folder) / f"{name}.gcspy", FOLDER / f"{name}.gcspy.zst"
            reached = record_lesson(find_lesson(name), path)
            with closing(open_source(path)) as source, packed.open("wb") as out:
                pack(source, out, level=LEVEL)
            sys.stdout.write(
                f"{packed.name}: {packed.stat().st_size:,} bytes, its steps at events {', '.join(map(str, reached))}\n"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
