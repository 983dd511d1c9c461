"""Pages in a browser: how fast one draws 10,000 tiles, and when pages of a class see where their leader looks, and the leader their answers.

A browser without a screen draws without a graphics card, on the processor. All pages are in one browser.

    python -m benchmarks.window.pages [--pages N] [--tiles N] [--looks N]
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus, LessonPlace
from gcspy_replay.file import Recording
from numpy.typing import NDArray

from gcspy.connection.link import Link, connect
from gcspy.recorder.lesson_recorder import record_lesson
from gcspy_client.lessons.text import parse_lesson
from gcspy_client.page import page_of_recording
from tests.client.page.browser import Chromium
from tests.client.page.serving import TOKEN, served_lesson

__all__ = ["main"]

_LESSON = """+++
title = "Tiles"
goal = "Many tiles."

[simulation]
collector = "marksweep"
program = "reptile"
heap = "{tiles}KiB"
tile = "1KiB"
clock = "{clock}KiB"
+++

## Until it is full

```step
until = "event == 'Full collection ends'"
```
"""

_DRAW = """(async () => {
  const page = gcspy, drawn = [], began = performance.now();
  for (let place = 0; place < page.store.length; place++) {
    const session = await page.cursor.seek(place);
    page.session = session;
    page.at = place;
    const start = performance.now();
    page.draw();
    drawn.push(performance.now() - start);
  }
  return { drawn, tiles: page.activeSpace.count, whole: performance.now() - began };
})()"""

_FRAMES = """(async () => {
  const page = gcspy, began = performance.now();
  let frames = 0, place = 0;
  while (performance.now() - began < 3000) {
    page.show(place++ % page.store.length);
    await new Promise((resolve) => requestAnimationFrame(resolve));
    frames++;
  }
  return frames * 1000 / (performance.now() - began);
})()"""

_NOTE = """(() => {
  const look = gcspy.lookAlong;
  window.seen = [];
  gcspy.lookAlong = function (place) {
    look.call(this, place);
    this.draw();
    seen.push([Number(place.key), performance.timeOrigin + performance.now()]);
  };
})()"""


def _percentiles(values: NDArray[np.float64]) -> str:
    return ", ".join(
        f"{name} {np.percentile(values, at):.1f}"
        for name, at in (("median", 50), ("p95", 95), ("most", 100))
    )


def _draw(tiles: int, folder: Path) -> None:
    lesson = parse_lesson(
        _LESSON.format(tiles=tiles, clock=max(16, tiles // 100)), name="tiles", path="tiles.md"
    )
    file = folder / "tiles.gcspy"
    record_lesson(lesson, file)
    with Recording.open(file) as recording:
        made = page_of_recording(recording, title="Tiles")
    page = folder / "tiles.html"
    page.write_bytes(made.data)
    browser_folder = folder / "one"
    browser_folder.mkdir()
    with Chromium(browser_folder) as browser:
        browser.open(page.as_uri())
        browser.wait("gcspy.history.columns.size >= gcspy.store.length")
        found = browser.evaluate(_DRAW)
        rate = browser.evaluate(_FRAMES)
    drawn = np.array(found["drawn"])
    print(f"{found['tiles']:,} tiles, {len(drawn)} events, page of {len(made.data):,} bytes")
    print(
        f"drawing the whole page, ms: {_percentiles(drawn)}; {rate:.0f} events a second are shown one after the other"
    )


class _Leader:
    """Leads, and notes when answers come."""

    def __init__(self, link: Link) -> None:
        self._link, self._lock, self._ends = link, threading.Lock(), threading.Event()
        self.answered: dict[str, float] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            with self._lock:
                message = self._link.receive(0.002)
            if isinstance(message, m.Clients):
                for one in message.clients:
                    if one.tries:
                        self.answered.setdefault(one.person, time.time() * 1000)
            time.sleep(0.001)

    def look(self, number: int, step: int, attempt: int) -> float:
        """Lead the class to a place; returns when, in milliseconds."""
        place = LessonPlace(lesson="tiles", step=step, attempt=attempt)
        with self._lock:
            self._link.send(m.Look(at=Focus(space=1, stream=1, key=number, lesson=place)))
        return time.time() * 1000

    def close(self) -> None:
        """Stop."""
        self._ends.set()
        self._thread.join()


def _class(pages: int, looks: int, folder: Path) -> None:
    with (
        served_lesson("tiles", folder) as served,
        connect(served.address, wants_control=True, person="Teacher") as link,
        Chromium(folder) as browser,
    ):
        leader = _Leader(link)
        tabs = [browser.tab() for _ in range(pages)]
        for number, tab in enumerate(tabs):
            browser.select(tab)
            browser.open(served.page)
            browser.evaluate(
                f"(by('person').value = 'student {number}', by('token').value = {json.dumps(TOKEN)}, by('join').close())"
            )
            browser.wait("gcspy.store.length > 0")
            browser.evaluate(_NOTE)
        sent = {}
        for number in range(looks):
            sent[number] = leader.look(number, 1, 1)
            time.sleep(0.25)
        ages, times = [], {}
        for number, tab in enumerate(tabs):
            browser.select(tab)
            browser.wait(f"seen.length && seen[seen.length - 1][0] === {looks - 1}")
            ages += [when - sent[place] for place, when in browser.evaluate("seen")]
            times[f"student {number}"] = browser.evaluate(
                "(gcspy.lesson.answerShown(0), performance.timeOrigin + performance.now())"
            )
        give_up = time.monotonic() + 10
        while len(leader.answered) < pages and time.monotonic() < give_up:
            time.sleep(0.01)
        leader.close()
    back = [leader.answered[name] - when for name, when in times.items() if name in leader.answered]
    print(
        f"{pages} pages, {looks} places of the leader, {len(ages)} seen; ms from the leader to a drawn page: {_percentiles(np.array(ages))}"
    )
    print(
        f"{len(back)} of {pages} answers came; ms from a page to the leader: {_percentiles(np.array(back))} (lists of clients are sent four times a second)"
    )


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=5)
    parser.add_argument("--tiles", type=int, default=10_000)
    parser.add_argument("--looks", type=int, default=40)
    chosen = parser.parse_args()
    if shutil.which(Chromium.program) is None:
        raise SystemExit(f"{Chromium.program} is not installed")
    with tempfile.TemporaryDirectory(prefix="gcspy-", ignore_cleanup_errors=True) as folder:
        _draw(chosen.tiles, Path(folder))
        other = Path(folder) / "class"
        other.mkdir()
        _class(chosen.pages, chosen.looks, other)


if __name__ == "__main__":
    main()
