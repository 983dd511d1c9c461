"""A session of the driver, run by the test: ticks and waits happen when it says so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from gcspy_drivers.published.driver import PublishedDriver

from gcspy_server.api import AttachOptions, Event, Server
from tests.waiting import PATIENCE_SECS

__all__ = ["Seen", "Watch", "watching"]


@dataclass
class Seen:
    """An event with the arrays at that moment.

    Attributes:
        event: The event.
        values: Values by space and stream, only of streams that were gathered.
        unknown: Whether any of them is unknown.
    """

    event: Event
    values: dict[tuple[str, str], npt.NDArray[np.int64]]
    known: dict[tuple[str, str], npt.NDArray[np.bool_] | None]

    def __getitem__(self, key: tuple[str, str]) -> npt.NDArray[np.int64]:
        return self.values[key]


@dataclass
class Watch:
    """The driver at work.

    Attributes:
        driver: The driver.
        server: Its server.
        seen: The events so far.
    """

    driver: PublishedDriver
    server: Server
    seen: list[Seen] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """Keep an event."""
        streams = [
            (space, stream) for space in self.server.spaces for stream in space.streams if stream.gathered
        ]  # fmt: skip
        self.seen.append(
            Seen(
                event,
                {(one.name, each.name): each._values.astype(np.int64) for one, each in streams},
                {(one.name, each.name): each.known for one, each in streams},
            )
        )

    def next_of(self, kind: int) -> Seen:
        """Wait for an event of a kind that was not there yet."""
        have = len(self.seen)
        until = time.monotonic() + PATIENCE_SECS
        while time.monotonic() < until:
            self.driver.wait(0.05)
            for one in self.seen[have:]:
                if one.event.event == kind:
                    return one
        raise AssertionError(f"no event of kind {kind}")


@contextmanager
def watching(pid: int, *, observed: bool = True) -> Iterator[Watch]:
    """Watch a program for the body of the `with`; the program knows what is wanted then."""
    driver = PublishedDriver.attach(pid, AttachOptions())
    assert isinstance(driver, PublishedDriver)
    try:
        server = driver.describe().server(budget=None)
        driver.open(server)
        watch = Watch(driver, server)
        if observed:
            server.add_observer(watch.note)
        driver.wait(0)
        yield watch
    finally:
        driver.close()
