"""Which planted faults may survive, and why: ``judged.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

__all__ = ["judged"]

_FILE = Path(__file__).with_name("judged.toml")


def judged() -> dict[tuple[str, str], str]:
    """Return the reason for each, by the file from the root and by its line before and after."""
    entries = tomllib.loads(_FILE.read_text())["judged"]
    return {(entry["path"], entry["change"]): entry["reason"] for entry in entries}
