"""The paper's tables: 1 and 3 from recordings, 2 from what was measured elsewhere.

Nothing is timed here: tables 1 and 3 depend on the recordings and the code, and not on the machine.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gcspy_replay.file import FileStore, Recording, repack
from gcspy_replay.samples import lesson_recording, samples

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.report_section import BEGIN, END
from gcspy.recorder.original_traces import record_original, write_original

__all__ = ["paper_table_3", "real_programs", "table_1", "table_2", "table_3"]

_ROOT = Path(__file__).resolve().parents[2]

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


def table_1() -> str:
    """Return the spaces and streams of each collector."""
    lines = ["| collector | recording | space | streams |", "|---|---|---|---|"]
    for title, name in _COLLECTORS:
        with Recording.open(_path_of(name)) as recording:
            session = recording.seek(recording.last)
        for number, state in enumerate(session.spaces.values()):
            streams = ", ".join(one.name for one in state.space.streams)
            first = (title, f"`{name}`") if not number else ("", "")
            lines.append(f"| {first[0]} | {first[1]} | {state.space.name} | {streams} |")
    return "\n".join(lines)


def _trace_of(path: Path, folder: Path) -> Trace:
    name = path.name.partition(".gcspy")[0]
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


def table_3(more: Sequence[Path] = ()) -> str:
    """Return the sizes of recordings as traces of GCspy 1.0 and as files of ours.

    Args:
        more: Further recordings.
    """
    lines = [
        "| recording | events | tiles | GCspy 1.0, KiB | its trace (gzip), KiB | ours, KiB | ours packed, KiB | trace, bytes an event | ours | packed | trace, bytes a tile and event |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory(prefix="gcspy-paper-") as folder:
        for path in [*(_path_of(name) for _, name in _COLLECTORS), *more]:
            one = _trace_of(path, Path(folder))
            lines.append(
                f"| `{one.name}` | {one.events:,} | {one.tiles:,} | {one.whole / 1024:,.0f} | {one.packed / 1024:,.0f} "
                f"| {one.file / 1024:,.0f} | {one.smallest / 1024:,.0f} | {one.packed / one.events:,.0f} "
                f"| {one.file / one.events:,.0f} | {one.smallest / one.events:,.0f} "
                f"| {one.packed / one.events / one.tiles:.2f} |"
            )
    return "\n".join(lines)


_PAPER_TABLE_2 = (
    # program, no connection, connection without events, levels 1 to 4; relative to no GCspy
    ("paper: _213_javac", 1.00, 1.00, 1.83, 1.91, 3.29, 9.75),
    ("paper: reptile", 1.01, 1.01, 2.79, 2.84, 6.68, 20.61),
)
_PAPER_TABLE_3 = (
    # trace, events, tiles, KB
    ("_202_jess", 304, 805, 189.23),
    ("_205_raytrace", 161, 1068, 333.17),
    ("_209_db", 89, 2148, 198.74),
    ("_213_javac", 241, 2230, 973.65),
    ("_228_jack", 204, 672, 143.00),
)
_SLOWDOWNS = (("docs/slowdown.md", "CPython"), ("docs/jvm-slowdown.md", "HotSpot"))
_LEVELS = 4
_LAST_LEVEL = f"level {_LEVELS}"
"""Section of these pages with what was measured at the last level, which takes too long to be measured with the others."""
_MEDIANS = "| by the clock |"


def table_2() -> str:
    """Return the paper's table 2, and the medians of HotSpot under the default budget.

    Raises:
        Unavailable: The page about HotSpot has no such medians.
    """
    titles = ["no connection", "no events", *(f"level {level}" for level in range(1, _LEVELS + 1))]
    lines = [f"| program | {' | '.join(titles)} |", f"|---|{'--:|' * len(titles)}"]
    for name, *ratios in _PAPER_TABLE_2:
        lines.append(f"| {name} | {' | '.join(f'{one:.2f}' for one in ratios)} |")
    page = _ROOT / "docs/jvm-slowdown.md"
    medians = [line for line in page.read_text().splitlines() if line.startswith(_MEDIANS)]
    if len(medians) != 1:
        raise Unavailable(f"{page} has no line {_MEDIANS}")
    cells = [cell.strip() for cell in medians[0].strip("|").split("|")[1:]]
    lines.append(f"| HotSpot, median of nine, budget 5 % | {' | '.join(cells)} |")
    return "\n".join(lines)


def real_programs() -> str:
    """Return the slowdowns that the pages about CPython and HotSpot have for real programs."""
    titles = [f"level {level}" for level in range(1, _LEVELS + 1)]
    lines = [f"| program | {' | '.join(titles)} |", f"|---|{'--:|' * len(titles)}"]
    for page, runtime in _SLOWDOWNS:
        last = dict(_measured_rows(_ROOT / page, _LAST_LEVEL))
        # Medians of other programs than those of the other levels are no comparison.
        last = {name: cells for name, cells in last.items() if "median" not in name}
        for name, cells in _measured_rows(_ROOT / page):
            found = cells | last.get(name, {})
            levels = [found.get(title, "") for title in titles]
            lines.append(f"| {runtime}: {name} | {' | '.join(levels)} |")
    return "\n".join(lines)


def _measured_rows(page: Path, section: str = "") -> list[tuple[str, dict[str, str]]]:
    """Rows of the tables between a page's marks, or those of a section: a name, and the slowdown in each mode."""
    begin, end = (
        mark.replace("measured", f"measured {section}", 1) if section else mark
        for mark in (BEGIN, END)
    )
    measured = page.read_text().partition(begin)[2].partition(end)[0]
    found, title, header = [], "", None
    for line in measured.splitlines():
        if line.startswith("###"):
            title = line.strip("# ") + ", "
        if not line.startswith("|"):
            header = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if header is None:
            header = cells
        elif cells[0] != "" and not set(line) <= set("|-: "):
            values = {
                column.partition(":")[0]: cell
                for column, cell in zip(header, cells, strict=True)
                if column.endswith(": slowdown")
            }
            second = f" with {cells[1]}" if header[1] == "collector" and cells[1] else ""
            found.append((f"{title}{cells[0]}{second}", values))
    return found


def paper_table_3() -> str:
    """Return the paper's table 3, with bytes an event and a tile."""
    lines = [
        "| trace of the paper | events | tiles | KB | bytes an event | a tile and event |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, events, tiles, size in _PAPER_TABLE_3:
        each = size * 1024 / events
        lines.append(
            f"| {name} | {events} | {tiles} | {size:.2f} | {each:,.0f} | {each / tiles:.2f} |"
        )
    return "\n".join(lines)
