"""The wheel holds every room, and what it says it brings can be loaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from gcspy.__main__ import run
from tests.house.rooms import PACKAGES, ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.MULTILINE))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(built: Path) -> set[str]:
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_holds_every_file_of_a_room(package: str, wheel: set[str]) -> None:
    folder = PACKAGES[package]
    ours = {
        path.relative_to(folder.parent).as_posix() for path in folder.rglob("*") if is_source(path)
    }
    assert ours
    assert ours <= wheel


def is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def test_a_wheel_holds_nothing_but_the_rooms(wheel: set[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_samples_are_found_where_a_wheel_is_installed(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path)
    program = (
        "from gcspy_replay.samples import samples; from gcspy_replay.file import Recording\n"
        "for sample in samples():\n"
        "    with Recording.open(sample.path) as recording: print(sample.path, len(recording))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {Path(path).name for path, _ in lines} == {
        path.name for path in (ROOT / "replay/samples").glob("*.gcspy")
    }
    assert all(Path(path).is_relative_to(tmp_path) and int(events) > 30 for path, events in lines)


@pytest.mark.parametrize(
    "entry", entry_points(group="gcspy.drivers"), ids=lambda entry: str(entry.name)
)
def test_the_drivers_we_announce_can_be_loaded(entry: object) -> None:
    load = getattr(entry, "load")  # noqa: B009  # mypy: an EntryPoint's type differs between versions
    assert load()


def test_the_command_is_installed() -> None:
    (command,) = [entry for entry in entry_points(group="console_scripts") if entry.name == "gcspy"]
    assert command.load() is run


def test_make_helps_with_every_target_it_has() -> None:
    told = set(re.findall(r'@echo "make ([a-z]+)', MAKEFILE))
    inner = {"help", "qt-libraries", "test bench soak screenshots"}
    assert told == TARGETS - inner
    assert {"demo", "test", "check", "bench", "soak", "screenshots"} <= told


def test_long_tests_are_not_ended_as_if_they_hung() -> None:
    """A soak takes hours; what ends a worker that hangs ends it after four minutes, and is no matter of `--timeout`."""
    (recipe,) = re.findall(r"^soak:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    runs = [line for line in recipe.splitlines() if "pytest" in line]
    assert len(runs) == 3
    for line in runs:
        assert "--timeout=0" in line
        assert "-o faulthandler_timeout=0" in line
