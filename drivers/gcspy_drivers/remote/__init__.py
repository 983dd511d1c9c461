"""Reading another process on Linux: identity, memory maps, ELF symbols, bounded reads, files, holding it while it is read.

Public, for drivers of other packages too; `docs/driver-kit.md` describes every name with an
example. Names are imported lazily. Modules that are not listed here serve to load a stub into a
process (`handover`, `memory_writer`, `sockets`, `user`), and may change.

Knows the kernel's interfaces (``/proc``, ``process_vm_readv``, ``ptrace``, ELF) and no runtime: the
driver knows the meaning of the bytes. Reading stops, signals and changes nothing; only `held` stops
all threads for a bounded time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gcspy_drivers.remote.lazy_names import importer

if TYPE_CHECKING:
    from gcspy_drivers.remote.address import PAGE_BYTES, Addr, align_up
    from gcspy_drivers.remote.elf.file import ElfFile, Symbol
    from gcspy_drivers.remote.elf.image import Image, open_file, open_image
    from gcspy_drivers.remote.files import RegularFile, TargetRoot, find_open_file, open_regular
    from gcspy_drivers.remote.mapping_table import EXECUTE, PRIVATE, READ, WRITE
    from gcspy_drivers.remote.maps import LiveMaps, Maps, ResidentMaps, read_maps, read_smaps
    from gcspy_drivers.remote.memory import Memory
    from gcspy_drivers.remote.pieces import Gather, Neighbours
    from gcspy_drivers.remote.process import Process, Stat, permission_remedy
    from gcspy_drivers.remote.process_hold import Hold, held
    from gcspy_drivers.remote.run_delay import waited_nanos
    from gcspy_drivers.remote.vectors import MAX_READ_BYTES

__all__ = [
    "Addr",
    "EXECUTE",
    "ElfFile",
    "Gather",
    "Hold",
    "Image",
    "LiveMaps",
    "MAX_READ_BYTES",
    "Maps",
    "Memory",
    "Neighbours",
    "PAGE_BYTES",
    "PRIVATE",
    "Process",
    "READ",
    "RegularFile",
    "ResidentMaps",
    "Stat",
    "Symbol",
    "TargetRoot",
    "WRITE",
    "align_up",
    "find_open_file",
    "held",
    "open_file",
    "open_image",
    "open_regular",
    "permission_remedy",
    "read_maps",
    "read_smaps",
    "waited_nanos",
]

_HOMES: Final = {
    "PAGE_BYTES": "gcspy_drivers.remote.address",
    "Addr": "gcspy_drivers.remote.address",
    "align_up": "gcspy_drivers.remote.address",
    "ElfFile": "gcspy_drivers.remote.elf.file",
    "Image": "gcspy_drivers.remote.elf.image",
    "Symbol": "gcspy_drivers.remote.elf.file",
    "open_file": "gcspy_drivers.remote.elf.image",
    "open_image": "gcspy_drivers.remote.elf.image",
    "RegularFile": "gcspy_drivers.remote.files",
    "TargetRoot": "gcspy_drivers.remote.files",
    "find_open_file": "gcspy_drivers.remote.files",
    "open_regular": "gcspy_drivers.remote.files",
    "EXECUTE": "gcspy_drivers.remote.mapping_table",
    "PRIVATE": "gcspy_drivers.remote.mapping_table",
    "READ": "gcspy_drivers.remote.mapping_table",
    "WRITE": "gcspy_drivers.remote.mapping_table",
    "LiveMaps": "gcspy_drivers.remote.maps",
    "Maps": "gcspy_drivers.remote.maps",
    "ResidentMaps": "gcspy_drivers.remote.maps",
    "read_maps": "gcspy_drivers.remote.maps",
    "read_smaps": "gcspy_drivers.remote.maps",
    "MAX_READ_BYTES": "gcspy_drivers.remote.vectors",
    "Gather": "gcspy_drivers.remote.pieces",
    "Memory": "gcspy_drivers.remote.memory",
    "Neighbours": "gcspy_drivers.remote.pieces",
    "Process": "gcspy_drivers.remote.process",
    "Stat": "gcspy_drivers.remote.process",
    "permission_remedy": "gcspy_drivers.remote.process",
    "Hold": "gcspy_drivers.remote.process_hold",
    "held": "gcspy_drivers.remote.process_hold",
    "waited_nanos": "gcspy_drivers.remote.run_delay",
}
"""The module of each name."""

__getattr__ = importer(__name__, _HOMES)
