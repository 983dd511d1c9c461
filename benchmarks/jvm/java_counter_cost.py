"""Cost of a counter in a JVM: nanoseconds of processor time for each increment, with one, two and four threads at the same counters.

    python -m benchmarks.jvm.java_counter_cost [--java PATH]... [--rounds N] [--json]

Two objects are made in each round of a loop. *Shared* is the counter of gcspy. The others were tried: *striped* has a counter for each of 16 groups of threads, and
*local* counts in variables that are added up when the method ends, so that nobody sees the counts of calls that run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gcspy_drivers.hotspot.counting.counting_agent import path_of_agent
from gcspy_protocol.errors import Unsupported

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.figures import tell

__all__ = ["main"]

_SOURCE = Path(__file__).with_name("CounterCost.java")
WAYS = ("shared", "striped", "local")
THREADS = (1, 2, 4)
_INCREMENTS = 2
"""In each round."""


def _compiled(folder: Path, agent: Path) -> None:
    javac = shutil.which("javac")
    if javac is None:
        raise Unavailable("there is no javac: install a JDK")
    command = [javac, "-nowarn", "-source", "9", "-target", "9", "-cp", str(agent)]
    done = subprocess.run(
        [*command, "-d", str(folder), str(_SOURCE)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip()[-300:])


def measure(java: str, folder: Path, agent: Path, threads: int, rounds: int) -> dict[str, float]:
    """Return nanoseconds an increment by way, and a round without counters.

    Raises:
        Unavailable: It does not run.
    """
    command = [java, "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{folder}:{agent}", "CounterCost"]
    done = subprocess.run(
        [*command, str(threads), str(rounds)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip()[-300:])
    nanos: dict[str, list[float]] = {}
    for line in done.stdout.splitlines():
        way, value = line.split()
        nanos.setdefault(way, []).append(float(value))
    found = {
        way: statistics.median(
            (counted - alone) / _INCREMENTS
            for counted, alone in zip(nanos[way], nanos["none"], strict=True)
        )
        for way in WAYS
    }
    return {**found, "none": statistics.median(nanos["none"])}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--java", action="append", dest="javas", help="of Java 9 or later")
    parser.add_argument("--rounds", type=int, default=4_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    try:
        agent = path_of_agent()
        with tempfile.TemporaryDirectory(prefix="gcspy-counters-") as name:
            _compiled(Path(name), agent)
            for java in options.javas or ["java"]:
                for threads in THREADS:
                    found = measure(java, Path(name), agent, threads, options.rounds)
                    results.append({"java": java, "threads": threads, **found})
    except (Unavailable, Unsupported) as error:
        print(f"java_counter_cost: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(results))
    else:
        print("| Java | threads | shared | striped | local | two objects and the loop |")
        print("|---|--:|--:|--:|--:|--:|")
    for each in results:
        if not options.json:
            cells = " | ".join(f"{each[way]:.1f}" for way in (*WAYS, "none"))
            print(f"| {each['java']} | {each['threads']} | {cells} |")
        what = f"counter of a JVM, {each['threads']} threads, ns an increment"
        tell(what, each["shared"], "ns", budget="told")
    return 0


if __name__ == "__main__":
    sys.exit(main())
