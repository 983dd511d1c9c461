"""Columns of objects as few bytes: differences to the row before, bytes of one place together, and zstd.

Objects lie one behind another, so their addresses differ by little, and neighbours often are born one after the other.

Knows columns; does not know whose.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import zstandard
from numpy.typing import NDArray

__all__ = ["pack_column", "unpack_column"]

_LEVEL: Final = 1


def pack_column(column: NDArray[Any]) -> bytes:
    """Return a column, (n,) whole numbers, as one zstd frame with a checksum."""
    column = np.ascontiguousarray(column)
    if column.dtype.itemsize > 1:
        whole = column.view(f"u{column.dtype.itemsize}")
        differences = whole.copy()
        differences[1:] -= whole[:-1]
        column = _zigzag(differences).view(np.uint8).reshape(-1, column.dtype.itemsize).T
    packer = zstandard.ZstdCompressor(_LEVEL, write_checksum=True, write_content_size=True)
    return packer.compress(np.ascontiguousarray(column).data)


def unpack_column(packed: bytes, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Return the column of `pack_column`: a new array.

    Raises:
        ValueError: The bytes are not a column of so many rows.
    """
    size = dtype.itemsize * count
    try:
        if zstandard.frame_content_size(packed) != size:
            raise ValueError(f"a column of {count:,} rows has other than {size:,} bytes")
        plain = np.frombuffer(zstandard.ZstdDecompressor().decompress(packed), np.uint8)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    if dtype.itemsize == 1:
        return plain.view(dtype).copy()
    planes = np.ascontiguousarray(plain.reshape(dtype.itemsize, count).T)
    differences = _unzigzag(planes.reshape(-1).view(f"u{dtype.itemsize}"))
    return np.cumsum(differences, dtype=differences.dtype).view(dtype)


def _zigzag(values: NDArray[Any]) -> NDArray[Any]:
    """Return unsigned numbers that are small where the signed ones with the same bits are near 0."""
    sign = values >> values.dtype.type(values.dtype.itemsize * 8 - 1)
    packed: NDArray[Any] = (values << values.dtype.type(1)) ^ (values.dtype.type(0) - sign)
    return packed


def _unzigzag(values: NDArray[Any]) -> NDArray[Any]:
    one = values.dtype.type(1)
    plain: NDArray[Any] = (values >> one) ^ (values.dtype.type(0) - (values & one))
    return plain
