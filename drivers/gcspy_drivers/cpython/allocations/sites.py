"""`sites_of_objects`: the line, the function and the caller that allocated each object of a graph.

Knows graphs and traces; the tables are of `gcspy_drivers.kit.allocation_sites`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gcspy_drivers.cpython.allocations.functions import FunctionFinder
from gcspy_drivers.cpython.allocations.tracemalloc import Frame, Traces, file_name_at, frames_of
from gcspy_drivers.cpython.graph.heap_graph import HeapGraph
from gcspy_drivers.kit.allocation_sites import AllocationSites, SiteName, no_sites

__all__ = ["sites_of_objects"]

_UNKNOWN_FILE: Final = "<unknown>"
_LIBRARIES: Final = ("/site-packages/", "/dist-packages/")


def sites_of_objects(graph: HeapGraph, traces: Traces | str) -> AllocationSites:
    """Find the site of each object.

    Args:
        graph: The objects.
        traces: The traces of ``tracemalloc`` in the same copy, or the reason why there are none.
    """
    if isinstance(traces, str):
        return no_sites(traces)
    copy, layout = graph.copy, graph.layout
    files, file = np.unique(traces.file, return_inverse=True)
    names = [
        (file_name_at(copy, layout, address) if address else None) or _UNKNOWN_FILE
        for address in files.tolist()
    ]
    lines, site = np.unique(file << 32 | traces.line, return_inverse=True)
    rows = np.concatenate((traces.traceback, traces.others_traceback))
    sizes = np.concatenate((traces.size, traces.others_size))
    stacks = len(traces.places)
    note = f"tracemalloc has {len(rows):,} traces"
    if traces.missing:
        note += f"; {traces.missing:,} more could not be read"
    code = [row for row, name in enumerate(graph.types.names) if name == "code"]
    finder = FunctionFinder(copy, layout, graph.address[np.isin(graph.kind, code)])
    library = (*_LIBRARIES, f"/lib/python{layout.version[0]}.{layout.version[1]}/")

    def name(stack: int) -> SiteName:
        frames = frames_of(copy, layout, int(traces.places[stack])) or [Frame(_UNKNOWN_FILE, 0)]
        inner, *outer = frames
        caller = ""
        if _of_library(inner, library):
            caller = next(
                (_text(each, finder) for each in outer if not _of_library(each, library)), ""
            )
        return SiteName(_text(inner, finder), caller)

    return AllocationSites(
        note=note,
        stack=traces.of(graph.address),
        site=site.astype(np.int64),
        blocks=np.bincount(rows, minlength=stacks),
        size=np.bincount(rows, weights=sizes, minlength=stacks).astype(np.int64),
        keys=[f"{names[each >> 32]}:{each & 0xFFFFFFFF}" for each in lines.tolist()],
        name=name,
    )


def _of_library(frame: Frame, library: tuple[str, ...]) -> bool:
    return frame.file.startswith("<frozen") or any(part in frame.file for part in library)


def _text(frame: Frame, finder: FunctionFinder) -> str:
    return f"{frame.file}:{frame.line} {finder.function_at(*frame)}".rstrip()
