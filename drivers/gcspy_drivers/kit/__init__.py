"""Common parts of all drivers: base classes, factories of streams, tilings, the memory map, copies.

Public, for drivers of other packages too; `docs/driver-kit.md` describes every name with an example. A name is imported when it is asked for.
Knows the server's API, `gcspy_drivers.remote` and `gcspy_drivers.cooperative`; knows no runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gcspy_drivers.remote.lazy_names import importer

if TYPE_CHECKING:
    from gcspy_drivers.cooperative.held_events import HELLO_SECS
    from gcspy_drivers.cooperative.line import StubEvent
    from gcspy_drivers.kit.copier import CHUNK_BYTES, Copier, Piece, RecordBuffers
    from gcspy_drivers.kit.embedded_session import EmbeddedSession
    from gcspy_drivers.kit.grouped_tiling import GroupedTiles, GroupedTiling, choose_group
    from gcspy_drivers.kit.loop_notice import COMING, tell_coming
    from gcspy_drivers.kit.memory_history_space import HeapBytes, MemoryHistorySpace
    from gcspy_drivers.kit.memory_map import MemoryKind, MemoryMap, MemoryMapper
    from gcspy_drivers.kit.memory_space import MemorySpace
    from gcspy_drivers.kit.runtime_discovery import RuntimeDiscovery
    from gcspy_drivers.kit.sampled_driver import CLOCK, SampledDriver
    from gcspy_drivers.kit.stopped_mode import LONGEST_HOLD_SECS, StoppedMode
    from gcspy_drivers.kit.stream_sequence import StreamSequence
    from gcspy_drivers.kit.streams import (
        Colour,
        add_amount,
        add_bytes,
        add_category,
        add_count,
        add_enumeration,
        add_percent,
        hide,
        hide_all,
        show_names,
    )
    from gcspy_drivers.kit.stubbed_driver import (
        EXACT_EVENTS,
        EXACT_KINDS,
        INJECT,
        StubbedDriver,
        attach_exactly_or_else,
    )
    from gcspy_drivers.kit.tiling import UniformTiling, choose_tile_bytes

__all__ = [
    "CHUNK_BYTES",
    "CLOCK",
    "COMING",
    "Colour",
    "Copier",
    "EXACT_EVENTS",
    "EXACT_KINDS",
    "EmbeddedSession",
    "RuntimeDiscovery",
    "GroupedTiles",
    "GroupedTiling",
    "HELLO_SECS",
    "HeapBytes",
    "INJECT",
    "LONGEST_HOLD_SECS",
    "MemoryHistorySpace",
    "MemoryKind",
    "MemoryMap",
    "MemoryMapper",
    "MemorySpace",
    "Piece",
    "RecordBuffers",
    "SampledDriver",
    "StoppedMode",
    "StreamSequence",
    "StubEvent",
    "StubbedDriver",
    "UniformTiling",
    "add_amount",
    "add_bytes",
    "add_category",
    "add_count",
    "add_enumeration",
    "add_percent",
    "attach_exactly_or_else",
    "choose_group",
    "choose_tile_bytes",
    "hide",
    "hide_all",
    "show_names",
    "tell_coming",
]

_HOMES: Final = {
    "HELLO_SECS": "gcspy_drivers.cooperative.held_events",
    "StubEvent": "gcspy_drivers.cooperative.line",
    "CHUNK_BYTES": "gcspy_drivers.kit.copier",
    "Copier": "gcspy_drivers.kit.copier",
    "Piece": "gcspy_drivers.kit.copier",
    "RecordBuffers": "gcspy_drivers.kit.copier",
    "EmbeddedSession": "gcspy_drivers.kit.embedded_session",
    "RuntimeDiscovery": "gcspy_drivers.kit.runtime_discovery",
    "GroupedTiles": "gcspy_drivers.kit.grouped_tiling",
    "GroupedTiling": "gcspy_drivers.kit.grouped_tiling",
    "choose_group": "gcspy_drivers.kit.grouped_tiling",
    "COMING": "gcspy_drivers.kit.loop_notice",
    "tell_coming": "gcspy_drivers.kit.loop_notice",
    "HeapBytes": "gcspy_drivers.kit.memory_history_space",
    "MemoryHistorySpace": "gcspy_drivers.kit.memory_history_space",
    "MemoryKind": "gcspy_drivers.kit.memory_map",
    "MemoryMap": "gcspy_drivers.kit.memory_map",
    "MemoryMapper": "gcspy_drivers.kit.memory_map",
    "MemorySpace": "gcspy_drivers.kit.memory_space",
    "CLOCK": "gcspy_drivers.kit.sampled_driver",
    "SampledDriver": "gcspy_drivers.kit.sampled_driver",
    "LONGEST_HOLD_SECS": "gcspy_drivers.kit.stopped_mode",
    "StoppedMode": "gcspy_drivers.kit.stopped_mode",
    "StreamSequence": "gcspy_drivers.kit.stream_sequence",
    "Colour": "gcspy_drivers.kit.streams",
    "add_amount": "gcspy_drivers.kit.streams",
    "add_bytes": "gcspy_drivers.kit.streams",
    "add_category": "gcspy_drivers.kit.streams",
    "add_count": "gcspy_drivers.kit.streams",
    "add_enumeration": "gcspy_drivers.kit.streams",
    "add_percent": "gcspy_drivers.kit.streams",
    "hide": "gcspy_drivers.kit.streams",
    "hide_all": "gcspy_drivers.kit.streams",
    "show_names": "gcspy_drivers.kit.streams",
    "EXACT_EVENTS": "gcspy_drivers.kit.stubbed_driver",
    "EXACT_KINDS": "gcspy_drivers.kit.stubbed_driver",
    "INJECT": "gcspy_drivers.kit.stubbed_driver",
    "StubbedDriver": "gcspy_drivers.kit.stubbed_driver",
    "attach_exactly_or_else": "gcspy_drivers.kit.stubbed_driver",
    "UniformTiling": "gcspy_drivers.kit.tiling",
    "choose_tile_bytes": "gcspy_drivers.kit.tiling",
}
"""The module of each name."""

__getattr__ = importer(__name__, _HOMES)
