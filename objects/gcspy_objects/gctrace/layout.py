"""Numbers of the object trace format: kinds, columns, encodings and limits (objects/FORMAT.md).

Knows numbers; reads and writes nothing.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

import numpy as np

from gcspy_objects.records import RecordKind

__all__ = [
    "ANY_THREAD",
    "BLOCK",
    "BLOCK_MARKER",
    "ENTRY",
    "HAS_ADDRESS",
    "HAS_LENGTH",
    "HAS_SITE",
    "HAS_SIZE",
    "HAS_TO",
    "HAS_TYPE",
    "IS_SIZED",
    "KINDS",
    "MAGIC",
    "MAX_BLOCK_BYTES",
    "MAX_COLUMNS",
    "MAX_EVENTS",
    "MAX_GRANULES",
    "MAX_NUMBER",
    "MAX_POINTERS",
    "MAX_SHIFT",
    "MAX_TEXT",
    "PREFIX",
    "STAMP",
    "SUFFIX",
    "MINOR_VERSION",
    "VERSION",
    "BlockKind",
    "Codec",
    "ColumnId",
    "DefinitionKind",
    "ColumnLayout",
    "Transform",
]

SUFFIX: Final = ".gctrace"
"""Usual ending of a file's name."""
MAGIC: Final = b"\x89GCOT\r\n\x1a"
VERSION: Final = 1
MINOR_VERSION: Final = 1
"""1: moves in collections whose deaths are told."""
PREFIX: Final = struct.Struct("<8sHHI")
BLOCK_MARKER: Final = b"GCTB"
BLOCK: Final = struct.Struct("<4sBBHIIiIQQII")
ENTRY: Final = struct.Struct("<BBBBII")
ANY_THREAD: Final = -1

MAX_BLOCK_BYTES: Final = 64 << 20
MAX_EVENTS: Final = 1 << 22
MAX_POINTERS: Final = 1 << 22
MAX_COLUMNS: Final = 64
MAX_NUMBER: Final = 1 << 24
MAX_TEXT: Final = 65_535
MAX_SHIFT: Final = 12
MAX_GRANULES: Final = 1 << 28


class BlockKind(IntEnum):
    """Kind of a block, section 3."""

    HEADER = 1
    DEFINITIONS = 2
    EVENTS = 3
    WATERMARK = 4
    ACCESSED = 5
    END = 6


class Codec(IntEnum):
    """Codec of a payload."""

    PLAIN = 0
    ZSTD = 1


class ColumnId(IntEnum):
    """Number of a column of events, section 4.2."""

    KIND = 1
    THREAD = 2
    FLAGS = 3
    DETAIL = 4
    STAMP = 5
    ALLOCATED = 6
    FREED = 7
    ADDRESS = 8
    TO = 9
    SIZE = 10
    AMOUNT = 11
    TYPE = 12
    SITE = 13
    LENGTH = 14
    AGE = 15
    POINTER_EVENT = 16
    POINTER_KIND = 17
    POINTER = 18
    BUFFER = 19
    BUFFER_MODE = 20


class ColumnLayout(IntEnum):
    """How the values of a column are laid out: low four bits of its encoding."""

    CONSTANT = 0
    PLANES = 1
    VARINTS = 2


class Transform(IntEnum):
    """How the values of a column are transformed: high four bits of its encoding."""

    NONE = 0
    DELTA = 1
    BY_SITE = 2
    MODEL = 3
    SIGNED = 4


class DefinitionKind(IntEnum):
    """Kind of a definition, section 7."""

    TEXT = 1
    TYPE = 2
    FRAME = 3
    SITE = 4
    THREAD = 5
    CAUSE = 6
    NAME = 7
    MODULE = 8
    ALIGNMENT = 9


STAMP: Final = 0
"""Kind of event that no record is made of."""

KINDS: Final = 32
"""All kinds are below."""

_R = RecordKind
_COLLECTIONS = (_R.COLLECTION_START, _R.COLLECTION_END)
_SNAPSHOTS = (_R.SNAPSHOT_MOVE, _R.SNAPSHOT_KEEP)


def _mask(*kinds: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    mask = np.zeros(256, np.bool_)
    mask[list(kinds)] = True
    return mask


IS_SIZED: Final = _mask(_R.ALLOCATE, _R.ALLOCATE_NEXT, *_SNAPSHOTS)
"""(256,) kinds whose size is in the column `SIZE`; that of others is in `AMOUNT`."""
HAS_ADDRESS: Final = _mask(
    _R.ALLOCATE, _R.BUFFER, _R.GC_BUFFER, *_COLLECTIONS, _R.MOVE, _R.MOVE_NEXT, _R.MOVE_RUN, _R.KEEP, *_SNAPSHOTS, _R.SPACE_DEFINE,
    _R.THREAD_BEGIN, _R.THREAD_END, _R.POINTERS, _R.FREE, _R.STORE, _R.MAP, _R.UNMAP,
)  # fmt: skip
HAS_TO: Final = _mask(_R.MOVE, _R.MOVE_RUN, *_SNAPSHOTS, _R.STORE)
HAS_SIZE: Final = _mask(
    _R.ALLOCATE, _R.ALLOCATE_NEXT, _R.BUFFER, _R.GC_BUFFER, *_COLLECTIONS, _R.COLLECTS, *_SNAPSHOTS, _R.SPACE_DEFINE, _R.SPACE_DESTROY,
    _R.MARK, _R.LOST, _R.MAP, _R.UNMAP,
)  # fmt: skip
HAS_TYPE: Final = _mask(
    _R.ALLOCATE, _R.ALLOCATE_NEXT, *_COLLECTIONS, *_SNAPSHOTS, _R.SPACE_KIND, _R.THREAD_BEGIN, _R.MARK, _R.PHASE_BEGIN, _R.PHASE_END
)  # fmt: skip
HAS_SITE: Final = _mask(_R.ALLOCATE, _R.ALLOCATE_NEXT, *_SNAPSHOTS, _R.MAP)
HAS_LENGTH: Final = _mask(
    _R.ALLOCATE, _R.ALLOCATE_NEXT, *_COLLECTIONS, _R.COLLECTS, _R.FAILED, _R.MOVE_RUN, *_SNAPSHOTS, _R.SPACE_DEFINE, _R.SPACE_KIND,
    _R.SPACE_RELEASE, _R.SPACE_DESTROY, _R.THREAD_BEGIN, _R.THREAD_END, _R.STORE,
)  # fmt: skip
