"""Decoding: each event by hand, both ways alike on whatever words there are, and the first bad event named."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gcspy_objects.anttracks import buffers, decoding
from gcspy_objects.anttracks.buffers import Chunk
from gcspy_objects.anttracks.decoding import kernel
from gcspy_objects.anttracks.decoding.tables import FIXED_WORDS, SymbolTables, tables_of
from gcspy_objects.anttracks.layout import EventId
from gcspy_objects.anttracks.reader import AntTracksTrace
from gcspy_objects.anttracks.symbols import read_symbols
from gcspy_objects.names import MAX_NAMES, Thread, ThreadKind, Threads
from gcspy_objects.records import (
    CollectionKind,
    PointerKind,
    ReadPosition,
    RecordBatch,
    RecordFlag,
    RecordKind,
    SpaceKind,
)
from gcspy_protocol.errors import TraceError
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.targets.anttracks_writer import (
    TraceWriter,
    alloc,
    head,
    long,
    pack,
    word,
    write_run,
)
from gcspy_compiled import machine_code
from tests.c_loops import c_loop, check_accesses, need_c, without_c
from tests.matrix import matrix
from tests.objects.anttracks.made import (
    BASE,
    EVENTS,
    INTS,
    MAIN,
    NEW_BIG,
    NEW_INTS,
    NEW_POINT,
    POINT,
    as_written,
    gc,
    in_numpy,
    same,
    symbols,
    thread,
    trace,
)
from tests.objects.anttracks.samples import SAMPLES, sample
from tests.once import compiled_once

TABLES: SymbolTables = tables_of(read_symbols(symbols().data(), "symbols"))


def chunk_of(*payloads: bytes) -> Chunk:
    lengths = [len(one) // 4 for one in payloads]
    words = np.frombuffer(bytearray(b"".join(payloads)), "<i4").astype(np.int32)
    count = len(payloads)
    return Chunk(
        words,
        np.cumsum([0, *lengths]),
        list(range(count)),
        np.zeros(count, np.int64),
        np.zeros(count, np.uint8),
        0,
        None,
    )


def both(chunk: Chunk, anchor: int = 0) -> decoding.Decoded:
    owners = np.arange(len(chunk.owners), dtype=np.int32)
    one = as_written(chunk, owners, BASE, anchor, TABLES)
    same(one, in_numpy(chunk, owners, BASE, anchor, TABLES))
    if (loop := c_loop(buffers.LIBRARY, "decode", kernel.SIGNATURE)) is not None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(decoding, "_DECODE", SimpleNamespace(machine=loop))
            threads = Threads()
            in_c = decoding.decode(chunk, BASE, anchor, TABLES, threads)
        rows = np.array([threads.row_of(owner) for owner in chunk.owners], np.int32)
        in_c.columns.thread[:] = owners[np.searchsorted(rows, in_c.columns.thread)]
        same(one, in_c)
    return one


def read(folder: Path, *events: bytes, flags: int = 0) -> RecordBatch:
    made = TraceWriter()
    made.buffer(MAIN, *events)
    with AntTracksTrace(write_run(folder, symbols(flags), made)) as opened:
        (batch,) = opened.batches()
        return batch


def test_every_event_of_the_format_is_in_the_list_that_is_tried() -> None:
    tried = {int.from_bytes(one[:4], "little") >> 26 for one in EVENTS}
    assert tried == set(EventId) == set(np.flatnonzero(FIXED_WORDS).tolist())


@pytest.mark.parametrize("anchors", [False, True])
def test_each_event_is_one_record_by_both_ways(anchors: bool) -> None:
    anchor = b"\x11\x22\x33\x44" if anchors else b""
    found = both(
        chunk_of(b"".join(one + anchor for one in EVENTS), b"", EVENTS[0] + anchor), int(anchors)
    )
    assert not found.problem
    assert len(found.columns.kind) == len(EVENTS) + 1


def test_what_an_allocation_says(tmp_path: Path) -> None:
    batch = read(
        tmp_path,
        alloc(EventId.IR_ALLOC_SLOW, NEW_POINT, address=BASE),
        alloc(EventId.C1_ALLOC_FAST, NEW_INTS, length=1000),
        alloc(EventId.C2_ALLOC_FAST, NEW_BIG),
    )
    assert batch.kind.tolist() == [
        RecordKind.ALLOCATE,
        RecordKind.ALLOCATE_NEXT,
        RecordKind.ALLOCATE_NEXT,
    ]
    assert batch.size.tolist() == [24, 4016, 24]
    assert batch.length.tolist() == [0, 1000, 0]
    assert batch.address.tolist() == [BASE, 0, 0]
    assert batch.flags.tolist() == [RecordFlag.INTERPRETED, 0, 0]
    assert batch.type.tolist() == [POINT, INTS, POINT]
    assert len(set(batch.site.tolist())) == 3


def test_the_size_of_a_class_is_its_own_and_a_filler_is_marked(tmp_path: Path) -> None:
    batch = read(
        tmp_path,
        alloc(EventId.ALLOC_SLOW, 1, address=BASE, type_id=3, size=104),
        alloc(EventId.ALLOC_SLOW, 1, address=BASE, length=2, type_id=INTS),
        alloc(EventId.ALLOC_SLOW, 2, address=BASE, length=2, type_id=INTS),
    )
    assert batch.size.tolist() == [104, 24, 24]
    assert batch.flags.tolist() == [
        RecordFlag.VM,
        RecordFlag.VM | RecordFlag.FILLER,
        RecordFlag.VM | RecordFlag.FILLER | RecordFlag.BY_COLLECTOR,
    ]


def test_what_a_collection_says(tmp_path: Path) -> None:
    narrow = head(EventId.GC_MOVE_FAST_NARROW, 2 << 24 | 3 << 2)
    batch = read(
        tmp_path,
        gc(EventId.GC_START, 9, kind=1),
        narrow,
        head(EventId.GC_MOVE_REGION, 70) + long(BASE) + long(BASE - 64),
        gc(EventId.GC_END, 9, kind=1, failed=True),
    )
    assert batch.kind.tolist() == [
        RecordKind.COLLECTION_START,
        RecordKind.MOVE_NEXT,
        RecordKind.MOVE_RUN,
        RecordKind.COLLECTION_END,
    ]
    assert batch.length.tolist() == [9, 0, 70, 9]
    assert batch.detail.tolist() == [CollectionKind.FULL, SpaceKind.OLD, 0, CollectionKind.FULL]
    assert batch.address.tolist() == [BASE, BASE + 24, BASE, BASE]
    assert batch.size[0] == 1009
    assert batch.flags.tolist() == [0, 0, 0, RecordFlag.FAILED]
    assert batch.after.base == BASE


def test_pointers_lead_from_the_object_until_there_is_an_address_and_then_from_there(
    tmp_path: Path,
) -> None:
    kinds = [1, 1, 3, 2, 3, 1]
    first = head(
        EventId.GC_MOVE_SLOW_PTR, sum(kind << (22 - 2 * at) for at, kind in enumerate(kinds))
    )
    event = (
        first
        + long(BASE)
        + long(BASE + 4096)
        + word(2)
        + word(2**32 - 3)
        + long(BASE + 800)
        + word(4)
    )
    batch = read(tmp_path, event, flags=2)
    assert batch.pointer_record.tolist() == [0] * 6
    assert batch.pointer_kind.tolist() == [
        PointerKind.RELATIVE,
        PointerKind.RELATIVE,
        PointerKind.NULL,
        PointerKind.ABSOLUTE,
        PointerKind.NULL,
        PointerKind.ABSOLUTE,
    ]
    assert batch.pointer_value.tolist() == [-16, 8, 0, BASE + 800, 0, BASE + 800 - 32]


def test_threads_have_rows_and_names(tmp_path: Path) -> None:
    made = TraceWriter()
    made.buffer(7, thread(MAIN, "main"), thread(8, "worker", 1))
    made.buffer(MAIN, head(EventId.THREAD_DEATH) + long(8), thread(8, "another", 1))
    with AntTracksTrace(write_run(tmp_path, symbols(), made)) as opened:
        (batch,) = opened.batches()
        assert batch.thread.tolist() == [0, 0, 1, 1]
        assert batch.length.tolist() == [1, 2, 2, 2]
        assert [opened.threads.name(row) for row in range(3)] == [
            "thread at 0x7",
            "main",
            "worker, then another",
        ]
        assert batch.type.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("length", range(48))
def test_a_name_ends_with_the_first_word_that_has_a_nul(length: int) -> None:
    for letter in ("x", "\x01"):
        found = both(chunk_of(thread(MAIN, letter * length), head(EventId.NOP)))
        assert not found.problem
        assert found.columns.kind.tolist() == [RecordKind.THREAD_BEGIN, RecordKind.BARRIER]


@pytest.mark.parametrize(
    "event",
    [
        alloc(EventId.C2_ALLOC_FAST, NEW_POINT, length=3),
        head(EventId.C1_ALLOC_FAST, NEW_INTS << 8 | 1 << 24),
        head(EventId.NOP, 1 << 9),
        head(EventId.GC_MOVE_FAST_NARROW, 1 << 24 | 1),
        head(EventId.GC_MOVE_SLOW, 1) + long(BASE) + long(BASE + 8),
    ],
)
def test_bits_that_are_always_0_are_marked_where_they_are_not(event: bytes) -> None:
    found = both(chunk_of(head(EventId.NOP) + event))
    assert found.columns.flags.tolist()[0] == 0
    assert found.columns.flags[1] & RecordFlag.ODD


# Both ways alike.

events = st.sampled_from(EVENTS)
strange = st.builds(
    lambda event, rest: head(EventId(0), event << 26 | rest),
    st.integers(0, 63),
    st.integers(0, 2**26 - 1),
)
payloads = st.lists(
    st.lists(events | strange | st.binary(min_size=4, max_size=4), max_size=20).map(b"".join),
    min_size=1,
    max_size=4,
)


@given(payloads, st.integers(0, 1))
def test_both_ways_say_the_same_of_any_words(made: list[bytes], anchor: int) -> None:
    both(chunk_of(*made), anchor)


@given(st.data())
def test_both_ways_say_the_same_of_flipped_bits_and_of_what_is_cut(data: st.DataObject) -> None:
    whole = bytearray(b"".join(data.draw(st.lists(events, min_size=1, max_size=30))))
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    both(chunk_of(bytes(whole[: 4 * data.draw(st.integers(0, len(whole) // 4))])))


@pytest.mark.parametrize("way", matrix(["numba", "c"], usual=["c"]))
def test_machine_code_says_the_same_of_real_traces_and_of_made_ones(
    way: str, tmp_path: Path
) -> None:
    loops = (decoding._DECODE, buffers._UNPACK)

    def read(path: Path) -> list[RecordBatch]:
        with AntTracksTrace(path, chunk_bytes=1 << 18) as opened:
            return list(opened.batches())

    try:
        folder = write_run(tmp_path / "made", symbols(2), trace())
        for path in (folder, *(sample(name) for name in SAMPLES)):
            with pytest.MonkeyPatch.context() as patched:
                if way == "c":
                    need_c(buffers.LIBRARY, patched)
                else:
                    pytest.importorskip("numba")
                    without_c(patched)
                    assert compiled_once(partial(machine_code.compile_all, loops))
                assert None not in [loop.machine for loop in loops]
                compiled = read(path)
            with pytest.MonkeyPatch.context() as patched:
                without_c(patched)
                machine_code.forget()
                assert [loop.machine for loop in loops] == [None, None]
                plain = read(path)
            assert len(compiled) == len(plain)
            for one, other in zip(compiled, plain, strict=True):
                assert (one.place, one.after) == (other.place, other.after)
                for name in RecordBatch.__dataclass_fields__:
                    np.testing.assert_array_equal(
                        getattr(one, name), getattr(other, name), err_msg=name
                    )
    finally:
        machine_code.forget()


@pytest.mark.soak
def test_no_access_in_c_is_outside_of_an_array(tmp_path: Path) -> None:
    check_accesses(
        buffers.LIBRARY, tmp_path, Path(__file__), Path(__file__).with_name("test_lzw.py")
    )


# Errors are reported, and the records before them are returned.


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (head(EventId(0), 38 << 26), "expected the id of an event"),
        (head(EventId.GC_MOVE_SLOW) + long(BASE), "longer than what is left of its buffer"),
        (alloc(EventId.IR_ALLOC_FAST, 99), "expected an allocation site"),
        (alloc(EventId.IR_ALLOC_FAST, 0x80FFFF), "expected an allocation site"),
        (alloc(EventId.IR_ALLOC_FAST, 5), "expected a type"),
        (alloc(EventId.ALLOC_SLOW, 1, address=BASE, type_id=77), "expected a type"),
        (head(EventId.GC_KEEP_ALIVE) + long(1 << 62), "below 2**62"),
        (alloc(EventId.IR_ALLOC_FAST, NEW_INTS, length=2**31), "below 2**31"),
        (thread(MAIN, "x" * 47)[:-8], "longer than what is left"),
    ],
)
def test_the_first_bad_event_is_named_and_those_before_it_are_there(
    tmp_path: Path, wrong: bytes, expected: str
) -> None:
    both(chunk_of(head(EventId.NOP) + wrong))
    made = TraceWriter()
    made.buffer(MAIN, head(EventId.NOP), head(EventId.NOP))
    made.buffer(MAIN, head(EventId.NOP), wrong)
    made.buffer(MAIN, head(EventId.NOP))
    with AntTracksTrace(write_run(tmp_path, symbols(), made)) as opened:
        found = opened.batches()
        assert len(next(found)) == 3
        with pytest.raises(TraceError) as caught:
            next(found)
    error = caught.value
    assert (error.file, error.offset, error.buffer, error.event) == ("trace", 204, 1, 3)
    assert expected in str(error)
    assert "event 3" in str(error)
    assert "buffer 1 at byte 204" in str(error)


def test_a_compressed_buffer_and_a_plain_one_say_the_same(tmp_path: Path) -> None:
    payload = b"".join(EVENTS)
    assert len(pack(payload)) < len(payload)
    found = []
    for packed in (False, True):
        made = TraceWriter()
        made.buffer(MAIN, *EVENTS, packed=packed)
        with AntTracksTrace(write_run(tmp_path / str(packed), symbols(2), made)) as opened:
            found += list(opened.batches())
    for name in ("kind", "address", "size", "offset", "pointer_value"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))


def test_reading_goes_on_from_any_batch(tmp_path: Path) -> None:
    folder = write_run(tmp_path, symbols(2), trace())
    with AntTracksTrace(folder, chunk_bytes=1) as opened:
        whole = list(opened.batches())
        assert len(whole) == 4
        assert sum(map(len, whole)) == len(EVENTS)
        for at, batch in enumerate(whole):
            again = list(opened.batches(batch.place))
            assert [one.place for one in again] == [one.place for one in whole[at:]]
            np.testing.assert_array_equal(again[0].address, batch.address)
        assert list(opened.batches(whole[-1].after)) == []
        assert opened.position_bytes(whole[-1].after) == opened.size_bytes
        assert whole[0].place == ReadPosition(0, 184, 0, 0, 0)


def test_rows_of_threads_are_those_of_all_buffers() -> None:
    threads = Threads()
    made = [threads.row_of(address) for address in (9, 7, 9)]
    assert made == [0, 1, 0]
    kinds = [
        threads.begin(0, Thread(name, ThreadKind.PROGRAM)) for name in ("a", "b", "a", *"cdefghi")
    ]
    assert kinds == [0, 1, 0, 2, 3, 4, 5, 6, 7, MAX_NAMES]
    assert threads.name(0) == "a, then b, then c, then d, then e, then f, then g, then h"
