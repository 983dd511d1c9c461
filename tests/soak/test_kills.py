"""A kill of any process at any moment, by whatever way it watches: the target works on, and nothing stays behind."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from gcspy_drivers.hotspot.agent.agent import library

from tests.drivers.targets import find_python
from tests.soak.ground import ROOT, Ground, Target, ground_of, until
from tests.soak.kills import BEATING, Fault, Kills, Scene

KILLS = "GCSPY_SOAK_KILLS"
ONE_ROUND = "GCSPY_SOAK_ROUND"

_FEW = 5

_MOST_FAULTS = 20
"""No more rounds begin after this time."""


def _display(ground: Ground) -> dict[str, str]:
    """A real display for the windows, if there is an X server to start; else an invisible one."""
    if shutil.which("Xvfb") is None:
        print("there is no Xvfb here: no windows and no sidecars of windows are killed")
        return {}
    number = ground.folder / "out" / "display"
    server = ground.start(
        "sh",
        "-c",
        f"exec Xvfb -displayfd 3 -screen 0 1600x1200x24 -nolisten tcp 3>{number}",
        program=True,
    )
    assert until(lambda: number.exists() and number.read_text().endswith("\n")), server.complains()
    return {"QT_QPA_PLATFORM": "xcb", "DISPLAY": f":{number.read_text().strip()}"}


def _jvm(ground: Ground) -> Target | None:
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None or library() is None:
        print("no JVM, no compiler for it, or no agent here: not a target")
        return None
    classes = ground.folder / "classes"
    subprocess.run(
        [javac, "-d", str(classes), str(ROOT / "tests" / "soak" / "Beating.java")], check=True
    )
    flags = ("-Xms32m", "-Xmx32m", "-Xmn4m", "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch")
    return ground.target(os.path.realpath(java), *flags, "-cp", str(classes), "Beating")


def _targets(ground: Ground) -> dict[str, Target]:
    """The targets that can be had here."""
    found: dict[str, Target] = {}
    usual = find_python("3.12") or find_python("3.11")
    assert usual is not None
    found["python"] = ground.target(usual, str(BEATING))
    latest = find_python("3.14")
    if latest is None:
        print("no Python 3.14 here: remote-exec is not tried")
    else:
        found["python 3.14"] = ground.target(latest, str(BEATING))
    jvm = _jvm(ground)
    if jvm is not None:
        found["java"] = jvm
    return found


def _warm_up(ground: Ground, pid: int, *options: str) -> None:
    """Bring in once what stays after the first time: modules that a stub imports, an agent's library."""
    path = ground.folder / "files" / "warm.gcspy"
    made = ground.start(
        "record", str(pid), "-o", str(path), "--events", "3", "--budget", "off", *options
    )
    assert until(lambda: made.status is not None)
    assert made.status == 0, made.complains()
    path.unlink()


@contextmanager
def small_scene() -> Iterator[Scene]:
    """Make a scene from processes that start quickly."""
    with ground_of() as ground:
        control = ground.target(sys.executable, str(BEATING))
        target = ground.target(find_python("3.12") or sys.executable, str(BEATING))
        yield Scene(ground, control, {"python": target}, {}, ("passive", "stopped", "run"))


@contextmanager
def scene() -> Iterator[Scene]:
    """Everything that rounds need."""
    with ExitStack() as stack:
        ground = stack.enter_context(ground_of())
        control = ground.target(sys.executable, str(BEATING))
        targets = _targets(ground)
        for kind, options in (
            ("python", ("--inject", "gdb")),
            ("python 3.14", ("--inject", "remote-exec")),
            ("java", ("--inject", "agent")),
        ):
            if kind in targets and (options[1] != "gdb" or shutil.which("gdb")):
                _warm_up(ground, targets[kind].pid, *options)
        yield Scene(ground, control, targets, _display(ground))


def run(rounds: int, seed: int, say: Callable[[str], object], *, first: int = 0) -> Kills:
    """Do this many rounds; each is reported when it is over."""
    with scene() as stands:
        kills = Kills(stands, seed)
        for number in range(first, first + rounds):
            began = time.monotonic()
            try:
                told = str(kills.round(number))
            except Fault as fault:
                kills.faults.append(str(fault))
                told = f"FAULT {fault}"
            say(f"{number} {time.monotonic() - began:.1f} s {told}")
            if len(kills.faults) >= _MOST_FAULTS:
                break
        try:
            kills.judge_sweep()
        except Fault as fault:
            kills.faults.append(str(fault))
        return kills


def test_a_few_kills() -> None:
    seed = random.randrange(1 << 30)
    with small_scene() as stands:
        kills = Kills(stands, seed)
        for number in range(_FEW):
            kills.round(number)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_2000_kills(soak_seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    def say(text: str) -> None:
        with capsys.disabled():
            print(text, flush=True)

    if wanted := os.environ.get(ONE_ROUND):
        seed, number = map(int, wanted.split(":"))
        kills = run(1, seed, say, first=number)
    else:
        kills = run(int(os.environ.get(KILLS, "2500")), soak_seed, say)
    say(f"\n{kills.told()}")
    assert not kills.faults, "\n\n".join(kills.faults)
