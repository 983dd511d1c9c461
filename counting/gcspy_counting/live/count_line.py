"""The program's end of a line over which a monitoring process asks for counts.

The bytes are in `count_answer`. The thread that answers ends when the line does; then the program gets its code back.
"""

from __future__ import annotations

import array
import json
import linecache
import select
import socket
import sys
import threading
import time
from typing import Any

from gcspy_counting.code_unit import CodeUnit
from gcspy_counting.live.count_answer import HEADER, MAGIC
from gcspy_counting.live.running_program import RunningProgram
from gcspy_counting.planner import Planner
from gcspy_counting.program import CountedProgram

__all__ = ["LARGEST_SHARE", "CountLine"]

LARGEST_SHARE = 0.02
"""Maximum share of the program's time that answers may take, if nothing else is said."""
_LONGEST_REST_SECS = 5.0
_MOST_NEW = 20_000
"""Maximum new sites of an answer."""
_LARGEST_SOURCE = 1 << 20
"""Characters of the largest source file that is sent."""
_MOST_CARRIERS = (1 << 16) - 1


class CountLine:
    """Answers until the other end is closed.

    Args:
        connection: Our end; closed at the end.
        program: The program's counters.
        planner: Plans counters anew; None: nobody does.
        running: Gives counters to functions that are there already, and gives code back.
        is_running: Whether functions are there already.
        share: Maximum share of the program's time that answers may take.
    """

    def __init__(
        self,
        connection: socket.socket,
        program: CountedProgram,
        planner: Planner | None,
        running: RunningProgram,
        *,
        is_running: bool,
        share: float,
    ) -> None:
        self._share = share
        self._connection = connection
        self._program = program
        self._planner = planner
        self._running = running
        self._is_running = is_running
        self._shown: list[CodeUnit] = []
        self._first_site: dict[int, int] = {}
        self._carriers: dict[int, tuple[int, array.array[int]]] = {}
        self._sites = 0
        self._files: dict[str, int] = {}
        self._ended = False

    def start(self) -> None:
        """Begin, in threads of its own."""
        threading.Thread(target=self._live, name="gcspy-counts", daemon=True).start()
        if self._is_running:
            threading.Thread(target=self._instrument, name="gcspy-counters", daemon=True).start()

    def _instrument(self) -> None:
        self._running.instrument(self._goes_on)

    def _goes_on(self, secs: float) -> bool:
        time.sleep(secs)
        return not self._ended

    def _live(self) -> None:
        if self._planner is not None:
            self._planner.start()
        try:
            with self._connection:
                while self._connection.recv(1):
                    begin = time.thread_time()
                    self._connection.sendall(self._answer())
                    self._rest(time.thread_time() - begin)
        except OSError:
            pass  # the other end was closed meanwhile
        self._ended = True
        if self._planner is not None:
            self._planner.stop()
        self._running.give_back()

    def _rest(self, spent: float) -> None:
        """Wait, so that answers take no larger share of the time; the end of the line ends the wait."""
        secs = min(spent / self._share, _LONGEST_REST_SECS)
        poll = select.poll()
        poll.register(self._connection, select.POLLHUP | select.POLLRDHUP)
        poll.poll(round(secs * 1000))

    def _answer(self) -> bytes:
        found = self._program.read()
        counts_of = {
            id(unit): counts for unit, counts in zip(found.units, found.counts, strict=True)
        }
        sites, files = self._add(found.units)
        counts = array.array("q", bytes(8 * self._sites))
        carriers = array.array("H", bytes(2 * self._sites))
        for unit in self._shown:
            at = self._first_site[id(unit)]
            mine = counts_of[id(unit)]
            counts[at : at + len(mine)] = array.array(
                "q", [-1 if each is None else each for each in mine]
            )
            carriers[at : at + len(mine)] = self._carriers_of(unit)
        if sys.byteorder == "big":
            counts.byteswap()
            carriers.byteswap()
        told: dict[str, Any] = {
            "sites": sites,
            "files": files,
            "increments": found.increments,
            "counters": self._program.counters(),
            "code_objects": len(found.units),
            "not_countable": self._program.not_countable,
            "raises": self._program.raises(),
            "instrumenting_secs": self._program.instrumenting_secs,
            "uncounted": found.uncounted,
            "found": self._running.found,
            "done": self._running.done,
            "cold": self._running.cold,
        }
        text = json.dumps(told).encode()
        header = HEADER.pack(MAGIC, len(text), self._sites, found.time_nanos, found.took_nanos)
        return b"".join((header, text, counts.tobytes(), carriers.tobytes()))

    def _carriers_of(self, unit: CodeUnit) -> array.array[int]:
        """Return from how many counters each site of a code object follows, as its latest version has them."""
        known = self._carriers.get(id(unit))
        if known is None or known[0] != len(unit.versions):
            latest = unit.latest
            carriers = {} if latest is None else latest.carriers()
            found = array.array(
                "H", [min(carriers.get(row, 0), _MOST_CARRIERS) for row in unit.rows]
            )
            known = self._carriers[id(unit)] = len(unit.versions), found
        return known[1]

    def _add(self, units: list[CodeUnit]) -> tuple[list[list[Any]], list[list[Any]]]:
        """Number the sites of code objects that are new, by file and line; return them, and their new files."""
        new = [unit for unit in units if unit.rows and id(unit) not in self._first_site]
        new.sort(key=lambda unit: (unit.original.co_filename, unit.original.co_firstlineno))
        sites: list[list[Any]] = []
        files: list[list[Any]] = []
        for unit in new:
            if len(sites) > _MOST_NEW:
                break
            self._first_site[id(unit)] = self._sites
            self._shown.append(unit)
            self._sites += len(unit.rows)
            for place in unit.places:
                if place.file not in self._files:
                    self._files[place.file] = len(self._files)
                    files.append([place.file, _source_of(place.file)])
                size = -1 if place.size is None else place.size
                where = self._files[place.file], place.line, place.column, place.function
                sites.append([*where, place.what, int(place.always), size])
        return sites, files


def _source_of(file: str) -> str | None:
    """Return the source of a file; None: there is none, or it is too large."""
    known = file in linecache.cache
    try:
        text = "".join(linecache.getlines(file))
    except (OSError, ValueError, SyntaxError, MemoryError):
        return None
    finally:
        if not known:
            linecache.cache.pop(file, None)
    return text if text and len(text) <= _LARGEST_SOURCE else None
