"""`gcspy drivers` lists what drivers let the user choose; what they do not is refused before anything is read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from gcspy_protocol.errors import CommandError

from gcspy.cli import main
from gcspy.connection.target import attach_group
from gcspy.exit_codes import ExitCode
from gcspy_server.api import AttachOptions


@pytest.fixture
def target() -> Iterator[int]:
    """Return the number of a Python process that waits."""
    with subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_it_lists_drivers_and_the_options_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drivers"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert {"cpython", "hotspot"} <= {line.split(" ")[0] for line in told.splitlines()}
    assert main(["drivers", "cpython"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "--option mode=passive: " in told
    assert "passive, stopped" in told
    assert main(["drivers", "algol"]) == ExitCode.UNSUPPORTED


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mode": "sideways"}, "option mode is passive, stopped; got 'sideways'"),
        ({"depth": "3"}, "option depth: cpython has no such option"),
        ({"hotspot.inject": "agent"}, "option hotspot.inject: cpython has no such option"),
    ],
)
def test_what_a_driver_does_not_declare_is_refused(
    target: int, given: dict[str, str], told: str
) -> None:
    with pytest.raises(CommandError) as refused:
        attach_group(target, AttachOptions(), ("cpython",), given=given)
    assert told in str(refused.value)


def test_an_option_reaches_the_driver(target: int) -> None:
    group = attach_group(target, AttachOptions(), ("cpython",), given={"cpython.mode": "stopped"})
    try:
        assert group.describe().mode.value == "stopped"
    finally:
        group.close()
