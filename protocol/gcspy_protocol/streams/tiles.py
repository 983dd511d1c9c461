"""The Tiles message in bytes: the number of tiles of a space, and the new places of the old ones.

Runs list the kept tiles; only new tiles are named, so that growing costs nothing for the existing
ones. (The original sent 25 bytes per tile at each resize, and its target crashed when that
overflowed a buffer: research/anchors 1.8.)
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.frame import Frame, Header, pack_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, Tiles
from gcspy_protocol.model import Naming

__all__ = ["TILES_HEAD_BYTES", "decode_tiles", "needed_tiles_bytes", "pack_tiles"]

_TILES = struct.Struct("<IIIB3xQQ")
"""TILES payload, before the arrays.

    offset size  field
    0      4     count: tiles from now on
    4      4     runs
    8      4     named: new tiles with an extent
    12     1     naming: 0 uniform, 1 extents, 2 strings
    13     3     reserved
    16     8     uniform: address of tile 0
    24     8     uniform: bytes a tile
    32           runs x 4: old start
                 runs x 4: new start
                 runs x 4: length
                 named x 8: address, less the end of the extent before (i64, the first less 0)
                 named x 8: size in bytes
"""

_RUN_BYTES, _EXTENT_BYTES = 12, 16

TILES_HEAD_BYTES = _TILES.size
"""Bytes of a TILES payload that determine its length."""

_NAMINGS = [Naming.UNIFORM, Naming.EXTENTS, Naming.STRINGS]


def pack_tiles(tiles: Tiles, *, sequence: int = 0, time_nanos: int = 0) -> Frame:
    """Put a Tiles message into a frame."""
    bases = np.empty(0, dtype=np.uint64) if tiles.bases is None else tiles.bases.astype(np.uint64)
    sizes = np.empty(0, dtype=np.uint64) if tiles.sizes is None else tiles.sizes.astype(np.uint64)
    if len(bases) != len(sizes):
        raise LocalProtocolError(
            f"space {tiles.space}: {len(bases)} tile addresses but {len(sizes)} sizes"
        )
    head = _TILES.pack(
        tiles.count,
        len(tiles.lengths),
        len(bases),
        _NAMINGS.index(tiles.naming),
        tiles.base,
        tiles.tile_bytes,
    )
    steps = bases.copy()
    if len(bases) > 1:
        steps[1:] -= bases[:-1] + sizes[:-1]  # modulo 2**64, and summed again modulo 2**64
    parts = [head]
    parts += [
        array.astype("<u4").tobytes()
        for array in (tiles.old_starts, tiles.new_starts, tiles.lengths)
    ]
    parts += [steps.astype("<u8").tobytes(), sizes.astype("<u8").tobytes()]
    return pack_frame(
        FrameType.TILES,
        b"".join(parts),
        space=tiles.space,
        sequence=sequence,
        time_nanos=time_nanos,
    )


def needed_tiles_bytes(header: Header, head: bytes, limits: Limits) -> int:
    """Bytes that a TILES payload needs, from its first bytes.

    Args:
        header: Of the frame.
        head: The first `TILES_HEAD_BYTES` of the payload, or all of a shorter one.
        limits: Limits on what the peer may send.

    Raises:
        RemoteProtocolError: It is too short, or has more tiles than the limit, or more runs or names than tiles.
    """
    what = f"tiles of space {header.space}"
    if len(head) < _TILES.size:
        raise RemoteProtocolError(f"{what}: {len(head)} bytes, at least {_TILES.size} needed")
    count, runs, named, *_ = _TILES.unpack_from(head)
    if count > limits.tiles:
        raise RemoteProtocolError(f"{what}: {count} tiles, over the limit of {limits.tiles}")
    if max(runs, named) > count:
        raise RemoteProtocolError(f"{what}: {runs} runs and {named} names do not fit {count} tiles")
    size: int = _TILES.size + _RUN_BYTES * runs + _EXTENT_BYTES * named
    return size


def decode_tiles(header: Header, payload: bytes, limits: Limits) -> Tiles:
    """Read a TILES payload.

    Raises:
        RemoteProtocolError: It is too short, or its runs overlap or leave the space.
    """
    what = f"tiles of space {header.space}"
    needed = needed_tiles_bytes(header, payload, limits)
    count, runs, named, naming, base, tile_bytes = _TILES.unpack_from(payload)
    if len(payload) < needed:
        raise RemoteProtocolError(
            f"{what}: {runs} runs and {named} names need {needed} bytes, got {len(payload)}"
        )
    if naming >= len(_NAMINGS):
        raise RemoteProtocolError(f"{what}: naming {naming} is none of 0 to {len(_NAMINGS) - 1}")
    at = _TILES.size
    old_starts, new_starts, lengths = np.frombuffer(payload, "<u4", 3 * runs, at).reshape(3, runs)
    at += _RUN_BYTES * runs
    steps, sizes = np.frombuffer(payload, "<u8", 2 * named, at).reshape(2, named)
    kept = _check_runs(old_starts, new_starts, lengths, count, limits, what)
    extents = _NAMINGS[naming] is Naming.EXTENTS
    if named != (count - kept if extents else 0):
        raise RemoteProtocolError(f"{what}: {named} named tiles, {count - kept} are new")
    return Tiles(
        space=header.space,
        count=count,
        old_starts=old_starts,
        new_starts=new_starts,
        lengths=lengths,
        naming=_NAMINGS[naming],
        base=base,
        tile_bytes=tile_bytes,
        bases=_addresses(steps, sizes) if extents else None,
        sizes=sizes if extents else None,
    )


def _addresses(steps: NDArray[np.uint64], sizes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    moves = steps.copy()
    moves[1:] += sizes[:-1]
    return np.cumsum(moves, dtype=np.uint64)


def _check_runs(
    old_starts: NDArray[np.uint32],
    new_starts: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    count: int,
    limits: Limits,
    what: str,
) -> int:
    """Return how many tiles are kept; refuse runs that overlap or leave the space."""
    if not len(lengths):
        return 0
    wide = lengths.astype(np.int64)
    new, old = new_starts.astype(np.int64), old_starts.astype(np.int64)
    ordered = bool((wide > 0).all()) and bool((new[1:] >= new[:-1] + wide[:-1]).all())
    if not ordered or int(new[-1] + wide[-1]) > count or int((old + wide).max()) > limits.tiles:
        raise RemoteProtocolError(f"{what}: runs overlap, are empty, or leave the {count} tiles")
    return int(wide.sum())
