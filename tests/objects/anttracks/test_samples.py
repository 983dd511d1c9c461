"""The six real traces: the walk ends where the files do, and counts are those of the VM's, the program's and another decoder's own words."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from gcspy_objects.anttracks.buffers import read_chunk
from gcspy_objects.anttracks.layout import EventId
from gcspy_objects.anttracks.reader import AntTracksTrace
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.records import (
    COLUMNS,
    CollectionKind,
    PointerKind,
    RecordBatch,
    RecordFlag,
    RecordKind,
)
from gcspy_objects.trace import open_trace

from tests.objects.anttracks.samples import FOLDER, SAMPLES, sample

COUNT = re.compile(r"^  ([A-Z]\w+) +n= *(\d+) bytes= *(\d+)", re.MULTILINE)
BUFFERS = re.compile(r"buffers \(sync,compressed\): \{(.*?)\}")
OBJECTS = (RecordKind.ALLOCATE, RecordKind.ALLOCATE_NEXT)

# The independent decoder abbreviates some of the VM's names.
NAMES = {"GC_CROSSGEN_PTR": "GC_CROSSGENERATIONAL_PTR"}


def read(name: str) -> tuple[AntTracksTrace, list[RecordBatch]]:
    with AntTracksTrace(sample(name)) as opened:
        return opened, list(opened.batches())


def allocations(batches: list[RecordBatch]) -> tuple[np.ndarray, ...]:
    """Type, site, length of all that the program allocated."""
    columns = []
    for batch in batches:
        rows = np.isin(batch.kind, OBJECTS) & (batch.flags & RecordFlag.FILLER == 0)
        columns.append((batch.type[rows], batch.site[rows], batch.length[rows]))
    return tuple(np.concatenate(one) for one in zip(*columns, strict=True))


@pytest.mark.parametrize("name", SAMPLES)
def test_events_are_those_that_another_decoder_counted(name: str) -> None:
    told = (sample(name) / "decode.txt").read_text()
    counts: Counter[int] = Counter()
    modes: Counter[tuple[int, int]] = Counter()
    payload = 0
    with AntTracksTrace(sample(name)) as opened:
        (span,) = opened._spans
        for batch in opened.batches():
            chunk = read_chunk(span, batch.place.position, batch.place.buffer)
            words = chunk.words[chunk.bounds[batch.buffer] + batch.offset // 4]
            counts.update((words.view(np.uint32) >> 26).tolist())
            payload += len(chunk.words) * 4
            packed = [
                span.read(position + 11, 1)[0] >> 7 for position in batch.buffer_position.tolist()
            ]
            modes.update(zip(batch.buffer_mode.tolist(), packed, strict=True))
        end = batch.after
    assert {EventId(number).name: count for number, count in counts.items()} == {
        NAMES.get(event, event): int(n) for event, n, _ in COUNT.findall(told)
    }
    assert payload == sum(int(size) for _, _, size in COUNT.findall(told))
    found = BUFFERS.search(told)
    assert found
    assert modes == {
        (int(mode), int(packed)): int(n)
        for mode, packed, n in re.findall(r"\((\d), (\d)\): (\d+)", found[1])
    }
    assert (
        opened.position_bytes(end) == opened.size_bytes == (sample(name) / "trace").stat().st_size
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_allocations_are_those_that_the_program_counted(name: str) -> None:
    opened, batches = read(name)
    types, sites, lengths = allocations(batches)
    held = 0
    for line in (sample(name) / "truth.txt").read_text().splitlines():
        match line.split():
            case ["allocated", internal, count, *rest]:
                of_type = np.isin(types, opened.types.rows_named(internal.replace("/", ".")))
            case ["allocated_at_site", method, shown, count, *rest]:
                (row,) = opened.types.rows_named(shown)
                at = [
                    site
                    for site in range(len(opened.sites))
                    if opened.sites.frames(site)
                    and opened.sites.frames(site)[0].method.startswith(f"{method}(")
                ]
                of_type = np.isin(sites, at) & (types == row)
            case _:
                continue
        assert of_type.sum() == int(count), line
        for what, number in zip(rest[::2], rest[1::2], strict=True):
            expected = (
                lengths[of_type].sum() if what == "elements" else (lengths[of_type] >= 255).sum()
            )
            assert expected == int(number), line
        held += 1
    assert held == len(re.findall("(?m)^allocated", (sample(name) / "truth.txt").read_text())) > 0


@pytest.mark.parametrize("name", SAMPLES)
def test_fillers_are_those_that_another_decoder_counted(name: str) -> None:
    told = re.search(r"allocs (\d+) \(.*fillers (\d+)", (sample(name) / "decode.txt").read_text())
    assert told
    _, batches = read(name)
    allocated = [batch.flags[np.isin(batch.kind, OBJECTS)] for batch in batches]
    assert sum(map(len, allocated)) == int(told[1])
    assert sum(int((flags & RecordFlag.FILLER != 0).sum()) for flags in allocated) == int(told[2])
    assert not any((batch.flags & RecordFlag.ODD).any() for batch in batches), (
        "bits that are always 0"
    )


def test_names_are_as_a_programmer_writes_them() -> None:
    with open_trace(FOLDER / "churn.tar.xz") as opened:
        assert {"int[]", "java.lang.String", "Churn$Cell[]", "java.lang.Class"} <= set(
            opened.types.names
        )
        assert {"[I", "java.lang.String", "[LChurn$Cell;"} <= set(opened.types.internal)
        assert any(
            name.startswith("Churn.main(java.lang.String[]) @ ")
            for name in map(opened.sites.name, range(len(opened.sites)))
        )
        assert opened.causes[14] == "Allocation Failure"
        (string,) = opened.types.rows_named("java.lang.String")
        assert ("value", "char[]") in [
            (field.name, field.type) for field in opened.types.fields[string]
        ]
        assert opened.types.instance_bytes[string] == 24


def test_an_archive_a_folder_and_a_file_are_the_same_trace() -> None:
    found = []
    for path in (
        FOLDER / "list.tar.xz",
        sample("list"),
        sample("list") / "trace",
        sample("list") / "symbols",
    ):
        with open_trace(path) as opened:
            found.append([batch.address.sum() for batch in opened.batches()])
            assert opened.has_pointers is False
    assert found[1:] == found[:-1]


def test_batches_of_any_size_say_the_same() -> None:
    found = []
    for chunk_bytes in (1 << 13, 1 << 24):
        with AntTracksTrace(sample("list"), chunk_bytes=chunk_bytes) as opened:
            batches = list(opened.batches())
        found.append(
            {
                name: np.concatenate([getattr(batch, name) for batch in batches])
                for name in COLUMNS
                if name != "buffer"
            }
        )
    for name, column in found[0].items():
        np.testing.assert_array_equal(column, found[1][name], err_msg=name)


def test_each_pointer_leads_to_an_object() -> None:
    """In a full collection to where one is after it, in a minor one to where one was before it."""
    looked_at = 0
    with (
        AntTracksTrace(sample("pointers"), chunk_bytes=1 << 24) as opened,
        RebuiltHeap(opened) as heap,
    ):
        (batch,) = opened.batches()
        assert opened.has_pointers
        for step in heap.steps():
            collection, before = step.collection, step.before.address
            record = batch.pointer_record
            mine = (
                (record >= collection.start_event)
                & (record < collection.end_event)
                & (batch.pointer_kind != PointerKind.NULL)
            )
            address = batch.address[record[mine]]
            row = np.minimum(np.searchsorted(before, address), len(before) - 1)
            # The source of a pointer is identified by its old address, and stays or is moved.
            start = np.where(
                (before[row] == address)
                & (step.to[row] >= 0)
                & (batch.kind[record[mine]] != RecordKind.POINTERS),
                step.to[row],
                address,
            )
            target = batch.pointer_value[mine] + np.where(
                batch.pointer_kind[mine] == PointerKind.RELATIVE, start, 0
            )
            assert np.isin(
                target, step.after.address if collection.kind == CollectionKind.FULL else before
            ).all()
            looked_at += len(target)
    assert looked_at == 73_974
