"""A viewer of a large heap that is stopped by a signal: the server's memory is bounded, and others get every event."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gcspy_server.api import ServedSession, Server, UniformNames
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

_TILES = 1_000_000
_EVENTS = 50

_VIEWER = """
import sys
from gcspy.connection.link import connect
link = connect(sys.argv[1], client="stopped")
print("here", flush=True)
sys.stdin.readline()
link.close()
"""


def memory_bytes() -> int:
    """Return the resident set of this process, which contains the server."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def test_a_stopped_viewer_of_a_million_tiles_costs_bounded_memory_and_nobody_an_event(
    serve: Serve, join: Join
) -> None:
    server = Server("large", events=["tick"])
    space = server.add_space("heap", names=UniformNames(0x1000, 16, _TILES), main=True)
    stream = space.add_stream("value", dtype="i8", maximum=1 << 62)
    address = serve(server).addresses[0]
    witness = join(address)
    # Numbers that do not compress: each event has eight megabytes, all of them four hundred.
    values = np.random.default_rng(1).integers(0, 1 << 62, _TILES, dtype=np.int64)

    def event() -> None:
        assert server.should_transmit(0)
        np.add(values, 1, out=stream.data)
        np.copyto(values, stream.data)
        values[:] = np.roll(values, 1)
        server.finish(0)
        witness.event()
        witness.diary.clear()  # or this process would keep all of them

    event()
    with subprocess.Popen(
        [sys.executable, "-c", _VIEWER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"
            witness.until(lambda: len(witness.state.clients.clients) == 2)
            process.send_signal(signal.SIGSTOP)
            for _ in range(5):
                event()
            before = memory_bytes()
            for _ in range(_EVENTS):
                event()
            grown = memory_bytes() - before
        finally:
            process.kill()
    # 64 MiB wait for it, and a keyframe may be on its way besides.
    assert grown < 160 << 20, f"{grown / 2**20:.0f} MiB"
    assert witness.state.missed_total == 0
    assert len(witness.changes) == _EVENTS + 6, "the others get every event"
