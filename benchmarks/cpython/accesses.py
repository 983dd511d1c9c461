"""Cost of following accesses: reading and protecting the pages of a heap of some size, and the program's faults.

    python -m benchmarks accesses [--mib N]... [--python PYTHON]

A program with a stub fills pools, stands still, and writes one byte to a share of its pages between two readings, as an access does. Times
are those of the sidecar, by the clock, the median of five; the program's are its own processor time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.page_ranges import PageRanges
from gcspy_drivers.remote.pages.protection import ProtectedPages
from gcspy_drivers.remote.pages.trial import try_pages
from gcspy_drivers.remote.process import Process

__all__ = ["main"]

_ARENA_BYTES = 1 << 20
_ROUNDS = 5
_SHARES = (0.01, 0.1, 1.0)

_PROGRAM = """
import array, ctypes, mmap, os, socket, sys, time
size = int(sys.argv[2]) << 20
memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
page = mmap.PAGESIZE
memory[::page] = bytes(size // page)
fd = ctypes.pythonapi.syscall({"x86_64": 323, "aarch64": 282}[os.uname().machine], os.O_CLOEXEC | os.O_NONBLOCK | 1)
line = socket.socket(fileno=int(sys.argv[1]))
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
socket.send_fds(line, [at.to_bytes(8, "little")], [fd])
os.close(fd)
for share in sys.stdin:
    much = int(float(share) * size)
    begun = time.process_time_ns()
    memory[:much:page] = bytes(-(-much // page))
    print(time.process_time_ns() - begun, flush=True)
"""


def _median(times: list[float]) -> str:
    return f"{1000 * statistics.median(times):.2f}"


def _measure(python: str, mib: int) -> None:
    import socket

    ours, theirs = socket.socketpair()
    with (
        theirs,
        subprocess.Popen(
            [python, "-c", _PROGRAM, str(theirs.fileno()), str(mib)],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as program,
    ):
        assert program.stdin is not None
        assert program.stdout is not None
        said, fds, _, _ = socket.recv_fds(ours, 8, 1)
        begin = int.from_bytes(said, "little")
        ranges = PageRanges.of(
            begin + np.arange(mib, dtype=np.uint64) * np.uint64(_ARENA_BYTES), _ARENA_BYTES
        )
        process = Process(program.pid)
        source = ProtectedPages(process, fds[0])

        def touch(share: float) -> float:
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.write(f"{share}\n")
            program.stdin.flush()
            return int(program.stdout.readline()) / 1e9

        begun = time.perf_counter()
        source.follow(ranges)
        source.written(ranges, protect=True)
        print(f"{mib} MiB: first protection {1000 * (time.perf_counter() - begun):.2f} ms")
        for share in _SHARES:
            looks, protects, releases, faults = [], [], [], []
            for _ in range(_ROUNDS):
                first = touch(share)
                faults.append(first - touch(share))
                begun = time.perf_counter()
                found = source.written(ranges)
                looks.append(time.perf_counter() - begun)
                begun = time.perf_counter()
                source.release(ranges)
                releases.append(time.perf_counter() - begun)
                begun = time.perf_counter()
                source.written(ranges, protect=True)
                protects.append(time.perf_counter() - begun)
            pages = int(mib * _ARENA_BYTES * share) // PAGE_BYTES
            print(
                f"  {share:.0%} written ({int(found.sum()):,} pages found): read {_median(looks)} ms, unprotect {_median(releases)} ms, "
                f"protect {_median(protects)} ms; program {_median(faults)} ms more, {1e9 * statistics.median(faults) / max(1, pages):.0f} ns a page"
            )
        source.close()
        process.close()
        program.stdin.close()
    ours.close()


def main() -> int:
    """Print the figures; the exit code is 1 where the kernel cannot do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mib", type=int, action="append", help="size (may be given again)")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    trial = try_pages()
    if not trial.works:
        print(f"benchmarks.cpython.accesses: {trial.refusal}", file=sys.stderr)
        return 1
    print(f"a fault on pages of ours: {trial.fault_nanos} ns; load {os.getloadavg()[0]:.1f}")
    for mib in options.mib or [64, 1024]:
        _measure(options.python, mib)
    return 0


if __name__ == "__main__":
    sys.exit(main())
