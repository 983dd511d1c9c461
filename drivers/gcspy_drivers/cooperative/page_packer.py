"""`PagePacker`: pages of one event after another, packed small by what changed since the page was packed last.

Most of a page that was written is as it was before: the difference of both is nearly all zeros.
What one `PagePacker` packs another unpacks, if it gets all of it in the same order. Knows addresses
and contents of pages; does not know where they come from.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import zstandard
from gcspy_protocol.errors import TargetError

__all__ = ["PagePacker", "compact"]

_PAGE: Final = 4096
_FEWEST: Final = 1024
MOST_PAGES: Final = (512 << 20) // _PAGE
"""Most different pages; the program is a stranger."""

Words = npt.NDArray[np.uint64]


def compact(packed: bytes) -> bytes:
    """Return packed bytes in memory of their own size.

    What `zstandard` returns keeps the memory that the bytes could have needed: as much as they had unpacked.
    """
    return bytes(memoryview(packed))


class PagePacker:
    """Packs pages, or unpacks them."""

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        self._latest: Words = np.zeros((_FEWEST, _PAGE // 8), dtype=np.uint64)
        self._packer = zstandard.ZstdCompressor(level=1)
        self._unpacker = zstandard.ZstdDecompressor()

    def pack(self, regions: memoryview, content: memoryview) -> bytes:
        """Return pages packed.

        Args:
            regions: Address and number of pages of each region, u64.
            content: Their content, one behind the other; whole pages.

        Raises:
            TargetError: They are too many, or do not fit together.
        """
        rows = self._rows_of(regions, len(content) // _PAGE)
        now = np.frombuffer(content[: len(rows) * _PAGE], dtype=np.uint64).reshape(-1, _PAGE // 8)
        difference = now ^ self._latest[rows]
        self._latest[rows] = now
        return compact(self._packer.compress(difference.data))

    def unpack(self, regions: memoryview, packed: bytes, size_bytes: int) -> memoryview:
        """Return the content of pages.

        Args:
            regions: As they were packed.
            packed: What `pack` returned.
            size_bytes: How many bytes they have.
        """
        rows = self._rows_of(regions, size_bytes // _PAGE)
        data = self._unpacker.decompress(packed, max_output_size=max(1, size_bytes))
        now = np.frombuffer(data, dtype=np.uint64).reshape(-1, _PAGE // 8) ^ self._latest[rows]
        self._latest[rows] = now
        return now.reshape(-1).view(np.uint8).data

    def _rows_of(self, regions: memoryview, pages: int) -> npt.NDArray[np.intp]:
        found = np.frombuffer(regions, dtype="<u8").reshape(-1, 2)
        counts = found[:, 1]
        if int(counts.max(initial=0)) > pages or int(counts.sum()) != pages:
            raise TargetError(
                f"the stub's ring has {pages} pages, and regions of another number of them"
            )
        place = self._place
        rows = [
            place.setdefault(at, len(place))
            for begin, count in found.tolist()
            for at in range(begin, begin + count * _PAGE, _PAGE)
        ]
        if len(place) > MOST_PAGES:
            raise TargetError(f"the stub has recorded more than {MOST_PAGES} different pages")
        if len(place) > len(self._latest):
            more = np.zeros((2 * len(place), _PAGE // 8), dtype=np.uint64)
            more[: len(self._latest)] = self._latest
            self._latest = more
        return np.array(rows, dtype=np.intp)
