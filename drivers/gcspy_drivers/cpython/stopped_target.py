"""Reads a CPython in stopped mode: all of its threads are stopped from the first pool header to the last object.

The hold covers the copying alone: pool headers, and at level 3 the pools themselves, into memory
that was allocated before; everything else is done after the program continues. Objects outside of
pools are read during the hold if they were known from the previous reading; new ones are read a
moment later. The collector's counters and the memory map are read while the program runs, as in
passive mode, and a pause stops the sampling. Each hold counts against the budget, is reported with
its event, and is a row of figures in the space "Holds".

Knows the target's readings and holds; knows neither ptrace nor the wire.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.cpython.collector.interpreters import Interpreter
from gcspy_drivers.cpython.target import ObjectCopies, PymallocHeap, Target
from gcspy_drivers.kit.stopped_mode import LONGEST_HOLD_SECS
from gcspy_drivers.kit.streams import add_amount
from gcspy_drivers.remote.process_hold import Hold, held
from gcspy_server.api import Presentation, Server, StringNames

__all__ = ["ABOUT_HOLDS", "HeldReader", "HoldSpace"]

ABOUT_HOLDS: Final = (
    "All threads are held while pools are read, and go on before anything is made of it: arenas, size classes and objects in pools "
    "are of one moment. The collector's counters, the memory map, and objects outside of pools that were not known before are "
    f"read while it runs. A hold ends after {LONGEST_HOLD_SECS:g} s whatever happens; a pause holds the sampling."
)

_HEADERS, _OBJECTS = 0, 1


class HoldSpace:
    """How long the program was held, and for what, as a space.

    Args:
        server: The server to add the space to.
    """

    def __init__(self, server: Server) -> None:
        self.space = server.add_space(
            "Holds",
            names=StringNames(["for pool headers", "for objects"]),
            driver="cpython",
            tile_title="Held ",
            description="Time for which all threads of the program were stopped for reading",
        )
        for order, (name, suffix, description) in enumerate(
            (
                (
                    "Held",
                    " µs",
                    "From the first thread stopped to the last one resumed, at this event",
                ),
                ("Longest", " µs", "The longest of all so far"),
                ("Threads", "", "Threads that were held"),
                ("Holds", "", "How often, so far"),
            )
        ):
            add_amount(
                self.space,
                name,
                description,
                order=order,
                suffix=suffix,
                presentation=Presentation.PLAIN,
            )
        self._longest = [0, 0]
        self._count = [0, 0]

    def fill(self, hold: Hold | None, *, objects: bool, note: str) -> None:
        """Fill the space for a hold.

        Args:
            hold: It; None: there was none at this event.
            objects: Whether it was for objects too.
            note: Further information.
        """
        tile = _OBJECTS if objects else _HEADERS
        self.space.reset()
        unknown = np.ones(2, dtype=np.bool_)
        text = []
        if hold is not None:
            self._longest[tile] = max(self._longest[tile], hold.nanos // 1000)
            self._count[tile] += 1
            unknown[tile] = False
            text.append(f"{hold.threads} threads were held for {hold.nanos / 1e6:.1f} ms")
        took, longest, threads, holds = self.space.streams
        longest.data[:], holds.data[:] = self._longest, self._count
        if hold is not None:
            took.data[tile], threads.data[tile] = hold.nanos // 1000, hold.threads
        for stream in (took, threads):
            stream.set_unknown(unknown)
        self.space.info = "; ".join([*text, note] if note else text)


class HeldReader:
    """Reads the heaps of one process in a hold, and reports how long that took.

    Args:
        target: The process.
        server: Where the space "Holds" is added; it is informed of each hold.
    """

    def __init__(self, target: Target, server: Server) -> None:
        self._target = target
        self._server = server
        self._space = HoldSpace(server)

    def read(
        self, interpreters: tuple[Interpreter, ...], *, objects: bool
    ) -> tuple[tuple[PymallocHeap, ...], ObjectCopies | None]:
        """Read the heaps; while it runs, with a note, where it cannot be held.

        Args:
            interpreters: Those that there are.
            objects: Whether to copy the content of the pools, too.

        Raises:
            TargetGone: The target has ended.
            TargetError: It cannot be read.
        """
        target, note = self._target, ""
        if objects and not target.warm(target.heaps(interpreters)):
            objects, note = (
                False,
                "not enough free memory to copy all objects at once: they were read while the program ran",
            )
        copies: ObjectCopies | None = None
        hold: Hold | None = None
        try:
            with held(target.process, longest_secs=LONGEST_HOLD_SECS) as hold:
                heaps = target.heaps(interpreters)
                if objects:
                    copies = target.copy_objects(heaps, interpreters)
        except TargetGone:
            raise
        except TargetError as error:
            if hold is not None:
                raise
            note = f"read while the program ran: {error}"
            heaps = target.heaps(interpreters)
        else:
            if hold.expired:
                note = f"it was resumed after {LONGEST_HOLD_SECS:g} s, before all was read: what changed then may be unknown"
        if hold is not None:
            self._server.held(hold.nanos)
        self._space.fill(hold, objects=copies is not None, note=note)
        return heaps, copies
