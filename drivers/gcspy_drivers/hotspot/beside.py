"""What a JVM has beside its heap, as pools: metaspace and class space, by the VM's own counters.

The VM brings these counters up to date at collections only; a JVM without them (``-XX:-UsePerfData``) does not say it. Knows names of
counters; knows no structures: what metaspace has is not exported by any version.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.hotspot.jvm import Jvm
from gcspy_drivers.hotspot.pool_space import Pool

__all__ = ["beside_names", "beside_pools"]

_POOLS: Final = {
    "metaspace": "sun.gc.metaspace.",
    "of it, class space": "sun.gc.compressedclassspace.",
}


def beside_names(_jvm: Jvm) -> tuple[str, ...]:
    """Return what the pools are called."""
    return tuple(_POOLS)


def beside_pools(jvm: Jvm) -> tuple[list[Pool], str]:
    """Return the pools, and what is to be said of them."""
    pools = []
    for name, prefix in _POOLS.items():
        used, committed, most = jvm.counters.numbers(
            f"{prefix}used", f"{prefix}capacity", f"{prefix}maxCapacity"
        )
        # A bound that is larger than any memory is none.
        pools.append(Pool(name, used, committed, None if most is None or most >= 1 << 47 else most))
    if not len(jvm.counters):
        return pools, "metaspace: not available, this JVM keeps no counters (-XX:-UsePerfData)"
    return pools, "metaspace: as of the latest collection"
