"""Programs of Python compared with their traces: objects from CPython 3.13 on, blocks before."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.records import RecordKind
from gcspy_protocol.errors import CommandError

from gcspy.cli import main
from gcspy.tracer.traced_run import PythonProgram, TracedRun, TraceSettings
from tests.tracer.written_trace import WrittenTrace

PROGRAM = Path(__file__).parent / "programs" / "own_log.py"
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"]
USUAL = {"3.13"}
"""Beside the version that runs the tests."""


def interpreter(version: str) -> str:
    """Return the interpreter of a version."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    folders = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = str(folders[-1]) if folders else shutil.which(f"python{version}")
    if (
        found is None
        or subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode
    ):
        pytest.skip(f"no Python {version} here")
    return found


def traced(version: str, folder: Path, stacks: str = "caller") -> WrittenTrace:
    """Trace the program."""
    settings = TraceSettings(output=folder / "trace", stacks=stacks)
    program = PythonProgram(interpreter=interpreter(version), form="script")
    with TracedRun([str(PROGRAM), str(folder / "log")], settings, program) as run:
        code = run.follow(lambda _definitions: b"")
        assert run.refusal is None
    assert code == 0
    trace = WrittenTrace.read(folder / "trace")
    assert trace.end["lost"] == trace.end["inferred_frees"] == "0"
    return trace


def line_of(trace: WrittenTrace, row: int) -> int:
    """Return the line at which something was allocated."""
    site = trace.definitions.sites.get(int(trace.site[row]))
    return trace.definitions.frames[site.frames[0]].line if site is not None else 0


@pytest.mark.parametrize(
    "version",
    [
        one if one in USUAL else pytest.param(one, marks=pytest.mark.matrix)
        for one in ["3.13", "3.14", "3.15"]
    ],
)
def test_objects_are_those_that_the_program_wrote_down(version: str, tmp_path: Path) -> None:
    trace = traced(version, tmp_path)
    log = [tuple(map(int, line.split())) for line in (tmp_path / "log").read_text().splitlines()]
    assert len(log) > 5000
    number = next(row for row, one in trace.definitions.types.items() if one.name == "Node")
    assert trace.header["unit"] == "objects"
    alive: set[int] = set()
    found: list[tuple[int, int]] = []
    ended = 0
    for row in range(len(trace.kind)):
        kind, address = int(trace.kind[row]), int(trace.address[row])
        if kind == RecordKind.ALLOCATE and trace.type[row] == number:
            alive.add(address)
            found.append((1, address))
        elif kind == RecordKind.FREE and address in alive:
            alive.discard(address)
            found.append((2, address))
        ended += kind == RecordKind.COLLECTION_END
    # An object lies 16 bytes behind the start of its block, where the collector's two words are. The program wrote no
    # deaths down after its log was written.
    assert sorted((kind, address + 16) for kind, address in found[: len(log)]) == sorted(log)
    assert [one for one in found[len(log) :] if one[0] == 1] == []
    assert ended >= 3


@pytest.mark.parametrize(
    "version",
    [one if one == "3.11" else pytest.param(one, marks=pytest.mark.matrix) for one in VERSIONS],
)
def test_blocks_have_the_size_and_line_that_the_program_asked_for(
    version: str, tmp_path: Path
) -> None:
    trace = traced(version, tmp_path, "full")
    line = 1 + PROGRAM.read_text().splitlines().index(
        "    return [bytearray(1000 + one) for one in range(500)]"
    )
    growth = (1024, 1184, 1376)  # of the list, at the same line
    sizes = [
        int(trace.size[row])
        for row in np.flatnonzero(trace.kind == RecordKind.ALLOCATE).tolist()
        if trace.size[row] not in growth and line_of(trace, row) == line
    ]
    assert [one for one in sizes if one in range(1001, 1501)] == [
        one for one in range(1001, 1501) if one not in growth
    ]
    deepest = max(trace.definitions.sites.values(), key=lambda one: len(one.frames))
    texts = trace.definitions.texts
    names = {texts[trace.definitions.frames[one].function] for one in deepest.frames}
    assert len(names) > 2


def test_an_interpreter_of_another_kind_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "trace")
    assert main(["trace", "-o", output, "--python", "/bin/false", str(PROGRAM), "log"]) != 0
    assert "was not traced" in capsys.readouterr().err
    with pytest.raises(CommandError, match="cannot start"):
        TracedRun(["/no/such/program"], TraceSettings(output=tmp_path / "other"))
