"""The order of events of several threads: by stamps, and among equal stamps so that each address alternates between allocation and free.

Source: objects/FORMAT.md, section 5.

Knows kinds, addresses, stamps and threads of events; does not know blocks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.records import RecordKind

__all__ = ["EventOrder", "order_events"]

Longs = NDArray[np.int64]

_TOLD: Final = (RecordKind.ALLOCATE, RecordKind.FREE)

_MAX_ROUNDS: Final = 4
"""Repairing one group of equal stamps may show that another one is wrong; no more than this often."""


class EventOrder(NamedTuple):
    """The order of events.

    Attributes:
        rows: (n,) rows of the events in their order.
        unordered: How many allocations and frees follow one of the same kind at the same address, which no program does: an event is
            missing, or the order is not known.
    """

    rows: Longs
    unordered: int


def order_events(
    kind: NDArray[np.uint8], address: Longs, stamp: Longs, thread: NDArray[np.int32]
) -> EventOrder:
    """Order events.

    Args:
        kind: (n,) those of each thread in their order.
        address: (n,)
        stamp: (n,) ascending for each thread.
        thread: (n,)
    """
    rows = np.argsort(stamp, kind="stable")
    if len(rows) and bool((thread == thread[0]).all()):
        return EventOrder(rows, 0)
    for _ in range(_MAX_ROUNDS):
        sequences = _Sequences(kind[rows], address[rows])
        wrong = sequences.wrong
        if not len(wrong):
            break
        stamps = stamp[rows]
        groups = np.unique(stamps[wrong])
        changed = False
        for value in groups.tolist():
            low, high = (int(one) for one in np.searchsorted(stamps, (value, value + 1)))
            better = _repaired(rows[low:high], kind, address, thread, sequences, low, high)
            changed = changed or bool((better != rows[low:high]).any())
            rows[low:high] = better
        if not changed:
            break
    else:
        wrong = _Sequences(kind[rows], address[rows]).wrong
    return EventOrder(rows, len(wrong) // 2 if len(wrong) else 0)


class _Sequences:
    """Allocations and frees by address, and by position within.

    Attributes:
        address: (m,) ascending.
        position: (m,) of the event, ascending for each address.
        allocates: (m,) whether it is an allocation.
        wrong: Positions of pairs of neighbours of one address that do not alternate, both of each pair.
    """

    def __init__(self, kind: NDArray[np.uint8], address: Longs) -> None:
        told = np.flatnonzero((kind == RecordKind.ALLOCATE) | (kind == RecordKind.FREE))
        order = np.argsort(address[told], kind="stable")
        self.position = told[order]
        self.address = address[self.position]
        self.allocates = kind[self.position] == RecordKind.ALLOCATE
        same = (self.address[1:] == self.address[:-1]) & (self.allocates[1:] == self.allocates[:-1])
        first = np.flatnonzero(same)
        self.wrong = np.concatenate((self.position[first], self.position[first + 1]))

    def neighbours(self, address: int, low: int, high: int) -> tuple[bool | None, bool | None]:
        """Return whether the last event at an address before position `low`, and the first from `high` on, is an allocation; None: there is none."""
        begin, end = (int(one) for one in np.searchsorted(self.address, (address, address + 1)))
        before, after = (
            begin + int(one) for one in np.searchsorted(self.position[begin:end], (low, high))
        )
        return (
            bool(self.allocates[before - 1]) if before > begin else None,
            bool(self.allocates[after]) if after < end else None,
        )


def _repaired(
    rows: Longs,
    kind: NDArray[np.uint8],
    address: Longs,
    thread: NDArray[np.int32],
    sequences: _Sequences,
    low: int,
    high: int,
) -> Longs:
    """Return the events of one stamp in an order in which addresses alternate, as far as there is one; those of a thread keep theirs."""
    what, where, who = kind[rows].tolist(), address[rows].tolist(), thread[rows].tolist()
    queues: dict[int, list[int]] = {}
    for at, owner in enumerate(who):
        queues.setdefault(owner, []).append(at)
    if len(queues) == 1:
        return rows
    live = _shared(what, where, who, sequences, low, high)
    taken: list[int] = []
    waiting = {owner: iter(queue) for owner, queue in queues.items()}
    heads = {owner: next(queue) for owner, queue in waiting.items()}
    stuck = False
    while heads:
        moved = False
        for owner in list(heads):
            while owner in heads:
                at = heads[owner]
                state = live.get(where[at])
                if state is not None and what[at] in _TOLD:
                    allocates = what[at] == RecordKind.ALLOCATE
                    if state == allocates and not stuck:
                        break
                    live[where[at]] = allocates
                stuck = False
                moved = True
                taken.append(at)
                following = next(waiting[owner], None)
                if following is None:
                    del heads[owner]
                else:
                    heads[owner] = following
        stuck = not moved  # nothing fits, because an event is missing: the first is taken
    return rows[np.array(taken, np.int64)]


def _shared(
    what: list[int], where: list[int], who: list[int], sequences: _Sequences, low: int, high: int
) -> dict[int, bool]:
    """Return the addresses at which several threads allocate or free, and whether an object lives there before position `low`."""
    users: dict[int, set[int]] = {}
    net: dict[int, int] = {}
    for kind, place, owner in zip(what, where, who, strict=True):
        if kind in _TOLD:
            users.setdefault(place, set()).add(owner)
            net[place] = net.get(place, 0) + (1 if kind == RecordKind.ALLOCATE else -1)
    live: dict[int, bool] = {}
    for place in (one for one, owners in users.items() if len(owners) > 1):
        before, after = sequences.neighbours(place, low, high)
        if before is not None:
            live[place] = before
        elif after is not None:
            live[place] = (0 if after else 1) - net[place] > 0
        else:
            live[place] = net[place] < 0
    return live
