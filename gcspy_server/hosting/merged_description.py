"""The description of a session of several drivers, and each driver's share.

The first driver leads: its clock, its facts and its main space are the session's. Knows
descriptions; does not know drivers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from gcspy_protocol.model import Mode, PauseActsOn

from gcspy_server.drivers import MODE, ServerDescription
from gcspy_server.hosting.driver_server import CLOCK, Share

__all__ = ["merge"]

_LADDER = (Mode.PASSIVE, Mode.STOPPED, Mode.COOPERATIVE, Mode.EMBEDDED)


def merge(
    described: Sequence[tuple[str, ServerDescription]],
) -> tuple[ServerDescription, tuple[Share, ...]]:
    """Merge several drivers' descriptions into one.

    Args:
        described: Name and description of each driver, the leading one first; each has a kind of event.

    Returns:
        The session's description, and each driver's share.
    """
    lead_name, lead = described[0]
    program = any(one.pause_acts_on is PauseActsOn.PROGRAM for _, one in described)
    events, pairs, shares = [lead.events[CLOCK]], [], []
    with_modes = next((name for name, one in described if one.modes), None)
    for name, one in described:
        numbers = [CLOCK]
        for event in one.events[1:]:
            numbers.append(len(events))
            events.append(event if event not in events else f"{event} ({name})")
        pairs += [(numbers[start], numbers[end]) for start, end in one.pairs]
        fixed = {}
        if one.modes and name != with_modes:
            fixed[MODE] = one.modes.index(one.mode)
        shares.append(
            Share(
                name=name,
                events=tuple(numbers),
                holds=not program or one.pause_acts_on is PauseActsOn.PROGRAM,
                levels=len(one.levels),
                fixed=fixed,
                suffix=f" ({name})",
                leads=name == lead_name,
            )
        )
    if len(described) == 1:
        return lead, tuple(shares)
    target: dict[str, str] = {}
    for _, one in described:
        target = one.target | target
    target["driver"] = ", ".join(name for name, _ in described)
    owner = next((one for name, one in described if name == with_modes), lead)
    merged = replace(
        lead,
        name=f"{lead.name}, with {', '.join(name for name, _ in described[1:])}",
        events=tuple(events),
        mode=max((one.mode for _, one in described), key=_LADDER.index),
        pause_acts_on=PauseActsOn.PROGRAM if program else lead.pause_acts_on,
        general_info=" ".join(f"{name}: {one.general_info}" for name, one in described),
        target=target,
        levels=_levels([(name, one.levels) for name, one in described]),
        level=max(one.level for _, one in described),
        pairs=tuple(pairs),
        modes=() if program else owner.modes,
        mode_refusal=owner.mode_refusal,
    )
    return merged, tuple(shares)


def _levels(levels: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Descriptions of the session's levels, by the drivers that have them."""
    having = [(name, texts) for name, texts in levels if texts]
    if len(having) < 2:
        return having[0][1] if having else ()
    return tuple(
        f"{number}: "
        + "; ".join(
            f"{name}: {text.removeprefix(f'{number}: ')}"
            for (name, _), text in zip(having, texts, strict=True)
            if text
        )
        for number, texts in enumerate(zip_longest(*(texts for _, texts in having)), start=1)
    )
