"""A semi-space copying collector over a heap of words: small, but real.

Objects are bump-allocated in one half of the heap. When it is full, Cheney's algorithm copies the
reachable objects into the other half, and the two change places. It does not depend on GCspy: it
notifies a listener when a collection starts and ends, and its objects can be walked.

Source: C. J. Cheney, A nonrecursive list compacting algorithm, CACM 13(11), 1970.

    word 0        header: reference fields << 32 | words in all, header included;
                  after copying, in the old half: minus the new address
    word 1 …      reference fields: an address, or 0
    then          data, which the collector never looks at
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Protocol

from gcspy_protocol.errors import LocalProtocolError

__all__ = ["WORD_BYTES", "HeapFull", "Listener", "SemispaceHeap"]

WORD_BYTES = 8
_FIELD_SHIFT = 32
_WORDS_MASK = (1 << _FIELD_SHIFT) - 1


class HeapFull(Exception):
    """Not even a collection made room."""


class Listener(Protocol):
    """Receives the starts and ends of collections."""

    def collection_starts(self, cause: str) -> None:
        """The world has stopped; nothing has moved yet."""
        ...

    def collection_ends(self, cause: str) -> None:
        """Everything has moved; the world still stands."""
        ...


class SemispaceHeap:
    """The heap and its collector.

    Args:
        semispace_bytes: Size of each half, a multiple of 8.
        base: Address of the heap's first byte.

    Attributes:
        roots: Addresses of objects that the program holds, or 0; updated when objects move.
        listener: Notified of every collection.
        allocated_bytes: In all, since the beginning.
    """

    def __init__(self, semispace_bytes: int, *, base: int = 0x10000000) -> None:
        if semispace_bytes <= 0 or semispace_bytes % WORD_BYTES:
            raise LocalProtocolError(
                f"a semispace of {semispace_bytes} bytes: give a multiple of {WORD_BYTES}"
            )
        self.semispace_bytes = semispace_bytes
        self.base = base
        self.roots: list[int] = []
        self.listener: Listener | None = None
        self.allocated_bytes = 0
        self._words = array("q", bytes(2 * semispace_bytes))
        self._from = base
        self._free = base

    @property
    def end(self) -> int:
        """Address behind the heap's last byte."""
        return self.base + 2 * self.semispace_bytes

    @property
    def in_use(self) -> tuple[int, int]:
        """The half in which objects are: its first address, and the first free one."""
        return self._from, self._free

    def allocate(self, fields: int, data_words: int = 0) -> int:
        """Make an object with reference fields of 0, after a collection if there is no room.

        Returns:
            Its address, until the next collection: keep it in `roots` or in another object.

        Raises:
            HeapFull: Reachable objects leave no room.
        """
        words = 1 + fields + data_words
        size = words * WORD_BYTES
        if self._free + size > self._from + self.semispace_bytes:
            self.collect("allocation failure")
            if self._free + size > self._from + self.semispace_bytes:
                live = self._free - self._from
                raise HeapFull(
                    f"{size} bytes do not fit: {live} of {self.semispace_bytes} are live; use a larger heap"
                )
        address = self._free
        at = self._index(address)
        self._words[at] = fields << _FIELD_SHIFT | words
        self._words[at + 1 : at + words] = array("q", bytes(size - WORD_BYTES))
        self._free += size
        self.allocated_bytes += size
        return address

    def field(self, address: int, number: int) -> int:
        """Value of a reference field of an object."""
        return self._words[self._index(address) + 1 + self._check_field(address, number)]

    def set_field(self, address: int, number: int, target: int) -> None:
        """Let a reference field of an object hold another object, or 0."""
        self._words[self._index(address) + 1 + self._check_field(address, number)] = target

    def fields_of(self, address: int) -> int:
        """Return the number of an object's reference fields."""
        return self._words[self._index(address)] >> _FIELD_SHIFT

    def size_of(self, address: int) -> int:
        """Bytes of an object, its header included."""
        return (self._words[self._index(address)] & _WORDS_MASK) * WORD_BYTES

    def objects(self) -> Iterator[tuple[int, int]]:
        """Address and size of every object, live or not, in the order of their addresses."""
        address = self._from
        while address < self._free:
            size = self.size_of(address)
            yield address, size
            address += size

    def collect(self, cause: str = "asked for") -> None:
        """Copy reachable objects into the other half; the rest is free."""
        if self.listener is not None:
            self.listener.collection_starts(cause)
        to = self.base if self._from != self.base else self.base + self.semispace_bytes
        self._free = scan = to
        self.roots[:] = [self._copied(root) for root in self.roots]
        # Between `scan` and `_free` are objects that were copied and whose fields still lead back.
        while scan < self._free:
            at = self._index(scan)
            for field in range(at + 1, at + 1 + self.fields_of(scan)):
                self._words[field] = self._copied(self._words[field])
            scan += self.size_of(scan)
        self._from = to
        if self.listener is not None:
            self.listener.collection_ends(cause)

    def _copied(self, address: int) -> int:
        """The new address of an object, which is copied if it was not yet."""
        if address == 0:
            return 0
        at = self._index(address)
        header = self._words[at]
        if header < 0:
            return -header
        words = header & _WORDS_MASK
        new = self._free
        to = self._index(new)
        self._words[to : to + words] = self._words[at : at + words]
        self._words[at] = -new
        self._free += words * WORD_BYTES
        return new

    def _index(self, address: int) -> int:
        return (address - self.base) // WORD_BYTES

    def _check_field(self, address: int, number: int) -> int:
        if not 0 <= number < self.fields_of(address):
            raise LocalProtocolError(
                f"object {address:#x} has {self.fields_of(address)} fields, none is {number}"
            )
        return number
