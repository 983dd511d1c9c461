"""`gcspy holders` and `gcspy dominators` of a file: the same tables, from a heap dump."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcspy.cli import main
from tests.objects.hprof.made import small


@pytest.fixture(name="dump")
def _dump(tmp_path: Path) -> Path:
    path = tmp_path / "heap.hprof"
    path.write_bytes(small())
    return path


def test_holders_of_a_heap_dump_are_named(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["holders", str(dump), "--type", "Order", "--json"]) == 0
    printed = capsys.readouterr().out
    said = json.loads(printed)
    assert said["file"] == str(dump)
    found = {row["holder"]: row["objects"] for row in said["rows"]}
    assert found["shop.Order.ALL"] == 3
    assert main(["dominators", str(dump)]) == 0
    assert "shop.Order.ALL" in capsys.readouterr().out


def test_what_is_no_heap_dump_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"something else")
    assert main(["holders", str(other), "--type", "Order"]) != 0
    said = capsys.readouterr().err
    assert "it is not a heap dump" in said
    assert said.count("\n") == 1
    assert main(["holders", str(tmp_path / "none")]) == 2
    assert "neither a PID nor a file" in capsys.readouterr().err
