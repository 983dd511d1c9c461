"""Tables about one object: its places from its birth to its death, and the fate of the neighbours of its site.

Knows the rebuilt heap; the caller provides numbers of the session's events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from gcspy_objects.heap import CollectionStep, Fate, HeapSnapshot, Life, RebuiltHeap
from numpy.typing import NDArray

from gcspy_drivers.traced.tables import ADDRESS, place_of, space_name
from gcspy_drivers.traced.trace_states import words_of
from gcspy_server.api import ColumnKind, DetailColumn, DetailTable

__all__ = ["EVENT", "describe", "life_table", "neighbour_table"]

EVENT: Final = "Event"

_FATES: Final = {
    Fate.UNTOUCHED: "stays: its space is not collected",
    Fate.KEPT: "stays",
    Fate.MOVED: "moved",
    Fate.PROMOTED: "promoted",
    Fate.DIED: "died",
}
_MOST_FRAMES = 6

Number = Callable[[int], int]
"""Maps an event of the trace to the number of the first event that shows its effect."""


def describe(heap: RebuiltHeap, life: Life) -> str:
    """An object in one sentence: its type, and its allocation site."""
    trace = heap.trace
    array = f", {life.length:,} elements" if life.length else ""
    frames = trace.sites.frames(life.site)
    stack = " ← ".join(map(str, frames[:_MOST_FRAMES])) + (
        " ← …" if len(frames) > _MOST_FRAMES else ""
    )
    where = stack or trace.sites.name(life.site)
    return f"{trace.types.names[life.type]}, {life.size:,} bytes{array}, allocated by {trace.threads.name(life.thread)} at {where}"


def life_table(heap: RebuiltHeap, life: Life, birth_bytes: int, number: Number) -> DetailTable:
    """The places of an object, in order; the last row is its death, or the end of the trace."""
    columns = (
        DetailColumn(name="What", kind=ColumnKind.TEXT, about="What happened to it."),
        DetailColumn(name=EVENT, about="From this event on it is so."),
        DetailColumn(name=ADDRESS, kind=ColumnKind.TEXT),
        DetailColumn(name="Space", kind=ColumnKind.TEXT),
        DetailColumn(name="Age", about="Collections that it survived."),
        DetailColumn(
            name="Allocated since",
            kind=ColumnKind.BYTES,
            about="What the program has allocated since its birth.",
        ),
    )
    rows: list[tuple[int | str | None, ...]] = []
    for age, stay in enumerate(life.stays):
        collection = heap.collections[stay.collection - 1] if stay.collection else None
        what = (
            "born"
            if collection is None or stay.fate is None
            else f"{_FATES[stay.fate]} by {words_of(collection)}"
        )
        since = 0 if collection is None else collection.bytes - birth_bytes
        rows.append(
            (
                what,
                number(stay.event),
                f"{stay.address:#x}",
                space_name(stay.space_kind),
                age,
                since,
            )
        )
    age = len(life.stays) - 1
    if life.died_event is not None:
        end = "freed"
        if life.died_in:
            end = f"found dead by {words_of(heap.collections[life.died_in - 1])}"
        rows.append((end, number(life.died_event), "", "", age, life.life_bytes))
    else:
        last = life.stays[-1]
        rows.append(
            (
                "lives at the end of the trace",
                number(heap.events - 1),
                f"{last.address:#x}",
                space_name(last.space_kind),
                age,
                life.life_bytes,
            )
        )
    return DetailTable(columns=columns, rows=tuple(rows), note=describe(heap, life))


def neighbour_table(heap: RebuiltHeap, now: HeapSnapshot, row: int, most: int) -> DetailTable:
    """The objects of the same site, the nearest first, and their fate in the collection that next found or moved this one."""
    program = ~now.filler
    same = np.flatnonzero(program & (now.site == now.site[row]))
    same = same[same != row]
    distance = now.address[same] - now.address[row]
    order = np.argsort(np.abs(distance), kind="stable")
    same, distance = same[order], distance[order]
    step = _next_step(heap, now, int(now.birth[row]))
    columns = (
        DetailColumn(name="What became of it", kind=ColumnKind.TEXT),
        DetailColumn(name=ADDRESS, kind=ColumnKind.TEXT),
        DetailColumn(name="Distance", about="Bytes from the object to this one."),
        DetailColumn(name="Size", kind=ColumnKind.BYTES),
        DetailColumn(name="Space", kind=ColumnKind.TEXT),
        DetailColumn(name="Then at", kind=ColumnKind.TEXT),
        DetailColumn(
            name="Distance then",
            kind=ColumnKind.TEXT,
            about="Bytes from where the object is afterwards; nothing where one of the two is dead.",
        ),
    )
    if step is None:
        cells = [
            (
                "no collection follows that touches it",
                f"{int(now.address[one]):#x}",
                int(far),
                int(now.size[one]),
                place_of(now, int(now.address[one])),
                "",
                "",
            )
            for one, far in zip(same[:most].tolist(), distance[:most].tolist(), strict=True)
        ]
        return DetailTable(
            columns=columns,
            rows=tuple(cells),
            rest=max(0, len(same) - most),
            rest_cells=(None,) * 7 if len(same) > most else (),
        )
    places = _rows_of(step.before, now.birth[same])
    fates, to = step.fate[places], step.to[places]
    own = int(step.to[_rows_of(step.before, now.birth[[row]])[0]])
    cells = []
    for one, far, fate, new in zip(
        same[:most].tolist(),
        distance[:most].tolist(),
        fates[:most].tolist(),
        to[:most].tolist(),
        strict=True,
    ):
        address = int(now.address[one])
        then = f"{new:#x}" if new >= 0 else ""
        apart = f"{new - own:,}" if new >= 0 and own >= 0 else ""
        cells.append(
            (
                _FATES[Fate(fate)],
                f"{address:#x}",
                int(far),
                int(now.size[one]),
                place_of(now, address),
                then,
                apart,
            )
        )
    words = ", ".join(
        f"{int((fates == fate).sum()):,} {text.split(':')[0]}"
        for fate, text in _FATES.items()
        if (fates == fate).any()
    )
    note = f"{words_of(step.collection)}. Of {len(same):,} others of this site: {words or 'none'}"
    return DetailTable(
        columns=columns,
        rows=tuple(cells),
        rest=max(0, len(same) - most),
        rest_cells=(None,) * 7 if len(same) > most else (),
        note=note,
    )


def _next_step(heap: RebuiltHeap, now: HeapSnapshot, birth: int) -> CollectionStep | None:
    """The next collection that moves or keeps an object, or finds it dead; None: there is none."""
    life = heap.follow(birth)
    later = [stay.collection for stay in life.stays if stay.collection and stay.event >= now.event]
    number = later[0] if later else life.died_in
    return next(iter(heap.steps(number, number)), None) if number else None


def _rows_of(heap: HeapSnapshot, births: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of objects by their births; all of them are there, since nothing dies between two collections."""
    rows = np.flatnonzero(~heap.filler)
    rows = rows[np.argsort(heap.birth[rows], kind="stable")]
    found: NDArray[np.int64] = rows[np.searchsorted(heap.birth[rows], births)]
    return found
