"""JVMs of other users, in a chroot, in a container's name spaces, without attaching: watched all the same, or refused with the remedy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.hotspot.discovery import look

from gcspy.exit_codes import ExitCode
from tests.drivers.hotspot.jvms import HOMES, Jvm, find_javas
from tests.drivers.hotspot.watching import Watched

_SMALL = ("-Xmx32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_NOBODY = "65534"
_BECOME = ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups")


@pytest.fixture(scope="module")
def java() -> str:
    """Return one launcher, of whatever version."""
    javas = find_javas()
    if not javas:
        pytest.skip(f"no java on PATH or in {HOMES}: JVMs are not tested here")
    if os.geteuid() != 0 or shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("needs root, setpriv and unshare to make JVMs of others")
    return javas[0]


@pytest.fixture(scope="module")
def open_classes(classes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the program's folder where every user can read it."""
    folder = Path("/var/tmp") / f"gcspy-test-{os.getpid()}"
    shutil.copytree(classes, folder)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def _row(pid: int, *before: str, python: str = sys.executable) -> dict[str, object]:
    """Return the output of `gcspy ps` for a process, run by another user."""
    path = ":".join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [*before, python, "-m", "gcspy", "ps", "--json"], capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    if "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr:
        pytest.skip(
            f"the system's Python cannot use these packages: {done.stderr.splitlines()[-1]}"
        )
    assert done.returncode == ExitCode.OK, done.stderr
    (row,) = [row for row in json.loads(done.stdout) if row["pid"] == pid]
    found: dict[str, object] = row
    return found


def test_root_watches_the_jvm_of_another_user(java: str, open_classes: Path) -> None:
    with Jvm(java, open_classes, *_SMALL, before=_BECOME) as jvm:
        row = _row(jvm.pid)
        assert (row["user"], row["watchable"], row["program"]) == (
            "nobody",
            True,
            "Still an argument",
        )
        with Watched(jvm.pid) as watched:
            watched.driver.tick()
            assert watched.values("Heap", "Used").sum() > 0


def test_another_user_is_told_who_may_watch(java: str, classes: Path) -> None:
    if not Path("/usr/bin/python3").exists():
        pytest.skip("needs a system Python that others can run")
    with Jvm(java, classes, *_SMALL) as jvm:
        row = _row(jvm.pid, *_BECOME, python="/usr/bin/python3")
        assert (row["runtime"], row["watchable"]) == ("HotSpot", False)
        assert f"belongs to uid 0 and gcspy runs as uid {_NOBODY}" in str(row["why_not"])
        assert f"sudo gcspy attach {jvm.pid}" in str(row["why_not"])


def test_a_jvm_in_a_chroot_is_watched(java: str, open_classes: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    script = 'mount --rbind / "$0" && exec chroot "$0" "$@"'
    with Jvm(
        java, open_classes, *_SMALL, before=("unshare", "--mount", "sh", "-c", script, str(root))
    ) as jvm:
        assert os.readlink(f"/proc/{jvm.pid}/root") != "/"
        assert look(jvm.pid).why_not == ""
        with Watched(jvm.pid) as watched:
            watched.driver.tick()
            assert watched.values("Heap", "Used").sum() > 0


def test_a_jvm_in_name_spaces_of_its_own_is_watched(java: str, open_classes: Path) -> None:
    before = (
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--net",
        "--ipc",
        "--uts",
    )
    with Jvm(java, open_classes, *_SMALL, before=before) as jvm:
        own = next(
            line
            for line in Path(f"/proc/{jvm.pid}/status").read_text().splitlines()
            if line.startswith("NSpid")
        )
        assert own.split()[-1] == "1", "inside it is the first process"
        row = _row(jvm.pid)
        assert (row["watchable"], row["program"]) == (True, "Still an argument")
        with Watched(jvm.pid) as watched:
            watched.driver.tick()
            assert watched.values("Heap", "Used").sum() > 0


def test_a_jvm_in_a_user_name_space_is_watched(java: str, open_classes: Path) -> None:
    with Jvm(java, open_classes, *_SMALL, before=("unshare", "--user", "--map-root-user")) as jvm:
        assert look(jvm.pid).why_not == ""
        with Watched(jvm.pid) as watched:
            watched.driver.tick()
            assert watched.values("Heap", "Used").sum() > 0


def test_a_jvm_that_cannot_be_attached_to_is_watched_passively(java: str, classes: Path) -> None:
    with Jvm(java, classes, *_SMALL, "-XX:+DisableAttachMechanism") as jvm:
        row = _row(jvm.pid)
        assert row["watchable"]
        assert "passive" in str(row["modes"])
        with Watched(jvm.pid) as watched:
            watched.driver.tick()
            assert watched.values("Heap", "Used").sum() > 0
            assert jvm.process.poll() is None
