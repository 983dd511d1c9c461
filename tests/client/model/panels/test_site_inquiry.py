"""Names of files in a table of allocation sites."""

from __future__ import annotations

from gcspy_protocol.details import ColumnKind, DetailColumn, DetailTable

from gcspy_client.model.panels.site_inquiry import with_short_paths

TEXT = DetailColumn(name="What", kind=ColumnKind.TEXT)


def sites(*rows: tuple[str, str]) -> DetailTable:
    return DetailTable(columns=(TEXT, TEXT), rows=rows, note="kept")


def test_files_of_libraries_are_named_from_their_folder_on() -> None:
    table = sites(
        ("str", "/usr/lib/python3.11/json/decoder.py:353 decode"),
        ("/a/b", "/home/u/env/lib/python3.11/site-packages/pandas/core/frame.py:7"),
        ("Order", "/home/u/shop/a.py:3 load"),
    )
    short = with_short_paths(table)
    assert [row[1] for row in short.rows] == [
        "json/decoder.py:353 decode",
        "pandas/core/frame.py:7",
        "/home/u/shop/a.py:3 load",
    ]
    assert (short.columns, short.note) == (table.columns, "kept")
    assert with_short_paths(table, own=True).rows[2][1] == "a.py:3 load"


def test_files_of_the_program_are_named_from_their_common_folder_on() -> None:
    table = sites(
        ("str", "/home/u/shop/orders/a.py:3 load"),
        ("str", "/home/u/shop/b.py:30"),
        ("str", "<string>:4"),
        ("held by a.AUDIT", "not known"),
    )
    assert [row[1] for row in with_short_paths(table, own=True).rows] == [
        "orders/a.py:3 load",
        "b.py:30",
        "<string>:4",
        "not known",
    ]
    apart = sites(("str", "/a/x.py:1"), ("str", "/b/y.py:2"))
    assert [row[1] for row in with_short_paths(apart, own=True).rows] == ["a/x.py:1", "b/y.py:2"]
    assert with_short_paths(sites(("str", "a.py:1")), own=True).rows == (("str", "a.py:1"),)
