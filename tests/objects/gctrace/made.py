"""Events made up: random ones, and a small program of several threads whose order is known."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from gcspy_objects.gctrace import layout
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.reader import GCspyTrace
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.records import RecordKind

NAMES = ("kind", "detail", "flags", "address", "to", "size", "type", "site", "length", "stamp")
KINDS = [kind for kind in RecordKind if kind != RecordKind.ACCESSED]


def event_columns(kind: list[int], **given: Any) -> EventColumns:
    """Return events of the given columns; the others are 0."""
    count = len(kind)

    def column(name: str, dtype: type[np.generic]) -> Any:
        return np.asarray(given.get(name, np.zeros(count)), dtype)

    return EventColumns(
        np.asarray(kind, np.uint8), column("detail", np.uint8), column("flags", np.uint8), None, column("address", np.int64),
        column("to", np.int64), column("size", np.int64), column("type", np.int32), column("site", np.int32), column("length", np.int32),
        column("stamp", np.int64),
    )  # fmt: skip


def random_events(count: int, seed: int) -> EventColumns:
    """Return events of all kinds, with what each kind has; half of them allocate and free at few addresses."""
    random = np.random.default_rng(seed)
    kind = np.where(
        random.random(count) < 0.5, random.choice([1, 1, 24], count), random.choice(KINDS, count)
    )

    def where(mask: np.ndarray[Any, Any], most: int) -> np.ndarray[Any, Any]:
        return np.where(mask[kind], random.integers(0, most, count), 0)

    return event_columns(
        kind.tolist(),
        detail=random.integers(0, 3, count),
        flags=random.integers(0, 255, count),
        address=where(layout.HAS_ADDRESS, 300) * 16,
        to=where(layout.HAS_TO, 1 << 45),
        size=where(layout.HAS_SIZE, 400),
        type=where(layout.HAS_TYPE, 1 << 20),
        site=where(layout.HAS_SITE, 9),
        length=where(layout.HAS_LENGTH, 1 << 31),
        stamp=np.cumsum(random.integers(0, 1 << 20, count) * (random.random(count) < 0.1)),
    )


def differences(one: EventColumns, other: EventColumns) -> list[str]:
    """Return the names of columns in which events differ."""
    return [name for name in NAMES if not np.array_equal(getattr(one, name), getattr(other, name))]


class MadeTrace:
    """A trace that is written into memory and read from a file."""

    def __init__(self, **header: str) -> None:
        self.file = io.BytesIO()
        self.writer = TraceWriter(self.file, header)

    def opened(self, path: Path, *, growing: bool = False) -> GCspyTrace:
        """Store it, and open it for reading."""
        path.write_bytes(self.file.getvalue())
        return GCspyTrace(path, growing=growing)
