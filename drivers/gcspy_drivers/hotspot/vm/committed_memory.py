"""The committed parts of a heap: by the process's mappings, as collectors with regions do not export it.

The VM maps uncommitted memory without any access. The list of mappings is read again only after
some time, as the kernel blocks changes of the target's mappings meanwhile; used memory is committed
whatever was read before. Knows mappings; does not know regions.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.maps import LiveMaps

__all__ = ["Committed"]

_LEAST_REST_NANOS: Final = 500_000_000
_REST: Final = 20
"""The mappings are read again after this many times the duration of reading them."""


class Committed:
    """Determines committed memory.

    Args:
        maps: The process's mappings.
    """

    def __init__(self, maps: LiveMaps) -> None:
        self._maps = maps
        self._due_nanos = 0

    def covers(self, addrs: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """For each address, return whether there is memory, at most half a second ago; of shape (n,), new.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not show us its maps any more.
        """
        now = time.monotonic_ns()
        if now >= self._due_nanos:
            self._maps.refresh()
            after = time.monotonic_ns()
            self._due_nanos = after + max(_LEAST_REST_NANOS, _REST * (after - now))
        return self._maps.maps.covers(addrs)
