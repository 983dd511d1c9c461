"""Holders beside other tools: what objgraph, guppy3 and pympler take inside a program to say who holds its objects, or how much is retained.

    python -m benchmarks.cpython.holders_beside [--objects N]... [--most-secs S]

The program is that of `holders`. Each tool runs in it, in a process of its own, so that the program
stands still meanwhile, and needs to be installed there; the figures are its seconds, and by how
much the program's peak memory grew, per object. They answer different questions:

* objgraph: the chain of references to one object of the type.
* guppy3: the objects of the type, and the retained size of the list that holds most of them.
* pympler: the size of all that the list leads to.

Run `python -m benchmarks holders --objects N` for ours. Needs a package index for the tools, which are
installed into an environment that is thrown away.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.cpython.holders import PROGRAM
from benchmarks.harness.environment import Unavailable, install, make_environment
from benchmarks.harness.figures import tell

__all__ = ["main"]

_TOOLS = ("objgraph==3.7.0", "guppy3==3.1.7", "pympler==1.1")

_ASKED = {
    "objgraph": """
import inspect, objgraph
found = len(objgraph.find_backref_chain(objgraph.by_type("Order")[0], objgraph.is_proper_module))
""",
    "guppy3": """
import guppy
heap = guppy.hpy()
orders = (heap.heap() & Order).count
found = heap.iso(AUDIT).domisize
""",
    "pympler": """
from pympler import asizeof
found = asizeof.asizeof(AUDIT)
""",
}
"""The question to each tool, as code in the program."""

_MEASURED = """
import json, time
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) << 10
before, began = peak(), time.perf_counter()
exec(compile(open(sys.argv[2]).read(), "asked", "exec"))
print(json.dumps({"secs": time.perf_counter() - began, "grew": peak() - before, "found": found}))
"""


def measure(python: Path, tool: str, objects: int, most_secs: float) -> dict[str, Any] | str:
    """Have a tool answer in a program with this many objects; the figures, or why there are none."""
    program = PROGRAM.replace("sys.stdin.read()", "") + _MEASURED
    with tempfile.NamedTemporaryFile("w", suffix=".py") as asked:
        asked.write(_ASKED[tool])
        asked.flush()
        try:
            done = subprocess.run(
                [str(python), "-c", program, str(objects), asked.name],
                capture_output=True,
                text=True,
                check=False,
                timeout=most_secs,
            )
        except subprocess.TimeoutExpired:
            return f"no answer in {most_secs:,.0f} s"
    if done.returncode:
        last = done.stderr.strip().splitlines()
        return f"it failed: {last[-1] if last else f'exit code {done.returncode}'}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, action="append", metavar="N")
    parser.add_argument("--most-secs", type=float, default=600.0, metavar="S")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        try:
            python = make_environment(sys.executable, Path(folder) / "tools")
            install(python, *_TOOLS)
        except Unavailable as error:
            print(f"the other tools cannot be measured: {error}", file=sys.stderr)
            return 1
        for objects in options.objects or [1_000_000]:
            for tool in _ASKED:
                found = measure(python, tool, objects, options.most_secs)
                size = f"{objects:,} objects"
                if isinstance(found, str):
                    print(f"{tool}, {size}: {found}", flush=True)
                    continue
                each = found["grew"] / objects
                print(
                    f"{tool}, {size}: {found['secs']:.1f} s, in which the program stands still; "
                    f"{each:.0f} B an object in it; found {found['found']:,}",
                    flush=True,
                )
                tell(f"{tool}, {size}", found["secs"], "s", "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
