"""How the height of the window is shared among the panels of spaces.

The active space is large: at least half of the height is its own. Each other space is one line,
unless the user opened it, or there is room to open it: spaces of the same kind as the active one
(another generation, the other half of a copying collector) are best seen beside it, and under a
space of few tiles there is room for the largest of the others.

Knows counts and pixels; does not know widgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["Arrangement", "PanelForm", "PanelNeeds", "arrange_panels", "wanted_height"]

LEAST_HEIGHT = 84
"""A large space is still readable in this."""


class PanelForm(Enum):
    """Form in which a space's panel is displayed."""

    LINE = "line"
    """One line: name, a strip of tiles, summary."""
    OPEN = "open"
    """Below the large one."""
    LARGE = "large"
    """The active space."""


@dataclass(frozen=True, slots=True)
class PanelNeeds:
    """The heights that suit a panel, in pixels.

    Attributes:
        wanted: Height that its labelled tiles need; None: it takes what it gets.
        line: Height as one line.
        count: Tiles.
        kind: Kind of its content; panels of equal kinds are opened beside each other.
        opened: Whether the user opened (True) or folded (False) it; None: neither.
    """

    wanted: int | None
    line: int
    count: int
    kind: tuple[str, ...] = ()
    opened: bool | None = None

    @property
    def open(self) -> int:
        """Least height when it is open."""
        return max(self.line, LEAST_HEIGHT if self.wanted is None else self.wanted)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Heights and forms of all panels.

    Attributes:
        large: Height of the active space's panel.
        others: Height that the others have together; they scroll if they need more.
        heights: Height of each panel, in the order that was given.
        forms: Form of each.
    """

    large: int
    others: int
    heights: tuple[int, ...]
    forms: tuple[PanelForm, ...]


def wanted_height(
    count: int, width: int, *, cell_width: int, cell_height: int, most_labelled: int = 96
) -> int | None:
    """The height that labelled cells need in a width; None for a space of too many tiles for labels."""
    if count > most_labelled:
        return None
    per_row = max(1, width // cell_width)
    return max(1, -(-count // per_row)) * cell_height


def arrange_panels(
    total: int, gap: int, active: int, needs: Sequence[PanelNeeds], *, least: int = 0
) -> Arrangement:
    """Share a height among panels.

    Args:
        total: Available height.
        gap: Height between two panels.
        active: Index of the active space's panel.
        needs: Heights that suit each panel.
        least: Least height of the large panel, as far as a line of the others remains.
    """
    others = [i for i in range(len(needs)) if i != active]
    if not others:
        return Arrangement(total, 0, (total,), (PanelForm.LARGE,))
    line = min(needs[i].line for i in others)
    large = max(-(-total // 2), min(least, total - gap - line))
    room = total - large - gap
    used = sum(needs[i].line for i in others) + gap * (len(others) - 1)
    opened = {i for i in others if needs[i].opened}
    used += _cost(needs, opened)
    for group in _worth_opening(active, needs, small=(needs[active].wanted or total) < large):
        more = {i for i in group if needs[i].opened is None} - opened
        if used + _cost(needs, more) <= room:
            opened |= more
            used += _cost(needs, more)
    heights = {i: needs[i].open if i in opened else needs[i].line for i in others}
    spare = max(0, room - used)
    growing = [i for i in opened if needs[i].wanted is None]
    if growing:
        # Equal heights for all that take what they get, as far as the large one keeps its half.
        even = (large + spare + LEAST_HEIGHT * len(growing)) // (len(growing) + 1)
        grows = spare if needs[active].wanted else min(spare, (even - LEAST_HEIGHT) * len(growing))
        each = max(0, grows) // len(growing)
        for i in growing:
            heights[i] += each
        spare -= each * len(growing)
    heights[active] = large + spare
    forms = (
        PanelForm.LARGE if i == active else PanelForm.OPEN if i in opened else PanelForm.LINE
        for i in range(len(needs))
    )
    return Arrangement(
        large=large + spare,
        others=room - spare,
        heights=tuple(heights[i] for i in range(len(needs))),
        forms=tuple(forms),
    )


def _cost(needs: Sequence[PanelNeeds], opened: Iterable[int]) -> int:
    return sum(needs[i].open - needs[i].line for i in opened)


def _worth_opening(active: int, needs: Sequence[PanelNeeds], *, small: bool) -> Iterable[set[int]]:
    """Return sets of panels that are opened together if there is room, the most useful first."""
    kind = needs[active].kind
    yield {i for i, one in enumerate(needs) if i != active and kind and one.kind == kind}
    if small:
        flexible = [i for i, one in enumerate(needs) if i != active and one.wanted is None]
        if flexible:
            yield {max(flexible, key=lambda i: needs[i].count)}
