"""Files of a run: found by their content, wherever they are; missing, mixed up or damaged ones are reported."""

from __future__ import annotations

import gzip
import lzma
import os
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gcspy_objects.anttracks.layout import EventId
from gcspy_objects.anttracks.reader import AntTracksTrace
from gcspy_objects.hotspot_log import find_log
from gcspy_objects.records import CollectionKind, RecordKind
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import TraceError

from benchmarks.targets.anttracks_writer import (
    KEY,
    TraceWriter,
    alloc,
    head,
    long,
    prefix,
    word,
    write_run,
)
from tests.objects.anttracks.made import BASE, EVENTS, MAIN, NEW_POINT, POINT, gc, symbols, trace

OTHER = bytes(reversed(KEY))


def refused(path: Path) -> str:
    with pytest.raises(TraceError) as caught, open_trace(path) as opened:
        list(opened.batches())
    return str(caught.value)


def packed(folder: Path, path: Path, compress: Callable[[bytes], bytes] = lzma.compress) -> Path:
    with tarfile.open(path, "w") as archive:
        archive.add(folder, arcname="run")
    path.write_bytes(compress(path.read_bytes()))
    return path


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_an_archive_is_read_however_it_is_compressed(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    folder = write_run(tmp_path / "run", symbols(2), trace())
    (folder / "notes.txt").write_text("not ours")
    with open_trace(packed(folder, tmp_path / "archive", compress)) as opened:
        assert sum(map(len, opened.batches())) == len(EVENTS)


def test_an_archive_leaves_no_file_behind_and_closes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spool"))
    (tmp_path / "spool").mkdir()
    archive = packed(write_run(tmp_path / "run", symbols(2), trace()), tmp_path / "archive")
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    with open_trace(archive):
        assert list((tmp_path / "spool").iterdir()) == []
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_rotated_trace_is_one(tmp_path: Path) -> None:
    """Each file continues where the one before ended; each later one begins with a collection that names every live object."""
    first = TraceWriter(0)
    first.buffer(MAIN, head(EventId.NOP), alloc(EventId.IR_ALLOC_SLOW, NEW_POINT, address=BASE))
    second = TraceWriter(1)
    second.buffer(
        MAIN,
        gc(EventId.GC_START, 2, kind=3),
        head(EventId.SYNC_OBJ_NARROW, NEW_POINT << 8) + word(POINT) + long(BASE),
        mode=2,
    )
    third = TraceWriter(2)
    third.buffer(MAIN, gc(EventId.GC_START, 3, kind=2), gc(EventId.GC_END, 3, kind=1), mode=2)
    folder = write_run(tmp_path, symbols(), second, third, first)
    with AntTracksTrace(folder) as opened:
        found = list(opened.batches())
        assert opened.files == ("trace_0", "trace_1", "trace_2")
        assert [batch.place.event for batch in found] == [0, 2, 4]
        assert [batch.place.buffer for batch in found] == [0, 1, 2]
        assert [batch.file for batch in found] == ["trace_0", "trace_1", "trace_2"]
        assert found[1].kind.tolist() == [RecordKind.COLLECTION_START, RecordKind.SNAPSHOT_KEEP]
        assert found[1].detail[0] == CollectionKind.MINOR_SNAPSHOT
        assert (int(found[1].size[1]), int(found[1].to[1])) == (24, BASE)
        again = list(opened.batches(found[1].place))
        np.testing.assert_array_equal(again[0].kind, found[1].kind)
        assert (
            str(found[2].where(1))
            == "event 5, trace_2: buffer 2 at byte 184, 24 bytes into its payload"
        )
    with open_trace(folder / "trace_2") as alone:
        assert [len(batch) for batch in alone.batches()] == [2]


def test_a_rotated_trace_of_which_a_file_is_missing_is_refused(tmp_path: Path) -> None:
    assert "file 2 of the trace (trace_2) follows on file 0: those between are missing" in refused(
        write_run(tmp_path, symbols(), TraceWriter(0), TraceWriter(2))
    )


def test_symbols_of_another_run_are_not_taken(tmp_path: Path) -> None:
    write_run(tmp_path, symbols(), trace())
    (tmp_path / "symbols").write_bytes(symbols().data(OTHER))
    assert "symbols of another run are there: symbols" in refused(tmp_path)


@pytest.mark.parametrize("place", [0, len(KEY) // 2, len(KEY) - 1])
def test_one_other_byte_of_the_key_is_another_run(tmp_path: Path, place: int) -> None:
    other = bytearray(KEY)
    other[place] ^= 1
    write_run(tmp_path, symbols(), trace())
    (tmp_path / "symbols").write_bytes(symbols().data(bytes(other)))
    assert "symbols of another run are there: symbols" in refused(tmp_path)


def test_a_trace_without_symbols_says_what_is_missing(tmp_path: Path) -> None:
    write_run(tmp_path, symbols(), trace())
    (tmp_path / "symbols").unlink()
    assert "put it beside trace" in refused(tmp_path)


def test_two_runs_in_a_folder_are_told_apart_by_naming_a_file(tmp_path: Path) -> None:
    write_run(tmp_path, symbols(2), trace())
    (tmp_path / "other").write_bytes(trace().data(OTHER))
    (tmp_path / "a").write_bytes(symbols(2).data(OTHER) + b"damaged")
    assert "the traces of 2 runs" in refused(tmp_path)
    with open_trace(tmp_path / "trace") as opened:
        assert sum(map(len, opened.batches())) == len(EVENTS)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "no object trace"),
        (b"some text", "not an object trace"),
        (prefix(1)[:50], "not an object trace"),
        (prefix(1), "ends after 180 bytes"),
        (prefix(7) + bytes(9), "file type 7"),
        (lzma.compress(b"text"), "not an object trace"),
        (lzma.compress(bytes(4000))[:30], "damaged archive"),
        (b"\xfd7zXZ\0" + bytes(100), "damaged archive"),
        (b"\x1f\x8b" + bytes(100), "damaged archive"),
    ],
)
def test_what_is_no_trace_is_said(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert expected.replace("no object trace", "not an object trace") in refused(path)


def test_what_is_not_there_or_has_nothing_is_said(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "nothing")
    assert "no object trace here" in refused(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "neither a file nor a folder" in refused(tmp_path / "pipe")
    write_run(tmp_path, symbols(2), trace())
    with open_trace(tmp_path) as opened:
        assert sum(map(len, opened.batches())) == len(EVENTS)


def test_an_archive_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    archive = packed(write_run(tmp_path / "run", symbols(2), trace()), tmp_path / "archive", bytes)
    archive.write_bytes(archive.read_bytes()[:1400])
    assert "archive" in refused(archive)


def test_an_archive_that_unpacks_to_more_than_the_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(write_run(tmp_path / "run", symbols(2), trace()), tmp_path / "archive")
    usage = type("Usage", (), {"free": 4096})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    assert "name the folder" in refused(archive)


def test_a_header_of_a_gigabyte_in_an_archive_is_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 30
    path = tmp_path / "bomb.tar.xz"
    packer = lzma.LZMACompressor(preset=0)
    with path.open("wb") as file:
        file.write(packer.compress(info.tobuf()))
        for _ in range(8):  # enough of it to see that it is not read
            file.write(packer.compress(bytes(1 << 20)))
        file.write(packer.flush())
    assert "a header of 1,073,741,824 bytes" in refused(path)


def test_an_xz_file_that_wants_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wants.xz"
    path.write_bytes(
        lzma.compress(
            bytes(10), filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29, "preset": 0}]
        )
    )
    assert "damaged archive" in refused(path)


# ---------------------------------------------------------------- work is bounded by what was sent


class Written:
    """Counts what is written to temporary files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        made = tempfile.TemporaryFile

        def counted() -> AbstractContextManager[object]:
            file = made()

            def write(data: bytes) -> int:
                self.bytes += len(data)
                return file.write(data)

            methods = {"write": write, "flush": file.flush, "fileno": file.fileno}
            return closing(SimpleNamespace(**methods, close=file.close))

        monkeypatch.setattr("tempfile.TemporaryFile", counted)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("reader", ["trace", "log"])
def test_an_archive_that_unpacks_to_more_than_one_can_is_refused_after_some_megabytes(
    tmp_path: Path,
    compress: Callable[[bytes], bytes],
    reader: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file of 64 MiB of zeros in an archive of 10 or 65 kB, before the one that is looked for."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "a").write_bytes(bytes(64 << 20))
    (folder / "gc.log").write_text("{Heap before GC invocations=1")
    path = packed(folder, tmp_path / "archive", compress)
    written = Written(monkeypatch)
    if reader == "log":
        assert find_log(path) is None
    else:
        assert "256 times as many" in refused(path)
    assert 16 << 20 <= written.bytes <= (17 << 20) + 256 * path.stat().st_size


def test_headers_that_lead_backwards_are_not_followed_for_ever(tmp_path: Path) -> None:
    """A member of -1,024 bytes: behind it comes its own header again (CVE-2025-8194)."""
    info = tarfile.TarInfo("x")
    header = bytearray(info.tobuf())
    header[124:136] = (-1024).to_bytes(12, "big", signed=True)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path = tmp_path / "endless.tar"
    path.write_bytes(tarfile.TarInfo("y").tobuf() + header + bytes(1024))
    assert "damaged archive" in refused(path) or "ends in the midst" in refused(path)


def test_the_log_in_an_archive_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "gc.log").write_text("one\ntwo\n")
    for compress in (bytes, gzip.compress, lzma.compress):
        assert find_log(packed(folder, tmp_path / "archive", compress)) == ["one", "two"]
    assert find_log(folder) == ["one", "two"]
    assert find_log(folder / "trace") == ["one", "two"]
    (folder / "gc.log").unlink()
    assert find_log(folder) is None
    assert find_log(packed(folder, tmp_path / "archive")) is None
