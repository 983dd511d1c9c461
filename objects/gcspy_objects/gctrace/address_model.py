"""The model of addresses: an allocator hands out the block that was freed last, or else the place behind the last new one.

Source: objects/FORMAT.md, section 4.4. ``compiled/model.c`` has it in C; without that library Python does the same, some hundred times more
slowly. A test compares the two.

Knows kinds, sizes and addresses of events; does not know their bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gcspy_compiled.c_loops import CLibrary
from gcspy_objects.gctrace.columns import ColumnError
from gcspy_objects.records import RecordKind

__all__ = [
    "LIBRARY",
    "AddressParameters",
    "PredictedAddresses",
    "predict_addresses",
    "recall_addresses",
]

LIBRARY: Final = CLibrary("gcspy-trace", Path(__file__).parent / "compiled")

Longs = NDArray[np.int64]
N = TypeVar("N", bound=np.generic)

_CLASSES: Final = 4096
_MASK: Final = (1 << 64) - 1
_I64, _I32, _U8 = "int64[::1]", "int32[::1]", "uint8[::1]"
_PREDICT: Final = f"int64({_U8}, {_I64}, {_I64}, int64, int64, int64, {_I64}, {_I32}, {_I32}, {_I32}, {_I64}, {_I32}, {_I64}, {_I64}, {_I64})"
_RECALL: Final = f"int64({_U8}, {_I64}, {_I64}, {_I64}, {_I64}, int64, int64, int64, {_I32}, {_I32}, {_I64}, {_I32}, {_I64}, {_I64})"


class AddressParameters(NamedTuple):
    """How an allocator rounds sizes.

    Attributes:
        shift: Log2 of the bytes at multiples of which objects begin.
        least: Smaller sizes count as this, bytes.
        overhead: Bytes that each object has beside its size.
    """

    shift: int = 3
    least: int = 8
    overhead: int = 0


class PredictedAddresses(NamedTuple):
    """Addresses of ALLOCATEs and FREEs, as far as the model does not know them.

    Attributes:
        values: (a,) of ALLOCATEs: zigzag of the difference to the prediction, in units of ``1 << shift`` bytes.
        ages: (f,) of FREEs: how many ALLOCATEs ago the object was allocated; 0: before these events.
        freed: Addresses of FREEs of age 0.
    """

    values: Longs
    ages: Longs
    freed: Longs


def predict_addresses(
    kind: NDArray[np.uint8], address: Longs, size: Longs, parameters: AddressParameters
) -> PredictedAddresses:
    """Predict addresses.

    Args:
        kind: (n,) of events.
        address: (n,) their addresses, multiples of ``1 << shift``.
        size: (n,) their sizes.
        parameters: Of the allocator.
    """
    allocations = int(np.count_nonzero(kind == RecordKind.ALLOCATE))
    frees = int(np.count_nonzero(kind == RecordKind.FREE))
    values, ages, freed = (np.zeros(count, np.int64) for count in (allocations, frees, frees))
    loop = LIBRARY.loop("predict", _PREDICT)
    if loop is None:
        return _predict_plainly(kind, address, size, parameters)
    slots = 1024
    while slots < 2 * (allocations + 1):
        slots *= 2
    old = loop(
        _writable(kind), _writable(address), _writable(size),
        *parameters,
        np.empty(slots, np.int64), np.empty(slots, np.int32), np.empty(_CLASSES, np.int32), np.empty(frees, np.int32),
        np.empty(frees, np.int64), np.empty(allocations, np.int32), values, ages, freed,
    )  # fmt: skip
    return PredictedAddresses(values, ages, freed[:old])


def recall_addresses(
    kind: NDArray[np.uint8],
    sizes: Longs,
    predicted: PredictedAddresses,
    parameters: AddressParameters,
) -> Longs:
    """Return (n,) the addresses of ALLOCATEs and FREEs, 0 of other events: the inverse of `predict_addresses`.

    Args:
        kind: (n,) of events.
        sizes: (a,) of the ALLOCATEs.
        predicted: What is stored; its lengths fit.
        parameters: Of the allocator.

    Raises:
        ColumnError: An age that cannot be, or another number of addresses than of FREEs of age 0.
    """
    loop = LIBRARY.loop("recall", _RECALL)
    if loop is None:
        return _recall_plainly(kind, sizes, predicted, parameters)
    allocations, frees = len(sizes), len(predicted.ages)
    address = np.zeros(len(kind), np.int64)
    wrong = loop(
        _writable(kind), _writable(sizes), *(_writable(one) for one in predicted),
        *parameters,
        np.empty(_CLASSES, np.int32), np.empty(frees, np.int32), np.empty(frees, np.int64), np.empty(allocations, np.int32),
        np.empty(allocations, np.int64), address,
    )  # fmt: skip
    if wrong >= 0:
        raise _wrong(wrong, len(kind))
    return address


def _writable(column: NDArray[N]) -> NDArray[N]:
    """Return a column as loops in C take it, copied if it is not so."""
    return np.require(column, column.dtype, ("C", "W"))


def _wrong(event: int, count: int) -> ColumnError:
    if event < count:
        return ColumnError(
            f"event {event:,} of the block frees an object that was not allocated in it, or was freed"
        )
    return ColumnError("more addresses of freed objects than objects that were freed")


def _class_of(size: int, parameters: AddressParameters) -> int:
    shift, least, overhead = parameters
    return (max(size, least) + overhead + (1 << shift) - 1) >> shift


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _predict_plainly(
    kind: NDArray[np.uint8], address: Longs, size: Longs, parameters: AddressParameters
) -> PredictedAddresses:
    stacks: dict[int, list[int]] = {}
    live: dict[int, tuple[int, int]] = {}
    values: list[int] = []
    ages: list[int] = []
    freed: list[int] = []
    top = 0
    for what, place, length in zip(kind.tolist(), address.tolist(), size.tolist(), strict=True):
        here = place >> parameters.shift
        if what == RecordKind.ALLOCATE:
            of = _class_of(length, parameters)
            stack = stacks.get(of)
            hit = bool(stack)
            predicted = stack.pop() if stack else top
            off = _signed(here - predicted)
            values.append(_signed((off << 1) ^ (off >> 63)))
            if not hit or off:
                top = _signed(here + of)
            live[here] = len(values) - 1, of
        elif what == RecordKind.FREE:
            found = live.pop(here, None)
            if found is None:
                ages.append(0)
                freed.append(place)
            else:
                ages.append(len(values) - found[0])
                if 0 <= found[1] < _CLASSES:
                    stacks.setdefault(found[1], []).append(here)
    return PredictedAddresses(*(np.array(one, np.int64) for one in (values, ages, freed)))


def _recall_plainly(
    kind: NDArray[np.uint8],
    sizes: Longs,
    predicted: PredictedAddresses,
    parameters: AddressParameters,
) -> Longs:
    stacks: dict[int, list[int]] = {}
    places: list[tuple[int, int] | None] = []
    values, ages, freed = (iter(one.tolist()) for one in predicted)
    lengths = iter(sizes.tolist())
    out = [0] * len(kind)
    top = 0
    for event, what in enumerate(kind.tolist()):
        if what == RecordKind.ALLOCATE:
            of = _class_of(next(lengths), parameters)
            stack = stacks.get(of)
            hit = bool(stack)
            value = next(values) & _MASK
            off = (value >> 1) ^ -(value & 1)
            here = _signed((stack.pop() if stack else top) + off)
            if not hit or off:
                top = _signed(here + of)
            places.append((here, of))
            out[event] = _signed(here << parameters.shift)
        elif what == RecordKind.FREE:
            age = next(ages)
            if age == 0:
                given = next(freed, None)
                if given is None:
                    raise _wrong(event, len(kind))
                out[event] = given
                continue
            found = places[len(places) - age] if 0 < age <= len(places) else None
            if found is None:
                raise _wrong(event, len(kind))
            places[len(places) - age] = None
            out[event] = _signed(found[0] << parameters.shift)
            if 0 <= found[1] < _CLASSES:
                stacks.setdefault(found[1], []).append(found[0])
    if next(freed, None) is not None:
        raise _wrong(len(kind), len(kind))
    return np.array(out, np.int64)
