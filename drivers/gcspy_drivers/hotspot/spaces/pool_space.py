"""The space "Memory pools": a tile is a part of the VM's memory by its purpose, as ``jstat`` and JMX have it.

It is small, so that its history graph shows how the generations and the memory outside the heap
grow and shrink. Knows names and numbers; does not know collectors or addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcspy_drivers.kit.streams import add_bytes
from gcspy_server.api import Server, StringNames

__all__ = ["Pool", "PoolSpace"]

_I8_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Pool:
    """A part of the VM's memory; None: it is not known.

    Attributes:
        name: Its name.
        used: Bytes in use.
        committed: Bytes that the VM may use at once.
        most: Bytes that it may ever be.
    """

    name: str
    used: int | None
    committed: int | None
    most: int | None


class PoolSpace:
    """The pools of one JVM as a space.

    Args:
        server: The server to add the space to.
        names: Names of the pools, in the order of later values.
    """

    def __init__(self, server: Server, names: Sequence[str]) -> None:
        self.space = server.add_space(
            "Memory pools",
            names=StringNames(list(names)),
            driver="hotspot",
            tile_title="Pool ",
            description="Memory pools of the VM, inside and outside the heap",
        )

        add_bytes(self.space, "Used", "Bytes in use", order=0)
        committed = add_bytes(self.space, "Committed", "Bytes committed by the system", order=1)
        about = "Maximum size in bytes; unknown if there is no limit"
        add_bytes(self.space, "Most", about, order=2)
        about = "Bytes in use, in percent of those committed"
        add_bytes(self.space, "Filled", about, order=3, of=committed)

    def fill(self, pools: Sequence[Pool], note: str = "") -> None:
        """Fill the space."""
        self.space.reset()
        columns = (
            [pool.used for pool in pools],
            [pool.committed for pool in pools],
            [pool.most for pool in pools],
            [None if pool.committed is None else pool.used for pool in pools],
        )
        for stream, column in zip(self.space.streams, columns, strict=True):
            unknown = np.array([value is None for value in column], dtype=np.bool_)
            stream.data[:] = [stream.schema.default if value is None else value for value in column]
            if unknown.any():
                stream.set_unknown(unknown)
        self.space.info = note
