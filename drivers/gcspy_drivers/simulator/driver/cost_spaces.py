"""Spaces of a collector's costs: the latest pauses, the minimum mutator utilisation by window, and the sums.

Level 2. Knows the meter; does not know how it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gcspy_drivers.kit.streams import add_count, add_percent
from gcspy_drivers.simulator.driver.cost_meter import CostMeter
from gcspy_drivers.simulator.driver.other_spaces import OtherSpace
from gcspy_drivers.simulator.plan import Plan
from gcspy_server.api import GatherRequest, Presentation, Server, StringNames

__all__ = ["BothSpace", "cost_spaces"]

_PAUSES: Final = 64
_WINDOWS: Final = np.array([1 << bits for bits in range(6, 16)], dtype=np.int64)
_SUMS: Final = (
    "Throughput, %",
    "Longest pause, words",
    "All pauses, words",
    "Pauses",
    "Collections",
    "Most in use, bytes",
)


class _CostSpace(OtherSpace):
    def __init__(self, plan: Plan, meter: CostMeter) -> None:
        super().__init__(plan)
        self._meter = meter


class _PauseSpace(_CostSpace):
    """The latest pauses, a tile each."""

    def __init__(self, server: Server, plan: Plan, meter: CostMeter, prefix: str) -> None:
        super().__init__(plan, meter)
        self.space = server.add_space(
            f"{prefix}Pauses",
            names=self._names(),
            driver="simulator",
            tile_title="Pause ",
            description="One tile a pause of the program, the latest last. A word is the time in which the program allocates one.",
        )
        self._length = add_count(
            self.space,
            "Length",
            "How long the program waited, in words that it could have allocated.",
            order=1,
            most=4096,
            presentation=Presentation.PLUS,
            colour=(200, 60, 50),
            dtype="i4",
        )

    def _names(self) -> StringNames:
        return StringNames([f"{number} before the latest" for number in range(_PAUSES - 1, -1, -1)])

    def gather(self, request: GatherRequest) -> None:
        """Copy the latest pauses."""
        if not request.wants(self.space):
            return
        self.space.reset()
        self._length.data[:] = self._meter.latest_pauses(_PAUSES)
        self._length.set_summary(self._meter.longest_words)
        self.space.info = f"{len(self._meter.lengths):,} pauses, the longest of {self._meter.longest_words:,} words"


class _UtilisationSpace(_CostSpace):
    """The minimum mutator utilisation, a tile for each length of a window."""

    def __init__(self, server: Server, plan: Plan, meter: CostMeter, prefix: str) -> None:
        super().__init__(plan, meter)
        self.space = server.add_space(
            f"{prefix}Utilisation",
            names=self._names(),
            driver="simulator",
            tile_title="Windows of ",
            description="One tile a length of windows: the least share of the time that the program had in any window of this length.",
        )
        self._least = add_percent(
            self.space,
            "Minimum",
            "Minimum mutator utilisation.",
            order=1,
            most=100,
            suffix=" %",
            colour=(60, 150, 80),
            dtype="i4",
        )

    def _names(self) -> StringNames:
        return StringNames([f"{window:,} words" for window in _WINDOWS.tolist()])

    def gather(self, request: GatherRequest) -> None:
        """Compute them."""
        if not request.wants(self.space):
            return
        self.space.reset()
        found = self._meter.utilisation_percent(_WINDOWS)
        known = ~np.isnan(found)
        self._least.data[known] = found[known].astype(np.int64)
        self._least.set_unknown(~known)
        self._least.set_summary(int(self._meter.throughput_percent), 100)
        self.space.info = f"throughput {self._meter.throughput_percent:.1f} %"


class _SumSpace(_CostSpace):
    """Sums over the whole run, a tile each."""

    def __init__(self, server: Server, plan: Plan, meter: CostMeter, prefix: str) -> None:
        super().__init__(plan, meter)
        self.space = server.add_space(
            f"{prefix}Costs",
            names=self._names(),
            driver="simulator",
            tile_title="",
            description="Costs of the whole run.",
        )
        self._value = add_count(
            self.space, "Value", order=1, most=1 << 20, presentation=Presentation.PLUS, dtype="i4"
        )

    def _names(self) -> StringNames:
        return StringNames(_SUMS)

    def gather(self, request: GatherRequest) -> None:
        """Copy the sums."""
        if not request.wants(self.space):
            return
        self.space.reset()
        meter = self._meter
        self._value.data[:] = [
            int(meter.throughput_percent),
            meter.longest_words,
            meter.collector_tenths // 10,
            len(meter.lengths),
            meter.collections,
            meter.most_bytes,
        ]


class BothSpace(OtherSpace):
    """Two collectors in one space, a stream each, so that they can be drawn as two curves: utilisation by window, or the longest pauses.

    Args:
        server: Whose space it becomes.
        plans: The two collectors.
        meters: Their costs.
        pauses: The longest pauses instead of the utilisation.
    """

    def __init__(
        self, server: Server, plans: Sequence[Plan], meters: Sequence[CostMeter], *, pauses: bool
    ) -> None:
        super().__init__(plans[0])
        self._meters, self._pauses = meters, pauses
        self.space = server.add_space(
            "Both: pauses" if pauses else "Both: utilisation",
            names=self._names(),
            driver="simulator",
            tile_title="Pause " if pauses else "Windows of ",
            description="The longest pauses of both collectors, the longest first, in words."
            if pauses
            else "The least share of the time that the program had in any window of this length, with both collectors.",
        )
        colours = (60, 110, 190), (220, 150, 40)
        self._streams = [
            add_count(
                self.space, plan.name, plan.title, order=order, most=4096,
                presentation=Presentation.PLUS, colour=colour, dtype="i4",
            )
            if pauses
            else add_percent(
                self.space, plan.name, plan.title, order=order, most=100, suffix=" %",
                colour=colour, dtype="i4",
            )
            for order, (plan, colour) in enumerate(zip(plans, colours, strict=True), start=1)
        ]  # fmt: skip

    def _names(self) -> StringNames:
        if self._pauses:
            return StringNames([f"{number}" for number in range(1, _PAUSES + 1)])
        return StringNames([f"{window:,} words" for window in _WINDOWS.tolist()])

    def gather(self, request: GatherRequest) -> None:
        """Compute both."""
        if not request.wants(self.space):
            return
        self.space.reset()
        for stream, meter in zip(self._streams, self._meters, strict=True):
            if self._pauses:
                stream.data[:] = meter.longest_pauses(_PAUSES)
                stream.set_summary(meter.longest_words)
                continue
            found = meter.utilisation_percent(_WINDOWS)
            known = ~np.isnan(found)
            stream.data[known] = found[known].astype(np.int64)
            stream.set_unknown(~known)
            stream.set_summary(int(meter.throughput_percent), 100)


def cost_spaces(server: Server, plan: Plan, meter: CostMeter, prefix: str = "") -> list[OtherSpace]:
    """Make the spaces of a collector's costs.

    Args:
        server: Whose spaces they become.
        plan: The collector.
        meter: Its costs.
        prefix: Of their names.
    """
    made: list[OtherSpace] = [
        kind(server, plan, meter, prefix) for kind in (_SumSpace, _UtilisationSpace, _PauseSpace)
    ]
    return made
