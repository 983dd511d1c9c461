"""An object trace whose classes, methods, threads and causes have hostile names: commands and the window show characters."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from benchmarks.targets.anttracks_writer import SymbolsWriter, TraceWriter, write_run
from gcspy.hosts.launcher import front_door
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait
from tests.hostile.file_names import file_names
from tests.hostile.sentinel import Sentinel
from tests.hostile.test_recordings import run
from tests.hostile.test_window import faults
from tests.hostile.walk import walked
from tests.objects.anttracks.made import MAIN, WORKER, symbols, thread, trace
from tests.objects.samples import path_of

NAMES = list(file_names(Path("/sentinel.png")))

COMMANDS = (
    ("types",),
    ("types", "--json"),
    ("sites",),
    ("sites", "--json"),
    ("collections",),
    ("lifetimes",),
    ("survival",),
    ("find", "--type", "a"),
    ("life", "--address", "0xffc00000"),
    ("check",),
)

_CUT = str.maketrans("", "", ";/.()[\0")
"""Characters that divide names in a symbols file."""


def name_of(sentinel: Sentinel, turn: int) -> str:
    """A hostile name of a class; in as many turns as there are each has come."""
    text = file_names(sentinel.path)[NAMES[turn % len(NAMES)]]
    return text.translate(_CUT).encode("utf-8", "replace").decode() or "?"


def made(folder: Path, name: str) -> Path:
    """A short trace with a name for everything that can have one."""
    names: SymbolsWriter = symbols()
    field = name.replace(" ", "_") or "x"  # a blank ends it
    names.cause(3, name)
    names.vm_site(6, name)
    names.type(40, f"Lapp/{name};", 24, [("I", field, 2), (f"L{name};", "x", 2)])
    names.site(41, [(f"app.{name}.{name}()Lapp/{name};", 7), (f"{name}.main()V", -1)], 40)
    events: TraceWriter = trace()
    events.buffer(MAIN, thread(MAIN, name), thread(WORKER, name[7:]))
    return write_run(folder, names, events)


def of_sample(folder: Path, sample: str, written: str, name: str) -> Path:
    """A trace of a real program, of which one class has another name in all its texts."""
    with tarfile.open(path_of(sample)) as archive:
        archive.extractall(folder, filter="data")
    file = folder / sample / "symbols"
    before = file.read_bytes()
    after = before.replace(written.encode(), name.encode() or b"?")
    assert after != before
    file.write_bytes(after)
    (folder / sample / "truth.txt").unlink()
    return folder / sample


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the sentinel, which is the working directory: what names the picture without a folder finds it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_printed(
    folder: Path, sentinel: Sentinel, turn: int, capsys: pytest.CaptureFixture[str]
) -> None:
    name = name_of(sentinel, turn)
    path = made(folder / "run", name)
    said = ""
    for words in COMMANDS:
        out = run(["objects", words[0], str(path), *words[1:]], capsys)
        if "--json" in words:
            assert json.loads(out)
        said += out
    assert "app.Point" in said
    assert not sentinel.opened()


def assert_shown(
    make_window: MakeWindow, wait: Wait, sentinel: Sentinel, folder: Path, turn: int
) -> None:
    name = name_of(sentinel, turn)
    path = of_sample(folder, "list", "ListLive", name)
    window = make_window(front=front_door())
    window.opener.play([path / "trace"])
    wait(lambda: window.session.events_seen >= 1)
    window.docks.show("contents")
    window.settle()
    found = walked(window)
    assert not faults(found)
    assert not sentinel.opened()
    size = window.size()
    assert window.minimumSizeHint().width() <= size.width(), "no text is as wide as it likes"


@pytest.mark.parametrize("turn", [0, 14])
def test_hostile_names_in_a_trace_are_printed_as_characters(
    folder: Path, sentinel: Sentinel, turn: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_printed(folder, sentinel, turn, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(len(NAMES)))
def test_each_hostile_name_in_a_trace_is_printed(
    folder: Path, sentinel: Sentinel, turn: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_printed(folder, sentinel, turn, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(len(NAMES)))
def test_each_hostile_name_in_a_trace_is_shown(
    make_window: MakeWindow, wait: Wait, sentinel: Sentinel, folder: Path, turn: int
) -> None:
    assert_shown(make_window, wait, sentinel, folder, turn)
