"""Counted JVMs: three Java programs with a counter for each site and with shared counters, and what counting costs.

    python -m benchmarks.jvm.jvm_site_counts [--java PATH]... [--pairs N] [--json]

Each program makes a known number of objects, which it prints: in threads, with exceptions, and with constructors that choose their arguments. The counts of all
sites must be those of one counter a site, and their sum what the program says. Times are processor time, in pairs with the program alone, start included.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.figures import tell

__all__ = ["compile_programs", "counted", "main", "processor_secs"]

PROGRAMS = {
    "Threads": """
        static Object kept;
        static long work() {
            for (int i = 0; i < 2_000_000; i++) kept = new Object[] {new Object(), new StringBuilder()};
            return 3L * 2_000_000;
        }
        static long run() throws Exception {
            Thread[] all = new Thread[4];
            for (int i = 0; i < 4; i++) { all[i] = new Thread(() -> work()); all[i].start(); }
            for (Thread each : all) each.join();
            return 4 * 3L * 2_000_000 + 1 + 4;
        }""",
    "Throwing": """
        static Object kept;
        static void inner(int n) {
            kept = new int[n % 5];
            if (n % 3 == 0) throw new IllegalStateException();
            kept = new java.util.ArrayList<Object>();
        }
        static long run() {
            int thrown = 0;
            for (int n = 0; n < 1_500_000; n++) { try { inner(n); } catch (IllegalStateException e) { thrown++; } }
            return 1_500_000L + thrown + (1_500_000 - thrown);
        }""",
    "Trees": """
        Trees left, right; Object label;
        Trees(Trees left, Trees right, Object label) { this.left = left; this.right = right; this.label = label; }
        static Trees grow(int depth) {
            return depth == 0 ? new Trees(null, null, new Object())
                : new Trees(grow(depth - 1), depth % 2 == 0 ? grow(depth - 1) : null, depth % 2 == 0 ? new long[2] : new char[3]);
        }
        static long nodes(int depth) { return depth == 0 ? 1 : 1 + nodes(depth - 1) * (depth % 2 == 0 ? 2 : 1); }
        static long run() {
            long made = 0;
            for (int i = 0; i < 400; i++) { grow(24); made += 2 * nodes(24); }
            return made;
        }""",
}
"""Members of the class; `run` returns how many objects the class makes."""
_MAIN = "public static void main(String[] a) throws Exception { System.out.println(run()); }"


def processor_secs(command: list[str]) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Run a command; return the processor time of it and its children, and what it said.

    Raises:
        Unavailable: It failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise Unavailable(done.stderr.strip()[-300:])
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done


def counted(command: list[str], plan: str) -> tuple[float, tuple[Counter[str], int, str]]:
    """Count the sites of a JVM; return the processor time, and counts by place, increments, and what the program said."""
    gcspy = [sys.executable, "-m", "gcspy", "count", "--json", "--plan", plan]
    secs, done = processor_secs([*gcspy, *command])
    report = json.loads(done.stderr[done.stderr.index("{") :])
    counts: Counter[str] = Counter()
    for site in report["sites"]:
        counts[f"{site['file']}:{site['line']} {site['what']}"] += site["count"]
    return secs, (counts, int(report["increments"]), done.stdout)


def compile_programs(folder: Path) -> list[str]:
    """Compile the programs into a folder; return their names.

    Raises:
        Unavailable: There is no compiler.
    """
    compiler = shutil.which("javac")
    if compiler is None:
        raise Unavailable("there is no javac: install a JDK")
    for name, members in PROGRAMS.items():
        Path(folder, f"{name}.java").write_text(f"public class {name} {{{members}\n{_MAIN}}}\n")
    sources = [str(Path(folder, f"{name}.java")) for name in PROGRAMS]
    flags = ["-nowarn", "-source", "8", "-target", "8", "-d", str(folder)]
    subprocess.run([compiler, *flags, *sources], check=True, capture_output=True)
    return list(PROGRAMS)


def measure(java: str, name: str, classes: Path, pairs: int) -> dict[str, Any]:
    """Run one program alone, with a counter for each site and with shared ones."""
    command = [java, "-XX:+UseSerialGC", "-cp", str(classes), name]
    ratios: dict[str, list[float]] = {"site": [], "shared": []}
    found: dict[str, tuple[Counter[str], int, str]] = {}
    for _ in range(pairs):
        for plan in ratios:
            alone, _ = processor_secs(command)
            secs, found[plan] = counted(command, "site" if plan == "site" else "tree")
            ratios[plan].append(secs / alone)
    counts, increments, made = found["shared"]
    return {
        "program": name,
        "made": int(made),
        "counted": sum(counts.values()),
        "differing": sum(counts[key] != value for key, value in found["site"][0].items()),
        "increments": increments / sum(counts.values()),
        "slowdown": {plan: statistics.median(values) for plan, values in ratios.items()},
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--java", action="append", dest="javas")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="gcspy-count-") as folder:
        try:
            compile_programs(Path(folder))
        except Unavailable as error:
            print(f"jvm_site_counts: {error}", file=sys.stderr)
            return 1
        for java in options.javas or ["java"]:
            for name in PROGRAMS:
                result = {"java": java, **measure(java, name, Path(folder), options.pairs)}
                results.append(result)
                if not options.json:
                    slowdown = result["slowdown"]
                    print(
                        f"| {java} | {name} | {result['made']:,} | {result['counted']:,} | {result['differing']} | {result['increments']:.0%} | {slowdown['site']:.2f} | {slowdown['shared']:.2f} |",
                        flush=True,
                    )
    if options.json:
        print(json.dumps(results))
    wrong = sum(each["made"] != each["counted"] or each["differing"] > 0 for each in results)
    tell("counted JVMs, programs with other counts", wrong, budget="0")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
