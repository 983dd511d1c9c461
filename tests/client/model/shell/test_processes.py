"""The list of processes as it is read, filtered and sorted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from gcspy_protocol.errors import CommandError
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.shell.process_book import ProcessBook
from gcspy_client.model.shell.processes import (
    ProcessColumn,
    ProcessRow,
    arranged,
    branches_of,
    row_of,
)


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


def test_what_is_no_line_is_refused_with_what_to_do() -> None:
    for text in (b"", b"{", b"12", b"[]", b"[" * 100_000, b"\xff"):
        with pytest.raises(CommandError, match="gcspy ps"):
            ProcessBook().apply(text)
    with pytest.raises(CommandError, match="bytes"):
        ProcessBook().apply(b" " * (2 << 20))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "pid",
                        "gone",
                        "round",
                        "looking",
                        "ancestors",
                        "started",
                        "options",
                        "drivers",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
    )
)
def test_any_json_is_followed_or_refused(value: Any) -> None:
    book = ProcessBook()
    try:
        book.apply(json.dumps(value).encode())
    except CommandError:
        assert not isinstance(value, dict)
    for row in book.rows:
        assert branches_of(book.rows)[0].row == row


@pytest.mark.parametrize("value", [None, "x", 1.5, [], {}, True])
def test_a_field_of_another_type_is_as_if_it_were_not_there(value: Any) -> None:
    read = row_of({"pid": value, "rss_bytes": value, "watchable": 1, "ancestors": value})
    assert (read.pid, read.rss_bytes, read.watchable, read.command) == (0, 0, False, "")
    assert read.ancestors == ()


def test_a_command_with_line_breaks_is_one_line() -> None:
    assert row_of({"command": "python -c import\n  sys"}).command == "python -c import sys"


def line(pid: int, rss_bytes: int, started: float = 1.0) -> bytes:
    return json.dumps({"pid": pid, "rss_bytes": rss_bytes, "started": started}).encode()


def test_growth_is_since_the_process_was_first_listed_and_not_of_another_of_its_number() -> None:
    book = ProcessBook()
    grown = []
    for one in (
        line(7, 100),
        line(7, 350),
        line(7, 50),
        line(7, 900, started=2.0),
        line(7, 1000, 2.0),
    ):
        book.apply(one)
        grown.append(book.rows[0].growth_bytes)
    assert grown == [0, 250, -50, 0, 100]
    book.apply(b'{"gone": 7}')
    assert book.rows == ()
    book.apply(b'{"looking": [3, 9]}')
    book.apply(b'{"round": 4}')
    book.apply(b'{"later": "version"}')
    assert (book.examined, book.rounds) == ((3, 9), 4)


@given(
    st.dictionaries(
        st.integers(1, 12), st.lists(st.integers(0, 12), max_size=4), min_size=1, max_size=12
    ),
    st.sets(st.integers(1, 12)),
)
def test_a_tree_has_each_process_once_unless_it_is_folded_whatever_the_ancestors_say(
    ancestors: dict[int, list[int]], folded: set[int]
) -> None:
    rows = [
        replace(row(pid, "x", rss_bytes=pid), ancestors=tuple(above))
        for pid, above in ancestors.items()
    ]
    whole = branches_of(rows)
    assert sorted(one.row.pid for one in whole) == sorted(ancestors)
    some = [one.row.pid for one in branches_of(rows, folded)]
    assert len(some) == len(set(some))
    assert set(some) <= set(ancestors)
    for place, branch in enumerate(whole):
        below = whole[place + 1 : place + 1 + branch.below]
        assert all(one.depth > branch.depth for one in below), "what is below it follows it"
        assert branch.rss_bytes == branch.row.rss_bytes + sum(one.row.rss_bytes for one in below)
