"""Events as a payload: columns of records encoded, and decoded with all lengths checked before memory is allocated.

Source: objects/FORMAT.md, section 4.

Knows columns; does not know blocks, threads' order, or what numbers of types and sites stand for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.gctrace.address_model import (
    AddressParameters,
    PredictedAddresses,
    predict_addresses,
    recall_addresses,
)
from gcspy_objects.gctrace.columns import ColumnError, decode_values, encode_values
from gcspy_objects.gctrace.layout import (
    ENTRY,
    HAS_ADDRESS,
    HAS_LENGTH,
    HAS_SITE,
    HAS_SIZE,
    HAS_TO,
    HAS_TYPE,
    IS_SIZED,
    KINDS,
    MAX_COLUMNS,
    MAX_EVENTS,
    MAX_POINTERS,
    MAX_SHIFT,
    STAMP,
    ColumnId,
    Transform,
)
from gcspy_objects.records import RecordKind

__all__ = ["EventColumns", "decode_events", "encode_events"]

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Bytes = NDArray[np.uint8]

_MOST: Final = (1 << 62) - 1
"""No address or size is larger, so that sums stay whole."""
_PARAMETERS_BYTES: Final = 4


def _no_longs() -> Longs:
    return np.zeros(0, np.int64)


def _no_bytes() -> Bytes:
    return np.zeros(0, np.uint8)


@dataclass(slots=True, eq=False)
class EventColumns:
    """Events of a block, n rows, without STAMPs.

    Numbers of types, sites and threads are those of definitions.

    Attributes:
        kind: (n,) `RecordKind`.
        detail: (n,)
        flags: (n,)
        thread: (n,) None: that of the block.
        address: (n,)
        to: (n,)
        size: (n,)
        type: (n,)
        site: (n,)
        length: (n,)
        stamp: (n,) later than the block's first stamp by this, ascending.
        pointer_event: (p,) row of each pointer's event, ascending.
        pointer_kind: (p,) `PointerKind`.
        pointer_value: (p,)
        buffer_events: (b,) how many events each buffer of the source has; none: not known.
        buffer_mode: (b,)
    """

    kind: Bytes
    detail: Bytes
    flags: Bytes
    thread: Ints | None
    address: Longs
    to: Longs
    size: Longs
    type: Ints
    site: Ints
    length: Ints
    stamp: Longs
    pointer_event: Longs = field(default_factory=_no_longs)
    pointer_kind: Bytes = field(default_factory=_no_bytes)
    pointer_value: Longs = field(default_factory=_no_longs)
    buffer_events: Longs = field(default_factory=_no_longs)
    buffer_mode: Bytes = field(default_factory=_no_bytes)

    def __len__(self) -> int:
        return len(self.kind)


class _Entry(NamedTuple):
    """An entry of the table of columns, and the column's bytes."""

    encoding: int
    width: int
    shift: int
    values: int
    data: memoryview


# Encoding


class _Payload:
    """A payload that is put together."""

    def __init__(self, *, compressed: bool) -> None:
        self.compressed = compressed
        self._entries: list[bytes] = []
        self._data: list[bytes] = []

    def add(
        self,
        column: ColumnId,
        values: NDArray[np.int64],
        *,
        shift: int = 0,
        sites: Ints | None = None,
        parameters: bytes = b"",
        signed: bool = False,
    ) -> None:
        """Append a column, unless it is empty, or 0 throughout."""
        if not len(values) or (
            not values.any() and not parameters and column not in (ColumnId.KIND, ColumnId.POINTER)
        ):
            return
        plain = bool(parameters)
        if signed:
            values, plain = (values << 1) ^ (values >> 63), True
        encoded = encode_values(
            values,
            shift=0 if parameters else shift,
            compressed=self.compressed,
            sites=sites,
            plain=plain,
        )
        encoding = encoded.encoding
        if parameters:
            encoding |= Transform.MODEL << 4
        elif signed:
            encoding |= Transform.SIGNED << 4
        data = parameters + encoded.data
        self._entries.append(
            ENTRY.pack(column, encoding, encoded.width, shift, len(values), len(data))
        )
        self._data.append(data)

    def bytes(self) -> bytes:
        """Return the payload."""
        return len(self._entries).to_bytes(2, "little") + b"".join(self._entries + self._data)


def encode_events(
    events: EventColumns,
    parameters: AddressParameters | None = None,
    *,
    compressed: bool = True,
    by_site: bool = True,
) -> bytes:
    """Encode events.

    Args:
        events: At most `MAX_EVENTS`.
        parameters: To predict addresses; None: differences. Addresses that are no multiples are stored without a shift.
        compressed: The payload is going to be compressed.
        by_site: Try differences by site, too.
    """
    payload = _Payload(compressed=compressed)
    later = np.diff(events.stamp, prepend=0)
    at = np.flatnonzero(later)  # a STAMP goes before each of these
    kind = np.insert(events.kind, at, STAMP) if len(at) else events.kind
    payload.add(ColumnId.KIND, kind.astype(np.int64))
    if events.thread is not None:
        payload.add(ColumnId.THREAD, events.thread.astype(np.int64))
    payload.add(ColumnId.FLAGS, events.flags.astype(np.int64))
    payload.add(ColumnId.DETAIL, events.detail.astype(np.int64))
    payload.add(ColumnId.STAMP, later[at])
    _add_addresses(payload, events, parameters)
    payload.add(ColumnId.TO, events.to[HAS_TO[events.kind]])
    sized, sited = IS_SIZED[events.kind], HAS_SITE[events.kind]
    # Types and lengths are at events without a site, too: there differences by site do not exist.
    sites = events.site[sized] if by_site and events.site.any() else None
    payload.add(ColumnId.SIZE, events.size[sized], sites=sites)
    payload.add(ColumnId.AMOUNT, events.size[HAS_SIZE[events.kind] & ~sized])
    payload.add(ColumnId.TYPE, events.type[HAS_TYPE[events.kind]].astype(np.int64))
    payload.add(ColumnId.SITE, events.site[sited].astype(np.int64))
    payload.add(ColumnId.LENGTH, events.length[HAS_LENGTH[events.kind]].astype(np.int64))
    if len(events.pointer_event):
        payload.add(ColumnId.POINTER_EVENT, np.diff(events.pointer_event, prepend=0))
        payload.add(ColumnId.POINTER_KIND, events.pointer_kind.astype(np.int64))
        payload.add(ColumnId.POINTER, events.pointer_value, signed=True)
    if len(events.buffer_events):
        payload.add(ColumnId.BUFFER, events.buffer_events)
        payload.add(ColumnId.BUFFER_MODE, events.buffer_mode.astype(np.int64))
    return payload.bytes()


def _add_addresses(
    payload: _Payload, events: EventColumns, parameters: AddressParameters | None
) -> None:
    kind, address = events.kind, events.address
    allocated, freed = kind == RecordKind.ALLOCATE, kind == RecordKind.FREE
    low = int(np.bitwise_or.reduce(address[allocated | freed])) if (allocated | freed).any() else 0
    if parameters is not None and allocated.any() and not low & ((1 << parameters.shift) - 1):
        predicted = predict_addresses(kind, address, events.size, parameters)
        head = bytes((parameters.least, parameters.overhead, 0, 0))
        payload.add(ColumnId.ALLOCATED, predicted.values, shift=parameters.shift, parameters=head)
        payload.add(ColumnId.FREED, predicted.freed, shift=parameters.shift)
        payload.add(ColumnId.AGE, predicted.ages)
    else:
        shift = 0 if low == 0 else min((low & -low).bit_length() - 1, MAX_SHIFT)
        payload.add(ColumnId.ALLOCATED, address[allocated], shift=shift)
        payload.add(ColumnId.FREED, address[freed], shift=shift)
    payload.add(ColumnId.ADDRESS, address[HAS_ADDRESS[kind] & ~allocated & ~freed])


# Decoding


class _Columns:
    """The columns of a payload, each checked when it is taken."""

    def __init__(self, payload: bytes) -> None:
        view = memoryview(payload)
        if len(view) < 2:
            raise ColumnError(f"a payload of {len(view)} bytes; expected a table of columns")
        count = int.from_bytes(view[:2], "little")
        if count > MAX_COLUMNS:
            raise ColumnError(f"{count:,} columns; expected at most {MAX_COLUMNS}")
        at = 2 + count * ENTRY.size
        if len(view) < at:
            raise ColumnError(f"a table of {count} columns in {len(view):,} bytes")
        self._entries: dict[int, _Entry] = {}
        for row in range(count):
            column, encoding, width, shift, values, size = ENTRY.unpack_from(
                view, 2 + row * ENTRY.size
            )
            if size > len(view) - at:
                raise ColumnError(
                    f"column {column} of {size:,} bytes; {len(view) - at:,} are left in the payload"
                )
            if column in self._entries:
                raise ColumnError(f"column {column} twice")
            self._entries[column] = _Entry(encoding, width, shift, values, view[at : at + size])
            at += size

    def values(self, column: ColumnId) -> int:
        """Return how many values a column says that it has; 0 if it is not there."""
        entry = self._entries.get(column)
        return entry.values if entry is not None else 0

    def has_model(self) -> bool:
        """Whether the addresses of ALLOCATEs are predicted."""
        entry = self._entries.get(ColumnId.ALLOCATED)
        return entry is not None and entry.encoding >> 4 == Transform.MODEL

    def parameters(self) -> AddressParameters:
        """Take the model's parameters off its column."""
        entry = self._entries[ColumnId.ALLOCATED]
        if len(entry.data) < _PARAMETERS_BYTES:
            raise ColumnError("the model of addresses has no parameters")
        shift = _checked_shift(entry.shift)
        found = AddressParameters(shift, entry.data[0], entry.data[1])
        self._entries[ColumnId.ALLOCATED] = entry._replace(
            data=entry.data[_PARAMETERS_BYTES:], shift=0
        )
        return found

    def take(
        self,
        column: ColumnId,
        count: int,
        most: int = _MOST,
        *,
        sites: Ints | None = None,
        signed: bool = False,
    ) -> Longs:
        """Return (count,) the values of a column, 0 to `most`; zeros if it is not there."""
        entry = self._entries.get(column)
        if entry is None:
            return np.zeros(count, np.int64)
        if entry.values != count:
            raise ColumnError(
                f"column {column.name} of {entry.values:,} values; expected {count:,} for the events that have one"
            )
        shift = _checked_shift(entry.shift)
        if entry.encoding >> 4 == Transform.MODEL and column != ColumnId.ALLOCATED:
            raise ColumnError(f"column {column.name} with the model of addresses")
        try:
            values = decode_values(entry.encoding, entry.width, shift, count, entry.data, sites)
        except ColumnError as error:
            raise ColumnError(f"column {column.name}: {error}") from error
        if not signed and count and (int(values.min()) < 0 or int(values.max()) > most):
            wrong = int(values.max()) if int(values.min()) >= 0 else int(values.min())
            raise ColumnError(f"column {column.name} has {wrong:,}; expected 0 to {most:,}")
        return values


def _checked_shift(shift: int) -> int:
    if shift > MAX_SHIFT:
        raise ColumnError(f"a shift of {shift}; expected at most {MAX_SHIFT}")
    return shift


def decode_events(payload: bytes, events: int, *, one_thread: bool) -> EventColumns:
    """Decode the payload of a block.

    Args:
        payload: Unpacked.
        events: How many the block's header says.
        one_thread: The header says which thread wrote them.

    Raises:
        ColumnError: It is damaged.
    """
    columns = _Columns(payload)
    count = columns.values(ColumnId.KIND)
    if not events <= count <= min(2 * events + 1, 2 * MAX_EVENTS):
        raise ColumnError(f"{count:,} kinds; expected {events:,}, and STAMPs between them")
    every = columns.take(ColumnId.KIND, count, KINDS - 1).astype(np.uint8)
    is_stamp = every == STAMP
    stamps = int(np.count_nonzero(is_stamp))
    if count - stamps != events:
        raise ColumnError(f"{count - stamps:,} events; its header says {events:,}")
    kind = every[~is_stamp] if stamps else every
    if (kind == RecordKind.ACCESSED).any():
        raise ColumnError("an ACCESSED event, which has a block of its own")
    stamp = _stamps(columns, is_stamp, stamps)

    def spread(column: ColumnId, mask: NDArray[np.bool_], most: int = _MOST) -> Longs:
        out = np.zeros(events, np.int64)
        out[mask] = columns.take(column, int(np.count_nonzero(mask)), most)
        return out

    most_int = (1 << 31) - 1
    sited, sized = HAS_SITE[kind], IS_SIZED[kind]
    site = spread(ColumnId.SITE, sited, most_int).astype(np.int32)
    size = spread(ColumnId.AMOUNT, HAS_SIZE[kind] & ~sized)
    size[sized] = columns.take(ColumnId.SIZE, int(np.count_nonzero(sized)), sites=site[sized])
    made = EventColumns(
        kind=kind,
        detail=columns.take(ColumnId.DETAIL, events, 255).astype(np.uint8),
        flags=columns.take(ColumnId.FLAGS, events, 255).astype(np.uint8),
        thread=None
        if one_thread
        else columns.take(ColumnId.THREAD, events, most_int).astype(np.int32),
        address=_addresses(columns, kind, size),
        to=spread(ColumnId.TO, HAS_TO[kind]),
        size=size,
        type=spread(ColumnId.TYPE, HAS_TYPE[kind], most_int).astype(np.int32),
        site=site,
        length=spread(ColumnId.LENGTH, HAS_LENGTH[kind], most_int).astype(np.int32),
        stamp=stamp,
    )
    _take_pointers(columns, made)
    _take_buffers(columns, made)
    return made


def _stamps(columns: _Columns, is_stamp: NDArray[np.bool_], count: int) -> Longs:
    """Return (n,) how much later than the block's first stamp each event is."""
    later = np.zeros(len(is_stamp), np.int64)
    later[is_stamp] = columns.take(ColumnId.STAMP, count, _MOST)
    sums = np.cumsum(later)
    if count and (float(later.sum(dtype=np.float64)) > _MOST):
        raise ColumnError("stamps that are too large")
    return sums[~is_stamp]


def _addresses(columns: _Columns, kind: Bytes, size: Longs) -> Longs:
    allocated, freed = kind == RecordKind.ALLOCATE, kind == RecordKind.FREE
    allocations, frees = int(np.count_nonzero(allocated)), int(np.count_nonzero(freed))
    if columns.has_model():
        parameters = columns.parameters()
        values = columns.take(ColumnId.ALLOCATED, allocations, signed=True)
        ages = columns.take(ColumnId.AGE, frees)
        given = columns.take(ColumnId.FREED, int(np.count_nonzero(ages == 0)))
        predicted = PredictedAddresses(values, ages, given)
        address = recall_addresses(kind, size[allocated], predicted, parameters)
        if len(address) and (int(address.min()) < 0 or int(address.max()) > _MOST):
            raise ColumnError(f"addresses from {int(address.min()):#x} to {int(address.max()):#x}")
    else:
        address = np.zeros(len(kind), np.int64)
        address[allocated] = columns.take(ColumnId.ALLOCATED, allocations)
        address[freed] = columns.take(ColumnId.FREED, frees)
    others = HAS_ADDRESS[kind] & ~allocated & ~freed
    address[others] = columns.take(ColumnId.ADDRESS, int(np.count_nonzero(others)))
    return address


def _take_pointers(columns: _Columns, made: EventColumns) -> None:
    count = max(columns.values(one) for one in (ColumnId.POINTER, ColumnId.POINTER_EVENT))
    if not count:
        return
    if count > MAX_POINTERS:
        raise ColumnError(f"{count:,} pointers; expected at most {MAX_POINTERS:,}")
    made.pointer_event = np.cumsum(columns.take(ColumnId.POINTER_EVENT, count, MAX_EVENTS))
    if int(made.pointer_event[-1]) >= len(made):
        raise ColumnError(f"a pointer of event {int(made.pointer_event[-1]):,} of {len(made):,}")
    made.pointer_kind = columns.take(ColumnId.POINTER_KIND, count, 255).astype(np.uint8)
    made.pointer_value = columns.take(ColumnId.POINTER, count, signed=True)


def _take_buffers(columns: _Columns, made: EventColumns) -> None:
    count = columns.values(ColumnId.BUFFER)
    if not count:
        return
    if count > len(made) + 1:
        raise ColumnError(f"{count:,} buffers of {len(made):,} events")
    made.buffer_events = columns.take(ColumnId.BUFFER, count, MAX_EVENTS)
    if int(made.buffer_events.sum()) != len(made):
        raise ColumnError(
            f"buffers of {int(made.buffer_events.sum()):,} events; the block has {len(made):,}"
        )
    made.buffer_mode = columns.take(ColumnId.BUFFER_MODE, count, 2).astype(np.uint8)
