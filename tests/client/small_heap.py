"""A recording of a heap so small that its objects are drawn as a graph."""

from __future__ import annotations

from pathlib import Path

from gcspy.recorder.lesson_recorder import record_lesson
from gcspy_client.lessons.text import parse_lesson

__all__ = ["record_small_heap"]

_LESSON = """+++
title = "Objects"
goal = "You see objects."

[simulation]
collector = "markcompact"
program = "binarytrees"
heap = "4KiB"
clock = "512"
slow = 20
graph = true
[simulation.program_options]
live = 3
depth = 3
+++

## One collection

```step
until = "event == 'Full collection ends'"
```
"""


def record_small_heap(path: Path) -> None:
    """Run a lesson to its end, and record it into a file."""
    record_lesson(parse_lesson(_LESSON, name="objects", path="objects.md"), path)
