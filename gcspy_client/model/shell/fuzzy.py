"""Finding a text by some of its letters: ``hg`` finds *History graph* before *through*.

The letters that were typed must come in the text in their order. Starts of words count most, then letters side by side; a
shorter text comes before a longer one. Words separated by spaces may come in any order.

Knows texts; does not know their meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Match", "match"]

_START, _BESIDE, _PLAIN, _GAP = 10, 6, 1, 1
_LONGEST = 200
"""Maximum characters examined; a tile's or a stream's name may be anything."""


@dataclass(frozen=True, slots=True)
class Match:
    """How well a text matches.

    Attributes:
        score: The greater, the better.
        places: Indices of the letters that were found, ascending.
    """

    score: int
    places: tuple[int, ...]


def match(wanted: str, text: str) -> Match | None:
    """Match a text with the typed one; None if it does not match.

    Args:
        wanted: The typed text; case is ignored.
        text: The text to search.
    """
    text = text[:_LONGEST]
    score, places = 0, set[int]()
    for word in wanted.casefold().split():
        found = _best(word, text)
        if found is None:
            return None
        score += found.score
        places.update(found.places)
    return Match(score * 4 - len(text) // 8, tuple(sorted(places)))


def _best(word: str, text: str) -> Match | None:
    """The best way to find the letters of a word in their order: a table of letters by places."""
    lower = text.lower()
    if len(lower) != len(text):  # a letter that is two in lower case: places would be off
        lower = text
    starts = [
        i == 0 or not text[i - 1].isalnum() or (text[i].isupper() and text[i - 1].islower())
        for i in range(len(text))
    ]
    # best[i]: score and places with the letters so far, the last of them at place i
    best: list[tuple[int, tuple[int, ...]] | None] = [None] * len(text)
    for number, letter in enumerate(word):
        after: list[tuple[int, tuple[int, ...]] | None] = [None] * len(text)
        before: tuple[int, tuple[int, ...]] | None = (
            None  # the best that ends before this place, less its gap
        )
        for i, here in enumerate(lower):
            if i and best[i - 1] is not None and number:
                ended = best[i - 1]
                assert ended is not None
                if before is None or ended[0] >= before[0]:
                    before = ended
            if here == letter:
                own = _START if starts[i] else _PLAIN
                if number == 0:
                    after[i] = own, (i,)
                elif before is not None:
                    beside = before[1][-1] == i - 1
                    after[i] = before[0] + max(own, _BESIDE if beside else 0), (*before[1], i)
            if before is not None:
                before = before[0] - _GAP, before[1]
        best = after
    reached = [one for one in best if one is not None]
    return Match(*max(reached, key=lambda one: (one[0], -one[1][0]))) if reached else None
