"""Levels 3 and 4 of one JVM together: the walker, and the spaces that it fills.

Two ways lead to the same spaces. The heap of a running JVM is copied and walked a chunk at a time
(`JavaObjectView.gather`). If it is held only the copy is made during the hold (`JavaObjectView.copy`), and
walked after it (`JavaObjectView.gather` with that copy).

Knows which goes with which; knows neither structures nor tiles.
"""

from __future__ import annotations

from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_drivers.hotspot.heaps.heap_view import OBJECTS, REFERENCES, HeapView
from gcspy_drivers.hotspot.objects import machine_code
from gcspy_drivers.hotspot.objects.form import read_form
from gcspy_drivers.hotspot.objects.heap_walk import JavaHeapCopy, Walker
from gcspy_drivers.hotspot.objects.tlabs import ThreadBuffers
from gcspy_drivers.hotspot.spaces.class_space import ClassSpace
from gcspy_drivers.hotspot.spaces.object_space import AgeSpace, JavaObjectSpace, JavaReferenceSpace
from gcspy_drivers.hotspot.vm.collection_counts import CollectionCounter
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.hotspot.vm.klasses import Klasses
from gcspy_drivers.kit.copier import Copier
from gcspy_drivers.kit.loop_notice import tell_coming
from gcspy_server.api import GatherRequest, Server, ServerSpace

__all__ = ["JavaObjectView"]

_YOUNG_AND_FULL: Final = 2
"""Numbers of collectors of Serial and Parallel, in this order."""

_WALKED: Final = ("Serial", "Parallel", "G1", "Epsilon")
"""Collectors whose heaps stay in order between collections."""

_WHY_NO_MARKS: Final = {"G1": "only Java 11 and 17 keep readable marks of a completed marking"}


class JavaObjectView:
    """The objects of one JVM, as spaces; there are none before `open`.

    Args:
        jvm: The JVM.
        view: Its heap.
        collections: Counts its collections.
    """

    def __init__(self, jvm: Jvm, view: HeapView, collections: CollectionCounter) -> None:
        self._jvm = jvm
        self._view = view
        self._collections = collections
        self._walker: Walker | None = None
        self._classes: ClassSpace | None = None
        self._objects: JavaObjectSpace | None = None
        self._ages: AgeSpace | None = None
        self._references: JavaReferenceSpace | None = None
        self._moved_at_copy: tuple[int, ...] | None = None
        self.why_not = ""
        """Why objects are not available; empty: they are, or were not requested yet."""

    @property
    def spaces(self) -> list[ServerSpace]:
        """The existing spaces."""
        every = (self._classes, self._objects, self._ages, self._references)
        return [one.space for one in every if one is not None]

    @property
    def coming(self) -> bool:
        """Whether a walk would take many times as long as it will take soon."""
        return machine_code.coming()

    def open(self, server: Server, level: int) -> None:
        """Add missing spaces for a level, between events.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        if level < OBJECTS or self.why_not:
            return
        if self._jvm.collector not in _WALKED:
            self.why_not = f"{self._jvm.collector} moves objects while the program runs, and they are not walked"
            return
        layout = self._view.layout() or self._view.look()
        if layout is None:
            return
        if self._walker is None:
            try:
                self._walker = self._make_walker()
            except (TargetGone, NotPermitted):
                raise
            except TargetError as error:
                self.why_not = str(error)
                return
            machine_code.want()
        if self._classes is None:
            self._classes = ClassSpace(server)
            self._objects = JavaObjectSpace(
                server,
                layout.tiling,
                self._classes,
                marks=layout.epoch.marks != 0,
                why_no_marks=_WHY_NO_MARKS.get(self._jvm.collector, ""),
            )
            self._ages = AgeSpace(server)
        if self._references is None and level >= REFERENCES:
            self._references = JavaReferenceSpace(server, layout.tiling)

    def tell_coming(self) -> None:
        """Report in the spaces, while the loops are being compiled, why objects are not walked."""
        tell_coming(self.spaces, coming=self.coming)

    def wanted(self, request: GatherRequest, level: int) -> bool:
        """Whether the data of a level is requested."""
        return level >= OBJECTS and any(request.wants(space) for space in self.spaces)

    def warm(self) -> None:
        """Allocate room for a copy; call it before a hold."""
        layout = self._view.layout()
        if layout is not None and self._walker is not None:
            self._walker.warm(layout)

    def copy(self, request: GatherRequest, level: int) -> JavaHeapCopy | None:
        """Copy the heap of the last reading (`HeapView.gather`): the only step during a hold.

        Args:
            request: The request.
            level: Up to which level.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        layout = self._view.layout()
        if layout is None or self._walker is None:
            return None
        self._moved_at_copy = self._moved()
        return self._walker.copy(
            layout, key=None if self._refers(request, level) else self._moved_at_copy
        )

    def gather(
        self,
        request: GatherRequest,
        level: int,
        copy: JavaHeapCopy | None = None,
        *,
        settled: bool = False,
    ) -> None:
        """Walk the heap and fill the spaces; if it cannot be walked now they keep their data, which is stale.

        Args:
            request: The request.
            level: Up to which level.
            copy: The copy from a hold; None: it is copied now, while the JVM runs.
            settled: Whether the copy is of a moment at which no collection was about to begin, so that it may be kept.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        walker, layout = self._walker, self._view.layout()
        if (
            walker is None
            or layout is None
            or self._classes is None
            or self._objects is None
            or self._ages is None
        ):
            return
        references = self._refers(request, level)
        if copy is not None:
            key = self._moved_at_copy if settled and not references else None
            found = walker.walk_copy(copy, references=references, key=key)
        else:
            now = walker.walk(layout, references=references, moved=self._moved)
            if now is None:
                return
            found = now
        self._classes.fill(found)
        self._objects.cut(found.layout.tiling)
        self._objects.fill(found)
        self._ages.fill(found)
        if self._references is not None and references:
            self._references.cut(found.layout.tiling)
            self._references.fill(found)
        tell_coming(self.spaces[:1], coming=self.coming)

    def _refers(self, request: GatherRequest, level: int) -> bool:
        """Return whether to search for references."""
        return (
            self._references is not None
            and level >= REFERENCES
            and request.wants(self._references.space)
        )

    def _moved(self) -> tuple[int, ...] | None:
        """Return a value that stays the same as long as no old object was moved; None if unknown.

        Collections of Serial's and Parallel's young generation only add to the old one, behind its
        top; those of G1 may affect any region.
        """
        counts = self._collections.now()
        if counts is None or counts.ticks is None:
            return None
        if (
            self._jvm.collector in ("Serial", "Parallel")
            and len(counts.invocations) == _YOUNG_AND_FULL
        ):
            return counts.invocations[1:]
        return counts.invocations

    def _make_walker(self) -> Walker:
        jvm = self._jvm
        form = read_form(jvm.memory, jvm.tables, jvm.flags)
        return Walker(
            Klasses(jvm.memory, jvm.tables, form),
            Copier(jvm.memory),
            ThreadBuffers(jvm.memory, jvm.tables, form),
            self._view,
        )
