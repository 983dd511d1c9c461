"""`AllocationSampler`: samples of a JVM's allocations (JEP 331), between two moments, for JDK 11 and later.

A small library of ours (``drivers/native/hotspot_samples.c``) is loaded, which samples one object
in a number of bytes that a thread allocates, and forgets those that are collected. At the end it
writes what is left into a file for us, and stops.

Knows the library's options and its text; does not know the heap.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final, NamedTuple

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.hotspot.agent.agent import BUILD_REMEDY
from gcspy_drivers.hotspot.agent.agent_library import AgentLibrary, installed
from gcspy_drivers.hotspot.agent.attach_protocol import AttachListener
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.remote.files import RegularFile
from gcspy_drivers.remote.handover import Handover
from gcspy_drivers.remote.process import Process

__all__ = ["FIRST_RELEASE", "AllocationSampler", "Samples", "SampledSite", "parse_samples"]

FIRST_RELEASE: Final = 11
"""JDK that samples allocations."""

_ANSWERS: Final = {
    "101": "it did not understand the request",
    "102": "another gcspy samples its allocations: try again later",
    "103": "it does not give samples of allocations to an agent, or another agent has them",
    "104": "it has stopped sampling: its time was over",
    "105": "it could not write the samples",
}
_RESULT: Final = "samples"
_MOST_BYTES: Final = 1 << 25
_MOST_SITES: Final = 1 << 13
_MOST_FRAMES: Final = 32
_ASK_SECS: Final = 60.0
_STOP_SECS: Final = 2.0
_SLACK_SECS: Final = 600
"""The library stops by itself this long after the result was expected: a heap dump may take minutes."""

_LINE = re.compile(rb"(-?\d{1,18})\t(-?\d{1,18})\t(\d{1,18})\t(\d{1,18})\t([^\t]+)((?:\t[^\t]+)*)")
_PRIMITIVES: Final = {
    "B": "byte",
    "C": "char",
    "D": "double",
    "F": "float",
    "I": "int",
    "J": "long",
    "S": "short",
    "Z": "boolean",
}


class SampledSite(NamedTuple):
    """Sampled objects of one class that were allocated with one stack.

    Attributes:
        type_name: Name of the class.
        frames: The stack, the innermost frame first: ``shop.Order.<init>(Order.java:12)``.
        live: Sampled objects that are alive.
        live_bytes: Estimated bytes of all such objects that are alive.
    """

    type_name: str
    frames: tuple[str, ...]
    live: int
    live_bytes: int


class Samples(NamedTuple):
    """All samples.

    Attributes:
        interval_bytes: Mean number of bytes that a thread allocated between two samples.
        dropped: Samples for which there was no room.
        sites: By class and stack.
    """

    interval_bytes: int
    dropped: int
    sites: tuple[SampledSite, ...]


class AllocationSampler:
    """Samples allocations of one JVM.

    Args:
        process: The process; borrowed.
        interval_bytes: Mean number of bytes that a thread allocates between two samples.
    """

    def __init__(self, process: Process, interval_bytes: int) -> None:
        self._process = process
        self._interval_bytes = interval_bytes
        self._library = AgentLibrary(process, _ANSWERS)

    def start(self, jvm: Jvm, *, secs: float) -> None:
        """Begin to sample.

        Args:
            jvm: The JVM.
            secs: For how long, about; if `finish` is not called, the JVM stops sampling some minutes later.

        Raises:
            Unsupported: It is older than JDK 11, or cannot be given an agent.
            TargetError: It did not load the agent.
        """
        image = self._image(jvm)
        option = f"start:{self._interval_bytes}:{round(secs) + _SLACK_SECS}"
        with Handover(self._process, code=True) as folder:
            self._library.load(image, folder, option, time.monotonic() + _ASK_SECS)

    def finish(self) -> Samples:
        """Have the JVM collect its garbage, and return the samples that are alive; it does not sample any more.

        Raises:
            TargetError: It does not sample, or the result is not valid.
        """
        with Handover(self._process, room_bytes=_MOST_BYTES) as folder:
            self._library.ask(f"finish:{folder.expect(_RESULT)}", secs=_ASK_SECS)
            fd = folder.take(_RESULT)
        with RegularFile(fd, _MOST_BYTES + 1) as file:
            data = file.read()
        found = parse_samples(data) if len(data) <= _MOST_BYTES else None
        if found is None:
            raise TargetError(
                f"process {self._process.pid}: the samples of its allocations are not valid"
            )
        return found

    def stop(self) -> None:
        """Have the JVM stop sampling, if it does. May be called twice."""
        self._library.take_out(secs=_STOP_SECS)

    def _image(self, jvm: Jvm) -> Path:
        """Return the library, if this JVM can load it.

        Raises:
            Unsupported: It cannot.
        """
        pid = self._process.pid
        refuse_release(pid, jvm.release)
        image = installed("gcspy-samples")
        why_not = ""
        if image is None:
            why_not = f"the agent was not built when gcspy was installed: {BUILD_REMEDY}"
        elif "EnableDynamicAgentLoading" in jvm.flags and not jvm.flags.on(
            "EnableDynamicAgentLoading"
        ):
            why_not = "it was started with -XX:-EnableDynamicAgentLoading"
        why_not = why_not or AttachListener(self._process).why_not()
        if why_not or image is None:
            raise Unsupported(
                f"the allocations of process {pid} cannot be sampled: {why_not}",
                found="no agent",
                known="a JVM that loads an agent",
            )
        return image


def refuse_release(pid: int, release: int) -> None:
    """Refuse a JVM that cannot sample allocations.

    Args:
        pid: Its process.
        release: Its JDK.

    Raises:
        Unsupported: It cannot.
    """
    if release < FIRST_RELEASE:
        raise Unsupported(
            f"process {pid}: only JDK {FIRST_RELEASE} and later sample allocations (JEP 331)",
            found=f"JDK {release}",
            known=f"JDK {FIRST_RELEASE} and later",
        )


def parse_samples(data: bytes) -> Samples | None:
    """Parse the text of the library; None: it is not valid.

    Args:
        data: The text; names in it come from the program.
    """
    head, *lines = data.split(b"\n")
    first = re.fullmatch(rb"gcspy-samples 1 (\d{1,10}) (\d{1,18})", head)
    if first is None or not lines or lines[-1] or len(lines) > _MOST_SITES + 1:
        return None
    sites = []
    for line in lines[:-1]:
        found = _LINE.fullmatch(line)
        if found is None:
            return None
        frames = found[6].decode("utf-8", "replace").split("\t")[1 : _MOST_FRAMES + 1]
        sites.append(
            SampledSite(
                _type_name(found[5].decode("utf-8", "replace")),
                tuple(map(_frame_name, frames)),
                max(0, int(found[1])),
                max(0, int(found[2])),
            )
        )
    return Samples(int(first[1]), int(first[2]), tuple(sites))


def _type_name(signature: str) -> str:
    """Return the name of a class: ``[Lshop/Order;`` is ``shop.Order[]``."""
    inner = signature.lstrip("[")
    name = _PRIMITIVES.get(inner, inner)
    if inner.startswith("L"):
        name = inner[1:].removesuffix(";").replace("/", ".")
    return name + "[]" * (len(signature) - len(inner))


def _frame_name(text: str) -> str:
    """Return a frame as stack traces of Java have it."""
    signature, _, method = text.partition(";.")
    return f"{_type_name(signature + ';')}.{method}" if method else text
