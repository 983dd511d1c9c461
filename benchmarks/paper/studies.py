"""The case studies of section 7 on programs of today: each records a program, reads the recording, and takes a picture of it.

Knows the programs of `programs/` and the names of spaces and streams; `sessions` records.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gcspy_replay.file import RecordedEvent, Recording
from gcspy_replay.samples import lesson_recording, samples
from numpy.typing import NDArray

from benchmarks.paper import popular_objects
from benchmarks.paper.sessions import record_java, record_native

__all__ = ["STUDIES", "Study"]

_ROOT = Path(__file__).resolve().parents[2]
_EVERY_COLLECTION = ("--inject", "agent", "--budget", "off", "--level", "2", "--lossless")
_CARDS = (0, 10_000, 20_000, 40_000)
_ROUNDS = 20
_GC_START, _GC_END = 1, 2
_PAUSE = re.compile(r"Pause Young .* ([0-9.]+)ms$")
_PROCESSOR = re.compile(r"User=([0-9.]+)s Sys=([0-9.]+)s")
_FULL = re.compile(r"Pause Full .* [0-9.]+ms$")


@dataclass(frozen=True, slots=True)
class Study:
    """One section of the page.

    Attributes:
        name: Of the section's marks.
        run: Records in a folder, takes the picture, and returns the text.
    """

    name: str
    run: Callable[[Path], str]


def _picture(recording: Path, name: str, space: str, stream: str, *more: str) -> None:
    picture = _ROOT / "screenshots" / f"{name}.png"
    words = [str(recording), str(picture), space, stream, *more]
    subprocess.run([sys.executable, str(_ROOT / "screenshots/paper.py"), *words], check=True)


def _streams(
    recording: Recording, name: str, streams: Sequence[str]
) -> Iterator[tuple[RecordedEvent, list[NDArray[np.int64]]]]:
    """Each event, with a copy of the values of some streams of a space; events without the space are left out."""
    for step, session in recording.steps():
        for state in session.spaces.values():
            if state.space.name == name:
                by_name = {one.defined.name: one for one in state.streams.values()}
                yield step, [by_name[stream].values.astype(np.int64) for stream in streams]


def _old_generation(folder: Path) -> str:
    """Figures 4 and 7 (a): the used space of an old generation."""
    flags = ("-XX:+UseSerialGC", "-Xms64m", "-Xmx64m", "-Xmn8m")
    run = record_java(
        "Lists",
        folder,
        flags=flags,
        arguments=("small", "300000"),
        options=(*_EVERY_COLLECTION, "--clock", "0.1", "--tiles", "512"),
    )
    young = sum(bool(_PAUSE.search(line)) for line in run.log)
    full = sum(bool(_FULL.search(line)) for line in run.log)
    with Recording.open(run.recording) as recording:
        starts = sum(kind == _GC_START for kind in recording.events["event"].tolist())
        found = [
            (step.number, len(used), int(used.sum()))
            for step, (used,) in _streams(recording, "Heap", ["Used"])
        ]
    middle, tiles, _ = found[len(found) // 2]
    used = [size for _, _, size in found]
    _picture(run.recording, "paper-window", "Heap", "Used", str(middle))
    _picture(run.recording, "paper-old-generation", "Heap", "Used", "--history")
    return (
        f"| young collections | full collections | starts recorded | tiles | least used, MB | most used, MB |\n"
        f"|--:|--:|--:|--:|--:|--:|\n"
        f"| {young} | {full} | {starts} | {tiles} | {min(used) / 1e6:.1f} | {max(used) / 1e6:.1f} |"
    )


def _free_lists(folder: Path) -> str:
    """Figure 7 (b): from which end of the heap chunks are taken."""
    made = record_native(
        "lists",
        folder,
        options=(
            "--driver",
            "malloc",
            "--level",
            "2",
            "--budget",
            "off",
            "--clock",
            "20",
            "--tiles",
            "4096",
        ),
    )
    with Recording.open(made) as recording:
        centres: list[tuple[float, float]] = []
        for _, (used,) in _streams(recording, "malloc heap", ["Used"]):
            size = int(used.sum())
            if size:
                place = float((used * np.arange(len(used))).sum()) / size / len(used)
                centres.append((size, place))
    _picture(made, "paper-free-lists", "malloc heap", "Used", "--history")
    most = max(size for size, _ in centres)
    lines = [
        "| taken again | lists of free chunks | centre of what is in use, at a quarter of it | at a half | when all is |",
        "|--:|---|--:|--:|--:|",
    ]
    for number, part in enumerate(_fillings(centres)):
        if not number:
            continue  # the first time all memory is new
        how = "last in, first out (fast bins)" if number < 3 else "one large chunk (fast bins off)"
        places = [_at(part, share * most) for share in (0.25, 0.5, 1.0)]
        lines.append(f"| {number} | {how} | {' | '.join(f'{100 * one:.0f} %' for one in places)} |")
    return "\n".join(lines)


def _fillings(centres: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The parts between which everything was freed."""
    parts: list[list[tuple[float, float]]] = [[]]
    before = 0.0
    for size, place in centres:
        if size < before / 2:
            parts.append([])
        parts[-1].append((size, place))
        before = size
    return [part for part in parts if len(part) > 2]


def _at(part: list[tuple[float, float]], size: float) -> float:
    return min(part, key=lambda one: abs(one[0] - size))[1]


def _size_classes(_: Path) -> str:
    """How many of the even and the odd size classes are in use."""
    found = []
    python = next(one.path for one in samples() if "cpython" in one.path.stem)
    simulated = lesson_recording("freelists")
    assert simulated is not None
    for title, path, space, stream in (
        ("simulator, alignment of 4 assumed", simulated, "Free lists", "Length"),
        ("CPython 3.11, pymalloc, a service", python, "Size classes", "Pools"),
    ):
        with Recording.open(path) as recording:
            ever: NDArray[np.bool_] | None = None
            for _step, (values,) in _streams(recording, space, [stream]):
                ever = values > 0 if ever is None else ever | (values > 0)
        assert ever is not None
        found.append((title, ever))
    lines = [
        "| lists | number | 1st, 3rd, 5th … in use | 2nd, 4th, 6th … in use |",
        "|---|--:|--:|--:|",
    ]
    for title, ever in found:
        lines.append(
            f"| {title} | {len(ever)} | {int(ever[::2].sum())} of {len(ever[::2])} | {int(ever[1::2].sum())} of {len(ever[1::2])} |"
        )
    return "\n".join(lines)


def _dirty_cards(folder: Path) -> str:
    """Pauses of young collections beside the cards that are dirty when they begin."""
    run = record_java(
        "Cards",
        folder,
        flags=("-XX:+UseSerialGC", "-Xms96m", "-Xmx96m", "-Xmn8m"),
        arguments=(str(_ROUNDS), *map(str, _CARDS)),
        options=(*_EVERY_COLLECTION, "--clock", "0.1", "--tiles", "1024"),
    )
    with Recording.open(run.recording) as recording:
        dirty, left = [], []
        for step, (marked, used) in _streams(recording, "Heap", ["Dirty cards", "Used"]):
            if step.change.event.event == _GC_START:
                dirty.append(int(marked.sum()))
            elif step.change.event.event == _GC_END:
                left.append(int(used.sum()))
    pauses: list[float] = []
    used_millis: list[float] = []
    for line in run.log:
        if found := _PAUSE.search(line):
            pauses.append(float(found[1]))
        elif (found := _PROCESSOR.search(line)) and pauses and len(used_millis) < len(pauses):
            used_millis.append(1000 * (float(found[1]) + float(found[2])))
    _picture(run.recording, "paper-cards", "Heap", "Dirty cards", "--history")
    lines = [
        "| cards stored into, as the program says | dirty at the start, as we see | pause, ms of processor, mean | ms by the clock, least | in use after it, MB |",
        "|--:|--:|--:|--:|--:|",
    ]
    for number, cards in enumerate(_CARDS):
        # The first collection of a group may have begun before its stores.
        here = slice(number * _ROUNDS + 1, (number + 1) * _ROUNDS)
        seen = statistics.median(dirty[here])
        lines.append(
            f"| {cards:,} | {seen:,.0f} | {statistics.mean(used_millis[here]):.1f} | {min(pauses[here]):.1f} "
            f"| {statistics.median(left[here]) / 1e6:.1f} |"
        )
    return "\n".join(lines)


STUDIES = (
    Study("old generation", _old_generation),
    Study("free lists", _free_lists),
    Study("size classes", _size_classes),
    Study("dirty cards", _dirty_cards),
    Study("popular objects, simulated", lambda _: popular_objects.in_the_train()),
    Study("popular objects", popular_objects.in_a_compiler),
)
