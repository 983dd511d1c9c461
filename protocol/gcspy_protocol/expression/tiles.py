"""Arithmetic on a number, or a truth value, for each tile, of which some are unknown (SPEC.md section 8.7).

Integers are exact or unknown: no result overflows, and none is rounded unless a float is involved.
Bounds are tracked, so that operations that cannot overflow are not checked. Knows arrays; does not
know where they come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Single",
    "TileValues",
    "absolute",
    "arithmetic",
    "both",
    "compare",
    "either",
    "exact_sum",
    "lesser_or_greater",
    "negative",
    "negated",
    "unknown_tiles",
]

_LOW, _HIGH = -(1 << 63), (1 << 63) - 1

Single = int | float | bool | str | None
"""One value; None is unknown."""

Known = NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True, eq=False)
class TileValues:
    """A value for each tile.

    Attributes:
        values: Shape (tiles,): integers, float64 or bool; the value of an unknown tile is
            arbitrary.
        known: Shape (tiles,), False where the value is unknown; None: all are known.
        low: Lower bound of the known integers.
        high: Upper bound of the known integers.
    """

    values: NDArray[Any]
    known: Known = None
    low: int = 0
    high: int = 0

    @classmethod
    def of(cls, values: NDArray[Any], known: Known = None) -> TileValues:
        """Wrap an array; integers get the bounds of their type."""
        if values.dtype.kind not in "iu":
            return cls(values, known)
        info = np.iinfo(values.dtype)
        return cls(values, known, int(info.min), int(info.max))

    @property
    def is_integer(self) -> bool:
        """Whether the values are integers."""
        return self.values.dtype.kind in "iu"

    def tightened(self) -> TileValues:
        """The same with the actual bounds of the values, which requires a pass over them."""
        if not len(self.values):
            return TileValues(self.values, self.known)
        return TileValues(self.values, self.known, int(self.values.min()), int(self.values.max()))


def unknown_tiles(count: int, dtype: type[np.generic] = np.int64) -> TileValues:
    """Make an array of tiles that are all unknown."""
    return TileValues(np.zeros(count, dtype=dtype), np.zeros(count, dtype=np.bool_))


def _both_known(left: Known, right: Known) -> Known:
    if left is None:
        return right
    return left if right is None else left & right


def _without(known: Known, bad: NDArray[np.bool_]) -> Known:
    """Mark tiles as unknown where `bad`."""
    if not bool(bad.any()):
        return known
    return ~bad if known is None else known & ~bad


def _signed(tiles: TileValues) -> TileValues:
    """Convert to 64 signed bits; a greater value becomes unknown."""
    if tiles.values.dtype == np.int64:
        return tiles
    if tiles.values.dtype != np.uint64:
        return TileValues(tiles.values.astype(np.int64), tiles.known, tiles.low, tiles.high)
    values = tiles.values.view(np.int64)
    if not len(values) or int(values.min()) >= 0:
        return TileValues(values, tiles.known, 0, _HIGH)
    return TileValues(values, _without(tiles.known, values < 0), 0, _HIGH)


def _checked(values: NDArray[np.float64], known: Known) -> TileValues:
    """Check floats; values that are not finite become unknown."""
    finite = np.isfinite(values)
    return TileValues(values, known if bool(finite.all()) else _both_known(known, finite))


Operand = TileValues | int | float


def _interval(operand: Operand) -> tuple[int, int]:
    return (
        (operand.low, operand.high)
        if isinstance(operand, TileValues)
        else (int(operand), int(operand))
    )


def _known_of(operand: Operand) -> Known:
    return operand.known if isinstance(operand, TileValues) else None


def _raw(operand: Operand) -> Any:
    return operand.values if isinstance(operand, TileValues) else operand


def _count(left: Operand, right: Operand) -> int:
    return len(_raw(left) if isinstance(left, TileValues) else _raw(right))


def _whole(*operands: Operand) -> bool:
    return all(
        one.is_integer if isinstance(one, TileValues) else isinstance(one, int) for one in operands
    )


def _float(operand: Operand) -> Any:
    return operand.values.astype(np.float64) if isinstance(operand, TileValues) else float(operand)


# ---------------------------------------------------------------------- arithmetic

_FLOAT = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.remainder,
}


def arithmetic(operator: str, left: Operand, right: Operand) -> TileValues:
    """``left operator right`` for each tile; at least one of the two is `TileValues`.

    Args:
        operator: One of + - * / // %.
        left: A number, or one for each tile.
        right: The same.

    Returns:
        The result has integers if both operands have, except for /. A tile is unknown where an
        operand is, where the divisor is zero, and where the
        result, or an operand of an integer operation, does not fit 64 signed bits.
    """
    if operator == "/" or not _whole(left, right):
        known = _both_known(_known_of(left), _known_of(right))
        with np.errstate(all="ignore"):
            return _checked(_FLOAT[operator](_float(left), _float(right)), known)
    if not all(_LOW <= one <= _HIGH for one in (left, right) if not isinstance(one, TileValues)):
        return unknown_tiles(_count(left, right))
    left, right = (_signed(one) if isinstance(one, TileValues) else one for one in (left, right))
    if operator in ("//", "%"):
        return _divided(operator, left, right)
    return _ring(operator, left, right)


def _bounds(operator: str, left: Operand, right: Operand) -> tuple[int, int]:
    (a, b), (c, d) = _interval(left), _interval(right)
    if operator == "+":
        return a + c, b + d
    if operator == "-":
        return a - d, b - c
    ends = (a * c, a * d, b * c, b * d)
    return min(ends), max(ends)


def _ring(operator: str, left: Operand, right: Operand) -> TileValues:
    """Sums, differences and products of signed integers."""
    low, high = _bounds(operator, left, right)
    if low < _LOW or high > _HIGH:
        left, right = (
            one.tightened() if isinstance(one, TileValues) else one for one in (left, right)
        )
        low, high = _bounds(operator, left, right)
    a = _raw(left) if isinstance(left, TileValues) else np.int64(left)
    b = _raw(right) if isinstance(right, TileValues) else np.int64(right)
    known = _both_known(_known_of(left), _known_of(right))
    with np.errstate(all="ignore"):
        values: NDArray[np.int64] = _FLOAT[operator](a, b)
        if low >= _LOW and high <= _HIGH:
            return TileValues(values, known, low, high)
        if operator == "+":
            wrapped = ((a ^ values) & (b ^ values)) < 0
        elif operator == "-":
            wrapped = ((a ^ b) & (a ^ values)) < 0
        else:
            back = values // np.where(a == 0, 1, a)
            wrapped = (a != 0) & ((back != b) | ((a == -1) & (b == _LOW)))
    return TileValues(values, _without(known, wrapped), max(low, _LOW), min(high, _HIGH))


def _divided(operator: str, left: Operand, right: Operand) -> TileValues:
    """Floor quotients and remainders of signed integers."""
    a = _raw(left) if isinstance(left, TileValues) else np.int64(left)
    b = _raw(right) if isinstance(right, TileValues) else np.int64(right)
    known = _both_known(_known_of(left), _known_of(right))
    # The quotient by -1, the only one that may not fit, is left to the sign.
    ordinary = np.where((b == 0) | (b == -1), 1, b)
    low, high = _interval(left)
    size = max(abs(low), abs(high))
    if operator == "%":
        values = np.where(b == -1, 0, a % ordinary)
        by = max(abs(end) for end in _interval(right))
        return TileValues(values, _no_zero(known, b, len(values)), -by, by)
    with np.errstate(all="ignore"):
        values = np.where(b == -1, -a, a // ordinary)
    known = _no_zero(known, b, len(values))
    if size > _HIGH:
        known = _without(known, (a == _LOW) & (b == -1))
    return TileValues(values, known, max(-size, _LOW), min(size, _HIGH))


def _no_zero(known: Known, divisor: Any, count: int) -> Known:
    return _without(known, np.broadcast_to(divisor == 0, (count,)))


def negative(operand: TileValues) -> TileValues:
    """Change the sign."""
    return (
        arithmetic("-", 0, operand)
        if operand.is_integer
        else TileValues(-operand.values, operand.known)
    )


def absolute(operand: TileValues) -> TileValues:
    """Remove the sign."""
    if not operand.is_integer:
        return TileValues(np.abs(operand.values), operand.known)
    signed = _signed(operand)
    if signed.low >= 0:
        return signed
    other = negative(signed)
    return TileValues(
        np.where(signed.values < 0, other.values, signed.values),
        other.known,
        0,
        min(max(abs(signed.low), abs(signed.high)), _HIGH),
    )


def lesser_or_greater(function: str, left: Operand, right: Operand) -> TileValues:
    """The lesser (``min``) or greater (``max``) of two, for each tile."""
    choose = np.minimum if function == "min" else np.maximum
    known = _both_known(_known_of(left), _known_of(right))
    if not _whole(left, right):
        return TileValues(choose(_float(left), _float(right)), known)
    if not all(_LOW <= one <= _HIGH for one in (left, right) if not isinstance(one, TileValues)):
        return unknown_tiles(_count(left, right))
    left, right = (_signed(one) if isinstance(one, TileValues) else one for one in (left, right))
    (a, b), (c, d) = _interval(left), _interval(right)
    values = choose(_raw(left), _raw(right))
    return TileValues(values, _both_known(_known_of(left), _known_of(right)), min(a, c), max(b, d))


# --------------------------------------------------------------------- comparisons

_COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def compare(operator: str, left: Operand, right: Operand) -> TileValues:
    """Whether ``left operator right``, for each tile; at least one is `TileValues`. Integers are compared exactly."""
    known = _both_known(_known_of(left), _known_of(right))
    if not _whole(left, right):
        return TileValues(_COMPARE[operator](_float(left), _float(right)), known)
    if isinstance(left, TileValues) and isinstance(right, TileValues):
        return TileValues(_compare_arrays(operator, left.values, right.values), known)
    if isinstance(left, TileValues):
        return TileValues(_compare_with(operator, left.values, int(_raw(right))), known)
    return TileValues(_compare_with(_SWAPPED[operator], _raw(right), int(left)), known)


def _compare_with(operator: str, values: NDArray[Any], number: int) -> NDArray[np.bool_]:
    info = np.iinfo(values.dtype)
    if int(info.min) <= number <= int(info.max):
        return np.asarray(_COMPARE[operator](values, values.dtype.type(number)))
    above = number > 0
    holds = operator == "!=" or (operator != "==" and (operator in ("<", "<=")) is above)
    return np.full(len(values), holds)


def _compare_arrays(operator: str, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    big_left, big_right = left.dtype == np.uint64, right.dtype == np.uint64
    if big_left == big_right or left.dtype.kind == right.dtype.kind:
        return np.asarray(_COMPARE[operator](left, right))
    if big_right:
        return _compare_arrays(_SWAPPED[operator], right, left)
    # u8 with a signed type, which numpy would compare as floats: a value beyond the signed range is
    # greater than any.
    signed = left.view(np.int64)
    greater = operator in (">", ">=", "!=")
    return np.where(signed < 0, greater, _COMPARE[operator](signed, right.astype(np.int64)))


# -------------------------------------------------------------------------- truths


def _truth(operand: TileValues | bool | None, count: int) -> tuple[Any, Any]:
    """Return where the operand is true, and where it is false; both are False where it is unknown."""
    if not isinstance(operand, TileValues):
        return np.full(count, operand is True), np.full(count, operand is False)
    if operand.known is None:
        return operand.values, ~operand.values
    return operand.values & operand.known, ~operand.values & operand.known


def both(left: TileValues | bool | None, right: TileValues | bool | None, count: int) -> TileValues:
    """``left and right``: false where one is false; otherwise unknown where one is unknown."""
    (a, not_a), (b, not_b) = _truth(left, count), _truth(right, count)
    return _settled(a & b, not_a | not_b)


def either(
    left: TileValues | bool | None, right: TileValues | bool | None, count: int
) -> TileValues:
    """``left or right``: true where one is true; otherwise unknown where one is unknown."""
    (a, not_a), (b, not_b) = _truth(left, count), _truth(right, count)
    return _settled(a | b, not_a & not_b)


def _settled(true: NDArray[np.bool_], false: NDArray[np.bool_]) -> TileValues:
    known = true | false
    return TileValues(true, None if bool(known.all()) else known)


def negated(operand: TileValues) -> TileValues:
    """``not``, for each tile."""
    return TileValues(~operand.values, operand.known)


# --------------------------------------------------------------------- to one number


def exact_sum(tiles: TileValues) -> int | float | None:
    """The sum of all values: exact for integers, None if a sum of floats overflows."""
    values = tiles.values
    if not tiles.is_integer:
        with np.errstate(all="ignore"):
            total = float(values.sum())
        return total if math.isfinite(total) else None
    if max(abs(tiles.low), abs(tiles.high)) * len(values) <= _HIGH:
        return int(values.sum(dtype=np.int64))
    low = int((values & values.dtype.type(0xFFFFFFFF)).sum(dtype=np.int64))
    high = int((values >> values.dtype.type(32)).astype(np.int64).sum())
    return (high << 32) + low
