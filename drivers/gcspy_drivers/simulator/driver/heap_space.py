"""The space of a part of the heap: one tile for a few hundred bytes, with their content.

A part is a space of the plan, or both halves of a copying space side by side: then the idle half is unused tiles, with a line between the two.

Streams, from level 1 on (the paper's table 2): used bytes as far as a top says it; 2: dirty cards; 3: used bytes, objects, new, marked, promoted,
age, old copies, by object; 4: roots and liveness. Values that cannot be gathered at the level are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.kit.stream_sequence import StreamSequence
from gcspy_drivers.kit.streams import hide_all
from gcspy_drivers.simulator.access_log import AccessLog
from gcspy_drivers.simulator.driver.event_view import EventView
from gcspy_drivers.simulator.facts import CLEAN
from gcspy_drivers.simulator.heap import BLACK, GREY, MAX_AGE, WORD_BYTES
from gcspy_drivers.simulator.plan import Plan, PlanSpace
from gcspy_server.api import (
    Control,
    GatherRequest,
    Presentation,
    Server,
    ServerStream,
    UniformNames,
)

__all__ = ["SimulatedHeapSpace", "parts_of"]

_SMALLEST_OBJECT: Final = 16
_MOST_IDLE: Final = 1 << 16
_ONE_BEHIND_THE_OTHER: Final = ("bump", "nursery", "idle")
"""Roles of spaces that have no holes below their top."""
_COLOURS: Final = {
    "Used space": (200, 60, 50),
    "Live": (70, 150, 70),
    "Objects": (60, 110, 190),
    "New": (220, 150, 40),
    "Marked": (120, 80, 180),
    "Promoted": (40, 150, 150),
}


def parts_of(spaces: Sequence[PlanSpace]) -> list[tuple[str, ...]]:
    """Put spaces together that are seen as one: halves of a copying space lie side by side, and of a new one the second is idle.

    Returns:
        The names of the spaces of each part.
    """
    parts: list[list[str]] = []
    for space in spaces:
        if space.role == "idle" and parts and len(parts[-1]) == 1:
            parts[-1].append(space.name)
        else:
            parts.append([space.name])
    return [tuple(part) for part in parts]


def _title(names: tuple[str, ...], spaces: Sequence[PlanSpace]) -> str:
    if len(names) == 1:
        return names[0]
    return "Young generation" if len(spaces) > len(names) else "Semi-spaces"


class SimulatedHeapSpace:
    """One part of the heap.

    Args:
        server: Whose space it becomes.
        plan: The collector.
        part: Names of its spaces; see `parts_of`.
        tile_bytes: Bytes of a tile.
        main: Whether the window shows it first.
        accesses: The program's accesses, to be shown; None: they are not.
        prefix: Of its name.
    """

    def __init__(
        self,
        server: Server,
        plan: Plan,
        part: tuple[str, ...],
        *,
        tile_bytes: int,
        main: bool,
        accesses: AccessLog | None = None,
        prefix: str = "",
    ) -> None:
        self._plan, self._part = plan, part
        self._log = accesses
        spaces = self._spaces()
        self.roles = {space.role for space in spaces}
        self.space = server.add_space(
            f"{prefix}{_title(part, plan.spaces())}",
            names=self._names(tile_bytes),
            driver="simulator",
            unused_text="in the idle half" if len(part) > 1 else "not in use",
            main=main,
            description=", ".join(f"{space.name} ({space.role})" for space in spaces),
        )
        self._tile_bytes = tile_bytes
        self._add_streams()

    def _spaces(self) -> list[PlanSpace]:
        return [space for space in self._plan.spaces() if space.name in self._part]

    def _names(self, tile_bytes: int) -> UniformNames:
        spaces = self._spaces()
        base = int(self._plan.heap.bytes_of(spaces[0].start)[0])
        size = (spaces[-1].end - spaces[0].start) * WORD_BYTES
        return UniformNames(base, tile_bytes, max(1, -(-size // tile_bytes)))

    def _add_streams(self) -> None:
        plan, tile = self._plan, self._tile_bytes
        add = StreamSequence(self.space, tile, colours=_COLOURS, presentation=Presentation.PLUS)
        self.used = add.bytes(
            "Used space", "Bytes of objects, dead or alive, that lie in the tile."
        )
        self.live = add.bytes(
            "Live", "Bytes that the roots reach: what a perfect collector would keep."
        )
        self.objects = add.count(
            "Objects", tile // _SMALLEST_OBJECT, "Objects that begin in the tile."
        )
        self.new = add.bytes("New", "Bytes of objects that were made since the event before.")
        phases = {phase for kind in plan.kinds.values() for phase in kind}
        marks = any("mark" in phase or "trace" in phase for phase in phases)
        self.marked = (
            add.count(
                "Marked",
                tile // _SMALLEST_OBJECT,
                "Objects that were reached and scanned (black).",
            )
            if marks
            else None
        )
        self.grey = (
            add.count(
                "Grey",
                tile // _SMALLEST_OBJECT,
                "Objects that were reached but not scanned yet (grey).",
            )
            if marks
            else None
        )
        self.promoted = (
            add.bytes("Promoted", "Bytes that the collection brought here.")
            if self.is_old
            else None
        )
        self.left = (
            add.count(
                "Old copies",
                tile // _SMALLEST_OBJECT,
                "Copies that were left behind; the object is elsewhere.",
            )
            if plan.moves
            else None
        )
        self.oldest = None
        if plan.generation_names:
            names = ", ".join(f"{at}: {one}" for at, one in enumerate(plan.generation_names))
            most = len(plan.generation_names) - 1
            self.oldest = add.count(
                "Generation", most, f"Generation of the oldest container of the tile: {names}."
            )
        elif self._has_ages():
            self.oldest = add.count(
                "Age", MAX_AGE, "Collections that the oldest object of the tile survived."
            )
        self.roots = add.count(
            "Roots", 8, "References from the program to objects that begin in the tile."
        )
        self.dirty = (
            add.count("Dirty cards", 8, "Cards in the tile into which a reference was stored.")
            if plan.cards() is not None
            else None
        )
        self.accessed = self.idle = self.untouched = None
        if self._log is not None:
            self.accessed = add.bytes(
                "Accessed",
                "Bytes of objects that the program used since the last collection began.",
            )
            self.untouched = add.bytes(
                "Not accessed",
                "Bytes of objects that the program did not use since the last collection began.",
            )
            self.idle = add.count(
                "Idle",
                _MOST_IDLE,
                "For how many intervals between collections, before this one, no object of the tile was used.",
            )

    @property
    def is_old(self) -> bool:
        """Whether objects are promoted into it."""
        return "old" in self.roles

    def _has_ages(self) -> bool:
        return self._plan.moves and len(self._plan.kinds) > 1

    def fit(self) -> None:
        """Follow a heap that has grown or shrunk."""
        names = self._names(self._tile_bytes)
        if names != self.space.names:
            self.space.resize(names)

    # ------------------------------------------------------------------------- gathering

    def gather(self, request: GatherRequest, moment: EventView, level: int) -> None:
        """Fill the requested streams, up to the level."""
        self.space.reset()
        self._mark_parts()
        if level < 3:
            self._gather_tops(request)
        else:
            self._gather_objects(request, moment)
        if self.dirty is not None and request.wants(self.space, self.dirty):
            self._gather_cards(self.dirty, level)
        if level >= 4:
            self._gather_references(request, moment)
        else:
            hide_all((self.live, self.roots))
        self.space.info = self._info()

    def _gather_tops(self, request: GatherRequest) -> None:
        """Gather used bytes from the tops: in constant time, and only where objects lie one behind the other."""
        hide_all(
            (self.objects, self.new, self.marked, self.grey, self.promoted, self.left, self.oldest)
        )
        hide_all((self.accessed, self.untouched, self.idle))
        if not request.wants(self.space, self.used):
            return
        spaces = self._spaces()
        if any(space.role not in _ONE_BEHIND_THE_OTHER for space in spaces):
            hide_all((self.used,))
            return
        starts = self._plan.heap.bytes_of(np.array([space.start for space in spaces]))
        sizes = np.array(
            [(space.top - space.start) * WORD_BYTES for space in spaces], dtype=np.uint64
        )
        self.space.spread(self.used, starts, sizes)

    def _inside(self, moment: EventView) -> slice:
        """The objects of this part: those of a plan are sorted by address."""
        spaces = self._spaces()
        cells = moment.objects.cells
        return slice(
            int(np.searchsorted(cells, spaces[0].start)),
            int(np.searchsorted(cells, spaces[-1].end)),
        )

    def _gather_objects(self, request: GatherRequest, moment: EventView) -> None:
        inside = self._inside(moment)
        addresses, sizes = moment.addresses[inside], moment.sizes[inside]
        colours = moment.objects.colours[inside]
        counts = {
            self.objects: None,
            self.marked: colours == BLACK,
            self.grey: colours == GREY,
            self.left: moment.copied[inside],
        }
        for stream, which in counts.items():
            if stream is not None and request.wants(self.space, stream):
                found = addresses if which is None else addresses[which]
                self.space.count_at(stream, found)
                stream.set_summary(len(found))
        promoted = moment.promoted
        self._spread(request, self.used, addresses, sizes, None)
        self._spread(request, self.new, addresses, sizes, moment.new[inside])
        if promoted is None:
            hide_all((self.promoted,))
        elif self.promoted is not None:
            self._spread(request, self.promoted, addresses, sizes, promoted[inside])
        if self.oldest is not None and request.wants(self.space, self.oldest):
            tiles = self.space.tiles_of(addresses)
            np.maximum.at(
                self.oldest.data, tiles, moment.objects.ages[inside].astype(self.oldest.data.dtype)
            )
            self.oldest.set_summary(int(moment.objects.ages[inside].max(initial=0)))
        self._gather_accesses(request, moment, inside)

    def _gather_accesses(self, request: GatherRequest, moment: EventView, inside: slice) -> None:
        log, idle = self._log, self.idle
        if log is None or self.accessed is None or self.untouched is None or idle is None:
            return
        which = np.zeros(len(moment.objects), dtype=np.bool_)
        which[inside] = True
        objects = moment.objects.where(which)
        addresses, sizes = moment.addresses[inside], moment.sizes[inside]
        own = ~moment.copied[inside]
        used = log.marked(objects)
        self._spread(request, self.accessed, addresses, sizes, own & used)
        self._spread(request, self.untouched, addresses, sizes, own & ~used)
        if request.wants(self.space, idle):
            ages = np.minimum(log.idle(objects), _MOST_IDLE)[own]
            tiles = self.space.tiles_of(addresses[own])
            least = np.full(self.space.count, _MOST_IDLE + 1, dtype=np.int64)
            np.minimum.at(least, tiles, ages)
            idle.data[:] = np.where(least > _MOST_IDLE, 0, least)
            idle.set_summary(int(ages.max(initial=0)))

    def _spread(
        self,
        request: GatherRequest,
        stream: ServerStream,
        addresses: NDArray[np.uint64],
        sizes: NDArray[np.uint64],
        which: NDArray[np.bool_] | None,
    ) -> None:
        if not request.wants(self.space, stream):
            return
        if which is not None:
            addresses, sizes = addresses[which], sizes[which]
        self.space.spread(stream, addresses, sizes)
        stream.set_summary(int(sizes.sum()), self._bytes_in_use())

    def _bytes_in_use(self) -> int:
        """Bytes of the spaces that are not idle."""
        return (
            sum(space.end - space.start for space in self._spaces() if space.role != "idle")
            * WORD_BYTES
        )

    def _gather_cards(self, stream: ServerStream, level: int) -> None:
        cards = self._plan.cards()
        if level < 2 or cards is None:
            hide_all((stream,))
            return
        spaces = self._spaces()
        if not cards.start < spaces[-1].end or spaces[0].start >= cards.end:
            hide_all((stream,))  # a part without cards
            return
        dirty = np.flatnonzero(cards.table != CLEAN)
        addresses = self._plan.heap.bytes_of(cards.start + dirty * cards.card_words)
        low, high = self._plan.heap.bytes_of(np.array([spaces[0].start, spaces[-1].end]))
        inside = (addresses >= low) & (addresses < high)
        self.space.count_at(stream, addresses[inside])
        stream.set_summary(int(inside.sum()))

    def _gather_references(self, request: GatherRequest, moment: EventView) -> None:
        inside = self._inside(moment)
        if request.wants(self.space, self.roots):
            spaces = self._spaces()
            roots = self._plan.heap.roots
            mine = roots[(roots >= spaces[0].start) & (roots < spaces[-1].end)]
            self.space.count_at(self.roots, self._plan.heap.bytes_of(mine))
            self.roots.set_summary(len(mine))
        if not moment.knows_liveness:
            hide_all((self.live,))
        else:
            self._spread(
                request,
                self.live,
                moment.addresses[inside],
                moment.sizes[inside],
                moment.live[inside],
            )

    # --------------------------------------------------------------------------- control

    def _mark_parts(self) -> None:
        """Say which half is idle, and draw a line between spaces."""
        control = self.space.control
        spaces = self._spaces()
        if len(spaces) == 1 and spaces[0].role == "idle":
            control[:] = Control.UNUSED
        if len(spaces) < 2:
            return
        starts = self.space.tiles_of(
            self._plan.heap.bytes_of(np.array([space.start for space in spaces]))
        )
        ends = [*starts[1:].tolist(), self.space.count]
        for space, first, end in zip(spaces, starts.tolist(), ends, strict=True):
            if space.role == "idle":
                control[first:end] = Control.UNUSED
        control[starts[1:]] |= np.uint8(Control.SEPARATOR)

    def _info(self) -> str:
        spaces = self._spaces()
        words = [
            f"{space.name}: {space.role}, {(space.end - space.start) * WORD_BYTES:,} bytes"
            for space in spaces
        ]
        return "; ".join(words)
