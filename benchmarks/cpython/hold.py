"""How long a collection is held while its events are recorded or read: by size of the heap, median and longest.

A program keeps blocks of 512 bytes, makes a little garbage and collects the young generation, with
and without a client that wants every event; it reads the clock around each collection. The hold of
an event is half of what a collection takes longer than the median alone, as it has a start and an
end. The longest of many is a figure of the machine as well: the same alone is printed beside it,
and both of the collecting thread's processor time, which other processes lengthen less.
The share of gathered events is what the target's own statistics say, against what the client got.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from benchmarks.harness.figures import tell

__all__ = ["main"]

_BUDGETS = (20, 0.15), (200, 0.5), (2000, 4)
"""Of the median: up to this size, in MiB, so many ms."""

_TARGET = """
import gc, json, sys, time
import gcspy
kept = [bytes(470) for _ in range(int(sys.argv[1]) * 2048)]
gc.freeze(); gc.disable()
def batch(times, gap):
    took, used = [], []
    for _ in range(times):
        for _ in range(200):
            loop = []
            loop.append(loop)
        time.sleep(gap)
        begin, before = time.perf_counter_ns(), time.thread_time_ns()
        gc.collect(0)
        after, end = time.thread_time_ns(), time.perf_counter_ns()
        took.append(end - begin)
        used.append(after - before)
    return [took, used]
batch(50, 0.001)
print("ready", flush=True)
listening = None
for line in sys.stdin:
    what, *numbers = line.split()
    if what == "listen":
        listening = gcspy.listen(budget=None)
        print(listening.addresses[0], flush=True)
    elif what == "count":
        print(sum(one["collections"] for one in gc.get_stats()), flush=True)
    else:
        print(json.dumps(batch(int(numbers[0]), float(numbers[1]))), flush=True)
"""

_CLIENT = """
import sys
from gcspy.connection.link import connect
from gcspy_protocol.messages import Counters, Event, SetFilters
from gcspy_protocol.model import EventFilter
from gcspy_protocol.settings import SetSetting
with connect(sys.argv[1], client="bench", wants_control=True) as link:
    kinds = link.welcome.events
    link.send(SetFilters(filters=tuple(EventFilter(event=k.id, enabled=k.name != "Clock") for k in kinds)))
    link.send(SetSetting(id=1, value=int(sys.argv[2])))
    print("there", flush=True)
    got = 0
    for message in link:
        if isinstance(message, Event):
            got += 1
            print(got, message.gather_nanos, flush=True)
"""


class _Target:
    """The program that is measured, with a heap of so many MiB."""

    def __init__(self, mebibytes: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TARGET, str(mebibytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def ask(self, what: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self._line()

    def batch(self, times: int, gap_secs: float) -> tuple[list[float], list[float]]:
        """Return how long each collection took, by the clock and in processor time of its thread, in ms."""
        clock, processor = json.loads(self.ask(f"batch {times} {gap_secs}"))
        return [one / 1e6 for one in clock], [one / 1e6 for one in processor]

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def _measure(mebibytes: int, level: int, times: int, gap_secs: float) -> None:
    target = _Target(mebibytes)
    address = target.ask("listen")
    alone = target.batch(times, gap_secs)
    with subprocess.Popen(
        [sys.executable, "-c", _CLIENT, address, str(level)], stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        client.stdout.readline()
        target.batch(50, 0.01)  # the stub learns within 50 ms that there is a client
        before = int(target.ask("count"))
        held = target.batch(times, gap_secs)
        happened = int(target.ask("count")) - before
        time.sleep(2)
        client.kill()
        got = [line.split() for line in client.stdout if line.endswith("\n")]
    target.close()
    base, holds = _holds(alone[0], held[0])
    own_base, own = _holds(alone[1], held[1])
    gathering = [int(one[1]) / 1e6 for one in got[-2 * times :]]
    print(
        f"{mebibytes:6} MiB, level {level}: hold of an event, ms: median {statistics.median(holds):.3f}, "
        f"p99 {holds[len(holds) * 99 // 100]:.3f}, longest {holds[-1]:.3f} (alone, longest over its median: "
        f"{max(alone[0]) - base:.3f}); in processor time: median {statistics.median(own):.3f}, "
        f"p99 {own[len(own) * 99 // 100]:.3f}, longest {own[-1]:.3f} ({max(alone[1]) - own_base:.3f}); {len(gathering)} of {2 * happened} events; "
        f"gathering {statistics.median(gathering) if gathering else 0:.2f} ms an event beside the program",
        flush=True,
    )
    if level == 2:
        budget = next((f"<= {most}" for size, most in _BUDGETS if mebibytes <= size), "")
        tell(f"hold of an event, level 2, {mebibytes} MiB", statistics.median(holds), " ms", budget)
        tell(f"the same, processor time, {mebibytes} MiB", statistics.median(own), " ms", budget)


def _holds(alone: list[float], held: list[float]) -> tuple[float, list[float]]:
    """Return the median alone, and the hold of an event for each collection, ascending, in ms."""
    base = statistics.median(alone)
    return base, sorted((one - base) / 2 for one in held)


def main() -> None:
    """Print a line for each size and level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10,190", help="MiB of blocks, with commas")
    parser.add_argument("--levels", default="1,2")
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--gap", type=float, default=0.01, help="seconds between two collections")
    options = parser.parse_args()
    load = os.getloadavg()
    print(f"load {load[0]:.1f}; {options.times} collections, {options.gap} s apart, no budget")
    for size in map(int, options.sizes.split(",")):
        for level in map(int, options.levels.split(",")):
            _measure(size, level, options.times, options.gap)


if __name__ == "__main__":
    main()
