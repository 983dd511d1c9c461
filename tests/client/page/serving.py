"""A simulated lesson that is served to windows and to browsers, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gcspy.hosts.simulation_host import SimulatingOptions, fields_of_lesson, simulate
from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.lesson import BEGINS
from gcspy_server.server import ServedSession, Server

__all__ = ["TOKEN", "ServedLesson", "served_lesson"]

TOKEN = "a token of the class"


@dataclass(frozen=True)
class ServedLesson:
    """A served lesson.

    Attributes:
        address: Unix address of the session.
        page: Address of its page.
    """

    address: str
    page: str

    @property
    def place(self) -> tuple[str, int]:
        """Host and port of the page."""
        host, _, port = self.page.removeprefix("http://").rstrip("/").partition(":")
        return host, int(port)


@contextmanager
def served_lesson(name: str, folder: Path, *, web: str = "127.0.0.1:0") -> Iterator[ServedLesson]:
    """Serve a lesson during the block, and its page at an address."""
    stop, ready = threading.Event(), threading.Event()
    found: list[ServedLesson] = []

    def on_ready(_server: Server, listening: ServedSession) -> None:
        found.append(ServedLesson(listening.addresses[0], listening.pages[0]))
        ready.set()

    options = SimulatingOptions(
        simulation=fields_of_lesson(find_lesson(name)),
        listen=(f"unix:{folder}/lesson.sock",),
        token=TOKEN,
        pause_at=BEGINS,
        web=(web,),
    )

    def run() -> None:
        try:
            simulate(options, stop=stop, on_ready=on_ready)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="served lesson")
    thread.start()
    try:
        ready.wait()
        yield found[0]
    finally:
        stop.set()
        thread.join()
