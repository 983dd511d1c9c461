"""`gcspy export` to pictures: the window at each event, as a folder of PNG files or an animated GIF.

The recording is applied from the first requested event to the last, without a server; the window is
that of `gcspy view`, off screen. Qt is imported when the first picture is taken.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode
from gcspy.gui import has_display, require_gui
from gcspy.output.progress import progress_bar
from gcspy.recorder.new_file import new_file, new_folder

if TYPE_CHECKING:
    from gcspy_replay.file import Recording
    from numpy.typing import NDArray

    from gcspy_client.pictures import Camera

__all__ = [
    "MOST_FRAMES",
    "PictureOptions",
    "Taken",
    "wanted_events",
    "write_gif",
    "write_png_folder",
]

MOST_FRAMES = 300
"""Default maximum of frames of an animation: more would be some ten megabytes, and too long to watch."""

_INDEX = "index.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class PictureOptions:
    """The requested pictures.

    Attributes:
        first: Number of the first event; None: of the recording.
        last: Number of the last event; None: of the recording.
        every: Only every n-th event.
        kinds: Names of kinds of event; empty: all.
        most: Maximum number of pictures, evenly spread; None: of every event.
        size: Width and height in pixels.
        theme: ``dark`` or ``light``.
        space: Only this space's tiles; None: the whole window.
        stream: With `space`: the stream in which it is painted.
    """

    first: int | None = None
    last: int | None = None
    every: int = 1
    kinds: tuple[str, ...] = ()
    most: int | None = None
    size: tuple[int, int] = (1280, 800)
    theme: str = "dark"
    space: str | None = None
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """The result.

    Attributes:
        pictures: Number of pictures.
        left_out: Requested events without a picture, because there were too many.
    """

    pictures: int
    left_out: int


def wanted_events(recording: Recording, chosen: PictureOptions) -> tuple[NDArray[Any], int]:
    """The events of which pictures are taken.

    Returns:
        Rows of `Recording.events`, in order, and how many more were requested.

    Raises:
        RecordingError: There is no such kind of event.
        CommandError: There is no such range, or nothing in it.
    """
    import numpy as np

    first = recording.first if chosen.first is None else chosen.first
    last = recording.last if chosen.last is None else chosen.last
    if not 1 <= recording.first <= first <= last <= recording.last:
        what = (
            f"it has {recording.first} to {recording.last}"
            if recording.last
            else "it has no events"
        )
        raise CommandError(
            f"the recording has no events {first} to {last}: {what}", exit_code=ExitCode.RECORDING
        )
    events = recording.events
    numbers = events["number"]
    wanted = (numbers >= first) & (numbers <= last)
    if chosen.kinds:
        ids = [kind for name in chosen.kinds for kind in recording.event_ids(name)]
        wanted &= np.isin(events["event"], ids)
    rows = events[wanted][:: chosen.every]
    if not len(rows):
        raise CommandError(
            f"there is no event {' or '.join(chosen.kinds)} from {first} to {last}",
            exit_code=ExitCode.RECORDING,
        )
    if chosen.most is None or len(rows) <= chosen.most:
        return rows, 0
    # Evenly, and always the first and the last.
    kept = np.unique(np.linspace(0, len(rows) - 1, chosen.most).round().astype(np.int64))
    return rows[kept], len(rows) - len(kept)


def _pictures(
    recording: Recording, chosen: PictureOptions, rows: NDArray[Any], label: str
) -> Iterator[tuple[Any, Camera]]:
    """Each row, in order, with a camera that shows its event.

    Raises:
        KeyboardInterrupt: The user asked us to stop.
    """
    from gcspy.recorder.recorder import stop_signals
    from gcspy_client.model.palette import Theme
    from gcspy_client.pictures import Camera

    wanted = {int(row["number"]): row for row in rows}
    first, last = int(rows["number"][0]), int(rows["number"][-1])
    # An exception from a signal handler may unwind through a widget that is half built or being
    # painted, and Qt does not survive that: Ctrl-C waits for the end of the event.
    with stop_signals() as stop:
        camera = Camera(
            size=chosen.size, theme=Theme(chosen.theme), space=chosen.space, stream=chosen.stream
        )
        try:
            with progress_bar(label) as progress:
                for step, session in recording.steps(first, last):
                    camera.follow(session, step.change)
                    row = wanted.get(step.number)
                    if row is not None:
                        yield row, camera
                    if stop.requested:
                        raise KeyboardInterrupt
                    progress(step.number - first + 1, last - first + 1)
        finally:
            camera.close()


def _prepare(recording: Recording, chosen: PictureOptions) -> None:
    """Refuse impossible options, before anything is written.

    Raises:
        CommandError: Qt is missing, or no event has the space.
    """
    require_gui()
    if not has_display():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    if chosen.space is not None:
        names = _spaces_of(recording)
        if chosen.space not in names:
            raise CommandError(
                f"there is no space {chosen.space!r} in the recording; there are: {', '.join(names)}",
                exit_code=ExitCode.RECORDING,
            )


def _spaces_of(recording: Recording) -> list[str]:
    """Names of the spaces at the first events of all chunks, and at the last event."""
    names: dict[str, None] = {}
    numbers = [at.place.first for at in recording.chunks if at.place.events] + [recording.last]
    for number in numbers:
        if number:
            names |= {state.space.name: None for state in recording.seek(number).spaces.values()}
    return list(names)


def write_png_folder(
    recording: Recording, folder: Path, chosen: PictureOptions, *, replace: bool
) -> Taken:
    """Write a PNG file per event, numbered as in the recording, and an index of them.

    Raises:
        CommandError: A dependency is missing, there is no event, or the folder cannot be written.
        RecordingError: The recording is damaged.
    """
    rows, left_out = wanted_events(recording, chosen)
    digits = max(6, len(str(recording.last)))
    names = [kind.name for kind in recording.welcome.events]
    began, wall = int(recording.events["time_nanos"][0]), recording.welcome.wall_offset_nanos
    told = []
    _prepare(recording, chosen)
    with new_folder(folder, replace=replace, ours=_is_export) as part:
        for row, camera in _pictures(recording, chosen, rows, f"writing {folder}"):
            name = f"{int(row['number']):0{digits}}.png"
            camera.save(part / name)
            time = int(row["time_nanos"])
            kind = int(row["event"])
            told.append(
                {
                    "file": name,
                    "number": int(row["number"]),
                    "event": names[kind] if kind < len(names) else str(kind),
                    "occurrence": int(row["occurrence"]),
                    "time_nanos": time,
                    "wall_nanos": time + wall,
                    "seconds": (time - began) / 1e9,
                }
            )
        index = {
            "gcspy": "pictures",
            "server": recording.welcome.server,
            "size": list(chosen.size),
            "events": told,
        }
        (part / _INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return Taken(len(told), left_out)


def _is_export(folder: Path) -> bool:
    """Whether there is nothing in a folder but what was exported to it before."""
    try:
        index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        told = (
            {entry["file"] for entry in index["events"]} if index["gcspy"] == "pictures" else set()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return {path.name for path in folder.iterdir()} <= told | {_INDEX}


def write_gif(
    recording: Recording,
    path: Path,
    chosen: PictureOptions,
    *,
    replace: bool,
    speed: float = 1.0,
    say: Callable[[str], None] = lambda _: None,
) -> Taken:
    """Write an animation, at the pace of the recording.

    Args:
        recording: The recording to show.
        path: The file.
        chosen: The chosen parts of it.
        replace: Whether an existing file may be replaced.
        speed: Playback speed.
        say: Called with messages for the user.

    Raises:
        CommandError: A dependency is missing, there is no event, or the file cannot be written.
        RecordingError: The recording is damaged.
    """
    if find_spec("PIL") is None:
        raise CommandError(
            "an animated GIF needs the package Pillow; in a clone of gcspy: pip install '.[export]'",
            exit_code=ExitCode.MISSING_PART,
        )
    from gcspy_replay.file.export.gif_file import GifWriter, frame_centis

    rows, left_out = wanted_events(recording, chosen)
    times = rows["time_nanos"].astype("i8").tolist()
    centis = frame_centis(times, speed=speed)
    _prepare(recording, chosen)
    with new_file(path, replace=replace) as part, GifWriter(chosen.size) as gif:
        for i, (_, camera) in enumerate(_pictures(recording, chosen, rows, "taking pictures")):
            gif.add(camera.pixels(), centis[i])
        with progress_bar(f"writing {path}") as progress:
            gif.write(part, progress)
    wanted_secs = (times[-1] - times[0]) / speed / 1e9
    taken_secs = sum(centis[:-1]) / 100
    if taken_secs > wanted_secs * 1.1 + 0.1:
        say(
            f"the events are closer together than GIF frames can be: it plays for {taken_secs:,.1f} s instead of {wanted_secs:,.1f} s; use --most-frames, --every or a lower --speed"
        )
    return Taken(len(rows), left_out)
