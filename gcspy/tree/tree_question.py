"""`gcspy why --tree`: which processes of a tree grow, and why those do.

First all processes are watched, which costs next to nothing; then the growing ones alone are examined,
at the same time. Knows the tree and questions; does not format answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gcspy_protocol.details import MemoryReport
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy.connection.target import driver_of
from gcspy.tree.family import Family, Relative, private_and_shared
from gcspy.tree.growth_record import GrowthRecord, GrowthState
from gcspy_server.api import MemoryQuestion

if TYPE_CHECKING:
    from gcspy.tree.tree_driver import TreeDriver

__all__ = ["Explained", "WatchedProcess", "explain_growing", "explain_leading", "watch"]

_FEWEST_LOOKS = 12
_MOST_REST_SECS = 1.0


@dataclass(frozen=True, slots=True)
class WatchedProcess:
    """Sizes of one process over a while.

    Attributes:
        process: As the system listed it last.
        growth: Its resident sets.
        apart: Private bytes, and its share of shared ones; None: not known.
        came: Whether it came during the time.
        ended: Whether it ended during the time.
    """

    process: Relative
    growth: GrowthRecord
    apart: tuple[int, int] | None = None
    came: bool = False
    ended: bool = False

    @property
    def grows(self) -> bool:
        """Whether it runs and grows."""
        return not self.ended and self.growth.state is GrowthState.GROWING


@dataclass(frozen=True, slots=True)
class Explained:
    """Reports on the growth of one process.

    Attributes:
        pid: The process.
        first: The report of the first sample; None: it cannot be examined.
        later: The report of the growth; None: there is none.
        problem: Why there is no report; empty: there is.
    """

    pid: int
    first: MemoryReport | None = None
    later: MemoryReport | None = None
    problem: str = ""


def watch(
    root: int,
    secs: float,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
) -> list[WatchedProcess]:
    """Watch the sizes of all processes of a tree for a while.

    Args:
        root: The first process.
        secs: How long; 0: one look, without growth.
        progress: Called with the step, how much is done, and the total.

    Returns:
        The processes, those that grow most first.

    Raises:
        TargetGone: There is no such process.
    """
    family = Family(root)
    rest = min(_MOST_REST_SECS, secs / _FEWEST_LOOKS)
    seen: dict[tuple[int, int], WatchedProcess] = {}
    begun = time.monotonic()
    first = True
    while True:
        now = time.monotonic()
        found = family.look()
        if first and not found:
            raise TargetGone(
                f"there is no process {root}: `gcspy ps` lists the processes that can be monitored"
            )
        present = {(one.pid, one.started) for one in found}
        seen = {
            key: one if key in present else replace(one, ended=True) for key, one in seen.items()
        }
        for one in found:
            key = (one.pid, one.started)
            growth = seen[key].growth if key in seen else GrowthRecord(rest / 2)
            came = seen[key].came if key in seen else not first
            if one.resident is not None:
                growth.note(now, one.resident)
            seen[key] = WatchedProcess(one, growth, came=came)
        first = False
        progress("watching the processes", round(now - begun), round(secs))
        if now - begun >= secs:
            break
        time.sleep(min(rest, max(0.0, begun + secs - now)))
    watched = [
        one if one.ended else replace(one, apart=private_and_shared(one.process.pid))
        for one in seen.values()
    ]
    return sorted(
        watched,
        key=lambda one: (
            one.grows,
            one.growth.bytes_per_minute or one.growth.grew or 0,
            one.process.resident or 0,
        ),
        reverse=True,
    )


def explain_growing(
    watched: list[WatchedProcess], question: MemoryQuestion, most: int
) -> Iterator[Explained]:
    """Explain the growth of the processes that grow most, all at the same time.

    Yields:
        An explanation for each, the one that grows most first.
    """
    growing = [one.process.pid for one in watched if one.grows][:most]
    if not growing:
        return
    with ThreadPoolExecutor(len(growing), thread_name_prefix="gcspy why") as pool:
        yield from pool.map(lambda pid: _explained(pid, question), growing)


def _explained(pid: int, question: MemoryQuestion) -> Explained:
    first: MemoryReport | None = None
    try:
        reports = driver_of(pid).explain_memory(pid, question, lambda _what, _done, _all: None)
        first = next(reports)
        return Explained(pid, first, next(reports, None))
    except TargetError as error:
        return Explained(pid, first, problem=str(error))


def explain_leading(
    tree: TreeDriver, question: MemoryQuestion, progress: Callable[[str, int, int], None]
) -> Iterator[MemoryReport]:
    """Report on the process of a session's tree that grows most; its note says which one that is.

    Raises:
        TargetError: It cannot be examined.
    """
    pid = tree.growing[0]
    for report in driver_of(pid).explain_memory(pid, question, progress):
        text = f"This is process {pid}, which grows most of {len(tree.growing):,} processes. {report.note}"
        yield replace(report, note=text.rstrip())
