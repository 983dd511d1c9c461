"""Idle memory of programs: runs one with gcspy's stub, and prints types by idle bytes when its last full collection starts.

    python docs/accesses/run.py [--python PYTHON] PROGRAM.py [ARGUMENTS]…

Does what `gcspy run --level 3` does, without a window: so the figures are those of the space "Types".
"""

import argparse
import os
import socket
import subprocess

import numpy as np
from gcspy_drivers.cpython.cooperation import bootstrap, stub
from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver
from gcspy_protocol.errors import TargetError

from gcspy_server.api import AttachOptions, Event, Server, StringNames

_FULL = "generation 2"
_ROWS = 8


class _Idle:
    """Values of the space "Types" at the start of the latest full collection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.rows: list[tuple[int, int, str]] = []
        self.arenas = ""
        self.total = (0, 0)

    def take(self, event: Event) -> None:
        """Keep the values, if it is such an event."""
        if not event.cause.startswith(_FULL) or "collected" in event.cause:
            return
        spaces = {space.name: space for space in self._server.spaces}
        types = spaces["Types"]
        values = {stream.name: stream.values.astype(np.int64) for stream in types.streams}
        idle, size = values["Idle bytes"], values["Bytes"]
        self.total = int(idle.sum()), int(size.sum())
        self.arenas = spaces["pymalloc arenas"].info.partition("; accesses")[2]
        largest = np.argsort(-idle, kind="stable")[:_ROWS].tolist()
        assert isinstance(types.names, StringNames)
        self.rows = [(int(idle[row]), int(size[row]), types.names.names[row]) for row in largest]


def main() -> None:
    """Run it, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default="python3")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [options.python, bootstrap.__file__, stub.__file__, "", str(theirs.fileno()), ""]
        program = subprocess.Popen(
            [*command, "script", *options.program], pass_fds=(theirs.fileno(),)
        )
    chosen = AttachOptions(stub_fd=os.dup(ours.fileno()), level=3)
    ours.close()
    driver = CooperativeDriver.attach(program.pid, chosen)
    server = driver.describe().server(budget=None)
    idle = _Idle(server)
    server.add_observer(idle.take)
    try:
        driver.open(server)
        while True:
            driver.notice()
            driver.sample()
            driver.wait(0.25)
    except TargetError:
        program.wait()
    finally:
        driver.close()
    print(f"{idle.total[0]:,} of {idle.total[1]:,} bytes in idle pools; {idle.arenas}")
    for unused, size, name in idle.rows:
        print(f"{unused:>12,} of {size:>12,}  {name}")


if __name__ == "__main__":
    main()
