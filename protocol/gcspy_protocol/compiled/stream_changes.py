"""Changes of a stream by ``changes.c``: listing the tiles of a DELTA, putting its values, and the differences of a record.

Each function returns None or False where C cannot do it, and then has done nothing: the caller
computes the same with numpy.

Knows arrays; does not know frames or records.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.compiled.stream_library import streams_library
from gcspy_protocol.model import DTYPES

__all__ = ["PackedDifferences", "list_tiles", "pack_all", "pack_changes", "put_values"]

_FEWEST_PUT = 256
"""With fewer values numpy is as fast as a call."""
_FEWEST_GAPS = 64
_LONG_TILES: Final = 1 << 18
"""From this many tiles on a call takes so long that other threads may run meanwhile."""


class _Packed(ctypes.Structure):
    """``struct packed``."""

    _fields_ = (
        ("gap_bytes", ctypes.c_uint64),
        ("value_bytes", ctypes.c_uint64),
        ("gap_code", ctypes.c_uint8),
        ("value_code", ctypes.c_uint8),
        ("running", ctypes.c_uint8),
    )


class PackedDifferences(NamedTuple):
    """Differences in as few bytes as hold each of them (`replay/FORMAT.md` section 10).

    Attributes:
        value_code: Width of the values: 0, all are 0; 1 to 4, each has 1, 2, 4 or 8 bytes.
        values: The values.
        gap_code: The same of the gaps between changed tiles.
        gaps: The gaps.
        running: Whether each value is less that of the tile before.
    """

    value_code: int
    values: bytes | memoryview
    gap_code: int = 0
    gaps: bytes | memoryview = b""
    running: bool = False


def list_tiles(gaps: NDArray[np.uint16], room: int) -> NDArray[np.int64] | None:
    """List the tiles of the gaps of a DELTA.

    Args:
        gaps: Shape (gaps,), as on the wire.
        room: Number of tiles that are expected.

    Returns:
        Shape (room,), strictly increasing; None: there are more or fewer, or numpy is as fast.
    """
    library = streams_library()
    if library is None or not len(gaps) >= _FEWEST_GAPS or not room <= len(gaps):
        return None
    tiles = np.empty(room, dtype=np.int64)
    listed: int = library.held.gcspy_list_gaps(
        ctypes.c_void_p(_address(gaps)),
        ctypes.c_uint64(len(gaps)),
        ctypes.c_void_p(_address(tiles)),
        ctypes.c_uint64(room),
    )
    return tiles if listed == room else None


def put_values(values: NDArray[Any], tiles: NDArray[np.int64], given: NDArray[Any]) -> bool:
    """Put values into their tiles.

    Args:
        values: Shape (tiles,), changed in place.
        tiles: Shape (changed,), strictly increasing.
        given: Shape (changed,), of the same dtype.
    """
    library = streams_library()
    if (
        library is None
        or len(tiles) < _FEWEST_PUT
        or len(tiles) != len(given)
        or values.dtype != given.dtype
        or tiles.dtype != np.int64
        or not (values.flags.carray and tiles.flags.c_contiguous and given.flags.c_contiguous)
        or not tiles.flags.aligned
    ):
        return False
    done: int = library.held.gcspy_put_values(
        ctypes.c_void_p(_address(values)),
        ctypes.c_uint64(len(values)),
        ctypes.c_uint32(values.itemsize),
        ctypes.c_void_p(_address(tiles)),
        ctypes.c_uint64(len(tiles)),
        ctypes.c_void_p(_address(given)),
    )
    return bool(done)


def pack_changes(
    now: NDArray[Any], before: NDArray[Any], tiles: NDArray[np.int64]
) -> PackedDifferences | None:
    """Pack the differences of some tiles, and let the values before follow.

    Args:
        now: Shape (tiles,).
        before: Shape (tiles,), changed in place.
        tiles: Shape (changed,), strictly increasing, at least one.
    """
    library = streams_library()
    kind = _kind_of(now, before)
    if library is None or not kind or tiles.dtype != np.int64 or not tiles.flags.carray:
        return None
    gaps = np.empty(len(tiles), dtype=np.int64)
    values = np.empty(len(tiles), dtype=np.int64)
    packed = _Packed()
    done: int = library.held.gcspy_pack_changes(
        ctypes.c_void_p(_address(now)),
        ctypes.c_void_p(_address(before)),
        ctypes.c_uint64(len(now)),
        ctypes.c_uint8(kind),
        ctypes.c_void_p(_address(tiles)),
        ctypes.c_uint64(len(tiles)),
        ctypes.c_void_p(_address(gaps)),
        ctypes.c_void_p(_address(values)),
        ctypes.byref(packed),
    )
    if not done:
        return None
    return PackedDifferences(
        packed.value_code,
        values.view(np.uint8)[: packed.value_bytes].data,
        packed.gap_code,
        gaps.view(np.uint8)[: packed.gap_bytes].data,
    )


def pack_all(
    now: NDArray[Any], before: NDArray[Any] | None, start: int, running_from: int
) -> PackedDifferences | None:
    """Pack the differences of all tiles.

    Args:
        now: Shape (tiles,).
        before: Shape (tiles,); None: `start` at each tile.
        start: Value before, where `before` is None; of 64 signed bits.
        running_from: Number of tiles from which on steps from tile to tile are considered.
    """
    library = streams_library()
    kind = _kind_of(now, now if before is None else before)
    if library is None or not kind:
        return None
    functions = library.released if len(now) >= _LONG_TILES else library.held
    packed = _Packed()
    given = (
        ctypes.c_void_p(_address(now)),
        ctypes.c_void_p(None if before is None else _address(before)),
        ctypes.c_int64(start),
        ctypes.c_uint8(kind),
        ctypes.c_uint64(len(now)),
    )
    functions.gcspy_weigh_all(*given, ctypes.c_uint64(running_from), ctypes.byref(packed))
    out = np.empty(packed.value_bytes, dtype=np.uint8)
    functions.gcspy_write_all(*given, ctypes.byref(packed), ctypes.c_void_p(_address(out)))
    return PackedDifferences(packed.value_code, out.data, running=bool(packed.running))


def _kind_of(now: NDArray[Any], before: NDArray[Any]) -> int:
    """Return the number of the type of two arrays that C can read; 0: it cannot."""
    if now.dtype != before.dtype or now.shape != before.shape or not now.dtype.isnative:
        return 0
    if not (now.flags.c_contiguous and before.flags.carray and now.flags.aligned):
        return 0
    return DTYPES.get(now.dtype.str[1:], 0)


def _address(array: NDArray[Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found
