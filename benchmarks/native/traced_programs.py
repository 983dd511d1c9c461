"""Cost of `gcspy trace`: processor time of programs with it and without, in pairs, and bytes an event.

    python -m benchmarks traced_programs [--rounds N] [--python INTERPRETER]... [--only NAME]... [--no-others]

Beside them, where they are installed: heaptrack for native programs, tracemalloc and memray (in both of its modes) for programs of Python;
their own processes are counted as well.

Programs of Python: five small ones that do little but allocate, and, where the interpreter has the package pyperformance, five of its.

Two ratios for each kind of stack: of the program alone, whose threads wait for nobody else, and with gcspy's own process, which
works on another core. Programs that are not installed are left out.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.figures import tell
from gcspy.tracer.java_agent import java_agent
from gcspy.tracer.traced_run import JavaProgram, PythonProgram, TracedRun, TraceSettings

__all__ = ["main"]

_SQL = (
    "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<600000) "
    "insert into t select x, hex(x*7919)||'abc' from c; create index i on t(b); select count(*) from t where b like '%5%';"
)
_NATIVE = {
    "sqlite3": [":memory:", _SQL],
    "perl": ["-e", 'my %h; $h{$_}="x$_" for 1..800000; print scalar keys %h'],
}
_CXX = """
#include <map>
#include <regex>
#include <string>
#include <vector>
std::string f(std::map<int, std::vector<std::string>> &m) {
    for (auto &[k, v] : m) if (std::regex_match(v[0], std::regex("a.*"))) return v[0];
    return {};
}
"""
_THREADS = """
#include <pthread.h>
#include <stdlib.h>
static void *work(void *seed) {
    unsigned long state = (unsigned long)seed * 2654435761u + 1;
    void *slots[512] = {0};
    for (int turn = 0; turn < 300000; turn++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        int slot = state >> 40 & 511;
        free(slots[slot]);
        slots[slot] = malloc(16 + (state >> 50 & 255));
    }
    return NULL;
}
int main(void) {
    pthread_t threads[4];
    for (long one = 0; one < 4; one++) pthread_create(&threads[one], NULL, work, (void *)one);
    for (int one = 0; one < 4; one++) pthread_join(threads[one], NULL);
    return 0;
}
"""
_PYTHON = {
    "json": """
import json
rows = {f"a{one}": [{"x": one, "y": str(one), "z": [1.5 * one, None]}] * 3 for one in range(400)}
for _ in range(100):
    json.loads(json.dumps(rows))
""",
    "trees": """
def make(depth):
    return (make(depth - 1), make(depth - 1)) if depth else (None, None)
for _ in range(60):
    make(12)
""",
    "words": """
import re
text = " ".join(f"word{one * 7919 % 5003}" for one in range(60000))
for _ in range(5):
    counts = {}
    for word in re.findall("[a-z]+[0-9]+", text):
        counts[word] = counts.get(word, 0) + 1
    sorted(counts.items(), key=lambda one: -one[1])
""",
    "objects": """
class Task:
    __slots__ = ("name", "work", "next")
    def __init__(self, name, next):
        self.name, self.work, self.next = name, [name], next
for _ in range(12):
    last = None
    for one in range(20000):
        last = Task(one, last)
    while last is not None:
        last = last.next
""",
    "numbers": """
total = 0.0
for turn in range(20):
    values = [one * 1.5 for one in range(40000)]
    total += sum(one * one for one in values)
    pairs = list(zip(values, reversed(values)))
""",
}
_JAVA = """
class Trees {
    Trees left, right;
    static Trees make(int depth) {
        Trees made = new Trees();
        if (depth > 0) { made.left = make(depth - 1); made.right = make(depth - 1); }
        return made;
    }
    public static void main(String[] words) {
        Trees kept = make(15);
        for (int turn = 0; turn < Integer.parseInt(words[0]); turn++) kept.left = make(11);
    }
}
"""
_JAVA_TURNS = "20000"
_PYPERFORMANCE = {
    "deltablue": "for _ in range(60): run['delta_blue'](300)",
    "float": "for _ in range(4): run['benchmark'](100000)",
    "go": "for _ in range(3): run['versus_cpu']()",
    "nqueens": "for _ in range(5): run['bench_n_queens'](8)",
    "raytrace": "run['bench_raytrace'](2, 100, 100, None)",
}
"""Programs of the package pyperformance, where an interpreter has it: what is called of each, with the numbers that it has there."""
_OF_PYPERFORMANCE = """
import os, pyperformance, runpy
folder = os.path.join(os.path.dirname(pyperformance.__file__), "data-files", "benchmarks", "bm_{name}")
run = runpy.run_path(os.path.join(folder, "run_benchmark.py"))
{call}
"""
_MEMRAY = (
    "import runpy, sys, memray; sys.argv = sys.argv[1:]\n"
    "with memray.Tracker(sys.argv[0], trace_python_allocators={allocators}):\n    exec(compile({text!r}, '<text>', 'exec'), {{'__name__': '__main__'}})"
)


class _Cost(NamedTuple):
    """Processor time of a run."""

    program: float
    gcspy: float
    events: int
    file_bytes: int


def _children_secs() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def plain_secs(command: list[str]) -> float:
    """Return the processor time of a program alone."""
    before = _children_secs()
    pid = os.spawnvp(os.P_NOWAIT, command[0], command)
    os.waitpid(pid, 0)
    return _children_secs() - before


def traced_cost(
    command: list[str], settings: TraceSettings, how: PythonProgram | JavaProgram | None
) -> _Cost:
    """Return the cost of a traced program."""
    before, own = _children_secs(), time.process_time()
    with TracedRun(command, settings, how) as run:
        run.follow(lambda _definitions: b"")
    summary = run.summaries[0]
    own = time.process_time() - own
    return _Cost(_children_secs() - before, own, summary.counts.events, summary.bytes)


def other_tools(command: list[str], text: str | None, folder: Path) -> dict[str, list[str]]:
    """Return the commands of other tools for the same program, by their names, as far as they are installed."""
    target = str(folder / "other")
    if text is None:
        found = shutil.which("heaptrack")
        return {} if found is None else {"heaptrack": [found, "-o", target, *command]}
    tools = {"tracemalloc": [command[0], "-X", "tracemalloc=1", "-c", text]}
    if not subprocess.run(
        [command[0], "-c", "import memray"], check=False, capture_output=True
    ).returncode:
        for name, allocators in (("memray", False), ("memray, python", True)):
            words = _MEMRAY.format(allocators=allocators, text=text)
            tools[name] = [command[0], "-c", words, target]
    return tools


def other_cost(command: list[str], folder: Path) -> tuple[float, int]:
    """Return the processor time of a program in another tool, with all of its processes, and the bytes that it wrote."""
    before = _children_secs()
    subprocess.run(command, check=False, capture_output=True)
    spent = _children_secs() - before
    written = list(folder.glob("other*"))
    size = sum(one.stat().st_size for one in written)
    for one in written:
        one.unlink()
    return spent, size


def beside(plain: list[str], other: list[str], folder: Path, rounds: int) -> tuple[float, int]:
    """Return the median ratio of the processor times of a program in another tool and alone, and the bytes of the last round."""
    ratios = []
    for _ in range(rounds):
        base = plain_secs(plain)
        spent, size = other_cost(other, folder)
        ratios.append(spent / base)
    return statistics.median(ratios), size


def compare(
    name: str, plain: list[str], text: str | None, rounds: int, folder: Path, *, others: bool
) -> None:
    """Measure a program in pairs, and print a line for each kind of stack, and for each other tool.

    Args:
        name: Of the program.
        plain: Its command.
        text: Its text, if it is one of Python's.
        rounds: Pairs.
        folder: For traces.
        others: Whether other tools are measured, too.
    """
    python = None if text is None else plain[0]
    command = plain if text is None else [text]
    events = 0
    for stacks in ("caller", "full") if python else ("none", "caller", "full"):
        alone, both = [], []
        for _ in range(rounds):
            base = plain_secs(plain)
            settings = TraceSettings(output=folder / "trace", stacks=stacks)
            how = None if python is None else PythonProgram(interpreter=python, form="code")
            cost = traced_cost(command, settings, how)
            alone.append(cost.program / base)
            both.append((cost.program + cost.gcspy) / base)
        program, all_of_it = statistics.median(alone), statistics.median(both)
        events = cost.events
        each = cost.file_bytes / max(cost.events, 1)
        print(
            f"{name:10} {stacks:14} program x{program:.2f}, with gcspy x{all_of_it:.2f}; {events:,} events, {each:.2f} B each,"
            f" gcspy {1e9 * cost.gcspy / max(events, 1):.0f} ns each; base {base:.2f} s; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        tell(f"{name}, stacks {stacks}: processor time of the program", program)
    for tool, other in other_tools(plain, text, folder).items() if others else ():
        ratio, size = beside(plain, other, folder, rounds)
        print(
            f"{name:10} {tool:14} x{ratio:.2f}; {size:,} B, {size / max(events, 1):.2f} for each of those events",
            flush=True,
        )


def native_programs(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield native programs that are installed, or can be compiled: names and commands."""
    for name, arguments in _NATIVE.items():
        if shutil.which(name) is not None:
            yield name, [name, *arguments]
    compiler = shutil.which("g++")
    if compiler is None:
        return
    source = folder / "source.cpp"
    source.write_text(_CXX)
    passes = subprocess.run(
        [compiler, "-print-prog-name=cc1plus"], check=True, capture_output=True, text=True
    )
    place = subprocess.run(
        [compiler, "-print-multiarch"], check=True, capture_output=True, text=True
    )
    yield (
        "cc1plus",
        [passes.stdout.strip(), "-quiet", "-imultiarch", place.stdout.strip(), "-O1", "-std=c++17", "-D_GNU_SOURCE", str(source), "-o", "/dev/null"],
    )  # fmt: skip
    threads = folder / "threads.c"
    threads.write_text(_THREADS)
    subprocess.run(
        ["gcc", "-O1", "-pthread", str(threads), "-o", str(folder / "threads")], check=True
    )
    yield "threads", [str(folder / "threads")]
    yield "python", [sys.executable, "-c", _PYTHON["words"]]


def compare_java(rounds: int, folder: Path) -> None:
    """Measure a JVM whose objects move: without gcspy, traced at three rates, and with a recording of Java Flight Recorder."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        print("no JDK: nothing measured for Java")
        return
    (folder / "Trees.java").write_text(_JAVA)
    subprocess.run(["javac", "-d", str(folder), str(folder / "Trees.java")], check=True)
    plain = ["java", "-XX:+UseSerialGC", "-Xmx64m", "-cp", str(folder), "Trees", _JAVA_TURNS]
    recorded = [plain[0], f"-XX:StartFlightRecording=filename={folder}/other.jfr,settings=profile", *plain[1:]]  # fmt: skip
    for stacks, sample in (("full", 524288), ("full", 16384), ("caller", 1024)):
        ratios, costs = [], []
        for _ in range(rounds):
            base = plain_secs(plain)
            settings = TraceSettings(output=folder / "trace", stacks=stacks)
            cost = traced_cost(
                plain, settings, JavaProgram(agent=java_agent(plain[1:]), sample_bytes=sample)
            )
            ratios.append((cost.program + cost.gcspy) / base)
            costs.append(cost)
        one = costs[-1]
        print(
            f"java       {stacks:6} 1 in {sample:7,} B  with gcspy x{statistics.median(ratios):.2f}; {one.events:,} events,"
            f" {one.file_bytes / max(one.events, 1):.2f} B each; base {base:.2f} s; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    ratio, size = beside(plain, recorded, folder, rounds)
    print(
        f"java       JFR, profile       x{ratio:.2f}; {size:,} B; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def python_programs(python: str) -> Iterator[tuple[str, str]]:
    """Yield programs for an interpreter: names and texts."""
    yield from _PYTHON.items()
    if not subprocess.run(
        [python, "-c", "import pyperformance, pyperf"], check=False, capture_output=True
    ).returncode:
        for name, call in _PYPERFORMANCE.items():
            yield name, _OF_PYPERFORMANCE.format(name=name, call=call)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks traced_programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", action="append")
    parser.add_argument("--only", action="append", help="names of programs")
    parser.add_argument("--no-others", action="store_true", help="measure no other tools")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as place:
        programs: list[tuple[str, list[str], str | None]] = [
            (name, command, None) for name, command in native_programs(Path(place))
        ]
        for python in options.python or [sys.executable]:
            programs += [
                (name, [python, "-c", text], text) for name, text in python_programs(python)
            ]
        if not options.only or "java" in options.only:
            compare_java(options.rounds, Path(place))
        for name, command, text in programs:
            if not options.only or name in options.only:
                compare(
                    name, command, text, options.rounds, Path(place), others=not options.no_others
                )


if __name__ == "__main__":
    main()
