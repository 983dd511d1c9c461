"""Recently opened recordings, by their files, and servers, by their addresses. Never a token.

Knows paths and addresses as texts; other code stores them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Recent", "latest_first", "recent_of"]

_MOST = 12
_BETWEEN = "\n"
"""Between the files of one recording: a path with a line break is not kept."""


@dataclass(frozen=True, slots=True)
class Recent:
    """An opened item.

    Attributes:
        files: Of a recording; empty for a server.
        address: Of a server.
    """

    files: tuple[Path, ...] = ()
    address: str = ""

    @property
    def text(self) -> str:
        """Text under which it is stored."""
        return self.address or _BETWEEN.join(str(path) for path in self.files)

    @property
    def name(self) -> str:
        """Its text in a list."""
        if self.address:
            return self.address
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return self.files[0].name + more

    def missing(self) -> bool:
        """Whether a file of it is missing; servers are not checked."""
        return any(not os.path.exists(path) for path in self.files)


def recent_of(texts: Sequence[str], *, servers: bool) -> list[Recent]:
    """The stored items, the latest first."""
    if servers:
        return [Recent(address=text) for text in texts if text]
    return [Recent(files=tuple(map(Path, text.split(_BETWEEN)))) for text in texts if text]


def latest_first(texts: Sequence[str], new: Recent) -> list[str]:
    """The items to store after one was opened."""
    if any(_BETWEEN in str(path) for path in new.files):
        return list(texts)
    return [new.text, *(text for text in texts if text != new.text)][:_MOST]
