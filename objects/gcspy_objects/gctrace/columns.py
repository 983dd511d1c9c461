"""Columns of whole numbers as bytes: constant, planes or varints, of values, of differences, or of differences by site.

Source: objects/FORMAT.md, section 4.1. The encoder chooses as `gct_put_column` in object_trace.h does, except that it also tries
differences by site. Nothing here loops over values in Python.

Knows numbers and bytes; does not know what a column means.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.gctrace.layout import ColumnLayout, Transform

__all__ = ["ColumnError", "EncodedColumn", "decode_values", "encode_values", "unzigzag", "zigzag"]

Words = NDArray[np.uint64]
_MAX_VARINT: Final = 10
_ONE: Final = np.uint64(1)


class ColumnError(Exception):
    """The bytes of a column are not what its entry says; the message has what was expected and found."""


class EncodedColumn(NamedTuple):
    """A column as bytes.

    Attributes:
        encoding: Transform and layout.
        width: Bytes of a value in planes.
        data: Its bytes.
    """

    encoding: int
    width: int
    data: bytes


def zigzag(values: NDArray[np.int64]) -> Words:
    """Return (n,) signed numbers so that those near 0 are small."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def unzigzag(values: Words) -> NDArray[np.int64]:
    """Return (n,) the inverse of `zigzag`."""
    signs = -(values & _ONE).view(np.int64)
    return (values >> _ONE).view(np.int64) ^ signs


def _differences(values: Words) -> Words:
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    return zigzag((values - before).view(np.int64))


def _differences_by(values: Words, sites: NDArray[np.int32]) -> Words:
    """Return (n,) zigzag of differences to the last value with the same site."""
    order = np.argsort(sites, kind="stable")
    sorted_values, sorted_sites = values[order], sites[order]
    before = np.zeros_like(values)
    before[1:] = sorted_values[:-1]
    before[1:][sorted_sites[1:] != sorted_sites[:-1]] = 0
    out = np.empty_like(values)
    out[order] = zigzag((sorted_values - before).view(np.int64))
    return out


def _sums_by(differences: NDArray[np.int64], sites: NDArray[np.int32]) -> Words:
    """Return (n,) the inverse of `_differences_by`."""
    order = np.argsort(sites, kind="stable")
    sorted_sites = sites[order]
    with np.errstate(over="ignore"):
        sums = np.cumsum(differences[order])
        first = np.flatnonzero(np.concatenate(([True], sorted_sites[1:] != sorted_sites[:-1])))
        before = np.where(first > 0, sums[first - 1], 0)
        sums -= np.repeat(before, np.diff(np.append(first, len(sums))))
    out = np.empty_like(sums)
    out[order] = sums
    return out.view(np.uint64)


def _varint_bytes(values: Words) -> NDArray[np.int64]:
    """Return (n,) how many bytes the varint of each value has."""
    count = np.ones(len(values), np.int64)
    for bits in range(7, 64, 7):
        more = values >= np.uint64(1 << bits)
        if not more.any():
            break
        count += more
    return count


def encode_values(
    values: NDArray[np.int64],
    *,
    shift: int = 0,
    compressed: bool = True,
    sites: NDArray[np.int32] | None = None,
    plain: bool = False,
) -> EncodedColumn:
    """Encode a column that has values.

    Args:
        values: (n,) n at least 1.
        shift: All are multiples of ``1 << shift``.
        compressed: The bytes are going to be compressed, so planes are preferred.
        sites: (n,) sites of the events, to try differences by site.
        plain: Do not try differences.
    """
    words = values.view(np.uint64) >> np.uint64(shift)
    if bool((words == words[0]).all()):
        return EncodedColumn(ColumnLayout.CONSTANT, 0, int(words[0]).to_bytes(8, "little"))
    best, lengths, transform = words, _varint_bytes(words), Transform.NONE
    if not plain:
        others = [(Transform.DELTA, _differences(words))]
        if sites is not None:
            others.append((Transform.BY_SITE, _differences_by(words, sites)))
        for candidate, transformed in others:
            found = _varint_bytes(transformed)
            if int(found.sum()) < int(lengths.sum()):
                best, lengths, transform = transformed, found, candidate
    width = max((int(np.bitwise_or.reduce(best)).bit_length() + 7) // 8, 1)
    if compressed or width * len(best) <= int(lengths.sum()):
        planes = best.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)[:, :width]
        return EncodedColumn(
            transform << 4 | ColumnLayout.PLANES, width, np.ascontiguousarray(planes.T).tobytes()
        )
    return EncodedColumn(transform << 4 | ColumnLayout.VARINTS, 0, _varints(best, lengths))


def _varints(values: Words, lengths: NDArray[np.int64]) -> bytes:
    ends = np.cumsum(lengths)
    out = np.empty(int(ends[-1]), np.uint8)
    at = ends - lengths
    rest = values.copy()
    rows = np.arange(len(values))
    for place in range(_MAX_VARINT):
        low = (rest[rows] & np.uint64(0x7F)).astype(np.uint8)
        more = lengths[rows] > place + 1
        out[at[rows] + place] = low | (more.astype(np.uint8) << 7)
        rows = rows[more]
        if not len(rows):
            break
        rest[rows] >>= np.uint64(7)
    return out.tobytes()


def decode_values(
    encoding: int,
    width: int,
    shift: int,
    count: int,
    data: memoryview,
    sites: NDArray[np.int32] | None = None,
) -> NDArray[np.int64]:
    """Decode a column.

    Args:
        encoding: Transform and layout; the transform MODEL is taken for NONE.
        width: Bytes of a value in planes.
        shift: To the left of all values at the end.
        count: Number of values: the caller has checked it.
        data: Its bytes.
        sites: (count,) for the transform BY_SITE; None where it must not be used.

    Raises:
        ColumnError: The bytes do not fit.
    """
    layout, transform = encoding & 15, encoding >> 4
    if layout == ColumnLayout.CONSTANT:
        if len(data) != 8:
            raise ColumnError(f"a constant of {len(data):,} bytes; expected 8")
        words = np.full(count, int.from_bytes(data, "little"), np.uint64)
    elif layout == ColumnLayout.PLANES:
        if not 1 <= width <= 8:
            raise ColumnError(f"planes of {width} bytes a value; expected 1 to 8")
        if len(data) != width * count:
            raise ColumnError(
                f"planes of {len(data):,} bytes; expected {width} for each of {count:,} values"
            )
        planes = np.frombuffer(data, np.uint8).reshape(width, count)
        padded = np.zeros((count, 8), np.uint8)
        padded[:, :width] = planes.T
        words = padded.view("<u8")[:, 0].astype(np.uint64, copy=False)
    elif layout == ColumnLayout.VARINTS:
        words = _from_varints(data, count)
    else:
        raise ColumnError(f"layout {layout}; expected 0, 1 or 2")
    if transform == Transform.DELTA:
        words = np.cumsum(unzigzag(words).view(np.uint64), dtype=np.uint64)
    elif transform == Transform.BY_SITE:
        if sites is None:
            raise ColumnError("differences by site in a column whose events have none")
        words = _sums_by(unzigzag(words), sites) if count else words
    elif transform == Transform.SIGNED:
        words = unzigzag(words).view(np.uint64)
    elif transform not in (Transform.NONE, Transform.MODEL):
        raise ColumnError(f"transform {transform}; expected 0 to 4")
    return (words << np.uint64(shift)).view(np.int64)


def _from_varints(data: memoryview, count: int) -> Words:
    bytes_ = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(bytes_ < 0x80)
    if len(ends) != count or (len(bytes_) and (not count or int(ends[-1]) != len(bytes_) - 1)):
        raise ColumnError(f"{len(ends):,} varints in {len(bytes_):,} bytes; expected {count:,}")
    if not count:
        return np.zeros(0, np.uint64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if int(lengths.max()) > _MAX_VARINT:
        raise ColumnError(
            f"a varint of {int(lengths.max()):,} bytes; expected at most {_MAX_VARINT}"
        )
    words = np.zeros(count, np.uint64)
    rows = np.arange(count)
    for place in range(int(lengths.max())):
        rows = rows[lengths[rows] > place]
        words[rows] |= (bytes_[starts[rows] + place] & 0x7F).astype(np.uint64) << np.uint64(
            7 * place
        )
    return words
