"""Processes that gcspy starts import nothing from the current folder: that may be /tmp, and the user root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcspy.hosts.launcher import front_door
from gcspy.hosts.sidecar import command_of_sidecar


@pytest.mark.parametrize("module", ["gcspy", "json", "psutil"])
def test_a_module_in_the_working_directory_is_not_imported(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text("import os; os.write(2, b'taken'); os._exit(99)")
    for command in (command_of_sidecar(), front_door().processes):
        done = subprocess.run(
            command, cwd=tmp_path, input=b"{}\n", capture_output=True, timeout=120, check=False
        )
        assert done.returncode != 99
        assert b"taken" not in done.stderr


def test_a_program_that_lets_itself_be_watched_starts_no_module_of_its_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "gcspy_server.py").write_text("import os; os._exit(99)")
    source = "import sys; sys.path.pop(0); import gcspy; gcspy.listen().close(); print('well')"
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": "/nonexistent"},
    )
    assert done.stdout == "well\n", done.stderr


def test_a_sidecar_whose_parent_has_ended_says_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    try:
        done = subprocess.run(
            command_of_sidecar(),
            input=b'{"does": "watches", "pid": %d}\n' % gone.pid,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.stderr == b""
    assert done.returncode not in (0, -13)
