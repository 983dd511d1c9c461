"""Which parts of a heap have memory: by the process's mappings, as collectors with regions do not export it.

What the VM gives back it maps without any access. The list of mappings is read again only after some time, as the kernel holds the target's
mappings still meanwhile; what is in use is committed whatever was read before. Knows mappings; knows no regions.
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
"""The mappings are read again after so many times what reading them took."""


class Committed:
    """Tells what is committed.

    Args:
        maps: The process's mappings.
    """

    def __init__(self, maps: LiveMaps) -> None:
        self._maps = maps
        self._due_nanos = 0

    def covers(self, addrs: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Tell for each address whether there is memory, as of at most half a second ago; of shape (n,), new.

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
