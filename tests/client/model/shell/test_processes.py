"""The list of processes as it is read, filtered and sorted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gcspy_protocol.errors import CommandError

from gcspy_client.model.shell.processes import ProcessColumn, ProcessRow, arranged, processes_of


def row(
    pid: int, command: str, *, watchable: bool = True, rss_bytes: int = 0, why_not: str = ""
) -> ProcessRow:
    return ProcessRow(pid, "me", "CPython 3.11", watchable, why_not, rss_bytes, command)


ROWS = (
    row(30, "python web.py", rss_bytes=5),
    row(10, "ruby x", watchable=False, why_not="not recognised by any driver"),
    row(20, "python batch.py", rss_bytes=9),
)


def test_those_that_can_be_watched_come_first_whatever_the_order() -> None:
    for column in ProcessColumn:
        for descending in (False, True):
            pids = [one.pid for one in arranged(ROWS, by=column, descending=descending)]
            assert pids[-1] == 10
            assert sorted(pids) == [10, 20, 30]
    assert [one.pid for one in arranged(ROWS, by=ProcessColumn.MEMORY, descending=True)] == [
        20,
        30,
        10,
    ]
    assert [one.pid for one in arranged(ROWS)] == [20, 30, 10]


def test_every_wanted_word_must_be_somewhere_in_the_row() -> None:
    assert [one.pid for one in arranged(ROWS, "PYTHON web")] == [30]
    assert [one.pid for one in arranged(ROWS, "10")] == [10]
    assert [one.pid for one in arranged(ROWS, "driver")] == [10]
    assert arranged(ROWS, "web batch") == []


def test_what_is_no_list_is_refused_with_what_to_do() -> None:
    for text in (b"", b"{", b"12", b'{"a": 1}', b"[1, 2]", b"[" * 100_000, b"\xff"):
        with pytest.raises(CommandError, match="gcspy ps"):
            processes_of(text)
    with pytest.raises(CommandError, match="bytes"):
        processes_of(b" " * (17 << 20))


@pytest.mark.parametrize("value", [None, "x", 1.5, [], {}, True])
def test_a_field_of_another_type_is_as_if_it_were_not_there(value: Any) -> None:
    (read,) = processes_of(
        json.dumps([{"pid": value, "rss_bytes": value, "watchable": 1}]).encode()
    )
    assert (read.pid, read.rss_bytes, read.watchable, read.command) == (0, 0, False, "")


def test_a_command_with_line_breaks_is_one_line() -> None:
    (read,) = processes_of(json.dumps([{"command": "python -c import\n  sys"}]).encode())
    assert read.command == "python -c import sys"
