"""Lines of code objects, beside what Python itself says."""

from __future__ import annotations

import argparse
import dataclasses
import dis
import enum
import inspect
import json
import subprocess
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.cpython.allocations.line_tables import lines_of_code

MODULES: list[types.ModuleType] = [argparse, dataclasses, dis, enum, inspect, typing]
TELL_LINES = """
import dis, json, sys
def walk(code):
    if hasattr(code, "co_lines"):
        lines = {line for *_, line in code.co_lines() if line is not None}
        table = code.co_linetable
    else:
        lines = {line for _, line in dis.findlinestarts(code)}
        table = code.co_lnotab
    found.append([code.co_firstlineno, table.hex(), sorted(lines)])
    for each in code.co_consts:
        if hasattr(each, "co_code"):
            walk(each)
found = []
for name in sys.argv[1:]:
    walk(compile(open(name).read(), name, "exec"))
print(json.dumps([sys.version_info[:2], found]))
"""


def code_of(python: str) -> tuple[tuple[int, int], list[tuple[int, bytes, set[int]]]]:
    """Let an interpreter compile some modules: its version; first line, table and lines of each function."""
    files = [
        str(Path(directory, f"{module.__name__}.py"))
        for directory in [standard_library(python)]
        for module in MODULES
    ]
    output = subprocess.run(
        [python, "-I", "-c", TELL_LINES, *files], capture_output=True, check=True, text=True
    )
    version, found = json.loads(output.stdout)
    return (version[0], version[1]), [
        (first, bytes.fromhex(table), set(lines)) for first, table, lines in found
    ]


def standard_library(python: str) -> str:
    """Return the folder of an interpreter's modules."""
    command = [python, "-I", "-c", "import os; print(os.path.dirname(os.__file__))"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def test_lines_are_those_that_python_reports(python: str) -> None:
    version, functions = code_of(python)
    assert len(functions) > 300
    for first, table, lines in functions:
        # From 3.11 on the first instruction has the line of the `def`, or 0 in a module.
        left_out = {first, 0} if version >= (3, 11) else set()
        assert lines_of_code(version, first, table) | left_out == lines | left_out


def prefixes(table: bytes) -> Iterator[bytes]:
    """Every beginning of a table."""
    return (table[:size] for size in range(len(table)))


@pytest.mark.parametrize("version", [(3, 9), (3, 10), (3, 11), (3, 14)])
def test_tables_that_are_cut_or_no_tables_end(version: tuple[int, int]) -> None:
    for table in (bytes(range(256)), b"\xff" * 99, b"\xf0" + b"\x7f" * 99, b"\x80\x00" * 50):
        for part in prefixes(table):
            assert all(isinstance(line, int) for line in lines_of_code(version, 1, part))
