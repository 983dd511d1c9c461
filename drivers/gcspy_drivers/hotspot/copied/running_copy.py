"""`read_running`: objects and references of a JVM that keeps running, from a copy of its memory, in the form of a heap dump.

Knows the copy and the parser of dumps; answers are computed elsewhere.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from gcspy_protocol.errors import TargetError
from numpy.typing import NDArray

from gcspy_drivers.hotspot.copied.heap_copy import copy_heap
from gcspy_drivers.hotspot.copied.heap_writer import written_dump
from gcspy_drivers.hotspot.copied.machine_code import load
from gcspy_drivers.hotspot.objects.form import read_form
from gcspy_drivers.hotspot.objects.tlabs import ThreadBuffers
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.dump_answers import Progress

__all__ = ["RunningCopy", "read_running"]

MISSING: Final = (
    "copied while it ran, not held: references from stacks of threads, from native code and from the VM itself are "
    "not known, and what changed during the copy may be wrong; --hold has a heap dump answer"
)


class RunningCopy(NamedTuple):
    """A heap that was copied while its program ran.

    Attributes:
        data: (b,) its objects as a heap dump.
        cost: How it was read, and what is missing, as text.
    """

    data: NDArray[np.uint8]
    cost: str


def read_running(jvm: Jvm, progress: Progress) -> RunningCopy:
    """Copy the heap of a running JVM.

    Args:
        jvm: The JVM.
        progress: Called with the current step, its progress, and its total.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
        Unsupported: Its collector moves objects while the program runs, or its version does not
            export where classes have their fields.
        TargetError: It collected during each copy, or there is no memory for one.
    """
    progress("preparing", 0, 0)
    loops = load()
    form = read_form(jvm.memory, jvm.tables, jvm.flags)
    progress("copying the heap", 0, 0)
    heap = copy_heap(jvm, ThreadBuffers(jvm.memory, jvm.tables, form))
    progress("reading classes", 0, 0)
    try:
        dump = written_dump(jvm, form, heap, loops)
    except MemoryError:
        raise TargetError(
            f"process {jvm.process.pid}: there is no memory for the objects of its heap"
        ) from None
    lost = [f"copied in {heap.secs:.2f} s"]
    if dump.lost_bytes:
        lost.append(f"{dump.lost_bytes / 1e6:,.1f} MB of the heap could not be read")
    if dump.lost_objects:
        lost.append(f"{dump.lost_objects:,} objects of classes that could not be read are left out")
    return RunningCopy(dump.data, "; ".join([*lost, MISSING]))
