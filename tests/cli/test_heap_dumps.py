"""`gcspy holders` and `gcspy dominators` of a file: the same tables, from a heap dump or an object trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcspy.cli import main
from tests.objects.hprof.made import small
from tests.objects.samples import path_of, text_of


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
    assert "neither a PID, a file nor the address of a session" in capsys.readouterr().err


def test_an_object_trace_with_pointers_is_asked_at_any_moment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The program itself counted its trees and payloads: one array holds them all."""
    counts = {
        line.split()[0]: sum(map(int, line.split()[2::2]))
        for line in text_of("pointers", "truth.txt")
    }
    trace = str(path_of("pointers"))
    for moment, truth in (
        ("gc:2:end", "live@before1"),
        ("gc:4:end", "live@gc2"),
        ("end", "live@end"),
    ):
        assert main(["dominators", trace, "--at", moment, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        (trees,) = [row for row in said["rows"] if row["type"] == "Promote$Tree[]"]
        assert trees["objects"] == counts[truth] + 1, "and the array itself"
    assert main(["holders", trace, "--type", "Promote.Tree", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["type"], row["objects"]) == ("Promote$Tree[]", 5700)
    assert main(["holders", trace, "--type", "Tree"]) == 0
    assert "as of the end of full GC 6" in capsys.readouterr().out


def test_moments_and_traces_that_cannot_be_asked_are_refused(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, about in (
        ([str(dump), "--at", "end"], "--at needs an object trace"),
        ([str(path_of("promote"))], "has no pointers"),
        ([str(path_of("pointers")), "--at", "gc:1"], "no collection has ended yet"),
        ([str(path_of("pointers")), "--type", "Nothing"], "no object of a type 'Nothing'"),
    ):
        assert main(["holders", *arguments]) != 0
        said = capsys.readouterr().err
        assert about in said
        assert said.count("\n") == 1
