"""Faulty drivers against `gcspy ps`, `gcspy check-driver`, `gcspy tail` and a window: each mistake is reported, no session is lost.

The output is compared with `docs/driver-faults.md`; with GCSPY_WRITE_FAULTS in the environment it
is written again.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import command_of_sidecar, first_line
from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import FrontDoor, Launch
from gcspy_client.settings import UserSettings
from gcspy_client.view.window import MainWindow
from tests.drivers.faults.faulty_drivers import FAULTS, PACKAGE, install
from tests.house.rooms import ROOT

DOCUMENT = ROOT / "docs" / "driver-faults.md"
PATIENCE_MILLIS = 120_000
USUAL = (
    "no_module",
    "recognise_raises",
    "attach_raises",
    "gather_raises",
    "never_finished",
    "close_raises",
)
"""One of each sort that does not hang; the others take minutes, and are run by `make soak`."""
HEAD = """# Messages about faulty drivers

Each row is a driver with one mistake. `tests/drivers/faults` runs it against `gcspy ps`,
`gcspy check-driver`, `gcspy tail --driver NAME --events 40`, and a window on a session that it
shares with another driver. Every message begins with the name of the driver and of its package.
`python -m pytest -m "soak or not soak" tests/drivers/faults` compares all rows with what happens,
in some minutes; with `GCSPY_WRITE_FAULTS=1` before it, it writes them again.

* *ps*: whether the mistake is reported on standard error; the process is listed in any case.
* *check-driver* and *tail*: the exit code. 10 means a faulty driver, 0 that the command succeeded.
  *hangs*: the mistake is reported within seconds, and Ctrl-C ends the command.
* *window*: where it is reported. On the *start page* the user can choose something else. In a
  *session* the other driver continues. One of several drivers that hangs while it gathers is
  dropped after 20 s.

| mistake | ps | check-driver | tail | window | message |
|---|---|---|---|---|---|
"""

_CHECK_ALL = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from gcspy.cli import main

found = {}
for name in sys.argv[2:]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(["check-driver", name, sys.argv[1]])
    found[name] = [int(code), out.getvalue() + err.getvalue()]
print(json.dumps(found), flush=True)
os._exit(0)  # threads that hang are left
"""


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def environment(target: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Install the drivers; return the environment in which they are."""
    folder = tmp_path_factory.mktemp("faulty")
    install(folder)
    added = {
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "GCSPY_FAULTY_PID": str(target),
        "XDG_RUNTIME_DIR": str(tmp_path_factory.mktemp("runtime")),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in added.items():
            patch.setenv(name, value)
        yield {**os.environ}


@pytest.fixture(scope="module")
def listed(environment: dict[str, str], target: int) -> str:
    """Return what `gcspy ps` says on standard error; the process is listed with the drivers that answer."""
    done = subprocess.run(
        [sys.executable, "-m", "gcspy", "ps", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (row,) = (row for row in json.loads(done.stdout) if row["pid"] == target)
    assert row["driver"] == "cpython"
    assert {"cpython", "steady", "gather_raises"} <= set(row["drivers"])
    assert "recognise_raises" not in row["drivers"]
    return done.stderr


@pytest.fixture(scope="module")
def checked(
    request: pytest.FixtureRequest, environment: dict[str, str], target: int
) -> dict[str, tuple[int, str]]:
    """Return exit code and text of `gcspy check-driver` for each driver that is tried."""
    tried = [
        name for name in FAULTS if any(f"[{name}]" in one.name for one in request.session.items)
    ]
    done = subprocess.run(
        [sys.executable, "-c", _CHECK_ALL, str(target), *tried],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    return {name: (code, text) for name, (code, text) in found.items()}


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, str]]:
    """Collect the rows of the table; write them into the document, beside those of other tests, if requested."""
    found: dict[str, str] = {}
    yield found
    if "GCSPY_WRITE_FAULTS" in os.environ:
        lines = DOCUMENT.read_text().splitlines() if DOCUMENT.exists() else []
        before = {line.split(" | ")[0][2:]: line for line in lines if line.startswith("| ")}
        rows = [found.get(name, before.get(one.about, "")) for name, one in FAULTS.items()]
        DOCUMENT.write_text(HEAD + "".join(f"{row}\n" for row in rows if row))


@pytest.fixture
def window_of(
    environment: dict[str, str], target: int, tmp_path: Path, qtbot: QtBot
) -> Iterator[Callable[[str], MainWindow]]:
    """Open a window whose start page attaches with a faulty driver and the steady one."""
    windows: list[MainWindow] = []

    def make(name: str) -> MainWindow:
        options = ServingOptions(
            pid=target, listen=(f"unix:{tmp_path}/s",), drivers=(name, "steady"), linger=True
        )
        launch = Launch(command=command_of_sidecar(), line=first_line(options), title="Attaching")
        front = FrontDoor(
            processes=(sys.executable, "-c", "input()"),
            everything="--all",
            attach=lambda _pid: launch,
            play=lambda _files: launch,
        )
        window = MainWindow(Theme.DARK, UserSettings(tmp_path / "settings.ini"), front)
        windows.append(window)
        window.resize(1280, 720)
        with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
            window.show()
        window.opener.attach(target)
        return window

    yield make
    for window in windows:
        window.close()
        window.deleteLater()
    qtbot.wait(1)


def words(window: MainWindow) -> str:
    """Return all that can be read in a window."""
    labels = [label for label in window.findChildren(QLabel) if label.isVisible()]
    return "\n".join(label.text() for label in labels)


def tail(name: str, target: int, environment: dict[str, str]) -> tuple[int | None, str]:
    """Run `gcspy tail`; return its exit code, None if it hangs, and all that it said."""
    command = [sys.executable, "-m", "gcspy", "tail", str(target), "--driver", name]
    with subprocess.Popen(
        [*command, "--events", "40", "--clock", "50"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = ""
        try:
            for line in process.stdout:
                said += line
                if FAULTS[name].hangs and FAULTS[name].told in line:
                    process.send_signal(signal.SIGINT)
                    process.wait()
                    return None, said
            return process.wait(), said
        finally:
            process.kill()


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in USUAL else pytest.mark.soak) for one in FAULTS],
)
def test_a_faulty_driver_is_told_of_everywhere_and_no_session_is_lost(
    name: str,
    target: int,
    environment: dict[str, str],
    listed: str,
    checked: dict[str, tuple[int, str]],
    rows: dict[str, str],
    window_of: Callable[[str], MainWindow],
    qtbot: QtBot,
) -> None:
    fault = FAULTS[name]
    label = f"driver {name} ({PACKAGE}): "

    def tells(text: str) -> bool:
        """Whether a text names driver and package, and what is wrong."""
        return bool(fault.told) and any(
            f"driver {name} ({PACKAGE})" in line and fault.told in line
            for line in text.splitlines()
        )

    in_ps = [line for line in listed.splitlines() if label in line]
    assert len(in_ps) <= 1, "a driver is reported once"
    code, text = checked[name]
    if fault.told and name != "close_raises":
        assert fault.told in text
    tail_code, said = tail(name, target, environment)
    if tail_code != 0:
        assert tells(said), said
    for output in (*in_ps, text, said):
        assert "Traceback" not in output

    window = window_of(name)

    def settled() -> bool:
        live = window.session.live
        if window.opener.child.starting is not None or live.welcome is None:
            return _told_in_session(name) and tells(words(window))
        steady = [one for one in live.spaces.values() if one.space.name == "Steady space"]
        going = bool(steady) and window.session.events_seen > 8
        if _told_in_session(name):
            return tells(words(window))
        return going

    qtbot.waitUntil(settled, timeout=PATIENCE_MILLIS)
    told = tells(words(window))
    live = window.session.live.welcome is not None
    if live and (not fault.hangs or name == "gather_hangs"):  # that one is given up
        before = window.session.events_seen
        qtbot.waitUntil(lambda: window.session.events_seen > before + 3, timeout=PATIENCE_MILLIS)
    assert "Traceback" not in words(window)
    where = "session" if live else "start page"
    row = "| " + " | ".join(
        [
            fault.about,
            "reported" if any(map(tells, in_ps)) else "–",
            str(code),
            "hangs" if tail_code is None else str(tail_code),
            where + (", reported" if told and live else ""),
            re.sub(r"\|", r"\\|", fault.told) or "–",
        ]
    )
    rows[name] = row + " |"
    if "GCSPY_WRITE_FAULTS" not in os.environ:
        assert rows[name] in DOCUMENT.read_text().splitlines()


def _told_in_session(name: str) -> bool:
    """Whether clients of a session are informed of the mistake; what was only recognised, or is closed, is no matter of theirs."""
    early = ("recognise_", "close_", "not_a_number")
    return not name.startswith(early)


def test_the_document_has_a_row_for_each_fault_and_no_other() -> None:
    lines = DOCUMENT.read_text().splitlines()
    assert DOCUMENT.read_text().startswith(HEAD)
    table = lines[len(HEAD.splitlines()) :]
    assert [line.split(" | ")[0][2:] for line in table] == [one.about for one in FAULTS.values()]
    assert len(table) >= 30
