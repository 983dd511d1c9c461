"""Takes a picture of `docs/paper.md` in a recording: ``python screenshots/paper.py FILE PICTURE SPACE STREAM [EVENT] [--history] [--track SPACE STREAM]...``.

A process of its own for each picture, as Qt reads the scale of the screen once; `make paper` calls it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path

import event_loop
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from scenes import choose, has_events

from gcspy_client.app import take_screenshot
from gcspy_client.model.history.tracks import TrackSpec
from gcspy_client.view.window import MainWindow

SIZE = (1600, 1000)
HISTORY_HEIGHT = 620

wait_until = partial(event_loop.wait_until, secs=90.0)


def arrange(window: MainWindow, options: argparse.Namespace, events: int) -> None:
    """Choose the stream, and draw its history if that is wanted."""
    choose(window, options.space, options.stream)
    if not options.history:
        return
    window.bookmark_store.use_files(options.file)  # the past is read from the file
    window.time_panel.transport.axis.setCurrentIndex(1)  # a row an event
    window.time_panel.transport.axis_chosen.emit(False)
    window.docks.show("history")
    window.docks.give_height("history", HISTORY_HEIGHT)
    for space, stream in options.track:
        window.history.panel.add_track(TrackSpec(space, stream))
    panel = window.history.panel
    wait_until(
        lambda: (
            panel.read >= 1
            and all(has_events(track.canvas.drawn, events) for track in panel.tracks)
        )
    )


def main() -> None:
    """Take it."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["GCSPY_SETTINGS"] = ""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("space")
    parser.add_argument("stream")
    parser.add_argument("event", type=int, nargs="?")
    parser.add_argument("--history", action="store_true")
    parser.add_argument("--track", nargs=2, action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        address = f"unix:{folder}/player.sock"
        recording = Recording.open(options.file)
        with serve_recording(recording, address, beginning=PlaybackStart(running=False)):
            take_screenshot(
                address,
                options.picture,
                size=SIZE,
                theme="dark",
                settle_secs=1.0,
                event=options.event or recording.last,
                arrange=partial(arrange, options=options, events=len(recording)),
            )


if __name__ == "__main__":
    main()
