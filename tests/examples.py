"""How many examples of a property are tried, where it is not the number that the profile has."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

__all__ = ["examples"]


def examples(times: float, **more: Any) -> settings:
    """The factor for the profile's number of examples: fewer where one is expensive, more where one is cheap and finds little."""
    return settings(max_examples=max(1, round(times * settings().max_examples)), **more)
