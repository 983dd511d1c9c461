"""Errors of an event: the numbers that both decoders give, and the message of each."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["EXPECTED", "Problem"]


class Problem(IntEnum):
    """Why an event is invalid; 0 means valid."""

    NONE = 0
    NO_EVENT = 1
    CUT_SHORT = 2
    NO_SITE = 3
    NO_TYPE = 4
    TOO_HIGH = 5
    TOO_LONG = 6


EXPECTED: Final = {
    Problem.NO_EVENT: "expected the id of an event, 0 to 46 without 24 and 38",
    Problem.CUT_SHORT: "the event is longer than what is left of its buffer; expected that events end where their buffer does",
    Problem.NO_SITE: "expected an allocation site that the symbols file has a record of",
    Problem.NO_TYPE: "expected a type that the symbols file has a record of",
    Problem.TOO_HIGH: "expected addresses and sizes below 2**62",
    Problem.TOO_LONG: "expected an index, length or count below 2**31",
}
