"""The interface for scripts and notebooks: moments, spans, loops, Arrow; and the page that describes it."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import ChunkRule, notebook

import gcspy
from gcspy.cli import main
from tests.replay.recorded import Small, small

ROOT = Path(__file__).resolve().parents[2]
EVENTS = 30
WALL = datetime.fromtimestamp(1_700_000_000, tz=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcspy"
    path.write_bytes(small(EVENTS, rule=ChunkRule(weight=99, most_events=7)))
    return path


def test_a_loop_gives_every_event_once_and_in_order(path: Path) -> None:
    with gcspy.open(path) as rec:
        kept = []
        for moment in rec:
            assert np.array_equal(moment["heap"]["Used"].values, Small.values(moment.number))
            kept.append((moment.number, moment.name, moment["heap"]["Used"].values))
        assert [number for number, _, _ in kept] == list(range(1, EVENTS + 1))
        assert [name for _, name, _ in kept[:3]] == ["clock", "clock", "collection"]
        for number, _, values in kept:
            assert np.array_equal(values, Small.values(number)), (
                "what was taken out of a loop stays as it was"
            )


def test_a_moment_of_a_loop_that_has_gone_on_says_so(path: Path) -> None:
    with gcspy.open(path) as rec:
        moments = list(rec[3:6])
        assert [moment.number for moment in moments] == [3, 4, 5]
        assert np.array_equal(moments[-1]["heap"]["Used"].values, Small.values(5))
        space = moments[-1]["heap"]
        for ask in (
            lambda: moments[0]["heap"],
            lambda: moments[0].session,
            lambda: list(moments[0]),
        ):
            with pytest.raises(RecordingError, match=r"moved on from event 3.*rec\[3\]"):
                ask()
        one = rec[3]
        rec[4]
        assert np.array_equal(one["heap"]["Used"].values, Small.values(3)), (
            "moments by number are each by itself"
        )
        assert space.tiles == 9


def test_numbers_and_slices_are_those_of_events(path: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gcspy"
    assert main(["cut", str(path), "-o", str(cut), "--first", "11", "--last", "20"]) == 0
    with gcspy.open(cut) as rec:
        assert (rec[11].number, rec[-1].number, rec[-10].number) == (11, 20, 11)
        assert [m.number for m in rec[:13]] == [m.number for m in rec[0:13]] == [11, 12]
        assert [m.number for m in rec[18:]] == [18, 19, 20]
        assert [m.number for m in rec[-2:]] == [19, 20]
        assert [m.number for m in rec[12:-5]] == [12, 13, 14, 15]
        assert (len(rec[15:12]), list(rec[15:12]), repr(rec[15:12])) == (0, [], "<no events>")
        assert len(rec[1:5]) == 0, "the recording begins behind them"
        for wrong in (0, 5, 21, -11):
            with pytest.raises(RecordingError, match="there are 11 to 20"):
                rec[wrong]
        with pytest.raises(RecordingError, match="no step"):
            rec[11:20:2]


def test_between_takes_seconds_and_times_of_day(path: Path) -> None:
    """Events are 0.1 s apart; the first is 0.1 s after the clock's zero."""
    with gcspy.open(path) as rec:
        assert [m.number for m in rec.between(0.0, 0.3)] == [1, 2, 3, 4]
        assert [m.number for m in rec.between(2.75)] == [29, 30]
        assert rec.between(None, 0.05).events["number"].tolist() == [1]
        assert len(rec.between(5.0, 9.0)) == len(rec.between(0.31, 0.32)) == 0
        start = WALL + timedelta(seconds=1.0)
        assert [m.number for m in rec.between(start, start + timedelta(seconds=0.2))] == [
            10,
            11,
            12,
        ]
        assert rec[4].seconds == pytest.approx(0.3)
        with pytest.raises(RecordingError, match="no time zone"):
            rec.between(datetime(2023, 11, 14))  # noqa: DTZ001 - that it has none is what is tested


def test_it_says_what_it_is(path: Path) -> None:
    with gcspy.open(path) as rec:
        assert repr(rec) == "<GCspy recording of small: 30 events, 1 to 30, over 2.9 s>"
        assert repr(rec[3]) == "<event 3: collection #3 at 0.200 s>"
        assert repr(rec[3]["heap"]) == "<heap: 9 tiles, streams Used, Kind>"
        assert repr(rec[3:9]) == "<events 3 to 8>"
        html = rec._repr_html_()
        for part in (
            "<table>",
            "GCspy recording of small",
            "20 events",
            "9 tiles: Used, Kind",
            "2023-11-14 22:13:20 UTC",
        ):
            assert part in html


def test_what_a_recording_says_cannot_become_a_page(tmp_path: Path) -> None:
    from dataclasses import replace

    from gcspy_replay.file import MemorySource, MemoryStore, Recording

    from tests.replay.recorded import WELCOME

    store = MemoryStore()
    session = Small(store)
    session.say(replace(WELCOME, server="<script>alert(1)</script>"))
    session.events(2).writer.close()
    rec = notebook.SavedSession(Recording([MemorySource(store.data)]))
    assert "<script>" not in rec._repr_html_()


def test_what_a_shell_prints_of_a_recording_has_nothing_that_a_terminal_obeys() -> None:
    from dataclasses import replace

    from gcspy_replay.file import MemorySource, MemoryStore, Recording

    from tests.replay.recorded import WELCOME

    store = MemoryStore()
    session = Small(store)
    session.say(replace(WELCOME, server="\x1b]0;title\x07\n" + "x" * 10_000))
    session.events(2).writer.close()
    rec = notebook.SavedSession(Recording([MemorySource(store.data)]))
    assert repr(rec).startswith("<GCspy recording of \\x1b]0;title\\x07\\nxxx")
    assert repr(rec).isprintable()
    assert len(repr(rec)) < 1000
    assert "\x1b" not in rec._repr_html_()


def test_a_session_without_events_is_nothing_and_no_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.gcspy"
    path.write_bytes(small(0))
    with gcspy.open(path) as rec:
        assert (len(rec), list(rec), rec.seconds, len(rec.between(0, 1))) == (0, [], 0.0, 0)
        assert repr(rec) == "<GCspy recording of small: no events>"
        assert "no events" in rec._repr_html_()


def test_arrow_has_the_columns_of_the_export(path: Path) -> None:
    with gcspy.open(path) as rec:
        table = rec.to_arrow("heap", "Used", first=4, last=6).to_pydict()
        assert table["number"] == [4, 4, 5, 5, 6, 6]
        assert table["value"][::2] == [int(Small.values(n).sum()) for n in (4, 5, 6)]
        tiles = rec.to_arrow(tiles=True, first=4, last=4).to_pydict()
        assert tiles["value"] == Small.values(4).tolist()
        assert rec.to_arrow("nothing").num_rows == 0


def test_without_pyarrow_the_remedy_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "gcspy_replay.file.export.parquet_file", raising=False)
    monkeypatch.delattr(sys.modules["gcspy_replay.file.export"], "parquet_file", raising=False)
    with (
        gcspy.open(path) as rec,
        pytest.raises(RecordingError, match=r"needs the package pyarrow.*.\[export\]"),
    ):
        rec.to_arrow()


def test_opening_reads_no_events(path: Path) -> None:
    program = (
        "import gcspy, sys\n"
        f"rec = gcspy.open({str(path)!r})\n"
        "assert rec.recording._events is None\n"
        "print(sorted(n for n in sys.modules if n.startswith(('pyarrow', 'PySide6', 'trio', 'mcap', 'PIL'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------------- what is written of it


def test_the_docstring_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(notebook)
    assert result.attempted >= 6
    assert result.failed == 0


def test_every_block_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "recordings.md").read_text()
    shutil.copy(ROOT / "replay" / "samples" / "demo-cpython-3.11.gcspy", tmp_path / "session.gcspy")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks].count("python") >= 5
    names: dict[str, object] = {}
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, "docs/recordings.md", "exec"), names)  # noqa: S102 - our own page, which is to be true
            continue
        assert kind == "sh"
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "gcspy"
            assert main(arguments) == 0, f"{line}: {capsys.readouterr().err}"
    written = {path.name for path in tmp_path.iterdir()}
    assert {
        "part.gcspy",
        "summaries.csv",
        "tiles.parquet",
        "session.mcap",
        "pictures",
        "session.gif",
    } <= written


def test_a_space_of_then_says_what_the_driver_said_of_it_and_what_its_tiles_are_called() -> None:
    """In the recording of `docs/investigations.md`, whose page quotes these words."""
    with gcspy.open(
        str(Path(__file__).parents[2] / "docs/investigations/workbook.gcspy.zst")
    ) as saved:
        arenas = saved[-1]["Whole arenas"]
        assert arenas.info.startswith(
            "44 arenas, 0 without a block in use; 36 are less than a quarter in use"
        )
        assert arenas.tile_name(0).startswith("[0x")
        types = saved[-1]["Types"]
        assert "float" in {types.tile_name(tile) for tile in range(types.tiles)}
