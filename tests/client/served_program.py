"""A program of its own that serves a heap and lets events happen until it is ended; prints its address."""

from __future__ import annotations

import sys
import time

import numpy as np

from gcspy_server.api import Server, UniformNames


def main(address: str) -> None:
    server = Server("served program", events=["Clock"])
    heap = server.add_space("Heap", names=UniformNames(0, 0x100, 20_000), main=True)
    used = heap.add_stream("Used", dtype="u2", maximum=60_000)
    random = np.random.default_rng(1)
    with server.serve(address) as listening:
        sys.stdout.write(listening.addresses[0] + "\n")
        sys.stdout.flush()
        while True:
            if server.should_transmit(0):
                heap.reset()
                used.data[:] = random.integers(0, 60_000, 20_000)
            server.finish(0)
            time.sleep(0.002)


if __name__ == "__main__":
    main(sys.argv[1])
