"""Traces are read as the program itself reports them, and damaged tables end in time."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from gcspy_drivers.cpython.allocations import tracemalloc
from gcspy_drivers.cpython.allocations.hash_table import HEAD_WORDS, read_table
from gcspy_drivers.cpython.allocations.tracemalloc import (
    TracePlaces,
    Traces,
    file_name_at,
    frames_of,
    read_traces,
)
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy, copy_memory, plan_copy
from gcspy_drivers.cpython.layouts import VersionLayout
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.maps import read_maps

from tests.drivers.conftest import Start
from tests.drivers.targets import StillTarget, write_memory

# The traces are taken right after the stop, by a function of C. It allocates a list; no freed one is left that it could take, since
# that has a trace from an earlier use.
PROGRAM = """
import _tracemalloc, json
class Order:
    def __init__(self, number):
        self.number = number
        self.items = [number]
def build(count):
    return [Order(n) for n in range(count)]
AUDIT = build(3000)
TEXTS = [str(n) * 50 for n in range(2000)]
GONE = build(5000)
del GONE
try:
    from _testcapi import tracemalloc_track
except ImportError:
    pass
else:
    tracemalloc_track(389047, 0x1230, 70_000)
    tracemalloc_track(5, 0x1230, 3)
lists = [[] for _ in range(1000)]
_kill(_pid, _stop)
traces = _tracemalloc._get_traces()
sites = {}
for domain, size, frames, *_ in traces:
    key = frames[0] if frames else ("<unknown>", 0)
    count, total = sites.get(key, (0, 0))
    sites[key] = count + 1, total + size
_write(1, (json.dumps([[*key, *value] for key, value in sites.items()]) + chr(10)).encode())
"""
Sites = dict[tuple[str, int], tuple[int, int]]


def copied(target: StillTarget) -> tuple[MemoryCopy, VersionLayout, TracePlaces]:
    """Copy the memory of a target that holds still."""
    with Target(target.pid) as reader:
        plan = plan_copy(reader.process, read_maps(reader.process))
        copy = copy_memory(reader.memory, plan)
        return copy, reader.layout, reader.trace_places()


def by_site(copy: MemoryCopy, layout: VersionLayout, traces: Traces) -> Sites:
    """Count blocks and bytes by file and line."""
    found: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    rows = np.concatenate((traces.traceback, traces.others_traceback)).tolist()
    sizes = np.concatenate((traces.size, traces.others_size)).tolist()
    names = {address: file_name_at(copy, layout, address) for address in set(traces.file)}
    for row, size in zip(rows, sizes, strict=True):
        file = traces.file[row]
        name = names[file] if file else "<unknown>"
        assert name is not None
        counted = found[name, int(traces.line[row])]
        counted[0] += 1
        counted[1] += size
    return {site: (count, size) for site, (count, size) in found.items()}


def told(target: StillTarget) -> Sites:
    """Let the program report its own traces."""
    target.go_on()
    return {
        (file, line): (count, size) for file, line, count, size in json.loads(target.read_line())
    }


def the_same(found: Sites, truth: Sites) -> None:
    """Compare all sites but the line that takes the traces."""
    differences = {
        site: (found.get(site), truth.get(site))
        for site in {*found, *truth}
        if found.get(site) != truth.get(site)
    }
    last = max(line for file, line in truth if file == "<string>")
    assert [site for site in differences if site != ("<string>", last)] == [], differences


@pytest.mark.parametrize("frames", ["1", "10"])
def test_every_site_has_the_blocks_and_bytes_that_the_program_reports(
    start: Start, python: str, frames: str
) -> None:
    target = start(python, PROGRAM, {"PYTHONTRACEMALLOC": frames})
    target.wait_objects()
    copy, layout, places = copied(target)
    traces = read_traces(copy, layout, places)
    assert isinstance(traces, Traces)
    searched = read_traces(copy, layout, replace(places, config=0, traces=0, domains=0))
    assert isinstance(searched, Traces)
    assert traces.missing == searched.missing == 0
    truth = told(target)
    the_same(by_site(copy, layout, traces), truth)
    the_same(by_site(copy, layout, searched), truth)
    longest = max(len(frames_of(copy, layout, place)) for place in traces.places.tolist())
    assert longest == 1 if frames == "1" else 1 < longest <= 10


def test_a_program_without_names_of_variables_is_searched(
    start: Start, stripped_python: str
) -> None:
    target = start(stripped_python, PROGRAM, {"PYTHONTRACEMALLOC": "3"})
    target.wait_objects()
    copy, layout, places = copied(target)
    assert not places.traces
    traces = read_traces(copy, layout, places)
    assert isinstance(traces, Traces)
    the_same(by_site(copy, layout, traces), told(target))


def test_it_is_said_that_tracemalloc_is_off(start: Start, python: str) -> None:
    target = start(python, "_kill(_pid, _stop)")
    target.wait_objects()
    found = read_traces(*copied(target))
    assert isinstance(found, str)
    assert found.startswith("tracemalloc is off")
    assert "-X tracemalloc" in found


def test_it_is_off_after_it_was_stopped(start: Start, python: str) -> None:
    source = "import tracemalloc\ntracemalloc.start()\nA = [[] for _ in range(500)]\ntracemalloc.stop()\n_kill(_pid, _stop)"
    target = start(python, source)
    target.wait_objects()
    found = read_traces(*copied(target))
    assert isinstance(found, str)
    assert found.startswith("tracemalloc is off")


def test_no_object_gets_a_site_that_is_not_its_own(start: Start, own_python: str) -> None:
    source = "LATE = object()\nimport tracemalloc\ntracemalloc.start(3)\nNOW = [object() for _ in range(9)]\n"
    source += "_write(1, b' '.join(b'%d' % id(one) for one in (LATE, None, *NOW)) + b'\\n')\n_kill(_pid, _stop)"
    target = start(own_python, source)
    target.wait_objects()
    copy, layout, places = copied(target)
    traces = read_traces(copy, layout, places)
    assert isinstance(traces, Traces)
    address = np.array([int(number) for number in target.read_line().split()])
    found = traces.of(address)
    assert found[:2].tolist() == [-1, -1]
    assert (found[2:] >= 0).all()
    lines = {int(traces.line[row]) for row in found[2:]}
    assert len(lines) == 1
    assert (traces.of(address + 4096 * 4096 * 4096) == -1).all()


HUGE = 1 << 40


@pytest.mark.parametrize(
    ("word", "number"),
    [
        (0, HUGE),
        (0, -1),
        (0, 3),
        (1, HUGE),
        (1, 1 << 62),
        (1, 0),
        (1, 12345),
        (2, 0),
        (2, 17),
        (2, HUGE),
        (2, -8),
    ],
)
def test_a_head_that_lies_costs_neither_time_nor_memory(
    start: Start, own_python: str, word: int, number: int
) -> None:
    target = start(own_python, PROGRAM, {"PYTHONTRACEMALLOC": "1"})
    target.wait_objects()
    copy, _, places = copied(target)
    table = copy.word(places.traces)
    assert table
    write_memory(target.pid, table + 8 * word, (number & (1 << 64) - 1).to_bytes(8, "little"))
    found = read_traces(*copied(target))
    if isinstance(found, Traces):
        assert found.missing > 0 or (word, number) == (0, 3)
    else:
        assert "torn" in found


def test_chains_in_a_circle_end(start: Start, own_python: str) -> None:
    target = start(own_python, PROGRAM, {"PYTHONTRACEMALLOC": "1"})
    target.wait_objects()
    copy, layout, places = copied(target)
    whole = read_traces(copy, layout, places)
    assert isinstance(whole, Traces)
    table = copy.word(places.traces) or 0
    buckets, first = copy.word(table + 8) or 0, copy.word(table + 16) or 0
    damaged = copy.words.copy()
    for at in range(buckets):
        entry = copy.word(first + 8 * at)
        if entry:
            place = copy.place(entry)
            assert place is not None
            damaged[place] = entry  # each entry is behind itself
    found = read_traces(replace(copy, words=damaged), layout, places)
    assert isinstance(found, Traces)
    assert 0 < found.missing < len(whole.address)
    known = dict(zip(whole.address.tolist(), whole.size.tolist(), strict=True))
    assert all(
        known[address] == size
        for address, size in zip(found.address.tolist(), found.size.tolist(), strict=True)
    )


def test_a_table_is_found_though_its_first_buckets_are_empty(start: Start, own_python: str) -> None:
    # A bucket stands for an address: those of a large block that was freed are neighbours, and empty.
    target = start(own_python, PROGRAM, {"PYTHONTRACEMALLOC": "1"})
    target.wait_objects()
    copy, layout, places = copied(target)
    table = copy.word(places.traces) or 0
    buckets, first = copy.word(table + 8) or 0, copy.word(table + 16) or 0
    emptied = copy.words.copy()
    for at in range(buckets // 2):
        if copy.word(first + 8 * at):
            place = copy.place(first + 8 * at)
            assert place is not None
            emptied[place] = 0
    found = read_traces(
        replace(copy, words=emptied), layout, replace(places, config=0, traces=0, domains=0)
    )
    assert isinstance(found, Traces)
    assert len(found.address)


def free_variables(copy: MemoryCopy, places: TracePlaces, count: int) -> int:
    """Return where this many words of variables are in the copy, without those of tracemalloc."""
    first, end = places.writable[0]
    for address in range((end & ~7) - 8 * count, first, -8 * 256):
        others = (places.traces, places.domains, places.config)
        if copy.place(address, count) is not None and not any(
            address <= other < address + 8 * count for other in others
        ):
            return address
    raise AssertionError("there is no room in the variables")


def test_variables_full_of_pointers_to_one_huge_table_are_searched_in_bounded_work(
    start: Start, own_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start(own_python, PROGRAM, {"PYTHONTRACEMALLOC": "1"})
    target.wait_objects()
    copy, layout, places = copied(target)
    head = copy.place(copy.word(places.traces) or 0, HEAD_WORDS)
    assert head is not None
    damaged = copy.words.copy()
    address = free_variables(copy, places, 1000 * (HEAD_WORDS + 1))
    place = copy.place(address)
    assert place is not None
    # Heads that all have the buckets of the one table, and a pointer to each.
    heads = damaged[place : place + 1000 * HEAD_WORDS].reshape(1000, HEAD_WORDS)
    heads[:] = copy.words[head : head + HEAD_WORDS]
    pointers = damaged[place + 1000 * HEAD_WORDS :][:1000]
    pointers[:] = address + 8 * HEAD_WORDS * np.arange(1000)
    asked: list[int] = []

    def counting(copy: MemoryCopy, address: int, *, most_buckets: int | None = None) -> object:
        asked.append(most_buckets or 1 << 40)
        return read_table(copy, address, most_buckets=most_buckets)

    monkeypatch.setattr(tracemalloc, "read_table", counting)
    nowhere = replace(places, config=0, traces=0, domains=0, writable=places.writable[:1])
    found = read_traces(replace(copy, words=damaged), layout, nowhere)
    assert isinstance(found, Traces)
    assert len([most for most in asked if most > 1024]) <= 4, (
        "whole tables: that of traces, and of domains"
    )
    assert len(asked) < 300


@pytest.mark.parametrize("seed", range(6))
def test_words_that_are_changed_at_random_are_never_a_trace_that_was_not_there(
    start: Start, own_python: str, seed: int
) -> None:
    target = start(own_python, PROGRAM, {"PYTHONTRACEMALLOC": "4"})
    target.wait_objects()
    copy, layout, places = copied(target)
    whole = read_traces(copy, layout, places)
    assert isinstance(whole, Traces)
    random = np.random.default_rng(seed)
    damaged = copy.words.copy()
    chosen = random.integers(0, len(damaged), len(damaged) // 10)
    damaged[chosen] = random.choice(
        [0, -1, 8, HUGE, *random.choice(copy.words, 50)], size=len(chosen)
    )
    # The pointer to the table, and its head, are left as they are.
    for kept in (places.config, places.traces, copy.word(places.traces) or 0):
        place = copy.place(kept & ~7, 3)
        assert place is not None
        damaged[place : place + 3] = copy.words[place : place + 3]
    found = read_traces(replace(copy, words=damaged), layout, places)
    assert isinstance(found, Traces)
    assert found.missing > 0
    assert np.isin(found.address, whole.address).mean() > 0.99
    assert (found.of(whole.address) < len(found.places)).all()
