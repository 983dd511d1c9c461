"""Every reference of every object of a real dump is the one that an independent reader finds; counts and bytes are those that the JVM says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.hprof.heap_dump import HeapDump, parse
from gcspy_objects.hprof.machine_code import Loops

from tests.drivers.hotspot.holders.planted import running
from tests.drivers.hotspot.jvms import attach
from tests.objects.hprof.made import read_slowly

_FLAGS = (
    ("-XX:+UseSerialGC",),
    ("-XX:+UseSerialGC", "-XX:-UseCompressedOops"),
    ("-XX:+UseSerialGC", "-XX:+UseCompactObjectHeaders"),
)

_LETTERS = {
    "Z": "boolean", "C": "char", "F": "float", "D": "double", "B": "byte", "S": "short", "I": "int", "J": "long",
}  # fmt: skip
_MORE_THAN_FIELDS = {
    *("java.lang.Thread", "java.lang.ref.Finalizer$FinalizerThread"),
    *("java.lang.ref.Reference$ReferenceHandler", "jdk.internal.misc.InnocuousThread"),
    *("java.net.URLClassLoader", "jdk.internal.loader.ClassLoaders$AppClassLoader"),
    *("jdk.internal.loader.ClassLoaders$BootClassLoader", "java.lang.Module"),
    *("jdk.internal.loader.ClassLoaders$PlatformClassLoader", "java.lang.InternalError"),
    *("java.lang.invoke.MemberName", "java.lang.invoke.ResolvedMethodName"),
    *("java.lang.invoke.MethodHandleNatives$CallSiteContext", "java.lang.invoke.ConstantCallSite"),
    *("jdk.internal.vm.FillerElement[]", "int[]", "java.lang.Class"),
}
"""Classes whose sizes a dump does not have: with fields that the JVM adds, padding around contended ones, fillers of gaps (as arrays of numbers there), classes without instances.

Names of hidden classes are written otherwise in a histogram.
"""

_OTHERWISE = {"int[]", "java.lang.Class"}
"""Of these the dump has another number."""


def dump_of(pid: int, file: Path, loops: Loops) -> HeapDump:
    attach(pid, "dumpheap", str(file), "-all")
    return parse(np.fromfile(file, dtype=np.uint8), file.name, loops)


@pytest.mark.timeout(300)
def test_every_reference_is_found(planted: int, tmp_path: Path, compiled: Loops) -> None:
    file = tmp_path / "heap.hprof"
    dump = dump_of(planted, file, compiled)
    slow = read_slowly(file.read_bytes())
    assert dump.address.tolist() == sorted(slow.references)
    address = dump.address.tolist()
    targets = dump.address[dump.graph.targets].tolist()
    starts = dump.graph.starts.tolist()
    classes = {int(each) for each in dump.classes.address}
    locals_ = Counter(int(dump.address[each]) for each in dump.roots.local[:, 0])
    known = set(address)
    unheld = lost = different = 0
    for number, each in enumerate(address):
        found = Counter(targets[starts[number] : starts[number + 1]])
        expected = Counter(held for held in slow.references[each] if held in known)
        lost += sum(held not in known for held in slow.references[each])
        if each in found:  # a weak reference refers to itself instead of to what it does not hold
            unheld += 1
            continue
        more = found - expected
        # Beside its fields, an object may refer to its class, and a thread to what runs in it.
        if (
            expected - found
            or sum(more.values()) > 1 + locals_[each]
            or (more and each not in locals_ and not set(more) <= classes)
        ):
            different += 1
    assert different == 0
    assert lost == dump.missing
    assert 50 < unheld < len(address) // 10
    roots = {held for kind, held in slow.roots if kind not in (2, 3, 4, 6)}
    assert roots & known == {int(dump.address[each]) for each in dump.roots.node}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("flags", _FLAGS, ids=lambda flags: flags[-1])
def test_counts_and_bytes_are_those_of_the_histogram(
    java: str, planted_classes: Path, tmp_path: Path, compiled: Loops, flags: tuple[str, ...]
) -> None:
    """Objects that the JVM made between its answers are left out: only classes with the same number before and after are compared."""
    with running(java, planted_classes, *flags) as pid:
        before = histogram(pid)
        dump = dump_of(pid, tmp_path / "heap.hprof", compiled)
        after = histogram(pid)
    counts = np.bincount(dump.kind, minlength=len(dump.classes) + 12)
    sizes = np.bincount(dump.kind, weights=dump.own, minlength=len(counts))
    found: dict[str, tuple[int, int]] = {}
    for kind in np.flatnonzero(counts).tolist():
        name = dump.kind_name(kind)
        count, size = found.get(name, (0, 0))
        found[name] = (count + int(counts[kind]), size + int(sizes[kind]))
    same = {name: said for name, said in before.items() if after.get(name) == said}
    assert len(same) > 300
    wrong = {
        name: (said, found.get(name)) for name, said in same.items() if found.get(name) != said
    }
    unexplained = {
        name: said
        for name, said in wrong.items()
        if name not in _MORE_THAN_FIELDS and "$$Lambda" not in name
    }
    assert not unexplained
    counted = {name: (said[0], (mine or said)[0]) for name, (said, mine) in wrong.items()}
    assert all(said == mine for name, (said, mine) in counted.items() if name not in _OTHERWISE)


def histogram(pid: int) -> dict[str, tuple[int, int]]:
    """Return what a JVM says it has: number and bytes by class, named as Java does."""
    found: dict[str, tuple[int, int]] = {}
    for line in attach(pid, "inspectheap", "-all").splitlines():
        match = re.match(r"\s*\d+:\s+(\d+)\s+(\d+)\s+(\S+)", line)
        if match is None:
            continue
        name = match[3]
        bare = name.lstrip("[")
        dimensions = len(name) - len(bare)
        if dimensions:
            bare = bare[1:-1] if bare[0] == "L" else _LETTERS[bare]
        key = bare + "[]" * dimensions
        count, size = found.get(key, (0, 0))
        found[key] = (count + int(match[1]), size + int(match[2]))
    return found
