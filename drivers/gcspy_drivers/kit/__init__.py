"""What every driver needs and no driver should write again; public, for drivers of other packages too.

* `sampled_driver`, `stubbed_driver`, `embedded_session`: bases of drivers that read at a clock, that have a stub in
  the target, and that are called by the program itself.
* `streams`: factories for streams of amounts, bytes, percent, counts, enumerations and categories.
* `tiling`, `grouped_tiling`: tiles of one size from one address on; tiles of equal cells in several parts.
* `memory_map`, `memory_space`: the memory of a process by kind, and the space that shows it.
* `copier`: copies of the memory of a process, in buffers that are kept warm.

Knows the server's API, `gcspy_drivers.remote` and `gcspy_drivers.cooperative`; knows no runtime.
"""

from __future__ import annotations

from gcspy_drivers.kit.sampled_driver import CLOCK, SampledDriver
from gcspy_drivers.kit.streams import (
    add_amount,
    add_bytes,
    add_category,
    add_count,
    add_enumeration,
    add_percent,
    hide,
    hide_all,
)

__all__ = [
    "CLOCK",
    "SampledDriver",
    "add_amount",
    "add_bytes",
    "add_category",
    "add_count",
    "add_enumeration",
    "add_percent",
    "hide",
    "hide_all",
]
