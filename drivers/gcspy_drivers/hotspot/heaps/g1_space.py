"""The space "Heap" of G1: its regions in order of address.

Maps a `G1Reading` and cards to streams. Knows readings and spaces; does not know memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.heaps.g1 import G1Reading, RegionKind
from gcspy_drivers.hotspot.heaps.region_tiles import RegionTiles
from gcspy_drivers.hotspot.heaps.tile_streams import MOST_TILE_BYTES, add_bytes, add_cards
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.kit.streams import add_count, add_enumeration
from gcspy_server.api import Control, PaintStyle, Server, ServerStream

__all__ = ["G1_POOLS", "G1Space"]

KIND_NAMES: Final = (
    "not committed",
    "free",
    "eden",
    "survivor",
    "old",
    "humongous",
    "humongous, continued",
    "archive",
)
_STATE_NAMES: Final = ("untracked", "being made", "complete")
G1_POOLS: Final = ("eden", "survivor", "old", "humongous", "free")

Bool = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]


class G1Space:
    """The regions as a space.

    Args:
        server: The server to add the space to.
        tiles: Its tiles.
        first: A reading, which shows what this VM provides.
        cards: Whether the VM has a card table that can be read.
        why_no_private: Why live bytes and remembered sets are not available; empty when some are.
    """

    def __init__(
        self,
        server: Server,
        tiles: RegionTiles,
        first: G1Reading,
        *,
        cards: bool,
        why_no_private: str,
    ) -> None:
        self._tiles = tiles
        missing = _missing(first, why_no_private, cards=cards)
        self.space = server.add_space(
            "Heap",
            names=tiles.tiling.names,
            driver="hotspot",
            tile_title="Region ",
            unused_text="not committed",
            main=True,
            description="Regions of G1 by address; a line joins the regions of a humongous object. "
            + missing,
        )
        self.committed = add_bytes(
            self.space,
            "Committed",
            3,
            "Committed bytes of the tile; for free regions up to half a second old",
        )
        self.used = add_bytes(
            self.space,
            "Used",
            1,
            "Bytes below the regions' tops, in percent of those committed",
            of=self.committed,
        )
        self.kind = self._enum(
            "Type",
            0,
            (*KIND_NAMES, "mixed"),
            "Role of the region; for several regions that of most of them, or mixed",
            zero=RegionKind.FREE,
        )
        live = first.live is not None
        self.live = add_bytes(self.space, "Live", 2, _LIVE, of=self.used) if live else None
        self.remembered = (
            None if first.remembered is None else self._number("Remembered cards", 4, _REMEMBERED)
        )
        self.state = (
            None
            if first.state is None
            else self._enum("Remembered set", 5, (*_STATE_NAMES, "mixed"), _STATE)
        )
        self.pinned = (
            None
            if first.pinned is None
            else self._number("Pinned objects", 6, "Objects pinned by native code")
        )
        self.cards = add_cards(self.space, 7) if cards else None

    @property
    def tiles(self) -> RegionTiles:
        """Its tiles."""
        return self._tiles

    def cut(self, tiles: RegionTiles) -> None:
        """Give the space other tiles."""
        if tiles.tiling != self._tiles.tiling:
            self._tiles = tiles
            self.space.resize(tiles.tiling.names)

    def fill(self, reading: G1Reading | None, committed: Bool, *, cards: bool = False) -> None:
        """Fill the space from a reading; None: all is unknown.

        Args:
            reading: The regions.
            committed: (regions,) which have memory; those in use are committed anyway.
            cards: Whether `fill_cards` follows; unknown cards are reset then.
        """
        streams = [self.committed, self.used, self.kind]
        streams += [
            one for one in (self.live, self.remembered, self.state, self.pinned) if one is not None
        ]
        self.space.reset(*streams)
        if cards and self.cards is not None:
            self.space.reset(self.cards.all, self.cards.dirty, self.cards.other)
        tiles = self._tiles
        if reading is None:
            for stream in streams:
                stream.set_unknown(np.ones(tiles.tiling.count, dtype=np.bool_))
            self.space.info = "the table of regions could not be read: everything is unknown"
            return
        kind = with_uncommitted(reading, committed)
        there = kind != RegionKind.UNCOMMITTED
        bytes_there = tiles.filled(np.where(there, reading.grain, 0).astype(np.int64))
        self.committed.data[:] = bytes_there
        self.used.data[:] = tiles.filled(reading.used)
        self.kind.data[:] = tiles.majority(kind, len(KIND_NAMES))
        self._fill_private(reading)
        unknown = tiles.any(~reading.known)
        if unknown.any():
            for stream in streams:
                stream.data[unknown] = stream.schema.default
                stream.set_unknown(unknown)
        self._mark(kind, bytes_there, reading)
        counted = ~unknown
        self.used.set_summary(
            int(reading.used[reading.known].sum()),
            int(bytes_there[counted].sum()),
            covered=int(np.count_nonzero(counted & (bytes_there != 0))),
        )
        self.space.info = _info(reading, kind)

    def fill_cards(
        self, dirty: I64, other: I64, covered: Bool, unknown: Bool, card_bytes: int
    ) -> None:
        """Give the space the cards.

        Args:
            dirty: Numbers of the dirty cards, counted from the heap's first.
            other: Numbers of those that are neither clean nor dirty nor of young regions.
            covered: (regions,) which have cards.
            unknown: (regions,) of which they could not be read.
            card_bytes: Bytes of a card.
        """
        if self.cards is None:
            return
        tiling = self._tiles.tiling
        bytes_there = self._tiles.filled(np.where(covered, self._tiles.grain, 0).astype(np.int64))
        self.cards.all.data[:] = bytes_there // card_bytes
        for stream, cards in ((self.cards.dirty, dirty), (self.cards.other, other)):
            stream.data[:] = np.bincount(
                cards // (tiling.tile_bytes // card_bytes), minlength=tiling.count
            )
        if unknown.any():
            untold = self._tiles.any(unknown)
            for stream in (self.cards.all, self.cards.dirty, self.cards.other):
                stream.set_unknown(untold)

    def _fill_private(self, reading: G1Reading) -> None:
        tiles = self._tiles
        for stream, values in (
            (self.live, reading.live),
            (self.remembered, reading.remembered),
            (self.pinned, reading.pinned),
        ):
            if stream is None or values is None:
                continue
            if tiles.whole:
                stream.data[:] = tiles.sums(np.maximum(values, 0))
                untold = tiles.any(values < 0)
            else:  # which part of a region they are in is not recorded
                untold = np.ones(tiles.tiling.count, dtype=np.bool_)
            if untold.any():
                stream.data[untold] = stream.schema.default
                stream.set_unknown(untold)
        if self.state is not None and reading.state is not None:
            self.state.data[:] = tiles.majority(reading.state, len(_STATE_NAMES))

    def _mark(
        self, kind: npt.NDArray[np.uint8], bytes_there: npt.NDArray[np.int64], reading: G1Reading
    ) -> None:
        """Fill the control stream: unused tiles, starts of regions, links."""
        tiles = self._tiles
        control = self.space.control
        control[:] = np.where(
            (bytes_there != 0) | tiles.any(~reading.known), Control.USED, Control.UNUSED
        )
        if tiles.group == 1:
            joined = np.append(kind[1:] == RegionKind.HUMONGOUS_REST, False)
            last = np.arange(len(kind)) * tiles.parts + tiles.parts - 1
            control[last[joined]] |= np.uint8(Control.LINK)
        control[tiles.begins_region()[1:]] |= np.uint8(Control.SEPARATOR)

    def _enum(
        self, name: str, order: int, names: tuple[str, ...], description: str, *, zero: int = 0
    ) -> ServerStream:
        """Add a stream of kinds, of which ``zero`` is painted as nothing."""
        return add_enumeration(
            self.space,
            name,
            names,
            description,
            order=order,
            zero=zero,
            paint_style=PaintStyle.ZERO,
        )

    def _number(self, name: str, order: int, description: str) -> ServerStream:
        return add_count(self.space, name, description, order=order, most=MOST_TILE_BYTES)


_LIVE: Final = "Bytes of old and humongous regions not found dead by the last completed marking; later allocations count as live. Unknown before the first marking, in young regions, which are not counted, and in parts of a region"
_REMEMBERED: Final = (
    "Cards of other regions that may contain references into this one; unknown in parts of a region"
)
_STATE: Final = (
    "State of the region's remembered set: complete where a mixed collection may evacuate it"
)


def with_uncommitted(reading: G1Reading, committed: Bool) -> npt.NDArray[np.uint8]:
    """Return the kinds of regions, with free ones without memory distinguished; new."""
    kind = reading.kind.copy()
    kind[(kind == RegionKind.FREE) & ~committed] = RegionKind.UNCOMMITTED
    return kind


def pools_of(reading: G1Reading | None, kind: npt.NDArray[np.uint8]) -> Sequence[Pool]:
    """Return the pools `G1_POOLS` of a reading; unknown while a region is."""
    if reading is None or not reading.known.all():
        return [Pool(name, None, None, None) for name in G1_POOLS]
    used = np.bincount(kind, weights=reading.used, minlength=len(KIND_NAMES)).astype(np.int64)
    count = np.bincount(kind, minlength=len(KIND_NAMES))
    of = {
        "eden": (RegionKind.EDEN,),
        "survivor": (RegionKind.SURVIVOR,),
        "old": (RegionKind.OLD, RegionKind.ARCHIVE),
        "humongous": (RegionKind.HUMONGOUS, RegionKind.HUMONGOUS_REST),
        "free": (RegionKind.FREE,),
    }
    return [
        Pool(
            name,
            int(sum(used[one] for one in of[name])),
            int(sum(count[one] for one in of[name])) * reading.grain,
            None,
        )
        for name in G1_POOLS
    ]


def _missing(first: G1Reading, why_no_private: str, *, cards: bool) -> str:
    """Describe what this VM does not provide, and why."""
    absent = [
        name
        for name, values in (
            ("live bytes", first.live),
            ("remembered cards", first.remembered),
            ("state of remembered sets", first.state),
            ("pinned objects", first.pinned),
        )
        if values is None
    ]
    absent += ["cards"] if not cards else []
    said = ["The collection set is there within a pause only, and no version exports it"]
    if absent:
        why = (
            f": {why_no_private}"
            if why_no_private
            else ": this version does not keep them or does not export them"
        )
        said.insert(0, f"Not available: {', '.join(absent)}{why}")
    return ". ".join(said)


def _info(reading: G1Reading, kind: npt.NDArray[np.uint8]) -> str:
    counts = np.bincount(kind[reading.known], minlength=len(KIND_NAMES)).tolist()
    said = ", ".join(
        f"{count} {name}" for count, name in zip(counts, KIND_NAMES, strict=True) if count
    )
    text = f"{len(kind)} regions of {reading.grain >> 10:,} KiB: {said}; {reading.collections:,} collections so far"
    unknown = int(np.count_nonzero(~reading.known))
    if unknown:
        text += f"; {unknown} regions changed during each read and are unknown"
    if reading.collecting:
        text += "; read during a collection"
    return text
