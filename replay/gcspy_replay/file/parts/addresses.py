"""Addresses in place of paths: packages announce who opens them, as entry points of the group `gcspy.sources`.

What is announced is a function of an address that returns the `ByteSource`s behind it. So this room knows no network.

Knows texts; does not know storages.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from gcspy_protocol.errors import RecordingError

from gcspy_replay.file.parts.packed_source import unpacked_source
from gcspy_replay.file.parts.source import ByteSource

__all__ = ["is_address", "sources_at"]

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_GROUP: Final = "gcspy.sources"


def is_address(path: Path | str) -> bool:
    """Whether a text is an address and not a path."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def sources_at(address: str) -> list[ByteSource]:
    """Open what is behind an address: a file, or the files of a folder.

    Raises:
        RecordingError: Nobody opens addresses, or it cannot be read.
    """
    opener = _opener()
    if opener is None:
        raise RecordingError(
            f"no package that is installed reads addresses such as {address.partition('://')[0]}://"
        )
    opened = list(opener(address))
    found: list[ByteSource] = []
    try:
        while opened:
            found.append(unpacked_source(opened.pop(0)))
    except RecordingError:
        for one in (*found, *opened):
            one.close()
        raise
    return found


@cache
def _opener() -> Any:
    announced = sorted(entry_points(group=_GROUP), key=lambda one: one.name)
    return announced[0].load() if announced else None
