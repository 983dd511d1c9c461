"""Waiting for what another thread or process does: looks again and again, as long as a busy machine may take."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["PATIENCE_MILLIS", "PATIENCE_SECS", "wait_until"]

PATIENCE_SECS = 120.0
"""Only what will never happen is waited for as long: the limit exists so that it is named."""
PATIENCE_MILLIS = round(PATIENCE_SECS * 1000)


def wait_until(
    condition: Callable[[], object], what: str = "", *, rest_secs: float = 0.002
) -> None:
    """Wait until something is so.

    Args:
        condition: Whether it is.
        what: Its name, for the failure.
        rest_secs: How long to rest before each further look.
    """
    give_up = time.monotonic() + PATIENCE_SECS
    while not condition():
        assert time.monotonic() < give_up, f"not so after {PATIENCE_SECS:g} s: {what or condition}"
        time.sleep(rest_secs)
