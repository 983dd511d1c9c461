"""Merged stacks against a loop over all of them, and the peak of a heap against a loop over all events."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.analysis.peak import peak_of
from gcspy_objects.gctrace.definitions import SiteDefinition, pack_site
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.names import Sites, TypeKind, Types
from gcspy_objects.stacks.call_tree import CallTree, call_tree
from gcspy_objects.stacks.site_sums import SiteSums, allocated_sums, live_sums
from gcspy_objects.trace import open_trace

from tests.objects.gctrace.made import event_columns
from tests.objects.samples import path_of


def made_names(random: np.random.Generator) -> tuple[Sites, Types]:
    """Return random stacks of few functions, some without frames, and four types."""
    count = 60
    lengths = random.integers(0, 7, count)
    first = np.concatenate(([0], np.cumsum(lengths)))
    sites = Sites(
        type=np.zeros(count, np.int32),
        labels=[f"site {row % 3}" for row in range(count)],
        methods=[f"f{row}" for row in range(4)],
        first_frame=first.astype(np.int64),
        frame_method=random.integers(0, 4, first[-1]).astype(np.int32),
        frame_bci=random.integers(1, 4, first[-1]).astype(np.int32),
    )
    names = ["(unknown)", "A", "B", "C"]
    nothing = np.zeros(4, np.int64)
    kinds = np.full(4, TypeKind.UNKNOWN, np.uint8)
    return sites, Types(names, names, kinds, nothing, nothing, nothing)


def paths_of(tree: CallTree) -> Counter[tuple[str, ...]]:
    """Return bytes of each path; nodes that look alike are added up."""
    found: Counter[tuple[str, ...]] = Counter()
    paths: list[tuple[str, ...]] = []
    for node in range(len(tree)):
        parent = int(tree.parent[node])
        paths.append((*paths[parent], tree.name[node]) if parent >= 0 else ())
        found[paths[node]] += int(tree.bytes[node])
    return found


@pytest.mark.parametrize("inverted", [False, True])
def test_merged_stacks_are_those_of_a_loop(inverted: bool) -> None:
    random = np.random.default_rng(5)
    sites, types = made_names(random)
    site, type_ = random.integers(0, 60, 500), random.integers(0, 4, 500)
    size = random.integers(1, 1000, 500)
    sums = SiteSums.of(site.astype(np.int32), type_.astype(np.int32), size)
    expected: Counter[tuple[str, ...]] = Counter()
    for one, kind, amount in zip(site.tolist(), type_.tolist(), size.tolist(), strict=True):
        frames = [call.method for call in sites.frames(one)]
        path = frames if inverted else frames[::-1]
        path = [*(path or [sites.labels[one]]), *([types.names[kind]] if kind else [])]
        for end in range(len(path) + 1):
            expected[tuple(path[:end])] += amount
    tree = call_tree(sites, types, sums, inverted=inverted)
    assert paths_of(tree) == expected
    assert (tree.parent[1:] < np.arange(1, len(tree))).all()
    assert (tree.depth[1:] == tree.depth[tree.parent[1:]] + 1).all()
    assert int(tree.objects[0]) == 500
    apart = call_tree(sites, types, sums, inverted=inverted, lines=True)
    assert len(apart) > len(tree)
    half = sums.where(np.arange(len(sums)) % 2 == 0)
    compared = call_tree(sites, types, half, before=sums, inverted=inverted)
    assert compared.before is not None
    assert int(compared.before[0]) == int(sums.bytes.sum())
    assert int(compared.bytes[0]) == int(half.bytes.sum())


def test_the_peak_is_that_of_a_loop(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    live: dict[int, tuple[int, int]] = {}
    rows: list[tuple[int, int, int, int]] = []
    sizes = [0]
    moments: list[Counter[int]] = [Counter()]
    for event in range(3000):
        if live and random.random() < (0.3 if event < 1700 else 0.7):
            address = int(random.choice(list(live)))
            live.pop(address)
            rows.append((24, address, 0, 0))
        else:
            size, site = int(random.integers(1, 500)), int(random.integers(1, 5))
            address = (event + 1) * 4096
            live[address] = size, site
            rows.append((1, address, size, site))
        sizes.append(sum(one for one, _ in live.values()))
        moments.append(Counter())
        for size, site in live.values():
            moments[-1][site] += size
    kind, address, size, site = np.array(rows).T
    file = io.BytesIO()
    writer = TraceWriter(file, {"deaths": "told", "moves": "none", "contiguous": "0"})
    writer.define(pack_site(one, SiteDefinition(0, f"site {one}", ())) for one in range(1, 5))
    for start in range(0, len(kind), 700):
        part = slice(start, start + 700)
        writer.write(
            event_columns(
                kind[part].tolist(), address=address[part], size=size[part], site=site[part]
            ),
            thread=1,
        )
    writer.end()
    path = tmp_path / "made.gctrace"
    path.write_bytes(file.getvalue())
    with open_trace(path) as trace, RebuiltHeap(trace) as heap:
        peak = peak_of(heap)
        assert peak == (int(np.argmax(sizes)), max(sizes))
        sums = live_sums(heap.at(peak.event))
        by_site = [numbers.tolist() for numbers in (sums.site, sums.bytes)]
        assert sorted(by_site[1]) == sorted(moments[peak.event].values())
        assert int(allocated_sums(heap).bytes.sum()) == int(size.sum())


def test_the_peak_of_a_trace_of_collections_is_before_one_of_them() -> None:
    with open_trace(path_of("list")) as trace, RebuiltHeap(trace) as heap:
        peak = peak_of(heap)
        now = heap.at(peak.event)
        assert int(now.size[~now.filler].sum()) == peak.bytes
        assert peak.bytes >= max(one.bytes_before for one in heap.collections)
