"""Tables 1 and 3 of the paper, from the recordings that come with GCspy: ``python -m benchmarks paper``, or ``make paper``.

Nothing is timed: the tables depend on the recordings and the code, and not on the machine. They are
written into docs/paper.md.
"""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gcspy_replay.file import FileStore, Recording, repack
from gcspy_replay.samples import lesson_recording, samples

from benchmarks.harness.report_section import put_section
from gcspy.recorder.original_traces import record_original, write_original

__all__ = ["main"]

_PAGE = Path(__file__).resolve().parents[2] / "docs/paper.md"

_LEVEL = 19
"""Of zstd, for the smallest file."""

_COLLECTORS = (
    ("Simple semi-space collector", "copying"),
    ("Simple mark-sweep collector", "freelists"),
    ("Generational collector", "generations"),
    ("Train collector", "train"),
    ("Reference counting", "counting"),
    ("CPython 3.11 (a real process)", "demo-cpython-3.11"),
)
"""The paper's collectors, and two more: the name, and the recording."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One row of table 3.

    Attributes:
        name: Name of the recording.
        events: Its events.
        tiles: Most tiles of all spaces together.
        whole: Bytes of the wire of GCspy 1.0.
        packed: The same, compressed by gzip, as the original stored traces.
        file: Bytes of a recording of the same events, as `gcspy record` writes it.
        smallest: The same, packed by `gcspy pack`.
    """

    name: str
    events: int
    tiles: int
    whole: int
    packed: int
    file: int
    smallest: int


def _path_of(name: str) -> Path:
    lesson = lesson_recording(name)
    return lesson or next(one.path for one in samples() if one.path.stem == name)


def _table_1() -> str:
    lines = ["| collector | recording | space | streams |", "|---|---|---|---|"]
    for title, name in _COLLECTORS:
        with Recording.open(_path_of(name)) as recording:
            session = recording.seek(recording.last)
        for number, state in enumerate(session.spaces.values()):
            streams = ", ".join(one.name for one in state.space.streams)
            first = (title, f"`{name}`") if not number else ("", "")
            lines.append(f"| {first[0]} | {first[1]} | {state.space.name} | {streams} |")
    return "\n".join(lines)


def _trace_of(name: str, folder: Path) -> Trace:
    path = _path_of(name)
    with Recording.open(path) as recording:
        made = folder / f"{name}.gcspy666"
        events, _ = write_original(recording, made)
        tiles = max(
            sum(state.count for state in session.spaces.values())
            for _, session in recording.steps()
        )
        smallest = folder / f"{name}.packed.gcspy"
        repack(recording, FileStore(smallest), level=_LEVEL)
        # Recorded again from the trace, since the files that come with GCspy are of several versions of its format.
        again = folder / f"{name}.gcspy"
        record_original(made, lambda: FileStore(again))
    with gzip.open(made) as file:
        whole = sum(len(data) for data in iter(lambda: file.read(1 << 20), b""))
    sizes = (path.stat().st_size for path in (made, again, smallest))
    return Trace(name, events, tiles, whole, *sizes)


def _table_3() -> str:
    lines = [
        "| recording | events | tiles | GCspy 1.0, KiB | its trace (gzip), KiB | ours, KiB | ours packed, KiB | trace, bytes an event | ours | packed |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory(prefix="gcspy-paper-") as folder:
        for _, name in _COLLECTORS:
            one = _trace_of(name, Path(folder))
            lines.append(
                f"| `{one.name}` | {one.events:,} | {one.tiles:,} | {one.whole / 1024:,.0f} | {one.packed / 1024:,.0f} "
                f"| {one.file / 1024:,.0f} | {one.smallest / 1024:,.0f} | {one.packed / one.events:,.0f} "
                f"| {one.file / one.events:,.0f} | {one.smallest / one.events:,.0f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure, and write both tables."""
    text = (
        "    make paper\n\n### Collectors, their spaces and streams (table 1)\n\n"
        f"{_table_1()}\n\n### Sizes of traces (table 3)\n\n{_table_3()}"
    )
    put_section(_PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
