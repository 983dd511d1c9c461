"""Takes pictures of what is large, at several sizes of the window: ``python screenshots/large.py``.

A heap of many tiles at three scales, 200 spaces, a G1 heap of 2,048 regions, and a process that has ended.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from event_loop import let_live

from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from gcspy_client.app import take_screenshot
from gcspy_client.view.window import MainWindow
from gcspy_server.api import Server, UniformNames

HERE = Path(__file__).parent
SETTLE_SECS = 2.0
TILES = 262_144
SPACES, SPACE_TILES = 200, 64
HEAP = """
import random, sys
choose = random.Random(1)
kept = [[number] * choose.randrange(1, 30) for number in range(1_500_000)]
for number in range(0, len(kept), 3):
    if choose.random() < number / len(kept):
        kept[number] = None
print("ready", flush=True)
sys.stdin.read()
"""
"""Lists of different sizes, of which more and more were freed."""

JVM = ("-Xms2g", "-Xmx2g", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m")
JVM_MEGABYTES = 400

_Arrange = Callable[[MainWindow], None]


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program for the body of the `with`, which begins when it has written a line."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


@contextmanager
def watched(pid: int, *, tiles: int = 65_536) -> Iterator[str]:
    """Monitor a process for the body of the `with`; gives the session's address."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        serving = ServingOptions(pid=pid, listen=(f"unix:{folder}/session.sock",), tiles=tiles)
        with start_sidecar(serving) as sidecar:
            yield sidecar.addresses[0]


def zoom(window: MainWindow, steps: int) -> None:
    """Zoom to a pixel for each tile, and in by a number of steps, around the middle of the heap."""
    spaces = window.session.interpreter.spaces
    space = next(number for number, one in spaces.items() if one.space.main)
    window.selection.select(space, spaces[space].count // 2)
    window.views.zoom_to_tiles()
    for _ in range(steps):
        window.views.zoom(space, 1)
    let_live(SETTLE_SECS)


def end(_window: MainWindow, process: subprocess.Popen[str]) -> None:
    """End the process, and wait until the window has noticed."""
    process.kill()
    let_live(SETTLE_SECS)


def fill(server: Server, number: int, stop: threading.Event) -> None:
    """Let events happen whose values change a little each time."""
    random = np.random.default_rng(7)
    fills = random.random((len(server.spaces), SPACE_TILES))
    server.wait_for_client(60)
    while not stop.wait(0.2):
        if server.should_transmit(number):
            fills = np.clip(fills + random.normal(0, 0.03, fills.shape), 0, 1)
            for space, values in zip(server.spaces, fills, strict=True):
                space.reset()
                space.streams[0].data[:] = (values * 4096).astype(np.int32)
        server.finish(number)


@contextmanager
def many_spaces() -> Iterator[str]:
    """Serve a program with 200 spaces for the body of the `with`; gives the session's address."""
    server = Server("200 spaces", events=("Clock",))
    for number in range(SPACES):
        space = server.add_space(
            f"Thread {number:,} allocation buffer",
            names=UniformNames(number << 20, 64, SPACE_TILES),
            main=number == 0,
        )
        space.add_stream("Used", dtype="i4", maximum=4096, suffix=" bytes")
    stop = threading.Event()
    thread = threading.Thread(target=fill, args=(server, 0, stop))
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        address = f"unix:{folder}/session.sock"
        server.serve(address)
        thread.start()
        try:
            yield address
        finally:
            stop.set()
            thread.join()
            server.close()


def shoot(
    address: str,
    name: str,
    size: tuple[int, int],
    theme: str,
    arrange: _Arrange = lambda _window: let_live(SETTLE_SECS),
) -> None:
    """Take one picture."""
    take_screenshot(
        address,
        HERE / name,
        size=size,
        theme=theme,
        timeout_secs=120,
        settle_events=5,
        settle_secs=1.0,
        arrange=arrange,
        control=True,
    )


def take_zoomed(steps: int, name: str, size: tuple[int, int], theme: str) -> None:
    """A large heap at one scale; a negative number of steps: all of it."""
    with (
        running(sys.executable, "-c", HEAP) as process,
        watched(process.pid, tiles=TILES) as address,
    ):
        if steps < 0:
            shoot(address, name, size, theme)
        else:
            shoot(address, name, size, theme, partial(zoom, steps=steps))


def take_spaces(name: str, size: tuple[int, int], theme: str) -> None:
    """A session of 200 spaces."""
    with many_spaces() as address:
        shoot(address, name, size, theme)


def take_regions(name: str, size: tuple[int, int], theme: str) -> None:
    """A heap of 2,048 regions; says so where there is no JDK."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        print(f"no JDK on PATH: {name} stays as it is", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        subprocess.run(["javac", "-d", folder, str(HERE / "Load.java")], check=True)
        command = ["java", *JVM, "-cp", folder, "Load", str(JVM_MEGABYTES)]
        with running(*command) as process, watched(process.pid) as address:
            shoot(address, name, size, theme)


def take_ended(name: str, size: tuple[int, int], theme: str) -> None:
    """A window whose process has ended: what came stays."""
    with running(sys.executable, "-c", HEAP) as process, watched(process.pid) as address:
        shoot(address, name, size, theme, partial(end, process=process))


PICTURES: dict[str, Callable[[], None]] = {
    "whole": partial(take_zoomed, -1, "large-whole-1280x720.png", (1280, 720), "dark"),
    "tiles": partial(take_zoomed, 5, "large-tiles-light.png", (1600, 1000), "light"),
    "labels": partial(take_zoomed, 20, "large-labels-3840x2160.png", (3840, 2160), "dark"),
    "spaces": partial(take_spaces, "spaces-200-dark.png", (1600, 1000), "dark"),
    "spaces-small": partial(take_spaces, "spaces-200-1280x720.png", (1280, 720), "light"),
    "regions": partial(take_regions, "jvm-2048-regions.png", (1600, 1000), "light"),
    "ended": partial(take_ended, "ended-1280x720.png", (1280, 720), "light"),
}


def main(arguments: list[str]) -> int:
    """Take all, or those that are named, each in a process of its own: Qt reads the scale of the screen once."""
    if len(arguments) == 1 and os.environ.get("GCSPY_PICTURE") == arguments[0]:
        PICTURES[arguments[0]]()
        return 0
    for name in arguments or PICTURES:
        environment = {**os.environ, "GCSPY_PICTURE": name}
        subprocess.run([sys.executable, __file__, name], check=True, env=environment)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
