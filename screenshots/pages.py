"""Takes pictures of pages in a browser: ``python screenshots/pages.py``. Does nothing, and says so, where Chromium is not installed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from gcspy_replay.file import Recording
from gcspy_replay.samples import lesson_recording

from gcspy.recorder.lesson_recorder import record_lesson
from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.claims import events_of_steps
from gcspy_client.lessons.text import parse_lesson
from gcspy_client.page import PageSelection, page_of_recording
from tests.client.page.browser import Browser, Chromium

HERE = Path(__file__).parent

PICTURES = (
    # name, lesson, its step, theme, size
    ("page-lesson", "marksweep", 4, "dark", (1280, 720)),
    ("page-flow", "paths", 5, "dark", (1280, 720)),
    ("page-phone", "generations", 2, "light", (390, 844)),
)


def write_page(name: str, theme: str, path: Path) -> None:
    """Write the page of a lesson."""
    lesson, recorded = find_lesson(name), lesson_recording(name)
    assert recorded is not None
    with Recording.open(recorded) as recording:
        made = page_of_recording(
            recording,
            title=lesson.title,
            selection=PageSelection(theme=theme),
            lesson=lesson,
            reached=events_of_steps(lesson, recording),
        )
    path.write_bytes(made.data)


def lead(browser: Browser, step: int) -> None:
    """Take the lesson of a page to a step, and answer its question."""
    for place in range(step):
        browser.evaluate(f"gcspy.lesson.go({place})")
        browser.wait(f"gcspy.lesson.at === {place} && !gcspy.lesson.running")
        browser.evaluate(
            "gcspy.lesson.question && gcspy.lesson.answer(gcspy.lesson.question.answer)"
        )
    browser.wait("gcspy.history.columns.size > gcspy.at && !gcspy.drawn")


OBJECTS = """+++
title = "Objects"
goal = "Objects move."

[simulation]
collector = "semispace"
program = "binarytrees"
heap = "4KiB"
tile = "32"
clock = "512"
slow = 3
graph = true
[simulation.program_options]
live = 5
depth = 3
+++

## A collection

```step
until = "event == 'Full collection ends'"
```
"""


def take_graph(folder: Path) -> None:
    """Take a picture of the graph of a heap that is being copied."""
    recorded = folder / "objects.gcspy"
    record_lesson(parse_lesson(OBJECTS, name="objects", path="objects.md"), recorded)
    page = folder / "objects.html"
    with Recording.open(recorded) as recording:
        page.write_bytes(
            page_of_recording(
                recording, title="Objects", selection=PageSelection(theme="dark")
            ).data
        )
    with Chromium(folder, width=1280, height=720) as browser:
        browser.open(page.as_uri())
        browser.evaluate("gcspy.show(Math.round(gcspy.store.length * 0.6))")
        browser.evaluate("gcspy.selectObject(2)")
        browser.wait("gcspy.history.columns.size >= gcspy.store.length && !gcspy.drawn")
        browser.picture(HERE / "page-graph.png")


def main() -> None:
    """Take all of them."""
    if shutil.which(Chromium.program) is None:
        print(f"{Chromium.program} is not installed: the pictures of pages stay as they are")
        return
    for name, lesson, step, theme, (width, height) in PICTURES:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            page = Path(folder) / "page.html"
            write_page(lesson, theme, page)
            with Chromium(Path(folder), width=width, height=height) as browser:
                browser.open(page.as_uri())
                lead(browser, step)
                browser.picture(HERE / f"{name}.png")
        print(f"{name}.png")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        take_graph(Path(folder))
    print("page-graph.png")


if __name__ == "__main__":
    main()
