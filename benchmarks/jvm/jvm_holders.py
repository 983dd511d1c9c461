"""Holders in a JVM: seconds and memory until the answer, by the number of objects, and how long the program stands still for the heap dump.

    python -m benchmarks.jvm.jvm_holders [--java JAVA] [--objects N]...

A separate process asks programs with N objects (default 1 and 3 million) for the holders of one of
their types. A thread of the program that sleeps for a millisecond at a time records its longest
gap, which includes other delays of the machine. The loops are compiled already.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gcspy_drivers.hotspot.heap_answers import answer
from gcspy_drivers.kit.dump_answers import MOST_BYTES
from gcspy_drivers.kit.heap_answers import answer_table
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.graph.kernels import compile_kernels
from gcspy_objects.hprof import machine_code
from gcspy_objects.hprof.heap_dump import load, parse
from gcspy_objects.hprof.names import DumpNamer

from benchmarks.harness.figures import tell
from gcspy_server.api import HeapQuestion, HeapQuestionKind

__all__ = ["main"]

_PROGRAM = """
import java.util.*;
public class Held {
  static final class Order { int n; String note; int[] lines; Order(int i) { n = i; note = "order " + i; lines = new int[] { i }; } }
  static final List<Order> AUDIT = new ArrayList<>();
  static final Map<String, Integer> CACHE = new HashMap<>();
  static volatile long worst;
  public static void main(String[] arguments) throws Exception {
    int objects = Integer.parseInt(arguments[0]);
    for (int i = 0; i < objects / 5; i++) AUDIT.add(new Order(i));
    for (int i = 0; i < objects / 20; i++) CACHE.put("k" + i, 1000 + i);
    Thread sleeper = new Thread(() -> {
      try {
        for (long last = System.nanoTime(), now; ; last = now) { Thread.sleep(1); now = System.nanoTime(); worst = Math.max(worst, now - last); }
      } catch (InterruptedException error) { }
    });
    sleeper.setDaemon(true);
    sleeper.start();
    System.out.println("ready");
    for (Scanner commands = new Scanner(System.in); commands.hasNext(); worst = 0) { commands.next(); System.out.println(worst); }
  }
}
"""
_QUESTION = HeapQuestion(kind=HeapQuestionKind.HOLDERS, type_name="Order", held=True)


def ask(pid: int) -> dict[str, Any]:
    """Ask a JVM in this process; return the figures."""
    _compile()
    began = time.perf_counter()
    table = answer(pid, _QUESTION, lambda *_: None)
    return {
        "whole": time.perf_counter() - began,
        "holder": table.rows[0][0],
        "objects_held": table.rows[0][2],
        "note": table.note,
    }


def read(path: Path) -> dict[str, Any]:
    """Answer from a dump in this process; return the figures."""
    loops = _compile()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    steps, at = {}, time.perf_counter()

    def step(name: str) -> None:
        nonlocal at
        now = time.perf_counter()
        steps[name] = now - at
        at = now

    with io.FileIO(path) as file:
        data = load(file, path.name, MOST_BYTES, lambda *_: None)
    step("read")
    busy = time.process_time()
    dump = parse(data, path.name, loops)
    busy = time.process_time() - busy
    step("followed")
    tree = dominators(dump.graph)
    step("dominators")
    answer_table(dump, tree, DumpNamer(dump, tree.reached), _QUESTION)
    step("named")
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {
        "objects": dump.objects,
        "bytes": len(data),
        "steps": steps,
        "busy": busy,
        "bytes_an_object": (resident - before - len(data)) / dump.objects,
    }


def _compile() -> machine_code.Loops:
    loops = machine_code.load()
    compile_kernels()
    return loops


def measure(java: str, classes: Path, objects: int) -> dict[str, Any]:
    """Start a program with this many objects, and have separate processes ask it and read its dump."""
    megabytes = max(256, objects * 120 // 1_000_000)
    with subprocess.Popen(
        [java, f"-Xmx{megabytes}m", f"-Xms{megabytes}m", "-cp", str(classes), "Held", str(objects)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            if program.stdin is None or program.stdout is None:
                raise AssertionError("both are pipes")
            assert program.stdout.readline() == "ready\n"
            worst = []
            for arguments in ([], ["--pid", str(program.pid)]):
                found = _own_process(arguments) if arguments else {}
                program.stdin.write("tell\n")
                program.stdin.flush()
                worst.append(int(program.stdout.readline()) / 1e6)
            dump = classes / "heap.hprof"
            jcmd = str(Path(java).with_name("jcmd"))
            subprocess.run(
                [jcmd, str(program.pid), "GC.heap_dump", "-all", str(dump)],
                check=True,
                capture_output=True,
            )
        finally:
            program.kill()
    try:
        return {**found, **_own_process(["--file", str(dump)]), "gap_millis": worst[1]}
    finally:
        dump.unlink()


def _own_process(arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.jvm.jvm_holders", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--java", default="java")
    parser.add_argument("--objects", type=int, action="append", metavar="N")
    parser.add_argument("--pid", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.pid is not None or options.file is not None:
        print(json.dumps(read(options.file) if options.file else ask(options.pid)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder)
        (classes / "Held.java").write_text(_PROGRAM)
        subprocess.run(
            ["javac", "--release", "8", "-nowarn", "-Xlint:-options", "Held.java"],
            cwd=folder,
            check=True,
        )
        for objects in options.objects or [1_000_000, 3_000_000]:
            found = measure(options.java, classes, objects)
            assert (found["holder"], found["objects_held"]) == ("Held.AUDIT", objects // 5), found
            steps = ", ".join(f"{name} {secs:.2f}" for name, secs in found["steps"].items())
            size = f"{found['objects'] / 1e6:.1f} million objects"
            speed = found["bytes"] / 1e6 / found["steps"]["followed"]
            alone = found["bytes"] / 1e6 / found["busy"]
            print(
                f"{size}: {found['whole']:.1f} s with the dump; {steps} for {found['bytes'] / 1e6:.0f} MB ({speed:.0f} MB/s, {alone:.0f} MB a second of processor time); longest gap "
                f"{found['gap_millis']:.0f} ms; {found['bytes_an_object']:.0f} B an object beside the dump; {found['note']}",
                flush=True,
            )
            tell(f"who holds it in a JVM, {size}", found["whole"], "s", "12 s for 10 million")
            tell(f"who holds it in a JVM, {size}, dump followed", speed, "MB/s", "100 MB/s")
            tell(
                f"who holds it in a JVM, {size}, stall",
                found["gap_millis"],
                "ms",
                "150 ms a million",
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
