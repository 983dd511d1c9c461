"""Limits of Qt that the bindings do not name."""

from __future__ import annotations

from typing import Final

__all__ = ["NO_LIMIT"]

NO_LIMIT: Final = (1 << 24) - 1
"""The largest width or height of a widget, in logical pixels: what a widget has that was never limited (QWIDGETSIZE_MAX)."""
