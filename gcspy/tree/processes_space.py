"""The spaces of a tree of processes: "Processes" with a tile for each, and "Memory over time" with the sums.

Knows numbers and streams; does not know how they are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gcspy_drivers.kit.streams import add_bytes, add_enumeration, hide_all
from gcspy_protocol.model import Presentation

from gcspy.tree.growth_record import GrowthState
from gcspy_server.api import Server, ServerStream, StringNames

__all__ = ["ProcessNumbers", "ProcessesSpace", "SumsSpace", "Turnover"]

_STATES = ("not known yet", "steady", "growing", "shrinking")
_MOST_NAMED = 6
_I8_MIN = -(1 << 63)


@dataclass(frozen=True, slots=True)
class ProcessNumbers:
    """Numbers of one process; None: not known.

    Attributes:
        label: Its name and number, unique in the tree.
        resident: Bytes of its resident set, shared pages included.
        private: Bytes that no other process has.
        share: Its share of pages that others have too, each divided by its users.
        used: Bytes in use in its memory managers.
        committed: Bytes that these have taken from the system.
        grew: Bytes by which its resident set has grown since it was first seen.
        per_minute: Its growth in bytes a minute.
        state: Whether it grows.
        note: Why its heap is not shown; empty: it is.
    """

    label: str
    resident: int | None = None
    private: int | None = None
    share: int | None = None
    used: int | None = None
    committed: int | None = None
    grew: int | None = None
    per_minute: int | None = None
    state: GrowthState = GrowthState.UNKNOWN
    note: str = ""


@dataclass(slots=True)
class Turnover:
    """Record of processes that came and ended.

    Attributes:
        came: How many came after the session's start.
        ended: Labels of the last ones that ended.
        ended_count: How many ended.
    """

    came: int = 0
    ended: list[str] = field(default_factory=list)
    ended_count: int = 0


class ProcessesSpace:
    """The space with a tile for each process.

    Args:
        server: The session's server.
        driver: Name of the driver that adds it.
    """

    def __init__(self, server: Server, driver: str) -> None:
        self.space = server.add_space(
            "Processes",
            names=StringNames(()),
            driver=driver,
            tile_title="Process ",
            main=True,
            description="The processes of the tree, one tile each: their memory, and whether it grows",
        )
        add = self.space
        self._streams: dict[str, ServerStream] = {
            "resident": add_bytes(
                add, "Resident", "Bytes of its resident set, shared pages included", order=0
            ),
            "grew": self._add_signed(
                "Grew", "Bytes by which the resident set has grown since it was first seen", 1
            ),
            "per_minute": self._add_signed(
                "Growth a minute",
                "Growth of the resident set, from the first third of the time to the last",
                2,
            ),
            "used": add_bytes(add, "Heap used", "Bytes in use in its memory managers", order=4),
            "committed": add_bytes(
                add, "Heap committed", "Bytes that its memory managers have taken", order=5
            ),
            "private": add_bytes(add, "Private", "Bytes that no other process has", order=6),
            "share": add_bytes(
                add,
                "Share of shared",
                "Its share of pages that other processes have too, each divided by its users",
                order=7,
            ),
        }
        self._state = add_enumeration(
            add,
            "Growth",
            _STATES,
            "Growing: all of the last third of the time is above all of the first third",
            order=3,
        )

    def _add_signed(self, name: str, about: str, order: int) -> ServerStream:
        return self.space.add_stream(
            name,
            dtype="i8",
            minimum=_I8_MIN + 1,
            maximum=-(_I8_MIN + 1),
            suffix=" bytes",
            presentation=Presentation.MAX_VAR,
            order=order,
            description=about,
        )

    def fill(self, processes: Sequence[ProcessNumbers], turnover: Turnover) -> None:
        """Fill the space, a tile for each process."""
        names = StringNames.by_text([one.label for one in processes])
        if names != self.space.names:
            self.space.resize(names)
        self.space.info = self._text(processes, turnover)
        self.space.reset(self._state)
        for place, one in enumerate(processes):
            self._state.data[place] = one.state
        for name, stream in self._streams.items():
            values: list[int | None] = [getattr(one, name) for one in processes]
            if all(value is None for value in values):
                continue  # it was not read at this event, and stays as it was
            self.space.reset(stream)
            for place, value in enumerate(values):
                if value is None:
                    stream.set_unknown([place])
                else:
                    stream.data[place] = value

    @staticmethod
    def _text(processes: Sequence[ProcessNumbers], turnover: Turnover) -> str:
        text = f"{len(processes):,} process{'' if len(processes) == 1 else 'es'}"
        growing = sorted(
            (one for one in processes if one.state is GrowthState.GROWING),
            key=lambda one: -(one.per_minute or 0),
        )
        if growing:
            named = ", ".join(one.label for one in growing[:_MOST_NAMED])
            more = len(growing) - _MOST_NAMED
            text += f"; growing: {named}{f' and {more:,} more' if more > 0 else ''}"
        if turnover.came:
            text += f"; {turnover.came:,} new"
        if turnover.ended_count:
            text += f"; {turnover.ended_count:,} ended, the last ones: {', '.join(turnover.ended)}"
        without = [f"{one.label}: {one.note}" for one in processes if one.note]
        if without:
            text += f"; without a heap: {'; '.join(without[:_MOST_NAMED])}"
        return text


class SumsSpace:
    """The space with the sums over all processes; it has the name and streams of a process's own, so that graphs find it.

    Args:
        server: The session's server.
        driver: Name of the driver that adds it.
    """

    def __init__(self, server: Server, driver: str) -> None:
        self.space = server.add_space(
            "Memory over time",
            names=StringNames(["all processes"]),
            driver=driver,
            description="Sums over all processes of the tree; resident sets count shared pages once for each process",
        )
        self._streams: Mapping[str, ServerStream] = {
            "resident": add_bytes(
                self.space,
                "Resident set",
                "Sum of the resident sets, shared pages in each",
                order=0,
            ),
            "used": add_bytes(
                self.space, "heaps used", "Bytes in use in all memory managers", order=1
            ),
            "committed": add_bytes(
                self.space,
                "heaps committed",
                "Bytes that all memory managers have taken from the system",
                order=2,
            ),
            "proportional": add_bytes(
                self.space,
                "Memory of the tree",
                "Private bytes and shares of shared pages: what would be free without the tree",
                order=3,
            ),
        }

    def fill(self, processes: Sequence[ProcessNumbers]) -> None:
        """Fill the space; a sum of which a part is not known is unknown, and one of which nothing was read stays as it was."""
        sums: dict[str, list[int | None]] = {
            "resident": [one.resident for one in processes],
            "used": [one.used for one in processes],
            "committed": [one.committed for one in processes],
            "proportional": [
                None if one.private is None or one.share is None else one.private + one.share
                for one in processes
            ],
        }
        for name, stream in self._streams.items():
            parts = sums[name]
            if all(part is None for part in parts):
                continue
            self.space.reset(stream)
            value = _sum(parts)
            if value is None:
                hide_all([stream])
            else:
                stream.data[:] = value


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) and known else None
