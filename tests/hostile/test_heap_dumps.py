"""A heap dump whose classes, fields and methods have hostile names: commands print characters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hostile.file_names import file_names
from tests.hostile.sentinel import Sentinel
from tests.hostile.test_recordings import run
from tests.objects.hprof import made

NAMES = list(file_names(Path("/sentinel.png")))
_OURS = ("shop/Order", "ALL", "COUNT", "WEAK", "SOFT", "number", "lines", "run")
"""Names of `made.small` that a program chooses."""

_COMMANDS = (("holders",), ("holders", "--json"), ("dominators",), ("dominators", "--json"))


class Hostile(made.Writer):
    """Writes a dump with a hostile text behind each name that a program chooses."""

    text = ""

    def name(self, text: str) -> int:
        return super().name(text + self.text if text in _OURS else text)


def assert_printed(
    folder: Path,
    sentinel: Sentinel,
    turn: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kind = NAMES[turn % len(NAMES)]
    name = file_names(sentinel.path)[kind]
    monkeypatch.setattr(Hostile, "text", name.encode("utf-8", "replace").decode())
    monkeypatch.setattr(made, "Writer", Hostile)
    monkeypatch.chdir(folder)
    path = folder / f"{name}.hprof"
    path.write_bytes(made.small())
    for command, *options in _COMMANDS:
        out = run([command, str(path), *options], capsys)
        assert "Order" in out
        if options:
            assert json.loads(out)
    run(["holders", str(path), "--type", name], capsys)
    path.write_bytes(made.small()[:-40])
    run(["holders", str(path)], capsys)
    assert not sentinel.opened()


@pytest.mark.parametrize("turn", [0, 14])
def test_hostile_names_in_a_heap_dump_are_printed_as_characters(
    tmp_path: Path,
    sentinel: Sentinel,
    turn: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert_printed(tmp_path, sentinel, turn, monkeypatch, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(len(NAMES)))
def test_each_hostile_name_in_a_heap_dump_is_printed(
    tmp_path: Path,
    sentinel: Sentinel,
    turn: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert_printed(tmp_path, sentinel, turn, monkeypatch, capsys)
