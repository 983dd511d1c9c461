"""A heap dump requested from a JVM: the only supported way to get all its references, including those of its stacks.

It stops the JVM, so it is requested only if the JVM may be held. The JVM writes it into a folder
that only its user may enter; it is opened there with that user's rights, and its name is removed
before it is read.

Knows the attach protocol and files; `gcspy_objects.hprof` knows the content of a dump.

Source: OpenJDK src/hotspot/share/services/attachListener.cpp (``dumpheap``).
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import numpy as np
from gcspy_objects.hprof.heap_dump import load
from gcspy_protocol.errors import TargetError, TraceError, Unsupported
from numpy.typing import NDArray

from gcspy_drivers.hotspot.agent.attach_protocol import AttachListener
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.dump_answers import MOST_BYTES, Progress
from gcspy_drivers.remote.files import RegularFile
from gcspy_drivers.remote.handover import Handover
from gcspy_drivers.remote.process import Process

__all__ = ["RequestedDump", "request_dump"]

_STOPPED_SECS_A_BYTE: Final = 0.15 / 45e6
"""A million objects of 45 bytes stop a JVM for some 0.15 s."""

_LEAST_SECS: Final = 60.0
_TIMES_PREDICTED: Final = 20
_ROOM: Final = 1.3
"""A dump has wider references than a heap, and names."""

_DUMP: Final = "heap.hprof"


class RequestedDump(NamedTuple):
    """A heap dump, in memory.

    Attributes:
        data: (b,) its bytes.
        cost: How long the JVM was stopped for it, as text.
    """

    data: NDArray[np.uint8]
    cost: str


def request_dump(process: Process, jvm: Jvm, progress: Progress) -> RequestedDump:
    """Have a JVM write a heap dump, and read it; nothing of it is left on disk.

    Args:
        process: The JVM, which may be held.
        jvm: Its flags and counters.
        progress: Called with the current step, its progress, and its total.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The JVM may not be asked.
        Unsupported: It takes no commands.
        TargetError: There is no room for a dump, or the JVM did not write one.
    """
    pid = process.pid
    if jvm.flags.on("DisableAttachMechanism"):
        raise Unsupported(
            f"process {pid} was started with -XX:+DisableAttachMechanism, and writes no heap dump for others: start it without",
            found="-XX:+DisableAttachMechanism",
            known="a JVM that takes commands",
        )
    size = _resident_bytes(process)
    secs = size * _STOPPED_SECS_A_BYTE
    listener = AttachListener(process)
    with Handover(process, room_bytes=int(size * _ROOM)) as folder:
        path = folder.expect(_DUMP)
        progress(f"waiting for the heap dump (up to about {_secs(secs)})", 0, 0)
        before, began = _stopped_nanos(jvm), time.monotonic()
        # Garbage as well: to leave it out, the JVM would collect first.
        listener.ask("dumpheap", path, "-all", secs=max(_LEAST_SECS, _TIMES_PREDICTED * secs))
        took, after = time.monotonic() - began, _stopped_nanos(jvm)
        fd = folder.take(_DUMP)
    with RegularFile(fd, MOST_BYTES + 1) as file:
        try:
            data = load(
                file,
                f"process {pid}",
                MOST_BYTES,
                lambda done, whole: progress("reading", done, whole),
            )
        except TraceError as error:
            raise TargetError(str(error)) from None
        except OSError as error:
            raise TargetError(
                f"the heap dump of process {pid} cannot be read: {error.strerror}"
            ) from None
    if before is None or after is None or after <= before:
        return RequestedDump(data, f"it was held for at most {_secs(took)} for the heap dump")
    return RequestedDump(data, f"held for {(after - before) / 1e6:,.0f} ms for the heap dump")


def _stopped_nanos(jvm: Jvm) -> int | None:
    """Return the total time for which the JVM was stopped since it began; None: not available."""
    ticks, frequency = jvm.counters.numbers("sun.rt.safepointTime", "sun.os.hrt.frequency")
    if not ticks or not frequency:
        return None
    return int(ticks * 1e9 / frequency)


def _resident_bytes(process: Process) -> int:
    found = process.resident_bytes()
    if found is None:
        process.check()
        process.read_file("statm")  # that it cannot be read is the better message
        raise TargetError(f"process {process.pid}: its /proc/PID/statm has an unknown format")
    return found


def _secs(secs: float) -> str:
    return f"{secs:.1f} s" if secs < 10 else f"{secs:.0f} s"
