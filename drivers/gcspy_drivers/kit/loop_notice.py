"""The notice for clients while loops that read a target's objects are being compiled or loaded, the same for every driver.

Nothing waits for the compiler (`gcspy_compiled.machine_code`), so until it is done an event takes
longer, or has no objects. Knows spaces; does not know the compiler or objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gcspy_server.api import ServerSpace

__all__ = ["COMING", "tell_coming"]

COMING: Final = (
    "the loops that read objects are being loaded, or compiled once after an installation, which takes some seconds; "
    "until then they are read slowly, or not at all where the program would have to wait"
)
"""The notice."""


def tell_coming(spaces: Iterable[ServerSpace], *, coming: bool) -> None:
    """Add the notice to the texts of spaces, or remove it again.

    Args:
        spaces: The spaces of objects.
        coming: Whether they are being compiled.
    """
    for space in spaces:
        said = space.info.removesuffix(COMING).removesuffix("; ")
        space.info = "; ".join(filter(None, (said, COMING if coming else "")))
