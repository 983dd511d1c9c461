"""Spaces that are not memory: free lists, cards, remembered sets, regions, trains and generations, one tile each (the paper's table 1, and drivers 5 and 6 of its section 5.6).

Small structures: level 2. Knows a plan's reports about them; knows no objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from gcspy_drivers.kit.streams import add_amount, add_enumeration, add_percent, hide_all
from gcspy_drivers.simulator.driver.event_view import reach
from gcspy_drivers.simulator.facts import Generations, Regions, RememberedSet
from gcspy_drivers.simulator.heap import WORD_BYTES
from gcspy_drivers.simulator.loops import Bytes, Words
from gcspy_drivers.simulator.plan import Plan
from gcspy_server.api import (
    Control,
    ExtentNames,
    GatherRequest,
    PaintStyle,
    Presentation,
    Server,
    ServerSpace,
    ServerStream,
    StringNames,
    TileNames,
    UniformNames,
)

__all__ = [
    "AmbiguousWordSpace",
    "CardSpace",
    "FinalisationSpace",
    "FreeListsSpace",
    "GenerationSpace",
    "OtherSpace",
    "RegionSpace",
    "RememberedSetSpace",
    "TrainSpace",
    "other_spaces",
]


class OtherSpace(ABC):
    """A space with one tile for each item of one kind: a free list, a card, a remembered set, a region or a train.

    Attributes:
        space: The space as clients see it.
    """

    space: ServerSpace

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @abstractmethod
    def _names(self) -> TileNames:
        """Return the names of the present tiles."""

    def fit(self) -> None:
        """Resize the space if the tiles have changed."""
        names = self._names()
        if names != self.space.names:
            self.space.resize(names)

    @abstractmethod
    def gather(self, request: GatherRequest) -> None:
        """Fill the streams."""


def _stream(
    space: ServerSpace,
    name: str,
    most: int,
    about: str,
    *,
    order: int,
    suffix: str = "",
    colour: tuple[int, int, int] | None = None,
) -> ServerStream:
    """A number that has no greatest value: what is more than `most` is shown as such."""
    return add_amount(
        space,
        name,
        about,
        order=order,
        most=max(1, most),
        suffix=suffix,
        presentation=Presentation.PLUS,
        colour=colour,
        dtype="i4",
    )


def _add_place(space: ServerSpace, name: str, *, order: int) -> ServerStream:
    """A number among others, from 0 on; -1: it has none."""
    return space.add_stream(
        name,
        minimum=-1,
        maximum=16,
        zero=-1,
        default=-1,
        presentation=Presentation.PLUS,
        paint_style=PaintStyle.ZERO,
        order=order,
    )


class FreeListsSpace(OtherSpace):
    """The free lists, a tile each: the paper's driver 6."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        self.space = server.add_space(
            "Free lists",
            names=self._names(),
            driver="simulator",
            tile_title="List of ",
            description="One tile a list of free cells.",
        )
        self._length = _stream(
            self.space, "Length", 64, "Cells in the list.", order=1, colour=(60, 110, 190)
        )
        self._size = _stream(
            self.space, "Free bytes", 4096, "Bytes of all its cells.", order=2, suffix=" bytes"
        )
        self._largest = _stream(
            self.space, "Largest cell", 4096, "Bytes of its largest cell.", order=3, suffix=" bytes"
        )

    def _names(self) -> StringNames:
        lists = self._plan.free_lists()
        assert lists is not None
        return StringNames(lists.names)

    def gather(self, request: GatherRequest) -> None:
        """Count cells and bytes of each list."""
        lists = self._plan.free_lists()
        if lists is None or not request.wants(self.space):
            return
        self.space.reset()
        lengths = lists.lengths
        owner = np.repeat(np.arange(len(lengths)), lengths)
        sizes = lists.sizes * WORD_BYTES
        total = np.zeros(len(lengths), dtype=np.int64)
        np.add.at(total, owner, sizes)
        most = np.zeros(len(lengths), dtype=np.int64)
        np.maximum.at(most, owner, sizes)
        self._length.data[:] = lengths
        self._size.data[:] = total
        self._largest.data[:] = most
        self._length.set_summary(int(lengths.sum()))
        self._size.set_summary(int(sizes.sum()))
        self._largest.set_summary(int(sizes.max(initial=0)))
        self.space.info = f"{len(sizes):,} free cells, {int(sizes.sum()):,} bytes, the largest has {int(sizes.max(initial=0)):,}"


class CardSpace(OtherSpace):
    """The card table, a tile each card."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        cards = plan.cards()
        assert cards is not None
        self.space = server.add_space(
            "Card table",
            names=self._names(),
            driver="simulator",
            tile_title="Card ",
            description="One tile a card: into which a reference was stored.",
        )
        self._state = add_enumeration(
            self.space, "State", cards.states, order=1, paint_style=PaintStyle.ZERO
        )

    def _names(self) -> UniformNames:
        cards = self._plan.cards()
        assert cards is not None
        return UniformNames(
            int(self._plan.heap.bytes_of(cards.start)[0]),
            cards.card_words * WORD_BYTES,
            len(cards.table),
        )

    def gather(self, request: GatherRequest) -> None:
        """Copy the table."""
        cards = self._plan.cards()
        if cards is None or not request.wants(self.space):
            return
        self.space.reset()
        self._state.data[:] = cards.table
        counts = np.bincount(cards.table, minlength=len(cards.states))
        self._state.set_summary(*counts.tolist())
        self.space.info = ", ".join(
            f"{count:,} {name}" for name, count in zip(cards.states, counts.tolist(), strict=False)
        )


class AmbiguousWordSpace(OtherSpace):
    """The ambiguous words of a conservative collector, a tile each: what they seem to refer to."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        self.space = server.add_space(
            "Ambiguous words",
            names=self._names(),
            driver="simulator",
            tile_title="Word ",
            description="One tile a word that the collector takes for a reference if it is the address of an object.",
        )
        self._target = add_enumeration(
            self.space,
            "Refers to",
            ("no object", "in use", "garbage"),
            order=1,
            paint_style=PaintStyle.ZERO,
        )

    def _names(self) -> StringNames:
        there = self._plan.ambiguous()
        assert there is not None
        numbers = len(there.words) - there.stale
        return StringNames(
            [
                *(f"{place} of old frames" for place in range(there.stale)),
                *(f"{place}, a number" for place in range(numbers)),
            ]
        )

    def gather(self, request: GatherRequest) -> None:
        """Say what each word seems to refer to."""
        there = self._plan.ambiguous()
        if there is None or not request.wants(self.space):
            return
        self.space.reset()
        heap = self._plan.heap
        reached: Bytes = np.zeros(len(heap.words), dtype=np.uint8)
        stack: Words = np.empty(len(heap.words), dtype=np.int64)
        reach(heap.words, heap.roots, stack, reached)
        live = reached[there.words] != 0
        states = np.where(there.objects, np.where(live, 1, 2), 0)
        self._target.data[:] = states
        counts = np.bincount(states, minlength=3).tolist()
        self._target.set_summary(*counts)
        self.space.info = (
            f"{counts[2]} of {len(states)} words keep an object that the program cannot reach"
        )


class RememberedSetSpace(OtherSpace):
    """The remembered sets, a tile each."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        self.space = server.add_space(
            "Remembered sets",
            names=self._names(),
            driver="simulator",
            tile_title="Set of ",
            description="One tile a remembered set.",
        )
        self._entries = _stream(
            self.space,
            "Entries",
            64,
            "What refers into it from elsewhere.",
            order=1,
            colour=(40, 150, 150),
        )

    def _names(self) -> StringNames:
        return StringNames([one.name for one in self._plan.remembered_sets()])

    def gather(self, request: GatherRequest) -> None:
        """Count entries."""
        if not request.wants(self.space):
            return
        self.space.reset()
        sets: list[RememberedSet] = list(self._plan.remembered_sets())
        self._entries.data[:] = [len(one.holders) for one in sets]
        self._entries.set_summary(sum(len(one.holders) for one in sets))


class RegionSpace(OtherSpace):
    """Blocks, regions or cars, a tile each: its kind, how full it is, and the train that it belongs to."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        regions = plan.regions()
        assert regions is not None
        self.space = server.add_space(
            f"{regions.what.capitalize()} table",
            names=self._names(),
            driver="simulator",
            tile_title=f"{regions.what.capitalize()} ",
            description=f"One tile a {regions.what}.",
        )
        most = int((regions.ends - regions.starts).max(initial=1)) * WORD_BYTES
        self._kind = add_enumeration(
            self.space,
            "Type",
            regions.kind_names,
            order=1,
            most=max(1, len(regions.kind_names) - 1),
        )
        self._used = add_percent(
            self.space, "Used space", order=2, most=most, colour=(200, 60, 50), dtype="i4"
        )
        self._entries = _stream(
            self.space,
            "Remembered",
            64,
            "References into it from elsewhere that are remembered.",
            order=3,
        )
        self._train: ServerStream | None = None
        self._car: ServerStream | None = None
        if regions.what == "car" or (regions.groups >= 0).any():
            self._train = _add_place(self.space, "Train", order=4)
            self._car = _add_place(self.space, "Number in its train", order=5)

    def _names(self) -> ExtentNames:
        regions = self._plan.regions()
        assert regions is not None
        return ExtentNames(
            self._plan.heap.bytes_of(regions.starts),
            ((regions.ends - regions.starts) * WORD_BYTES).astype(np.uint64),
        )

    def gather(self, request: GatherRequest) -> None:
        """Say of each what it is."""
        regions = self._plan.regions()
        if regions is None or not request.wants(self.space):
            return
        self.space.reset()
        self._kind.data[:] = regions.kinds
        self._kind.set_summary(
            *np.bincount(regions.kinds, minlength=len(regions.kind_names)).tolist()
        )
        self._gather_used(regions)
        self._gather_entries(regions)
        if self._train is not None and self._car is not None:
            self._train.data[:] = regions.groups
            self._car.data[:] = regions.numbers
            self._train.set_summary(len(np.unique(regions.groups[regions.groups >= 0])))
        free = [name for name in ("free", "unused") if name in regions.kind_names]
        if free:
            self.space.control[regions.kinds == regions.kind_names.index(free[0])] = (
                Control.BACKGROUND | Control.USED
            )

    def _gather_used(self, regions: Regions) -> None:
        used = regions.tops - regions.starts if regions.used is None else regions.used
        known = used >= 0
        self._used.data[known] = used[known] * WORD_BYTES
        self._used.set_unknown(~known)
        total = int((regions.ends - regions.starts)[known].sum())
        self._used.set_summary(int(used[known].sum()) * WORD_BYTES, total * WORD_BYTES)

    def _gather_entries(self, regions: Regions) -> None:
        if not self._plan.remembers:
            hide_all((self._entries,))
            return
        counts = _remembered_from(self._plan)
        self._entries.data[:] = [counts.get(start, 0) for start in regions.starts.tolist()]
        self._entries.set_summary(sum(counts.values()))


class TrainSpace(OtherSpace):
    """The trains of a train collector, a tile each: number of its cars, their used bytes and remembered references."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        self.space = server.add_space(
            "Trains",
            names=self._names(),
            driver="simulator",
            tile_title="Train ",
            description="One tile a train, the oldest first.",
        )
        self._length = _stream(
            self.space, "Length", 16, "Cars of the train.", order=1, colour=(120, 80, 180)
        )
        self._bytes = _stream(
            self.space, "Used bytes", 1 << 16, "Bytes in its cars.", order=2, suffix=" bytes"
        )
        self._entries = _stream(
            self.space, "Remembered", 256, "References into its cars that are remembered.", order=3
        )

    def _groups(self) -> list[int]:
        regions = self._plan.regions()
        assert regions is not None
        return [int(number) for number in np.unique(regions.groups[regions.groups >= 0])]

    def _names(self) -> StringNames:
        groups = self._groups()
        return StringNames([f"{number}" for number in groups], keys=groups)

    def gather(self, request: GatherRequest) -> None:
        """Count cars and bytes."""
        regions = self._plan.regions()
        if regions is None or not request.wants(self.space):
            return
        self.space.reset()
        groups = np.array(self._groups(), dtype=np.int64)
        mine = regions.groups >= 0
        place = np.searchsorted(groups, regions.groups[mine])
        used = ((regions.tops - regions.starts) * WORD_BYTES)[mine]
        counts = _remembered_from(self._plan)
        entries = np.array(
            [counts.get(start, 0) for start in regions.starts[mine].tolist()], dtype=np.int64
        )
        lengths = np.bincount(place, minlength=len(groups))
        self._length.data[:] = lengths
        self._bytes.data[:] = np.bincount(place, weights=used, minlength=len(groups)).astype(
            np.int64
        )
        self._entries.data[:] = np.bincount(place, weights=entries, minlength=len(groups)).astype(
            np.int64
        )
        self._length.set_summary(int(lengths.sum()))
        self._bytes.set_summary(int(used.sum()))
        self._entries.set_summary(int(entries.sum()))
        self.space.info = (
            f"{len(groups)} trains, the longest has {int(lengths.max(initial=0))} cars"
        )


class GenerationSpace(OtherSpace):
    """The generations, a tile each: what they have, and what begins their collections.

    Args:
        server: Whose space it becomes.
        plan: The collector.
        prefix: Of its name.
        source: Returns the values; None: the plan does.
        names: Of the generations; empty: as the plan names them.
    """

    def __init__(
        self,
        server: Server,
        plan: Plan,
        *,
        prefix: str = "",
        source: Callable[[], Generations | None] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        super().__init__(plan)
        self._generations = tuple(names) or plan.generation_names
        self._source = source or plan.generations
        self.space = server.add_space(
            f"{prefix}Generations",
            names=self._names(),
            driver="simulator",
            tile_title="",
            description="One tile a generation, that is, a list of containers.",
        )
        about = (
            ("Containers", 4096, "Objects with references that are in the list.", (60, 110, 190)),
            ("Count", 1024, "The number that is compared with the threshold.", (220, 150, 40)),
            ("Threshold", 1024, "A collection begins when the count is larger.", None),
            ("Collections", 64, "How often it was collected.", (200, 60, 50)),
            ("Collected", 4096, "Objects in garbage cycles that were found.", (70, 150, 70)),
        )
        self._streams = [
            _stream(self.space, name, most, what, order=order, colour=colour)
            for order, (name, most, what, colour) in enumerate(about, start=1)
        ]

    def _names(self) -> StringNames:
        return StringNames(self._generations)

    def gather(self, request: GatherRequest) -> None:
        """Copy the numbers."""
        if not request.wants(self.space):
            return
        self.space.reset()
        found = self._source()
        if found is None:
            hide_all(self._streams)
            return
        columns = found.objects, found.counts, found.thresholds, found.collections, found.collected
        for stream, column in zip(self._streams, columns, strict=True):
            stream.data[:] = column
            stream.set_summary(sum(column))


class FinalisationSpace(OtherSpace):
    """Weak references and finalisers, a tile each count."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        self.space = server.add_space(
            "Finalisation",
            names=self._names(),
            driver="simulator",
            tile_title="",
            description="What became of weak references and of objects with finalisers.",
        )
        self._count = _stream(self.space, "Count", 64, "How many.", order=1, colour=(120, 80, 180))

    def _names(self) -> StringNames:
        return StringNames(
            [
                "Weak references in use",
                "Weak references cleared",
                "Callbacks called",
                "Finalisers called",
                "Objects resurrected",
            ]
        )

    def gather(self, request: GatherRequest) -> None:
        """Copy the counts."""
        found = self._plan.finalisation()
        if found is None or not request.wants(self.space):
            return
        self.space.reset()
        self._count.data[:] = [
            found.weak,
            found.cleared,
            found.callbacks,
            found.finalisers,
            found.resurrected,
        ]


def _remembered_from(plan: Plan) -> dict[int, int]:
    """Return the number of remembered references into the part that begins at each word."""
    return {one.start: len(one.holders) for one in plan.remembered_sets() if one.end > one.start}


def other_spaces(server: Server, plan: Plan) -> list[OtherSpace]:
    """Make the spaces of whatever this plan reports."""
    found: list[OtherSpace] = []
    regions = plan.regions()
    if regions is not None:
        if regions.what == "car":
            found.append(TrainSpace(server, plan))
        found.append(RegionSpace(server, plan))
    if plan.generations() is not None:
        found.append(GenerationSpace(server, plan))
    if plan.finalisation() is not None:
        found.append(FinalisationSpace(server, plan))
    if plan.free_lists() is not None:
        found.append(FreeListsSpace(server, plan))
    if plan.cards() is not None:
        found.append(CardSpace(server, plan))
    if plan.ambiguous() is not None:
        found.append(AmbiguousWordSpace(server, plan))
    sets = plan.remembered_sets()
    if sets and regions is None:
        found.append(RememberedSetSpace(server, plan))
    return found
