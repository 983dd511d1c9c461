"""What is told while loops that read a target's objects are being compiled: the same words for every driver.

Nobody waits for the compiler (`gcspy_compiled.machine_code`), so that until it is done an event takes longer, or has no objects. Knows spaces; knows
neither compiler nor objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gcspy_server.api import ServerSpace

__all__ = ["COMING", "tell_coming"]

COMING: Final = (
    "the loops that read objects are being compiled, which takes some seconds, once after an installation; "
    "until then they are read slowly, or not at all where the program would have to wait"
)
"""What is told while that is so."""


def tell_coming(spaces: Iterable[ServerSpace], *, coming: bool) -> None:
    """Add to what spaces say of themselves that the loops are being compiled, or take it away again.

    Args:
        spaces: Those of objects.
        coming: Whether they are being compiled.
    """
    for space in spaces:
        said = space.info.removesuffix(COMING).removesuffix("; ")
        space.info = "; ".join(filter(None, (said, COMING if coming else "")))
