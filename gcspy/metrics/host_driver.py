"""`HostDriver`: the processes of a host as one session, which tells after each tick what is known of each of them.

malloc knows what trimming would return when all its chunks are walked only. That is done for heaps where it is cheap, and given up
for the others, whose quantity is then absent.

Knows the driver of a tree; does not know who exports the numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from gcspy.tree.family import Processes
from gcspy.tree.tree_driver import AttachMember, TreeDriver, TreeMember, TreePart
from gcspy_server.api import LEVEL, AttachOptions

__all__ = ["HostDriver"]

_WALKED = ("malloc",)
_WALK_SHARE, _WALK_SECS = 0.003, 0.03
"""Largest share of the time between two ticks that a process may take at the highest level; so many seconds it always may."""

_MOST_SLOW = 3
"""What is slow so many times is not slow by chance."""


class HostDriver(TreeDriver):
    """Monitors the processes of a host.

    Args:
        family: See `TreeDriver`.
        attach: See `TreeDriver`.
        options: See `TreeDriver`.
        ticked: Called with all parts at the end of each tick, in the driver's thread: once, however many events the tick had.
    """

    def __init__(
        self,
        family: Processes,
        attach: AttachMember,
        options: AttachOptions,
        ticked: Callable[[tuple[TreePart, ...]], None],
    ) -> None:
        super().__init__(family, attach, options, whole=_WALKED)
        self._ticked = ticked
        self._most_secs = max(_WALK_SECS, _WALK_SHARE / options.clock_hz)
        self._slow: dict[TreeMember, int] = {}

    def tick(self) -> None:
        """Follow the processes, gather what is due, and tell it."""
        super().tick()
        parts = self.parts
        self._slow = {one: times for one, times in self._slow.items() if one.server is not None}
        self._ticked(parts)

    def _run(self, member: TreeMember, step: Callable[[], None]) -> None:
        begun = time.thread_time()
        super()._run(member, step)
        server = member.server
        if server is None or LEVEL not in server.share.fixed:
            return
        if time.thread_time() - begun <= self._most_secs:
            return
        self._slow[member] = self._slow.get(member, 0) + 1
        if self._slow[member] >= _MOST_SLOW:
            server.share.fixed[LEVEL] = min(self._options.level, server.share.levels)
