"""`SamplingBetweenLooks`: allocations of a JVM are sampled from its first heap dump to the second, if that is requested.

Knows samples; does not know dumps.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.agent.allocation_samples import (
    AllocationSampler,
    Samples,
    refuse_release,
)
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.allocation_sites import SampledAllocation, SampledSites, SiteName
from gcspy_drivers.remote.process import Process
from gcspy_server.api import MemoryQuestion

__all__ = ["SamplingBetweenLooks", "sites_of_samples"]

_OFF: Final = SampledSites(
    "allocations of a JVM are sampled on request, between the two samples: add --hold --allocation-samples (JDK 11 and later)"
)
_ONE_LOOK: Final = SampledSites(
    "allocations are sampled between two samples of memory: omit --over 0"
)
_LIBRARY = ("java.", "javax.", "jdk.", "sun.", "com.sun.")


class SamplingBetweenLooks:
    """Samples allocations; used as a context manager, so that the JVM does not sample any more in the end.

    Args:
        process: The process; borrowed.
        jvm: The JVM; borrowed.
        question: How often to sample, and how long; a JVM that is too old is refused.

    Raises:
        Unsupported: The JVM cannot sample allocations.
    """

    def __init__(self, process: Process, jvm: Jvm, question: MemoryQuestion) -> None:
        self._jvm = jvm
        self._over_secs = question.over_secs
        self._sampler: AllocationSampler | None = None
        self._started = False
        self._unsampled = _ONE_LOOK if question.sample_bytes else _OFF
        if question.sample_bytes and question.over_secs:
            refuse_release(process.pid, jvm.release)
            self._sampler = AllocationSampler(process, question.sample_bytes)

    def look(self) -> SampledSites:
        """Begin to sample, or finish if that was begun: what the samples show.

        Raises:
            TargetError: The JVM cannot be given an agent, or the samples are not valid.
        """
        if self._sampler is None:
            return self._unsampled
        if not self._started:
            self._sampler.start(self._jvm, secs=self._over_secs)
            self._started = True
            return SampledSites("allocations are sampled from now on")
        try:
            return sites_of_samples(self._sampler.finish())
        except TargetError as error:
            return SampledSites(str(error))

    def close(self) -> None:
        """Have the JVM stop sampling, if it does. May be called twice."""
        if self._sampler is not None and self._started:
            self._sampler.stop()
            self._started = False

    def __enter__(self) -> SamplingBetweenLooks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sites_of_samples(samples: Samples) -> SampledSites:
    """Add up samples by class, site and caller.

    Args:
        samples: The samples.
    """
    found: dict[tuple[str, SiteName], list[int]] = defaultdict(lambda: [0, 0])
    for each in samples.sites:
        if each.live:
            counted = found[each.type_name, _name(each.frames)]
            counted[0] += each.live
            counted[1] += each.live_bytes
    total = sum(live for live, _ in found.values())
    note = (
        f"{total:,} samples of objects that were allocated between the two samples of memory and are alive, "
        f"one for {samples.interval_bytes:,} bytes on average; bytes are estimates: n samples are off by a share of about 1/√n"
    )
    if samples.dropped:
        note += f"; {samples.dropped:,} samples had no room"
    return SampledSites(
        note,
        tuple(
            SampledAllocation(type_name, site, live, size)
            for (type_name, site), (live, size) in found.items()
        ),
    )


def _name(frames: tuple[str, ...]) -> SiteName:
    """Return the innermost frame, and the nearest of the program if that is one of the JDK."""
    if not frames:
        return SiteName("the VM itself")
    place, *outer = frames
    caller = ""
    if place.startswith(_LIBRARY):
        caller = next((each for each in outer if not each.startswith(_LIBRARY)), "")
    return SiteName(place, caller)
