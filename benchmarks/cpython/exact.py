"""The cost of exact events: a collection with a stub without listeners, and with a client that wants every event, in pairs.

One program makes garbage and collects it, a fixed number of times per batch: alone, with
`gcspy.listen()`, and with a client without a filter, under the default budget and without one, in
turn, again and again. The results are the ratio to the batch alone right before, and the
microseconds per collection (its two events). With a client nearly all of it is the wait until the
heap has been read and sent. Without one it is the target's own processor time, as machines are
shared. The budget itself counts how many of the events were gathered, and the time it estimates it
spent.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

from benchmarks.harness.figures import tell

__all__ = ["main"]

_TARGET = """
import gc, sys, time
import gcspy
kept = [[{} for _ in range(100)] for _ in range(int(sys.argv[1]) // 100)]
gc.freeze()
gc.disable()
def batch(times):
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        for _ in range(700):
            loop = []
            loop.append(loop)
        gc.collect(0)
    return time.perf_counter() - start, time.process_time() - cpu
listening = None
print("ready", flush=True)
for line in sys.stdin:
    what, _, number = line.strip().partition(" ")
    if what == "listen":
        listening = gcspy.listen(budget=float(number) if number else None)
        print(listening.addresses[0], flush=True)
    elif what == "close":
        listening.close()
        print("closed", flush=True)
    else:
        print(*batch(int(number)), flush=True)
"""

_CLIENT = """
import sys
from gcspy.connection.link import connect
from gcspy_protocol.messages import Budget
with connect(sys.argv[1], client="bench") as link:
    print("there", flush=True)
    for message in link:
        if isinstance(message, Budget):
            print(sum(message.gathered[1:]), sum(message.left_out[1:]), message.spent, flush=True)
"""


class Target:
    """The program that is measured.

    Args:
        python: Its interpreter, which has gcspy.
        objects: Dictionaries that it keeps besides.
    """

    def __init__(self, python: str, objects: int) -> None:
        self.process = subprocess.Popen(
            [python, "-c", _TARGET, str(objects)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.read()

    def read(self) -> str:
        """Its next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, what: str) -> str:
        """Have it do something, and wait until it has."""
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.read()

    def with_client(self, budget: str, times: int) -> tuple[float, list[tuple[int, ...]]]:
        """As `batch`, with a client that wants every event; and what the budget said from its begin to its end."""
        address = self.ask(f"listen {budget}".strip())
        with subprocess.Popen(
            [sys.executable, "-c", _CLIENT, address], stdout=subprocess.PIPE, text=True
        ) as client:
            assert client.stdout is not None
            client.stdout.readline()
            self.batch(max(1, times // 4))  # the stub learns within 50 ms that there is a client
            took = self.batch(times)
            client.kill()
            told = [tuple(map(int, line.split())) for line in client.stdout if line.endswith("\n")]
        self.ask("close")
        return took, told

    def batch(self, times: int, *, own: bool = False) -> float:
        """Microseconds a round, by the clock, or of its own processor time."""
        wall, cpu = self.ask(f"batch {times}").split()
        return float(cpu if own else wall) / times * 1e6


def _print(what: str, alone: list[float], found: list[float]) -> float:
    ratios = [with_it / without for with_it, without in zip(found, alone, strict=True)]
    extra = [with_it - without for with_it, without in zip(found, alone, strict=True)]
    print(
        f"{what:24} | {statistics.median(ratios):7.3f}  ({min(ratios):.3f} to {max(ratios):.3f}) "
        f"| {statistics.median(extra):9.1f} µs | alone {statistics.median(alone):.0f} µs",
        flush=True,
    )
    return statistics.median(ratios)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the target; it must have gcspy"
    )
    parser.add_argument(
        "--objects", type=int, default=100_000, help="dictionaries that the target keeps"
    )
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument(
        "--collections",
        type=int,
        default=2000,
        help="in a batch without a client; a tenth with one that has no budget, four times as many with one that has",
    )
    options = parser.parse_args()
    target = Target(options.python, options.objects)
    alone: list[list[float]] = [[], [], [], []]
    found: list[list[float]] = [[], [], [], []]
    few, many = max(1, options.collections // 10), 4 * options.collections
    gathered = left_out = 0
    spent: list[int] = []
    target.batch(options.collections)
    for _ in range(options.pairs):
        alone[0].append(target.batch(options.collections, own=True))
        found[0].append(target.batch(options.collections, own=True))
        target.ask("listen 0.05")
        found[1].append(target.batch(options.collections, own=True))
        alone[1].append(found[0][-1])
        target.ask("close")
        took, told = target.with_client("0.05", many)
        found[2].append(took)
        alone[2].append(target.batch(many))
        if told:
            gathered, left_out = gathered + told[-1][0], left_out + told[-1][1]
            spent.append(told[-1][2])
        found[3].append(target.with_client("", few)[0])
        alone[3].append(target.batch(few))
    assert target.process.stdin is not None
    target.process.stdin.close()
    target.process.wait()
    print(
        json.dumps(
            {"objects": options.objects, "pairs": options.pairs, "collections": options.collections}
        )
    )
    print("                         | ratio to the same alone            | more for a collection")
    noise = _print("alone, twice (the noise)", alone[0], found[0])
    listening = _print("listening, no client", alone[1], found[1])
    budgeted = _print("a client, budget of 5 %", alone[2], found[2])
    print(
        f"  {gathered} of {gathered + left_out} events gathered; it says it spent "
        f"{statistics.median(spent) / 1e4 if spent else 0:.2f} % lately"
    )
    _print("a client, no budget", alone[3], found[3])
    tell(
        "exact events, no client: slowdown of a loop that only collects",
        listening,
        "",
        "1.00 within noise",
    )
    tell("the same with a client that wants every event, budget of 5 %", budgeted, "", "near 1.05")
    tell("the same, the noise of two batches alone", noise, "")


if __name__ == "__main__":
    main()
