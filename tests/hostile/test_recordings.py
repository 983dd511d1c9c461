"""Whatever a recording says: commands print lines that no terminal obeys, and exports are what they claim to be."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.text.cells import cell_text
from gcspy_replay.file import MemoryStore, Recording
from gcspy_replay.file.storage.writer import RecordingWriter
from pyarrow import parquet

from gcspy.cli import main
from tests.hostile.corpus import FORGED, corpus
from tests.hostile.fields import poisoned
from tests.hostile.file_names import file_names
from tests.hostile.sentinel import Sentinel
from tests.hostile.session import EVENTS, event, introduction
from tests.hostile.test_window import NAMES_OF_TEXTS, mixed
from tests.replay.recorded import FACTS

NAMES_OF_FILES = file_names(Path("/sentinel.png"))

OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\ud800-\udfff]"
)
"""Characters that a terminal obeys, or that reverse the direction of a line; tabs and line ends are ours."""

COMMANDS = (
    ("info",),
    ("info", "--json"),
    ("verify",),
    ("tail",),
    ("tail", "--json", "--values"),
    ("types",),
    ("growth",),
)


def recorded(path: Path, texts: dict[str, str], turn: int) -> None:
    """Write a session with another hostile text in each field."""
    store, interpreter = MemoryStore(), ClientInterpreter()
    writer = RecordingWriter(store, interpreter, facts=FACTS)
    told = (*introduction(), *(one for number in range(1, EVENTS + 1) for one in event(number)))
    for message in poisoned(told, mixed(texts, turn)):
        if not isinstance(message, m.Error):
            interpreter.apply(message)
            writer.add(message)
    writer.close()
    path.write_bytes(bytes(store.data))


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command, judge all that it prints, and return its output."""
    main(arguments)
    out, err = capsys.readouterr()
    for text in (out, err):
        assert not OBEYED.search(text), (arguments, OBEYED.search(text))
        forged = [line for line in text.split("\n") if line.startswith(FORGED)]
        assert not forged, arguments
        text.encode()
    return str(out)


def assert_harmless(
    folder: Path, sentinel: Sentinel, turn: int, capsys: pytest.CaptureFixture[str]
) -> None:
    names = list(file_names(sentinel.path).values())
    path = folder / f"{names[turn % len(names)]}.gcspy"
    recorded(path, corpus(sentinel.path), turn)
    for name, *options in COMMANDS:
        out = run([name, str(path), *options], capsys)
        if "--json" in options:
            assert [json.loads(line) for line in out.splitlines()]
    run(["compare", str(path), str(path), "--event", "1", "--other", "2"], capsys)
    assert_exports(path, folder, capsys)
    assert_derived(path, capsys)
    assert_refused(path.with_name(f"broken {path.name}"), capsys)
    assert not sentinel.opened()


def assert_derived(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the messages about files made beside a recording name them on separate lines."""
    for name, *options in (("cut", "--first", "1", "--last", "1"), ("repair",)):
        made = path.with_name(f"{name} {path.name}")
        run([name, str(path), *options, "-o", str(made)], capsys)
        assert made.exists(), name
    run(["pack", str(path)], capsys)


def assert_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is no recording, and one that is not there, are named in lines of one's own."""
    path.write_bytes(b"<b>no</b>")
    gone = path.with_name(f"gone {path.name}")
    for name in ("info", "verify", "tail", "growth"):
        run([name, str(path)], capsys)
        run([name, str(gone)], capsys)
    run(["compare", str(gone), str(path)], capsys)
    run(["replay", str(path), "--no-window"], capsys)
    run(["screenshot", str(path), "-o", str(path.with_suffix(".png"))], capsys)
    run(["objects", "types", str(path)], capsys)
    run(["convert", str(path)], capsys)
    for name in ("cut", "repair", "export"):
        run([name, str(path), "-o", str(path.with_suffix(".csv"))], capsys)


def assert_exports(path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recording.open(path) as recording:
        spaces = {state.space.name for state in recording.seek(1).spaces.values()}
    for tiles in ([], ["--tiles"]):
        for suffix in ("csv", "parquet", "mcap"):
            run(["export", str(path), "-o", str(folder / f"a.{suffix}"), "--force", *tiles], capsys)
        text = (folder / "a.csv").read_bytes().decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert {cell_text(row["space"]) for row in rows} == spaces
        for row in rows:
            assert all(cell is not None for cell in row.values()), "no cell breaks its row"
            for name, cell in row.items():
                risky = cell[:1] and cell[0] in "=+-@\t\r\n"
                assert not risky or re.fullmatch(r"[+-]?[0-9][0-9.,]*", cell), (name, cell[:80])
        assert set(parquet.read_table(str(folder / "a.parquet"))["space"].to_pylist()) == spaces


@pytest.mark.parametrize("turn", [0, 14])
def test_hostile_texts_in_all_fields_are_printed_and_exported_as_texts(
    tmp_path: Path, sentinel: Sentinel, turn: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_harmless(tmp_path, sentinel, turn, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(max(len(NAMES_OF_TEXTS), len(NAMES_OF_FILES))))
def test_each_field_of_a_recording_has_each_hostile_text(
    tmp_path: Path, sentinel: Sentinel, turn: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_harmless(tmp_path, sentinel, turn, capsys)
