"""Exports say what the recording says, in other people's formats."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.model import Naming, Presentation, Space, Stream
from gcspy_protocol.text.cells import cell_text
from gcspy_replay.file import MemorySource, MemoryStore, Recording
from gcspy_replay.file.export import csv_file, mcap_file, parquet_file
from gcspy_replay.file.export.tables import SUMMARY_COLUMNS, TILE_COLUMNS, Batch, ExportSelection
from mcap.reader import make_reader
from pyarrow import parquet

from tests.replay.recorded import Small, small

WALL = 1_700_000_000_000_000_000


def recording() -> Recording:
    return Recording([MemorySource(small(20))])


def with_unknown(value: int = 7, dtype: str = "u8") -> Recording:
    """Return a session of one event whose second tile is unknown, in a space of uniform tiles."""
    store = MemoryStore()
    session = Small(store)
    space = Space(
        id=2, name="more", naming=Naming.UNIFORM, streams=(Stream(id=0, name="Big", dtype=dtype),)
    )
    none = np.empty(0, dtype="<u4")
    session.say(m.SpaceDefined(space=space))
    session.say(m.EpochEnd(epoch=2))
    session.say(
        m.Tiles(
            space=2, count=3, naming=Naming.UNIFORM, base=4096, tile_bytes=64,
            old_starts=none, new_starts=none, lengths=none,
        )
    )  # fmt: skip
    values = np.array([value, 1, 2], dtype="<" + dtype)
    session.say(
        m.StreamKey(
            space=2, stream=0, sequence=1, time_nanos=5, event=0, occurrence=1, values=values,
            known=np.array([True, False, True]),
        )
    )  # fmt: skip
    session.say(m.Event(sequence=1, time_nanos=5, event=0, occurrence=1, epoch=2))
    session.writer.close()
    return Recording([MemorySource(store.data)])


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_a_row_a_number_of_each_summary(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert csv_file.write(recording(), path, ExportSelection()) == 40
    rows = rows_of(path)
    assert tuple(rows[0]) == SUMMARY_COLUMNS
    sums = {int(row["number"]): int(row["value"]) for row in rows if row["part"] == "sum"}
    assert sums == {n: int(Small.values(n).sum()) for n in range(1, 21)}
    third = rows[4]
    assert (third["event"], third["cause"], third["space"], third["stream"]) == (
        "collection",
        "cause 3",
        "heap",
        "Used",
    )
    assert int(third["wall_nanos"]) == WALL + 300_000_000


def test_csv_has_a_row_a_tile_of_what_was_gathered(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    csv_file.write(recording(), path, ExportSelection(first=4, last=5, tiles=True))
    rows = rows_of(path)
    assert tuple(rows[0]) == TILE_COLUMNS
    assert {row["stream"] for row in rows} == {"Used"}, (
        "the other was gathered at the first event only"
    )
    assert [int(row["value"]) for row in rows] == [
        *Small.values(4).tolist(),
        *Small.values(5).tolist(),
    ]
    assert [int(row["address"]) for row in rows[:9]] == [0x1000 + 64 * i for i in range(9)]


def test_more_tiles_than_fit_a_batch_are_all_there_once(tmp_path: Path) -> None:
    tiles = 200_000
    large = Recording([MemorySource(small(2, tiles=tiles))])
    wanted = ExportSelection(stream="Used", first=2, tiles=True)
    assert csv_file.write(large, tmp_path / "a.csv", wanted) == tiles
    assert parquet_file.write(large, tmp_path / "a.parquet", wanted) == tiles
    table = parquet.read_table(str(tmp_path / "a.parquet")).to_pydict()
    assert table["tile"] == list(range(tiles))
    assert table["value"] == Small.values(2, tiles).tolist()
    assert table["address"] == [0x1000 + 64 * i for i in range(tiles)]
    last = (tmp_path / "a.csv").read_text().splitlines()[-1].split(",")
    assert (last[7], last[8], last[9]) == (
        str(tiles - 1),
        str(0x1000 + 64 * (tiles - 1)),
        str((tiles - 1) * 2 % 97),
    )


def test_an_unknown_tile_has_no_value(tmp_path: Path) -> None:
    for module, suffix in ((csv_file, "csv"), (parquet_file, "parquet"), (mcap_file, "mcap")):
        module.write(with_unknown(), tmp_path / f"a.{suffix}", ExportSelection(tiles=True))
    rows = rows_of(tmp_path / "a.csv")
    assert [row["value"] for row in rows] == ["7", "", "2"]
    assert [row["address"] for row in rows] == ["4096", "4160", "4224"]
    table = parquet.read_table(str(tmp_path / "a.parquet")).to_pydict()
    assert table["value"] == [7, None, 2]
    assert messages_of(tmp_path / "a.mcap")["/more/Big/tiles"][0][1] == {"values": [7, None, 2]}


def test_a_value_that_does_not_fit_is_refused_and_the_remedy_told(tmp_path: Path) -> None:
    big = with_unknown((1 << 64) - 1)
    with pytest.raises(
        RecordingError, match="does not fit Parquet's signed 64 bits: export to CSV"
    ):
        parquet_file.write(big, tmp_path / "a.parquet", ExportSelection(tiles=True))
    csv_file.write(big, tmp_path / "a.csv", ExportSelection(tiles=True))
    assert rows_of(tmp_path / "a.csv")[0]["value"] == str((1 << 64) - 1)


def test_parquet_has_the_columns_of_csv(tmp_path: Path) -> None:
    csv_file.write(recording(), tmp_path / "a.csv", ExportSelection())
    assert parquet_file.write(recording(), tmp_path / "a.parquet", ExportSelection()) == 40
    table = parquet.read_table(str(tmp_path / "a.parquet")).to_pydict()
    rows = rows_of(tmp_path / "a.csv")
    assert {name: [str(cell) for cell in column] for name, column in table.items()} == {
        name: [row[name] for row in rows] for name in SUMMARY_COLUMNS
    }


def messages_of(path: Path) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            found.setdefault(channel.topic, []).append((message.log_time, json.loads(message.data)))
    return found


def test_mcap_has_a_topic_a_stream(tmp_path: Path) -> None:
    assert (
        mcap_file.write(recording(), tmp_path / "a.mcap", ExportSelection(tiles=True))
        == 20 + 20 + 20 + 1
    )
    found = messages_of(tmp_path / "a.mcap")
    assert set(found) == {"/events", "/heap/Used/summary", "/heap/Used/tiles", "/heap/Kind/tiles"}
    for n, (time, message) in enumerate(found["/heap/Used/tiles"], 1):
        assert time == WALL + n * 100_000_000
        assert message["values"] == Small.values(n).tolist()
    assert found["/events"][2][1]["name"] == "collection"
    assert found["/heap/Used/summary"][0][1] == {
        "sum": int(Small.values(1).sum()),
        "total": 900,
        "covered": 9,
    }


def test_space_stream_and_range_narrow_an_export(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert csv_file.write(recording(), path, ExportSelection(space="none")) == 0
    assert csv_file.write(recording(), path, ExportSelection(stream="Used", first=3, last=4)) == 4
    with pytest.raises(RecordingError, match="no events 3 to 99"):
        csv_file.write(recording(), path, ExportSelection(first=3, last=99))


def test_a_name_that_begins_like_a_formula_is_a_text_in_a_spreadsheet(tmp_path: Path) -> None:
    formula = '=cmd|"/C calc"!A0'
    store = MemoryStore()
    session = Small(store)
    session.say(
        m.SpaceDefined(
            space=Space(
                id=2,
                name=formula,
                streams=(
                    Stream(
                        id=0,
                        name="@SUM(A1)\r\nnext",
                        presentation=Presentation.ENUM,
                        enum_names=("-7", "+x\x00", "plain"),
                    ),
                ),
            )
        )
    )
    session.say(m.EpochEnd(epoch=2))
    none = np.empty(0, dtype="<u4")
    session.say(
        m.Tiles(
            space=2, count=3, naming=Naming.UNIFORM, base=0, tile_bytes=1,
            old_starts=none, new_starts=none, lengths=none,
        )
    )  # fmt: skip
    stamp: dict[str, Any] = {"sequence": 1, "time_nanos": 5}
    session.say(
        m.StreamKey(
            space=2, stream=0, event=0, occurrence=1, values=np.array([0, 1, 2], "<i4"), **stamp
        )
    )
    session.say(m.Summary(space=2, stream=0, values=(-1, 1, 1), covered=3, **stamp))
    session.say(m.Event(event=0, occurrence=1, epoch=2, cause="\tcause", **stamp))
    session.writer.close()
    found = Recording([MemorySource(store.data)])
    for tiles, column in ((False, "part"), (True, "name")):
        path = tmp_path / f"{tiles}.csv"
        csv_file.write(found, path, ExportSelection(space=formula, tiles=tiles))
        rows = rows_of(path)
        assert [row["space"] for row in rows] == ["'" + formula] * 3
        assert {row["stream"] for row in rows} == {"'@SUM(A1)\r\nnext"}
        assert [row[column] for row in rows] == ["-7", "'+x\x00", "plain"]
        assert [cell_text(row["space"]) for row in rows] == [formula] * 3
        if not tiles:
            assert [row["value"] for row in rows] == ["-1", "1", "1"]
            assert {row["cause"] for row in rows} == {"'\tcause"}


def test_tiles_without_addresses_have_empty_cells_and_not_zeros() -> None:
    columns = {"address": np.zeros(2, dtype=np.uint64), "value": np.array([4, 5])}
    assert csv_file._cells(Batch(columns, None, addresses=False), "address") == [None, None]
    assert csv_file._cells(Batch(columns, None, addresses=True), "address") == [0, 0]
