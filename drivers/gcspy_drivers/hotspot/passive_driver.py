"""The driver for HotSpot without an agent: at each tick of the clock, it reads memory and fills spaces, tiles and streams.

Two kinds of event. Collections are noticed at the tick after them, by the VM's own counters; then
the tick is a "Collections" event if requested, and the clock is only counted, so that nothing is
read twice. Pause stops the sampling, not the program, and is named so.

Knows views and the server's API; knows neither memory nor wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from gcspy_drivers.hotspot.counting.java_site_counts import JavaSiteCounts
from gcspy_drivers.hotspot.heaps.heap_view import (
    CARDS,
    OBJECTS,
    TILE_SIZE,
    HeapView,
    tile_size_setting,
)
from gcspy_drivers.hotspot.heaps.view_choice import open_view
from gcspy_drivers.hotspot.recognition import find as find_jvm
from gcspy_drivers.hotspot.spaces.non_heap import NonHeap
from gcspy_drivers.hotspot.spaces.object_view import JavaObjectView
from gcspy_drivers.hotspot.spaces.pool_space import Pool, PoolSpace
from gcspy_drivers.hotspot.vm.collection_counts import CollectionCounter
from gcspy_drivers.hotspot.vm.target import JvmTarget, open_jvm
from gcspy_drivers.kit.counted_sites.site_space import SiteSpace
from gcspy_drivers.kit.loop_notice import COMING
from gcspy_drivers.kit.memory_history_space import HeapBytes
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_server.api import AttachOptions, GatherRequest, Recognition

__all__ = ["COLLECTIONS", "PassiveJvmDriver"]

COLLECTIONS: Final = 1

_LEVELS: Final = (
    "1: bounds of spaces, regions, counters",
    "2: card table, code cache",
    "3: objects",
    "4: references",
)

_HEAP: Final = "Java heap"
_COUNT: Final = "count"
"""Name of the option for counting allocation sites."""


class PassiveJvmDriver(SampledDriver):
    """Monitors one JVM, passively.

    Args:
        target: The process, and the JVM in it; closed here.
        options: The user's choices.
    """

    name: ClassVar[str] = "hotspot"
    runtime = "HotSpot"
    levels = _LEVELS
    info = "Read from outside while it runs; values that change during the read are read again, and then unknown."
    noticed: int | None = COLLECTIONS

    def __init__(self, target: JvmTarget, options: AttachOptions) -> None:
        super().__init__(target.process, options)
        self._jvm = target.jvm
        self._view: HeapView | None = None
        self._pools: PoolSpace | None = None
        self._of_heap: Sequence[Pool] = ()
        self._beside: NonHeap | None = None
        self._objects: JavaObjectView | None = None
        self._collections: CollectionCounter | None = None
        self._tile_sizes: tuple[int, ...] = ()
        self._site_counts: JavaSiteCounts | None = None
        self._site_space: SiteSpace | None = None

    @classmethod
    def find(cls, pid: int) -> Recognition:
        """Check quickly whether the process is a JVM that can be monitored."""
        return find_jvm(pid)

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> PassiveJvmDriver:
        """Find the VM's structures in a process, and verify them.

        Raises:
            TargetGone: There is no such process.
            NotPermitted: The system does not let us read it.
            Unsupported: It is not a JVM that can be read.
            TargetError: It is, and is not as its version should be.
        """
        return cls(open_jvm(pid), options)

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the kinds of event."""
        return ("Clock", "Collections")

    @property
    def title(self) -> str:
        """Name of the target."""
        jvm, process = self._jvm, self.process
        program = jvm.main_class or process.name
        return f"{program} (Java {jvm.version}, {jvm.collector}, process {process.pid})"

    @property
    def version(self) -> str:
        """Its version, as reported by the VM."""
        return self._jvm.version

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts about the target."""
        jvm = self._jvm
        return {
            "collector": jvm.collector,
            "image": jvm.image.path,
            "command": jvm.command,
        }

    def start(self) -> None:
        """Add the spaces, with the tiles that there are now.

        Raises:
            TargetError: The JVM does not export the required fields.
            TargetGone: The target has ended.
            Unsupported: Its allocation sites are to be counted, and cannot be.
        """
        server, jvm = self.server, self._jvm
        self._view = open_view(jvm, server, tiles=self.options.tiles)
        if self._view.tile_bytes is not None:
            low, high = self._view.extent
            setting, self._tile_sizes = tile_size_setting(high - low, self._view.tile_bytes)
            server.add_setting(setting)
        self._beside = NonHeap(jvm, server, tiles=self.options.tiles)
        self._pools = PoolSpace(server, [*self._view.pool_names, *self._beside.names])
        self._collections = CollectionCounter(jvm.memory, jvm.tables, jvm.counters, jvm.heap())
        self._objects = JavaObjectView(jvm, self._view, self._collections)
        self._objects.open(server, self.level)
        if self.options.text(_COUNT):
            self._site_counts = JavaSiteCounts(self.process)
            self._site_space = SiteSpace(server, self._site_counts, self.name)

    def loops_coming(self) -> bool:
        """Return whether objects are walked slowly until loops are compiled."""
        objects = self._objects
        return self.level >= OBJECTS and objects is not None and objects.coming

    def changes(self) -> str:
        """Return which collections the VM's counters report since the last tick."""
        return "" if self._collections is None else self._collections.since()

    def close(self) -> None:
        """Release the target, which keeps running."""
        if self._site_counts is not None:
            self._site_counts.close()
        self._jvm.close()
        super().close()

    @property
    def managers(self) -> tuple[str, ...]:
        """Names of the memory managers."""
        return (_HEAP,)

    def heap_bytes(self) -> Mapping[str, HeapBytes]:
        """Return the memory of the Java heap, of all of its pools together."""
        pools = self._of_heap
        return {
            _HEAP: HeapBytes(
                _sum(pool.used for pool in pools), _sum(pool.committed for pool in pools)
            )
        }

    def gather(self, request: GatherRequest) -> None:
        """Read the requested data, and fill the spaces."""
        self._gather(request)

    def prepare(self) -> None:
        """Follow the settings."""
        super().prepare()
        server = self.server
        if self._tile_sizes and self._view is not None:
            self._view.cut(self._tile_sizes[server.take_setting(TILE_SIZE)])
        if self._objects is not None:
            self._objects.open(server, self.level)

    def look_beside(self) -> None:
        """Read what changes slowly, between events; at most once a second.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        if self._beside is not None:
            self._beside.look()
        if self._site_counts is not None:
            self._site_counts.ask()

    def _copied(self) -> None:
        """Note that everything that has to be of one moment was read: the rest uses copies."""

    def _walks(self, _objects: JavaObjectView) -> bool:
        """Whether objects may be walked now, if requested."""
        return True

    def _gather(self, request: GatherRequest, *, held: bool = False, settled: bool = False) -> None:
        """Read the requested data and fill the spaces.

        Args:
            request: The request.
            held: Whether the target is stopped until `_copied`.
            settled: Whether it does so with no collection about to begin.
        """
        if self._view is None or self._pools is None or self._beside is None:
            raise AssertionError("open comes before tick")
        level = min(self.level, request.level)
        self._view.read(request, level, still=held)
        objects = self._objects
        if level >= OBJECTS and objects is not None and not self._walks(objects):
            level = OBJECTS - 1
            self.server.lighten(level)
            objects.tell_coming()
            objects = None
        if objects is not None and not objects.wanted(request, level):
            objects = None
        copy = objects.copy(request, level) if objects is not None and held else None
        self._copied()
        pools = self._of_heap = self._view.fill(request)
        code = self._beside.code
        wanted = code is not None and level >= CARDS and request.wants(code.space)
        self._beside.want(wanted)
        if not held:  # otherwise between events, see `look_beside`
            self._beside.look()
        if wanted:
            self._beside.fill()
        if request.wants(self._pools.space):
            beside, note = self._beside.pools()
            if self._objects is not None and self._objects.why_not:
                note += f"; objects: not available, {self._objects.why_not}"
            elif self._objects is not None and self._objects.coming:
                note += f"; objects: {COMING}"
            self._pools.fill([*pools, *beside], note)
        self._fill_sites(request)
        if objects is not None and (copy is not None or not held):
            objects.gather(request, level, copy, settled=settled)

    def _fill_sites(self, request: GatherRequest) -> None:
        """Fill the space of allocation sites with the counts that came last, and ask for others."""
        counts, sites = self._site_counts, self._site_space
        if counts is None or sites is None:
            return
        counts.ask()
        if counts.problem:
            sites.space.tell(f"No more counts: {counts.problem}.")
        if request.wants(sites.space):
            sites.fill()


def _sum(values: Iterable[int | None]) -> int | None:
    """Sum; None if one of them is not known, or there are none."""
    known = list(values)
    return None if not known or None in known else sum(filter(None, known))
