"""A row for each recording: true numbers, the same bytes for any number of processes, and few descriptors."""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
from gcspy_replay.file import Recording
from pyarrow import parquet

from gcspy.cli import main
from gcspy.fleet.engine import LocalEngine
from gcspy.fleet.feature_table import gathered, rows_as_json
from gcspy.fleet.features import Features, features_of
from gcspy_client.model.panels.growth import growing_space, measures_of

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "replay/samples/demo-cpython-3.11.gcspy"
LINTER = ROOT / "docs/investigations/linter.gcspy.zst"


def test_the_numbers_are_those_of_the_recording() -> None:
    row = features_of(str(DEMO))
    with Recording.open(DEMO) as recording:
        events = recording.events
        last = recording.seek(recording.last)
        arenas = next(one for one in last.spaces.values() if one.space.name == "pymalloc arenas")
        used = next(one for one in arenas.streams.values() if one.schema.name == "Used")
        assert used.told is not None
        assert (row.events, row.missed) == (len(recording), int(events["missed"].sum()))
        assert (row.used_last, row.committed_last) == tuple(used.told.values[:2])
        assert row.fragmentation == pytest.approx(1 - used.told.values[0] / used.told.values[1])
        assert row.seconds == pytest.approx(
            float(events["time_nanos"][-1] - events["time_nanos"][0]) / 1e9
        )
    assert row.error is None
    assert row.runtime == "CPython"


def test_the_largest_types_are_named() -> None:
    row = features_of(str(LINTER))
    with Recording.open(LINTER) as recording:
        session = recording.seek(recording.chunks[-1].place.first)
        space = growing_space(session)
        assert space is not None
        stream = next(one for one in measures_of(space) if "bytes" in one.name.lower())
        values = space.streams[stream.id].values
    assert row.type_bytes[0] == max(int(value) for value in values)
    assert list(row.type_bytes) == sorted(row.type_bytes, reverse=True)
    assert len(row.type_names) == len(row.type_bytes) > 0


def test_what_cannot_be_read_is_a_row_with_the_reason(tmp_path: Path) -> None:
    torn = tmp_path / "torn.gcspy"
    torn.write_bytes(b"not a recording")
    row = features_of(str(torn))
    assert row.error
    assert row.events is None
    assert features_of(str(tmp_path / "absent.gcspy")).error


def test_the_table_has_the_same_bytes_for_any_number_of_processes(tmp_path: Path) -> None:
    files = [str(shutil.copy(DEMO, tmp_path / f"{n}.gcspy")) for n in range(4)]
    (tmp_path / "5.gcspy").write_bytes(b"torn")
    files.append(str(tmp_path / "5.gcspy"))
    written = []
    for jobs in (1, 2):
        path = tmp_path / f"{jobs}.parquet"
        assert main(["features", *files, "-o", str(path), "--jobs", str(jobs)]) == 0
        written.append(path.read_bytes())
    assert written[0] == written[1]
    table = parquet.read_table(str(tmp_path / "1.parquet"))
    assert table.column_names == [field.name for field in fields(Features)]
    assert table.column("file").to_pylist() == files
    assert table.column("error").to_pylist()[:4] == [None] * 4
    assert table.schema.metadata[b"gcspy_features"] == b"1"


def test_a_thousand_recordings_need_few_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    now = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (now + 8, hard))
    try:
        rows = list(gathered([str(DEMO)] * 12, LocalEngine(1)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [row["error"] for row in rows_as_json(rows)] == [None] * 12


def test_the_documented_columns_are_those_of_the_table() -> None:
    text = (ROOT / "docs/fleets.md").read_text()
    assert [field.name for field in fields(Features) if f"`{field.name}`" not in text] == []
