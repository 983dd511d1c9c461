"""A window that is resized, presented, docked, dressed and led to other sessions at random does not crash.

Once a window ended with a segmentation fault on entering or leaving presentation. A walk is a process of its own, with
faulthandler, and with freed memory overwritten, so that what is used after it was freed ends it at once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.targets.busy_target import busy_target
from tests.soak.ground import ROOT

_SAMPLES = ROOT / "replay" / "samples"
_STEPS = "GCSPY_SOAK_STEPS"
_SHORT = 25


class Walks:
    """Sessions for walks, and the walks."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._env = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
        gcspy = [sys.executable, "-m", "gcspy"]
        # Copies: bookmarks are kept beside what is played.
        self._files = [str(shutil.copy(path, folder)) for path in sorted(_SAMPLES.glob("*.gcspy"))]
        served = self._serve(
            "served", [sys.executable, "-m", "tests.client.served_program"], last=True
        )
        played = self._serve(
            "played",
            [*gcspy, "replay", "--loop", "all", "--no-window", self._files[-1], "--listen"],
        )
        simulated = self._serve(
            "simulated",
            [
                *gcspy,
                "demo",
                "--collector",
                "generational",
                "--pace",
                "250",
                "--no-window",
                "--listen",
            ],
        )
        self._addresses = [served, played, simulated]
        self._pid = stack.enter_context(busy_target(sys.executable, 2, rest_millis=20)).pid

    def _serve(self, name: str, command: list[str], *, last: bool = False) -> str:
        address = f"unix:{self._folder / name}.sock"
        process = subprocess.Popen(
            [*command, address], cwd=ROOT, env=self._env, stdout=subprocess.PIPE, text=True
        )
        self._stack.callback(process.communicate)
        self._stack.callback(process.kill)
        assert process.stdout is not None
        wanted = address if last else "join with"
        while wanted not in (line := process.stdout.readline()):
            assert line, f"{name} ended early"
        return address

    def walk(self, seed: int, steps: int, display: dict[str, str]) -> str:
        """Walk; return the last line of the walk. A failure contains its output."""
        words = [sys.executable, "-m", "tests.soak.window_walker"]
        words += ["--seed", str(seed), "--steps", str(steps), "--pid", str(self._pid)]
        words += [word for address in self._addresses for word in ("--address", address)]
        words += [word for path in self._files for word in ("--file", str(path))]
        env = {**self._env, **display, "MALLOC_PERTURB_": "165"}
        log = self._folder / "walk.log"
        with log.open("wb") as out:
            walked = subprocess.run(
                words, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT, check=False
            )
        said = log.read_text(errors="replace")
        where = said.find("\nwalked ")
        told = said[-6000:] if where < 0 else said[where:]
        assert walked.returncode == 0, (
            f"seed {seed}, {steps} steps, {display}: exit code {walked.returncode}\n{told}"
        )
        return told.strip()


@pytest.fixture
def walks() -> Iterator[Walks]:
    # Not tmp_path: a Unix socket's path has at most 107 bytes.
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gcspy-walk-")))
        yield Walks(folder, stack)


@pytest.fixture
def display() -> Iterator[dict[str, str]]:
    """A real display, with a window manager where there is one."""
    if shutil.which("Xvfb") is None:
        pytest.skip("there is no Xvfb here: no walk under a real display")
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1600x1200x24", "-nolisten", "tcp"],
        pass_fds=(writing,),
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as said:
        name = f":{said.readline().strip()}"
    started = [server]
    if shutil.which("openbox") is None:
        print("there is no openbox here: windows are walked through without a window manager")
    else:
        started.append(
            subprocess.Popen(
                ["openbox"], env={**os.environ, "DISPLAY": name}, stderr=subprocess.DEVNULL
            )
        )
    yield {"QT_QPA_PLATFORM": "xcb", "DISPLAY": name}
    for process in reversed(started):
        process.terminate()
        process.wait()


def test_a_short_walk(walks: Walks) -> None:
    walks.walk(1, _SHORT, {"QT_QPA_PLATFORM": "offscreen"})


@pytest.mark.soak
def test_ten_thousand_steps_under_a_real_display(
    walks: Walks,
    display: dict[str, str],
    soak_seed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = int(os.environ.get(_STEPS, "10000"))
    # Windows that are a part of the way old are not what a walk meets often enough: so several walks.
    for number in range(4):
        told = walks.walk(4 * soak_seed + number, steps // 4, display)
        with capsys.disabled():
            print(f"\nseed {4 * soak_seed + number}: {told}")


@pytest.mark.soak
def test_two_thousand_steps_offscreen(walks: Walks, soak_seed: int) -> None:
    walks.walk(
        soak_seed, int(os.environ.get(_STEPS, "10000")) // 5, {"QT_QPA_PLATFORM": "offscreen"}
    )
