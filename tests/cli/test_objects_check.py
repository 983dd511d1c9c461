"""`gcspy objects check`: what it says of a trace that is consistent, of one that is not, and of one that ends too early."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcspy.cli import main
from tests.objects.anttracks.samples import FOLDER, sample


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    return main(["objects", "check", *arguments]), capsys.readouterr().out


def test_a_sample_is_consistent_with_itself_and_with_the_log_in_its_archive(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = ran(capsys, str(FOLDER / "list.tar.xz"), "--json")
    told = json.loads(out)
    assert code == 0
    assert told["consistent"]
    assert (
        told["collections"],
        told["spaces_tiled"],
        told["tops_compared"],
        told["histograms_compared"],
    ) == (2, 16, 16, 1)


def test_a_log_of_another_run_is_told_apart_and_none_need_be_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = ran(
        capsys, str(FOLDER / "list.tar.xz"), "--log", str(sample("compressed") / "gc.log")
    )
    assert code == 9
    assert "list.tar.xz: NOT CONSISTENT" in out
    assert (
        "log: expected the top of object at 0xfe99e050 at the end of collection 1, as the VM's log has it; found 0xfe9a0000"
        in out
    )
    code, out = ran(capsys, str(FOLDER / "list.tar.xz"), "--no-log")
    assert code == 0
    assert "not compared with the VM's log" in out


def test_a_trace_that_is_cut_off_is_said_to_be(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("trace", "symbols"):
        data = (sample("list") / name).read_bytes()
        (tmp_path / name).write_bytes(data if name == "symbols" else data[:300_000])
    code, out = ran(capsys, str(tmp_path))
    assert code == 9
    assert "it was not read to the end: trace: damaged at byte" in out


def test_a_changed_length_in_the_symbols_is_found_and_what_was_not_compared_is_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The size of a class of which no object was allocated, in one place of the file."""
    for name in ("trace", "symbols"):
        (tmp_path / name).write_bytes((sample("list") / name).read_bytes())
    data = bytearray((tmp_path / "symbols").read_bytes())
    signal = b"Lsun/misc/Signal;"
    at = data.index(bytes([24]), data.index(signal) - 5) + 5 + len(signal)
    assert data[at : at + 4] == (24).to_bytes(4, "little")
    data[at] = 72
    (tmp_path / "symbols").write_bytes(data)
    log = (sample("list") / "gc.log").read_text()
    (tmp_path / "gc.log").write_text(log.replace("invocations=2 ", "invocations=3 "))
    code, out = ran(capsys, str(tmp_path))
    assert code == 9
    assert "NOT CONSISTENT" in out
    assert "1 symbols" in out
    assert "bytes for an instance of Lsun/misc/Signal;, by its fields, at byte" in out
    assert "8 tops of spaces and 0 class histograms were compared" in out
    assert "16 tops of spaces and 1 class histograms could NOT be compared" in out
    assert "collection 2 of the trace is not in the VM's log" in out
