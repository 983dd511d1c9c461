"""Holders in a CPython: seconds and memory until the answer, by the number of objects, and how long the program is held for it.

    python -m benchmarks.cpython.holders [--objects N]...

A separate process asks programs with N objects (default 700,000 and 3,000,000) for the holders of
one of their types, and holds the program while it copies its memory. The results are the seconds of
the steps, with the loops already compiled, and the peak memory of the asking process beside the
copy, per object. On a machine that does other work, the processor time is what an idle one would take.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

from gcspy_drivers.cpython.graph import machine_code
from gcspy_drivers.cpython.graph.heap_graph import build_graph
from gcspy_drivers.cpython.graph.names import Namer
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.kit.heap_answers import holder_table
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.graph.kernels import compile_kernels

from benchmarks.harness.figures import tell

__all__ = ["PROGRAM", "main"]

PROGRAM = """
import sys
class Order:
    def __init__(self, number): self.number, self.items = number, [number]
count = int(sys.argv[1]) // 4
AUDIT = [Order(number) for number in range(1000, 1000 + count * 9 // 10)]
CACHE = {"k%d" % number: Order(number) for number in range(count // 10)}
print("ready", flush=True)
sys.stdin.read()
"""
"""Objects, by their number: nine in ten of one type are in a list."""


def answer(pid: int) -> dict[str, Any]:
    """Ask in this process; return the figures."""
    loops = machine_code.load()
    compile_kernels()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    steps = {}
    began = at = time.perf_counter()
    busy = time.process_time()

    def step(name: str) -> None:
        nonlocal at
        now = time.perf_counter()
        steps[name] = now - at
        at = now

    with Target(pid) as target:
        source = target.graph_source(held=True)
        step("copied")
        graph = build_graph(source, loops)
        step("followed")
        tree = dominators(graph.graph)
        step("dominators")
        chosen = graph.of_type("Order")
        table = holder_table(graph, tree, Namer(graph, source.memory), chosen, 20)
        step("named")
    whole = time.perf_counter() - began
    busy = time.process_time() - busy
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    copied = source.copy.words.nbytes
    return {
        "objects": graph.objects,
        "references": len(graph.graph.targets),
        "copied": copied,
        "held": source.held_nanos / 1e9,
        "steps": steps,
        "whole": whole,
        "busy": busy,
        "bytes_an_object": (resident - before - copied) / graph.objects,
        "holder": table.rows[0][0],
    }


def measure(objects: int) -> dict[str, Any]:
    """Start a program with this many objects, and have a separate process ask it."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(objects)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.cpython.holders", "--pid", str(program.pid)],
                check=True,
                capture_output=True,
                text=True,
            )
        finally:
            program.kill()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, action="append", metavar="N")
    parser.add_argument("--pid", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.pid is not None:
        print(json.dumps(answer(options.pid)))
        return 0
    for objects in options.objects or [700_000, 3_000_000]:
        found = measure(objects)
        assert found["holder"] == "__main__.AUDIT", found
        steps = ", ".join(f"{name} {secs:.2f}" for name, secs in found["steps"].items())
        size = f"{found['objects'] / 1e6:.1f} million objects"
        print(
            f"{size}: {found['whole']:.1f} s ({steps}), {found['busy']:.1f} s of processor time; held {found['held'] * 1000:.0f} ms for "
            f"{found['copied'] / 1e6:.0f} MB; {found['bytes_an_object']:.0f} B an object beside the copy",
            flush=True,
        )
        budget = "1.5 s for 100 MB, 12 s for 10 million objects"
        tell(f"who holds it, {size}", found["whole"], "s", budget)
        tell(f"who holds it, {size}, processor time", found["busy"], "s", budget)
        tell(
            f"who holds it, {size}, beside the copy", found["bytes_an_object"], "B an object", "150"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
