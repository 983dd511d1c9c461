"""A target of its own: lets events happen until it is ended, and counts them in a file as it goes.

The file holds the number of the last event it began, 8 bytes: the target's own count, whatever
clients received. Prints its address.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
from pathlib import Path

from gcspy_server.api import PauseActsOn, Server, UniformNames

TOKEN = "counting-target-token"
TILES = 64


def main(counter: Path) -> None:
    server = Server("counting target", events=["Tick"], pause_acts_on=PauseActsOn.PROGRAM)
    heap = server.add_space("Heap", names=UniformNames(0, 0x100, TILES), main=True)
    used = heap.add_stream("Used", dtype="u4", maximum=1 << 20)
    with (
        counter.open("r+b") as file,
        mmap.mmap(file.fileno(), 8) as shared,
        server.serve("127.0.0.1:0", token=TOKEN) as listening,
    ):
        sys.stdout.write(listening.addresses[0] + "\n")
        sys.stdout.flush()
        number = 0
        while os.getppid() == _PARENT:
            number += 1
            shared[:] = struct.pack("<Q", number)
            if server.should_transmit(0):
                heap.reset()
                used.data[:] = number
            server.finish(0)
            time.sleep(0.002)


_PARENT = os.getppid()

if __name__ == "__main__":
    main(Path(sys.argv[1]))
