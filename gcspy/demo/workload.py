"""A small web-like service with an interesting heap, as a target for demos and tests.

It does not depend on GCspy or on anything outside the standard library, so that any Python from 3.9
to 3.13 runs it as a plain script: ``python3.12 gcspy/demo/workload.py``. No sockets: its visitors
are in the same process.

Its heap shows:

* an LRU cache of rendered pages, which fills and then replaces its entries;
* visitors' sessions that refer to their carts and back, so that only the cycle collector frees them;
* JSON documents, parsed at each request and dropped after it;
* a periodic import of a catalogue: arenas are allocated, and most of them freed. A few records are
  kept from each import, and keep the arenas they are in;
* a leak: the handler of ``/checkout`` registers a listener with the metrics and never removes it.

Everything that happens is a function of the seed and of the number of the tick, never of the clock:
two runs with one seed build the same objects in the same order. The clock only determines how fast
ticks follow each other.

Runs until it is stopped: SIGTERM, Ctrl-C, ``--seconds``, ``--ticks``, or the end of its standard
input if that is a pipe. It then prints a summary and exits 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import stat
import sys
import time
import zlib
from collections import OrderedDict
from typing import Any, Callable, Optional

TICK_SECS = 0.05
REQUESTS_PER_TICK = 60
CACHE_PAGES = 4000
SESSIONS = 1500
DOCUMENTS = 8000
IMPORT_EVERY_TICKS = 240
IMPORT_BATCHES = 5
IMPORT_BATCH_EVERY_TICKS = 8
IMPORT_ENDS_AT_TICK = 120
IMPORT_RECORDS = 120_000
KEPT_OF_IMPORT = 200  # number of consecutive records that outlive their import
CHECKOUTS = 0.03  # the share of requests that leak

WORDS = (
    *(
        "amber",
        "basalt",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "garnet",
        "harbour",
        "indigo",
        "juniper",
        "kelp",
    ),
    *(
        "lagoon",
        "maple",
        "nectar",
        "onyx",
        "pebble",
        "quartz",
        "river",
        "saffron",
        "thistle",
        "umber",
        "violet",
    ),
    *("willow", "xenon", "yarrow", "zephyr"),
)


class Cart:
    """A visitor's shopping cart. It refers to its session, which refers to it: a cycle."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lines: list[dict[str, object]] = []


class Session:
    """One visitor, with the pages seen recently."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.cart = Cart(self)
        self.trail: list[str] = []

    def visited(self, path: str) -> None:
        """Remember a page, and forget the oldest of a long trail."""
        self.trail.append(path)
        if len(self.trail) > 20:
            del self.trail[0]


class Metrics:
    """Counters, and listeners that the program forgets to remove."""

    def __init__(self) -> None:
        self.requests = 0
        self.hits = 0
        self.imports = 0
        self.checksum = 0
        self.listeners: list[Callable[[], int]] = []

    def listen(self, listener: Callable[[], int]) -> None:
        """Register a listener. This is where the leak ends up."""
        self.listeners.append(listener)


class PageCache:
    """Rendered pages, evicted in LRU order. A page is a list of fragments, as templates make."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.pages: OrderedDict[str, list[str]] = OrderedDict()

    def get(self, path: str) -> Optional[list[str]]:
        """Return a page, or None if it is not cached."""
        page = self.pages.get(path)
        if page is not None:
            self.pages.move_to_end(path)
        return page

    def put(self, path: str, page: list[str]) -> None:
        """Add a page, and evict the least recently used one."""
        self.pages[path] = page
        if len(self.pages) > self.limit:
            self.pages.popitem(last=False)


class CatalogueImport:
    """The periodic burst: records are loaded over some ticks, kept for some, and dropped at once except a few."""

    def __init__(self, rng: random.Random, records: int) -> None:
        self._rng = rng
        self._batch = max(1, records // IMPORT_BATCHES)
        self.records: list[dict[str, object]] = []
        self.index: dict[str, list[int]] = {}
        self.kept: list[list[dict[str, object]]] = []

    def tick(self, phase: int) -> bool:
        """Do the part of an import that belongs to this tick.

        Args:
            phase: ticks since the import was due.

        Returns:
            Whether an import ended with this tick.
        """
        batch, rest = divmod(phase, IMPORT_BATCH_EVERY_TICKS)
        if batch < IMPORT_BATCHES and rest == 0:
            # A batch at a time, not a few records per tick: otherwise the pages cached meanwhile
            # would lie among the records in every arena, and no arena could be freed with the
            # records.
            for number in range(len(self.records), len(self.records) + self._batch):
                name = f"{self._rng.choice(WORDS)}-{number}"
                self.records.append({"id": number, "name": name, "price": self._rng.random() * 100})
                self.index.setdefault(name[:5], []).append(number)
        if phase != IMPORT_ENDS_AT_TICK:
            return False
        middle = len(self.records) // 2
        self.kept.append(self.records[middle : middle + KEPT_OF_IMPORT])
        del self.kept[:-3]
        self.records = []
        self.index = {}
        return True


class Site:
    """The service: documents, cache, sessions, and a handler for each kind of request.

    Args:
        seed: two sites of one seed and scale do the same.
        scale: multiplies the sizes of everything kept.
    """

    def __init__(self, seed: int, scale: float) -> None:
        self._rng = random.Random(seed)
        self.metrics = Metrics()
        self.cache = PageCache(max(1, int(CACHE_PAGES * scale)))
        self.sessions: OrderedDict[int, Session] = OrderedDict()
        self.imports = CatalogueImport(self._rng, int(IMPORT_RECORDS * scale))
        self._session_limit = max(1, int(SESSIONS * scale))
        self._next_session = 0
        self.ticks = 0
        self.documents = [
            self._document(number) for number in range(max(1, int(DOCUMENTS * scale)))
        ]

    def tick(self) -> None:
        """Do one twentieth of a second's work, at whatever speed."""
        phase = self.ticks % IMPORT_EVERY_TICKS
        self.ticks += 1
        if self.imports.tick(phase):
            self.metrics.imports += 1
        for _ in range(REQUESTS_PER_TICK):
            self._serve()

    def state(self) -> str:
        """Return one line about the current state of the service."""
        metrics = self.metrics
        hit_rate = 100 * metrics.hits // max(1, metrics.requests)
        return (
            f"requests={metrics.requests} cache={len(self.cache.pages)} hits={hit_rate}% "
            f"sessions={len(self.sessions)} records={len(self.imports.records)} imports={metrics.imports} "
            f"leaked={len(metrics.listeners)} checksum={metrics.checksum:08x}"
        )

    def _document(self, number: int) -> str:
        rng = self._rng
        fields = {
            "id": number,
            "title": " ".join(rng.choice(WORDS) for _ in range(3)),
            "price": round(rng.random() * 100, 2),
            "tags": [rng.choice(WORDS) for _ in range(rng.randrange(1, 9))],
            "reviews": [
                {
                    "stars": rng.randrange(1, 6),
                    "text": " ".join(rng.choice(WORDS) for _ in range(rng.randrange(2, 16))),
                }
                for _ in range(rng.randrange(6))
            ],
        }
        return json.dumps(fields)

    def _serve(self) -> None:
        rng = self._rng
        self.metrics.requests += 1
        session = self._session()
        if rng.random() < CHECKOUTS:
            self._checkout(session)
            return
        # Popular documents are requested often: the cache is useful, and yet its entries are
        # replaced.
        number = int(len(self.documents) * rng.random() ** 3)
        path = f"/item/{number}"
        session.visited(path)
        page = self.cache.get(path)
        if page is None:
            page = self._render(json.loads(self.documents[number]))
            self.cache.put(path, page)
        else:
            self.metrics.hits += 1
        body = "".join(page).encode()
        self.metrics.checksum = zlib.crc32(body, self.metrics.checksum)
        if rng.random() < 0.2:
            session.cart.lines.append({"path": path, "count": rng.randrange(1, 4)})
        if rng.random() < 0.01:  # an edit: the old text and its page are dropped
            self.documents[number] = self._document(number)
            self.cache.pages.pop(path, None)

    def _session(self) -> Session:
        rng = self._rng
        if self.sessions and rng.random() < 0.9:
            newest = self._next_session - 1
            session = self.sessions.get(newest - rng.randrange(self._session_limit))
            if session is not None:
                return session
        session = Session(self._next_session)
        self._next_session += 1
        self.sessions[session.number] = session
        if len(self.sessions) > self._session_limit:
            self.sessions.popitem(last=False)  # its cycle with its cart is left to the collector
        return session

    def _checkout(self, session: Session) -> None:
        order = {
            "session": session.number,
            "lines": session.cart.lines,
            "note": f"order of {session.number}",
        }
        session.cart.lines = []
        self.metrics.listen(lambda: len(order))

    @staticmethod
    def _render(document: dict[str, object]) -> list[str]:
        page = [f"<h1>{document['title']}</h1>", f"<p class=price>{document['price']}</p>"]
        page += [f"<a href='/tag/{tag}'>{tag}</a>" for tag in _list(document["tags"])]
        page += [
            f"<blockquote data-stars='{review['stars']}'>{review['text']}</blockquote>"
            for review in _list(document["reviews"])
        ]
        page.append(f"<footer>{zlib.crc32(repr(document).encode()):08x}</footer>")
        return page


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


class Stop:
    """Whether the program was asked to stop, by a signal or by the end of its standard input."""

    def __init__(self) -> None:
        self.asked = False
        # Only a pipe: a terminal has no end until the user types it, and /dev/null is at its end
        # from the start.
        self._pipe = False
        try:
            self._pipe = stat.S_ISFIFO(os.fstat(0).st_mode)
        except OSError:
            pass
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def wait(self, secs: float) -> None:
        """Sleep, and wake up early when asked to stop."""
        if not self._pipe:
            time.sleep(secs)
            return
        if select.select([0], [], [], secs)[0] and not os.read(0, 4096):
            self.asked = True

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.asked = True


def permit_reading() -> None:
    """Let other processes of the same user read this one, where Linux (Yama, ptrace_scope 1) permits only ancestors.

    A target need not do this; the demo does, so that it works for a user without further rights.
    Source: prctl(2), PR_SET_PTRACER. Without Yama the call fails, which is harmless.
    """
    if sys.platform == "linux":
        import ctypes

        set_ptracer, anybody = 0x59616D61, ctypes.c_ulong(-1)
        ctypes.CDLL(None).prctl(set_ptracer, anybody, 0, 0, 0)


def run(site: Site, stop: Stop, *, load: float, seconds: float, ticks: int) -> None:
    """Tick until asked to stop, and print a line a second.

    Args:
        site: what to run.
        stop: asked between ticks.
        load: the maximum share of one core, 0 < load <= 1.
        seconds: an end in seconds, 0 for none.
        ticks: an end in ticks, 0 for none.
    """
    started = time.monotonic()
    next_line = started + 1
    while not stop.asked:
        tick_started = time.monotonic()
        if (seconds and tick_started - started >= seconds) or (ticks and site.ticks >= ticks):
            break
        site.tick()
        now = time.monotonic()
        if now >= next_line:
            print(f"{int(now - started)} s {site.state()}", flush=True)
            next_line = max(next_line + 1, now)
        busy = now - tick_started
        stop.wait(0 if load >= 1 else max(TICK_SECS - busy, busy * (1 / load - 1)))


def main(arguments: Optional[list[str]] = None) -> int:
    """Run the program; see the module's docstring.

    Args:
        arguments: without the program's name; by default those of this process.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(
        description="A small web-like service whose heap is worth watching."
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="same seed, same objects (default %(default)s)"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="multiplies all sizes (default %(default)s)"
    )
    parser.add_argument(
        "--load", type=float, default=0.3, help="share of a core, at most (default %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="stop after this time (default: never)"
    )
    parser.add_argument(
        "--ticks", type=int, default=0, help="stop after this many ticks (default: never)"
    )
    options = parser.parse_args(arguments)
    if not 0 < options.load <= 1 or options.scale <= 0:
        parser.error("--load is a share above 0 and up to 1, --scale is above 0")
    permit_reading()
    stop = Stop()
    site = Site(options.seed, options.scale)
    print(
        f"serving: pid {os.getpid()}, Python {sys.version.split()[0]}, seed {options.seed}",
        flush=True,
    )
    run(site, stop, load=options.load, seconds=options.seconds, ticks=options.ticks)
    print(f"stopped: {site.state()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
