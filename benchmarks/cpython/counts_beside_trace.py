"""Counted allocation sites beside an object trace of the same program: where they agree, and which objects no site counts.

    python -m benchmarks.cpython.counts_beside_trace [--python PATH] [--program NAME]... [--json] [SCRIPT ARGUMENTS...]

From Python 3.13 on `gcspy trace` sees each object that is made, also those from free lists. So at each line of the program the executions of sites that always
allocate must be as many as the objects of their type; that is checked where nothing else on the line makes the same type. The rest is told by kind: objects at
lines with sites that may allocate, and objects made elsewhere: by code in C without a site of the program, and by modules that are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness.figures import tell

__all__ = ["main"]

_RECORDS = """
class Node:
    def __init__(self, value):
        self.items = [value, value]
        self.names = {value: value}

def work(count):
    kept = []
    for number in range(count):
        if number % 3:
            kept.append((number, [number]))
        else:
            kept.append(Node(number))
    return {len(kept)}

for _ in range(20):
    work(600)
"""
_TEXT = """
import json, re

def words(text):
    found = {}
    for word in re.findall("[a-z]+", text):
        found.setdefault(word, []).append((word, len(word)))
    return found

def report(rounds):
    for number in range(rounds):
        table = words("the quick brown fox jumps over the lazy dog " * 5)
        rows = [[key, len(value), {"n": number}] for key, value in table.items()]
        json.loads(json.dumps(rows))

report(150)
"""
_LAZY = """
def pairs(count):
    for number in range(count):
        yield [number, {number}]

def folded(rows):
    total = 0
    for one, other in rows:
        try:
            total += one // (one % 4)
        except ZeroDivisionError as error:
            total -= len((one, error))
    return total

def main(rounds):
    for number in range(rounds):
        folded(pairs(50))
        sorted((lambda key: [key, number])(value) for value in range(20))

main(60)
"""
PROGRAMS = {"records": _RECORDS, "text": _TEXT, "lazy": _LAZY}
_TYPES = ("list", "tuple", "set", "dict", "slice", "function", "generator")
_PLACE = re.compile(r"\((?P<file>[^()]*)\) @ (?P<line>\d+)$")


@dataclass(frozen=True, slots=True)
class Result:
    """One program.

    Attributes:
        program: Its name.
        objects: Objects that the trace has, those of gcspy's own start left out.
        always: Objects that sites made which always allocate.
        may: Further objects at lines with sites that may allocate.
        outside: All others.
        lines: Lines and types that were compared.
        equal: Those with equal numbers; of the others more objects were traced, at lines with sites that may allocate.
        differing: Those whose numbers differ, with both numbers.
    """

    program: str
    objects: int
    always: int
    may: int
    outside: int
    lines: int
    equal: int
    differing: dict[str, tuple[int, int]]


def _gcspy(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gcspy", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def measure(python: str, name: str, script: Path, arguments: list[str]) -> Result:
    """Count and trace one program.

    Raises:
        RuntimeError: A command failed.
    """
    command = ["--python", python, str(script), *arguments]
    counted = _gcspy("count", "--json", *command)
    text = counted.stderr[counted.stderr.find("{") :]
    if not text:
        raise RuntimeError(counted.stderr[-400:])
    always: Counter[tuple[int, str]] = Counter()
    perhaps: set[int] = set()
    for site in json.loads(text)["sites"]:
        if not site["always"]:
            perhaps.add(site["line"])
        elif site["count"]:
            always[site["line"], site["what"]] += site["count"]
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        trace = os.path.join(folder, "program.gctrace")
        done = _gcspy("trace", "-o", trace, *command)
        told = _gcspy("objects", "sites", "--top", "0", "--json", trace)
        if told.returncode:
            raise RuntimeError((done.stderr + told.stderr)[-400:])
        rows = json.loads(told.stdout)["rows"]
    traced: Counter[tuple[int, str]] = Counter()
    elsewhere = 0
    for row in rows:
        kind, number = row["type_name"], row["allocated_objects"]
        place = _PLACE.search(row["site_name"])
        if kind.startswith("(memory") or "tracer/begin.py" in row["site_name"]:
            continue
        if place is not None and place["file"] == str(script):
            traced[int(place["line"]), kind] += number
        elif place is not None:
            elsewhere += number
    differing = {}
    lines = matched = equal = 0
    for (line, kind), count in always.items():
        if kind not in _TYPES:
            continue
        seen = traced[line, kind]
        matched += min(count, seen)
        equal += count == seen
        # A call or an iterator of the same line may make the same type: then the trace has more.
        if count > seen or (count < seen and line not in perhaps):
            differing[f"line {line}, {kind}"] = count, seen
        lines += 1
    rest = Counter(traced)
    for key, count in always.items():
        rest[key] -= min(count, rest[key])
    may = sum(count for (line, _), count in rest.items() if line in perhaps)
    outside = elsewhere + sum(count for (line, _), count in rest.items() if line not in perhaps)
    objects = sum(traced.values()) + elsewhere
    return Result(name, objects, matched, may, outside, lines, equal, differing)


def _print(results: list[Result]) -> None:
    print(
        "| program | objects | at sites that always allocate | at lines that may | outside | compared | equal | differing |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for each in results:
        whole = each.objects or 1
        shares = " | ".join(
            f"{number / whole:.0%}" for number in (each.always, each.may, each.outside)
        )
        print(
            f"| {each.program} | {each.objects:,} | {shares} | {each.lines} | {each.equal} | {len(each.differing)} |"
        )
        for place, (count, seen) in each.differing.items():
            print(f"{each.program}: {place}: counted {count:,}, traced {seen:,}", file=sys.stderr)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default="python3.13")
    parser.add_argument("--program", action="append", dest="names", choices=sorted(PROGRAMS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("script", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        if options.script:
            script, *arguments = options.script
            programs = [(Path(script).name, Path(script).resolve(), arguments)]
        else:
            programs = []
            for name in options.names or PROGRAMS:
                path = Path(folder, f"{name}.py")
                path.write_text(PROGRAMS[name])
                programs.append((name, path, []))
        for name, path, arguments in programs:
            try:
                results.append(measure(options.python, name, path, arguments))
            except RuntimeError as error:
                print(f"{name}: {error}", file=sys.stderr)
                return 1
    if options.json:
        print(json.dumps([asdict(each) for each in results]))
    else:
        _print(results)
    for each in results:
        tell(f"{each.program}, objects outside", each.outside / max(1, each.objects), budget="told")
    return 1 if any(each.differing for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
