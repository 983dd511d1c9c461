"""The commands about files: info, verify, repair, cut, export; what they say and how they exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_replay.file import (
    WIRE_VERSION,
    Bookmark,
    ChunkRule,
    FileStore,
    MemorySource,
    MemoryStore,
    Recording,
    Sidecar,
    pack,
    read_sidecar,
    sidecar_path,
    write_sidecar,
)

from gcspy.cli import main
from gcspy.exit_codes import ExitCode
from tests.replay.recorded import WELCOME, Small, small

EVENTS = 12


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcspy"
    path.write_bytes(small(EVENTS, rule=ChunkRule(weight=99, most_events=4)))
    return path


@pytest.fixture
def damaged(path: Path) -> Path:
    with Recording.open(path) as recording:
        offset = int(recording.events["offset"][5]) + 40
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    bad = path.with_name("bad.gcspy")
    bad.write_bytes(data)
    return bad


def test_info_tells_what_is_in_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(path)]) == ExitCode.OK
    told = capsys.readouterr().out
    for part in (
        "small  (passive)",
        "12 over 1.1 s",
        "8  clock",
        "4  collection",
        "heap: Used, Kind",
        "index present",
        "1 events were dropped before the recorder",
    ):
        assert part in told
    assert main(["info", "--json", str(path)]) == ExitCode.OK
    facts = json.loads(capsys.readouterr().out)
    assert facts["events_by_name"] == {"clock": 8, "collection": 4}
    assert (facts["events"], facts["missed"], facts["lost"], facts["closed"]) == (12, 1, [], True)
    assert facts["program_nanos"] == 11 * (100_000_000 - 1010)


def test_info_counts_what_fired_also_at_the_last_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = MemoryStore()
    session = Small(store)
    for number in range(3):
        session.event()
        session.say(m.Triggers(triggers=(), fired=number))
    session.writer.close()
    path = tmp_path / "a.gcspy"
    path.write_bytes(store.data)
    assert main(["info", str(path)]) == ExitCode.OK
    assert "triggers  fired 2 times" in capsys.readouterr().out


def test_info_tells_of_density_and_of_what_was_not_recorded(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", "--json", str(path)]) == ExitCode.OK
    facts = json.loads(capsys.readouterr().out)
    assert facts["snapshot_bytes"] == 3 * 9, "two streams and the control stream, a byte a tile"
    assert facts["bytes_an_event"] == path.stat().st_size / 12
    # The small session counts occurrences over both kinds: of 1 to 11 four are no clock, of 3 to 12 six no collection.
    assert facts["not_recorded"] == {"clock": 3, "collection": 6}
    assert facts["created_wall_nanos"] is None
    assert main(["info", str(path)]) == ExitCode.OK
    told = capsys.readouterr().out
    assert " bytes an event" in told
    assert "8 were not sent" in told
    assert "recorded  2023-11-14" in told


def test_info_keeps_to_80_columns_and_to_letters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for sample in sorted((Path(__file__).parents[2] / "replay" / "samples").glob("*.gcspy")):
        assert main(["info", str(sample)]) == ExitCode.OK
        told = capsys.readouterr().out
        assert max(map(len, told.splitlines())) <= 80
        assert "not sent" in told or "gaps      none" in told
    nasty = tmp_path / "nasty.gcspy"
    store = FileStore(nasty)
    session = Small(store)
    session.say(
        replace(
            WELCOME, server="\x1b[31mred\x1b]0;title\x07", target={"key": "\x1b[2J" + "word " * 60}
        )
    )
    session.events(2).writer.close()
    assert main(["info", str(nasty)]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\x07" not in told
    assert max(map(len, told.splitlines())) <= 80


def test_info_tells_of_a_file_that_was_not_closed(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(path.read_bytes()[:-300])
    assert main(["info", str(path)]) == ExitCode.OK
    assert "not closed: the recorder was killed or is still writing" in capsys.readouterr().out


def test_verify_exits_by_what_it_finds(
    path: Path, damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(path)]) == ExitCode.OK
    assert "intact, 12 events in 3 chunks" in capsys.readouterr().out
    assert main(["verify", "--json", str(damaged)]) == ExitCode.RECORDING
    report = json.loads(capsys.readouterr().out)
    assert not report["intact"]
    assert report["events"] == 9
    assert report["findings"][0]["loses"]
    assert report["lost"] == [{"first": 6, "last": 8, "nanos": 400_000_000}], (
        "from event 5 to event 9"
    )
    assert main(["verify", str(damaged)]) == ExitCode.RECORDING
    assert "lost: events 6 to 8, 0.400 s without values" in capsys.readouterr().out


def test_repair_saves_the_rest_and_says_what_was_lost(
    damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.gcspy"
    assert main(["repair", str(damaged), "-o", str(new)]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "10 events recovered" in told
    assert "event 8: its values" in told
    assert "lost: events 6 to 7, 0.300 s without values" in told
    assert main(["info", str(new)]) == ExitCode.OK
    assert "lost since: 6 to 7" in capsys.readouterr().out
    assert main(["repair", str(damaged), "-o", str(damaged), "--force"]) == ExitCode.USAGE
    before = new.read_bytes()
    assert main(["repair", str(damaged), "-o", str(new)]) == ExitCode.USAGE, "it exists already"
    assert new.read_bytes() == before


def test_cut_keeps_the_numbers(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.gcspy"
    assert main(["cut", str(path), "-o", str(new), "--first", "3", "--last", "9"]) == ExitCode.OK
    assert "7 events" in capsys.readouterr().out
    with Recording.open(new) as recording:
        assert (recording.first, recording.last) == (3, 9)
    assert main(["cut", str(path), "-o", str(new), "--last", "99"]) == ExitCode.USAGE
    assert "has 1 to 12" in capsys.readouterr().err


def test_of_an_empty_recording_it_is_said_that_it_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.gcspy"
    empty.write_bytes(small(0))
    new = str(tmp_path / "new.gcspy")
    assert main(["cut", str(empty), "-o", new, "--last", "3"]) == ExitCode.USAGE
    assert "the recording has no events" in capsys.readouterr().err
    assert main(["export", str(empty), "-o", str(tmp_path / "new.csv")]) != ExitCode.OK
    said = capsys.readouterr().err
    assert "the recording has no events" in said
    assert "0 to 0" not in said


def test_bookmarks_are_told_and_come_along(
    path: Path, damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Recording.open(path) as recording:
        id_ = recording.facts.recording
    marks = (
        Bookmark(number=2, title="early"),
        Bookmark(number=7, title="a\x1b[31mleak", note="here\nand there"),
    )
    added = Sidecar(recording=id_, bookmarks=marks, notes="of a small session")
    for one in (path, damaged):
        write_sidecar(sidecar_path(one), added)
    assert main(["info", str(path)]) == ExitCode.OK
    told = capsys.readouterr().out
    assert (
        "bookmarks 2\n          2  early\n          7  a\\x1b[31mleak\n             here\n" in told
    )
    assert "notes\n  of a small session" in told
    new = tmp_path / "new.gcspy"
    assert main(["cut", str(path), "-o", str(new), "--first", "3", "--last", "9"]) == ExitCode.OK
    assert "7 events" in (said := capsys.readouterr().out)
    assert said.endswith(", 1 bookmark\n")
    assert main(["info", "--json", str(new)]) == ExitCode.OK
    facts = json.loads(capsys.readouterr().out)
    assert [(mark["event"], mark["note"]) for mark in facts["bookmarks"]] == [
        (7, "here\nand there")
    ]
    assert (facts["notes"], facts["sidecar_error"]) == ("of a small session", "")
    saved = tmp_path / "saved.gcspy"
    assert main(["repair", str(damaged), "-o", str(saved)]) == ExitCode.OK
    assert "bookmarks copied: 2" in capsys.readouterr().out
    assert read_sidecar(sidecar_path(saved)) == added


def test_a_sidecar_that_is_damaged_or_another_s_is_told_and_the_rest_too(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sidecar(sidecar_path(path), Sidecar(recording=b"x" * 16, bookmarks=(Bookmark(number=2),)))
    assert main(["info", str(path)]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "belongs to another recording, 7878" in told
    assert "12 over 1.1 s" in told
    sidecar_path(path).write_text("{")
    assert main(["info", "--json", str(path)]) == ExitCode.OK
    facts = json.loads(capsys.readouterr().out)
    assert facts["bookmarks"] == []
    assert "not JSON" in facts["sidecar_error"]
    new = tmp_path / "new.gcspy"
    assert main(["cut", str(path), "-o", str(new)]) == ExitCode.OK
    assert "bookmarks were not copied" in capsys.readouterr().out
    with Recording.open(new) as recording:
        assert recording.last == 12


@pytest.mark.parametrize("suffix", ["csv", "parquet", "mcap"])
def test_export_takes_the_format_from_the_suffix(
    suffix: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / f"a.{suffix}"
    assert main(["export", str(path), "-o", str(new), "--tiles"]) == ExitCode.OK
    assert new.stat().st_size > 100
    assert main(["export", str(path), "-o", str(new)]) == ExitCode.USAGE
    assert "--force" in capsys.readouterr().err


def test_export_names_the_remedy_where_a_package_is_missing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcap", None)
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    monkeypatch.delitem(sys.modules, "gcspy_replay.file.export.mcap_file", raising=False)
    assert main(["export", str(path), "-o", str(tmp_path / "a.mcap")]) == ExitCode.MISSING_PART
    assert "pip install '.[export]'" in capsys.readouterr().err
    assert main(["export", str(path), "-o", str(tmp_path / "a.xls")]) == ExitCode.USAGE


@pytest.mark.parametrize("command", ["info", "verify", "repair", "cut", "export"])
def test_what_is_no_recording_has_its_own_exit_code(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("not one")
    more = [] if command in ("info", "verify") else ["-o", str(tmp_path / "new.csv")]
    assert main([command, str(other), *more]) == ExitCode.RECORDING
    assert "other.txt" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["cut", "repair"])
def test_what_ends_in_the_middle_leaves_what_was_there(
    command: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while a file is written that is to replace another."""
    old = tmp_path / "old.gcspy"
    old.write_bytes(b"precious")
    written = []
    append = FileStore.append

    def interrupted(self: FileStore, data: bytes, *, time_nanos: int) -> None:
        written.append(len(data))
        append(self, data, time_nanos=time_nanos)
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(FileStore, "append", interrupted)
    assert main([command, str(path), "-o", str(old), "--force"]) == ExitCode.INTERRUPTED
    assert len(written) >= 3
    assert old.read_bytes() == b"precious"
    assert sorted(tmp_path.iterdir()) == sorted([path, old])


@pytest.mark.parametrize(
    "output", ["no/new.gcspy", "no/new.csv", "no/new.mcap", "no/new.gif", "no/new/"]
)
def test_a_folder_that_is_not_there_is_named(
    output: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "cut" if output.endswith(".gcspy") else "export"
    assert main([command, str(path), "-o", f"{tmp_path}/{output}"]) == ExitCode.USAGE
    assert capsys.readouterr().err == f"gcspy: there is no folder {tmp_path}/no\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        (["verify"], "verifying"),
        (["info"], "looking for chunks"),
        (["cut", "-o", "new.gcspy"], "writing new.gcspy"),
        (["repair", "-o", "new.gcspy"], "reading"),
        (["export", "-o", "new.csv"], "writing new.csv"),
    ],
)
def test_a_terminal_gets_a_progress_bar(arguments: list[str], label: str, path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "gcspy", *arguments, path.name]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=theirs,
            stdin=subprocess.DEVNULL,
            cwd=path.parent,
            env=environment,
            check=False,
        )
        assert done.returncode == ExitCode.OK
        drawn = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert label in drawn
    assert "\x1b[" in drawn


def test_a_recording_is_packed_with_its_bookmarks_and_unpacked_to_the_same_values(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Recording.open(path) as recording:
        known = recording.facts.recording
    write_sidecar(
        sidecar_path(path), Sidecar(recording=known, bookmarks=(Bookmark(number=3, title="here"),))
    )
    packed = path.with_name(path.stem + ".packed.gcspy")
    assert main(["pack", str(path)]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "times smaller; 1 bookmark copied" in told
    assert packed.stat().st_size < path.stat().st_size
    marks = read_sidecar(sidecar_path(packed))
    assert marks is not None
    assert marks.bookmarks[0].title == "here"
    again = path.with_name("again.gcspy")
    assert main(["pack", "--undo", str(packed), "-o", str(again)]) == ExitCode.OK
    with Recording.open(path) as one, Recording.open(packed) as two, Recording.open(again) as three:
        assert (one.packed, two.packed, three.packed) == (False, True, False)
        assert two.facts == three.facts == one.facts
        for steps in zip(one.steps(), two.steps(), three.steps(), strict=True):
            values = [session.spaces[1].streams[0].values for _, session in steps]
            assert np.array_equal(values[0], values[1])
            assert np.array_equal(values[0], values[2])


def test_what_an_earlier_version_packed_is_unpacked_to_the_same_bytes_and_packed_smaller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = small(EVENTS, version=WIRE_VERSION)
    packed = tmp_path / "old.gcspy.zst"
    with packed.open("wb") as out:
        pack(MemorySource(old), out)
    assert main(["pack", "--undo", str(packed)]) == ExitCode.OK
    assert (tmp_path / "old.gcspy").read_bytes() == old
    assert main(["pack", str(packed)]) == ExitCode.OK
    assert (tmp_path / "old.packed.gcspy").stat().st_size < packed.stat().st_size


def test_what_cannot_be_packed_is_told_why(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("no recording")
    assert main(["pack", str(path)]) == ExitCode.OK
    for arguments, code, words in (
        (["pack", str(path)], ExitCode.USAGE, "exists already"),
        (["pack", str(path.with_suffix(".packed.gcspy"))], ExitCode.USAGE, "already packed"),
        (["pack", "--undo", str(path)], ExitCode.USAGE, "is not packed"),
        (["pack", str(other)], ExitCode.RECORDING, "not a GCspy recording"),
        (["pack", str(path), "-o", str(path), "--force"], ExitCode.USAGE, "the recording itself"),
    ):
        assert main(arguments) == code, arguments
        assert words in capsys.readouterr().err
    assert not other.with_name("other.txt.packed.gcspy").exists()
