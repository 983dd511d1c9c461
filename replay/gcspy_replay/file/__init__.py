"""Recordings: what one client received, in validated files (FORMAT.md).

The door for the player, the recorder and the window. No loop, no window, no server.

* Write: `RecordingWriter`, with a `WireTap` beside the connection, to a `FileStore`, `SplitStore`, `RingStore`, `ShiftStore` or
  `MemoryStore`.
* Read: `Recording.open(FILE)`: `events`, `cursor()`, `seek`, `steps`, `nearest`, `find`, `refresh`.
* Serve: `schema_messages` and `encode_keyframe` make the data for a viewer that jumps; `RecordedEvent.data` is the data for one
  that continues.
* Keep in order: `verify`, `repair`, `cut`; send: `repack`; `pack` and `unpack` are of version 1.
* Bookmarks and notes beside it: `read_sidecar`, `write_sidecar`, `carry_sidecar`.
"""

from __future__ import annotations

from gcspy_replay.file.cursor import Cursor, RecordedEvent
from gcspy_replay.file.cut import cut, repack
from gcspy_replay.file.integrity import (
    IntegrityFinding,
    IntegrityReport,
    Loss,
    RepairReport,
    repair,
    verify,
)
from gcspy_replay.file.keyframe import (
    encode_keyframe,
    name_pages,
    names_in_event,
    new_names,
    schema_messages,
    tiles_of,
)
from gcspy_replay.file.layout import FORMAT_VERSION, WIRE_VERSION, PartFacts
from gcspy_replay.file.parts.packed_source import PACKED_SUFFIX, open_source, pack, unpack
from gcspy_replay.file.parts.source import ByteSource, FileSource, MemorySource
from gcspy_replay.file.program_clock import events_with_clock
from gcspy_replay.file.reader import EVENTS, Recording, compensated_nanos, sources_of
from gcspy_replay.file.sidecar import (
    SIDECAR_SUFFIX,
    Bookmark,
    Sidecar,
    carry_sidecar,
    encode_sidecar,
    put_sidecar,
    read_sidecar,
    sidecar_of,
    sidecar_path,
    write_sidecar,
)
from gcspy_replay.file.storage.shift import ShiftStore
from gcspy_replay.file.storage.store import (
    SUFFIX,
    FileStore,
    MemoryStore,
    RingStore,
    SplitStore,
    Store,
)
from gcspy_replay.file.storage.tap import WireTap
from gcspy_replay.file.storage.writer import ChunkRule, RecordingWriter

__all__ = [
    "EVENTS",
    "FORMAT_VERSION",
    "PACKED_SUFFIX",
    "SIDECAR_SUFFIX",
    "SUFFIX",
    "WIRE_VERSION",
    "Bookmark",
    "ChunkRule",
    "Cursor",
    "FileSource",
    "FileStore",
    "IntegrityFinding",
    "Loss",
    "MemorySource",
    "MemoryStore",
    "PartFacts",
    "Recording",
    "RecordingWriter",
    "IntegrityReport",
    "RingStore",
    "RepairReport",
    "ShiftStore",
    "Sidecar",
    "ByteSource",
    "SplitStore",
    "RecordedEvent",
    "Store",
    "WireTap",
    "carry_sidecar",
    "compensated_nanos",
    "cut",
    "encode_keyframe",
    "encode_sidecar",
    "events_with_clock",
    "name_pages",
    "names_in_event",
    "new_names",
    "open_source",
    "pack",
    "put_sidecar",
    "read_sidecar",
    "repack",
    "repair",
    "schema_messages",
    "sidecar_of",
    "sidecar_path",
    "sources_of",
    "tiles_of",
    "unpack",
    "verify",
    "write_sidecar",
]
