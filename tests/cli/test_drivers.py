"""`gcspy drivers` lists what drivers let the user choose; what they do not is refused before anything is read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from gcspy_protocol.errors import CommandError, Unsupported

from gcspy.cli import gcspy, main
from gcspy.connection.target import attach_group, installed_drivers
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


@pytest.mark.parametrize("command", ["attach", "run", "record", "tail", "screenshot"])
def test_help_lists_the_options_of_every_driver(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == ExitCode.OK
    told = "".join(capsys.readouterr().out.split())  # lines are broken at hyphens, too
    declared = [(one.name, option) for one in installed_drivers() for option in one.options]
    assert len(declared) >= 4
    for name, option in declared:
        assert f"{name}.{option.name}={option.default}" in told
        assert "".join(f"{option.about} {option.bounds_text}".split()) in told


OPTIONS_MODULE = """
from gcspy_server.driver_options import DriverOption

DEPTH = DriverOption(name="depth", default=3, about="How deep.", minimum=1, maximum=9, live=True)
GOOD = (DEPTH,)
BAD = [DEPTH]
1 / 0 if __name__ == "gcspy_options_that_raise" else None
"""


def test_options_of_other_packages_are_listed_and_their_faults_told(tmp_path: Path) -> None:
    for name in ("gcspy_options", "gcspy_options_that_raise"):
        (tmp_path / f"{name}.py").write_text(OPTIONS_MODULE)
    told = tmp_path / "gcspy_others-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: gcspy-others\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text(
        "[gcspy.driver_options]\ngood = gcspy_options:GOOD\nbad = gcspy_options:BAD\n"
        "raising = gcspy_options_that_raise:GOOD\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from gcspy.cli import main; print(main(['tail', '-h']), 'numpy' in sys.modules)",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    text = " ".join(done.stdout.split())
    assert "good.depth=3 How deep. Values: a whole number from 1 to 9; can be changed while" in text
    assert "bad cannot be read: gcspy_options:BAD is not a tuple of DriverOption" in text
    assert "raising cannot be read: ZeroDivisionError: division by zero" in text
    assert text.endswith("0 False"), "help loads no numpy"
    assert not done.stderr


@pytest.mark.parametrize("given", ["inject=gdb", "cpython.inject=gdb"])
def test_a_program_with_a_stub_is_not_held_besides(target: int, given: str) -> None:
    name, _, value = given.partition("=")
    with pytest.raises(Unsupported, match="omit inject or mode"):
        attach_group(target, AttachOptions(), ("cpython",), given={name: value, "mode": "stopped"})


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


def test_the_list_of_commands_says_of_each_the_first_sentence_of_its_help() -> None:
    context = click.Context(gcspy, info_name="gcspy")
    listed = {name: said for section in gcspy.summaries.values() for name, said in section.items()}
    assert list(listed) == gcspy.list_commands(context)
    for name, said in listed.items():
        command = gcspy.get_command(context, name)
        assert command is not None
        assert said == command.get_short_help_str(1000)
