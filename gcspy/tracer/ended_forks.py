"""`EndedForks`: blocks that lived at forks of processes that have ended, for children that are found later.

Knows numbers of processes and of forks; does not know segments or files.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from gcspy.tracer.drain import ForkedBlocks

__all__ = ["EndedForks"]

_MOST_FORKS: Final = 256
_MOST_BLOCKS: Final = 4 << 20
"""Limits of what is kept in all: a program may fork without an end, and no child of it may be found."""


class _Fork(NamedTuple):
    parent: int
    number: int
    began: int
    blocks: ForkedBlocks


class EndedForks:
    """Forks whose blocks no child has taken yet; when there are too many, the oldest are forgotten."""

    def __init__(self) -> None:
        self._forks: deque[_Fork] = deque()
        self._blocks = 0

    def keep(self, parent: int, number: int, began: int, blocks: ForkedBlocks) -> None:
        """Keep the blocks of a fork.

        Args:
            parent: Process that forked.
            number: Of the fork, as the parent counted.
            began: When the trace of the parent's program began; nanoseconds of the monotonic clock.
            blocks: What lived then.
        """
        self._forks.append(_Fork(parent, number, began, blocks))
        self._blocks += len(blocks.address)
        while self._forks and (len(self._forks) > _MOST_FORKS or self._blocks > _MOST_BLOCKS):
            self._blocks -= len(self._forks.popleft().blocks.address)

    def take(self, parent: int, number: int, began: int) -> ForkedBlocks | None:
        """Return the blocks of a fork, and forget them; None: they are not known.

        Args:
            parent: Process that forked.
            number: Of the fork, as the parent counted.
            began: When the trace of the child began: a program that the parent executed after that did not fork it.
        """
        found = [
            one
            for one in self._forks
            if (one.parent, one.number) == (parent, number) and one.began <= began
        ]
        if not found:
            return None
        latest = max(found, key=lambda one: one.began)
        self._forks = deque(one for one in self._forks if one is not latest)
        self._blocks -= len(latest.blocks.address)
        return latest.blocks
