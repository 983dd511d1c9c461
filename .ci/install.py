"""Makes ``.venv`` and installs this project into it, from Python 3.11 and pip alone.

Run by the Makefile with the system's Python. It knows three ways to a virtual environment with pip, because
Debian ships ``venv`` without ``ensurepip`` unless ``python3-venv`` is installed; it knows nothing of the
project but its extras. Where packages come from is pip's configuration, not ours.

    python3 .ci/install.py             make or complete .venv with the pins of constraints.txt
    python3 .ci/install.py --renew     resolve again in a throw-away environment, and write
                                       constraints.txt and constraints.lock
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import lock

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
LOCK = ROOT / "constraints.lock"
EXTRAS = "gui,dev"
BUILD_TOOLS = ("hatchling",)  # installed first, so that constraints.txt pins it too
PROJECT = "gcspy-heap"
# The project's distribution had this name once; an environment with both would have every command twice.
FORMER_PROJECT = "gcspy"
NOT_PINNED = ("pip", "setuptools", "wheel", PROJECT)

HEADER = """\
# The developers' environment: the exact version of every package, as resolved by Python {version} on Linux.
# Written by `make constraints`; don't edit. `make` installs with it, so that a clone gives the same environment.
"""


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"gcspy: {text}", flush=True)


def fail(text: str) -> None:
    """Print one line and leave with exit code 1."""
    raise SystemExit(f"gcspy: {text}")


def python_in(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def succeeds(*command: str | Path) -> bool:
    """Run a command silently; return whether it exited 0."""
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return done.returncode == 0


def has_pip(python: Path) -> bool:
    """Return whether this interpreter exists, runs, is new enough and has pip."""
    test = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return python.exists() and succeeds(python, "-c", test)


def make_environment(environment: Path) -> None:
    """Make a virtual environment that has pip, by the first of three ways that works."""
    python = python_in(environment)
    # In a process of its own: where Debian left ensurepip out, its venv prints advice and exits.
    if succeeds(sys.executable, "-m", "venv", "--clear", environment) and has_pip(python):
        return
    say("venv has no ensurepip here; installing pip through the system's pip")
    venv.create(environment, with_pip=False, clear=True)
    quiet = ("--quiet", "--disable-pip-version-check")
    # pip >= 22.3 can install into another environment; an older one needs the folder as an option.
    # Neither touches the system's own packages, so that "externally managed" (PEP 668) does not
    # apply.
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    for where in (("--python", str(python), "install"), ("install", "--target", site)):
        command = [sys.executable, "-m", "pip", *where, *quiet, "pip"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if has_pip(python):
            return
    shutil.rmtree(environment, ignore_errors=True)
    sys.stderr.write(done.stderr)
    fail(
        f"{sys.executable} has neither ensurepip nor a pip that could install one into {environment}; "
        "on Debian or Ubuntu: apt-get install python3-venv (or python3-pip)"
    )


def pip(python: Path, *arguments: str | Path, environment: dict[str, str] | None = None) -> bool:
    """Run pip in an environment, with its messages; return whether it exited 0."""
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    return not subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def install_project(
    python: Path, *options: str | Path, environment: dict[str, str] | None = None
) -> None:
    """Install the project, editable, with its extras."""
    if not succeeds(python, "-c", f"import importlib.metadata as m; m.version({PROJECT!r})"):
        succeeds(python, "-m", "pip", "uninstall", "--yes", FORMER_PROJECT)
    for what in (BUILD_TOOLS, ("--no-build-isolation", "--editable", f"{ROOT}[{EXTRAS}]")):
        if not pip(python, "install", *options, *what, environment=environment):
            fail(
                f"pip could not install {what[-1]}; see its message above (is a package index reachable?)"
            )


def download(python: Path, folder: Path) -> None:
    """Download every pinned file, and nothing else."""
    if not pip(python, "download", "--no-deps", "--dest", folder, "--requirement", CONSTRAINTS):
        fail("pip could not download what constraints.txt pins; see its message above")


def install_locked(python: Path, known: lock.Lock) -> None:
    """Install from files that were compared with the lock before anything of them is run."""
    with tempfile.TemporaryDirectory(prefix="gcspy-files-") as name:
        folder = Path(name)
        download(python, folder)
        same, other = known.check(folder)
        say(f"{same} files have the hashes of {LOCK.name}")
        if other:
            say(
                f"the index serves other files than those locked, which cannot be checked: {', '.join(other)}"
            )
        # Nothing but this folder: no index, and no other folder that a configuration of pip may name.
        bare = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        install_project(
            python,
            *("--no-index", "--find-links", folder, "--constraint", CONSTRAINTS),
            environment={**bare, "PIP_CONFIG_FILE": os.devnull},
        )


def install(python: Path) -> None:
    """Install what constraints.txt pins, with hashes where the lock is for this platform."""
    try:
        known = lock.Lock.read(LOCK)
        if known.platform == lock.this_platform():
            install_locked(python, known)
            return
    except lock.LockError as error:
        fail(str(error))
    say(f"{LOCK.name} is for {known.platform}; this is {lock.this_platform()}: no hash is checked")
    install_project(python, "--constraint", CONSTRAINTS)


def fingerprint() -> str:
    """Return what the environment depends on, as a hash: if it is unchanged there is nothing to install."""
    state = hashlib.sha256(f"{sys.version_info[:2]} {EXTRAS}".encode())
    for path in (
        ROOT / "pyproject.toml",
        CONSTRAINTS,
        LOCK,
        ROOT / "hatch_build.py",
        *sorted((*ROOT.glob("drivers/**/*.[ch]"), *ROOT.glob("protocol/**/*.[ch]"))),
    ):
        state.update(path.read_bytes())
    return state.hexdigest()


def prepare(environment: Path) -> None:
    """Make or complete the environment, unless it is already what it should be."""
    stamp = environment / "gcspy-installed"
    python = python_in(environment)
    if stamp.exists() and stamp.read_text() == fingerprint() and has_pip(python):
        stamp.touch()
        return
    if not has_pip(python):
        say(f"making {environment.name} with Python {sys.version.split()[0]}")
        make_environment(environment)
    say(
        f"installing what constraints.txt pins into {environment.name}; the first time takes a minute or two"
    )
    install(python)
    stamp.write_text(fingerprint())


def renew() -> None:
    """Write constraints.txt and constraints.lock from a resolution without constraints."""
    with tempfile.TemporaryDirectory(prefix="gcspy-constraints-") as folder:
        environment = Path(folder) / "venv"
        make_environment(environment)
        python = python_in(environment)
        install_project(python)
        options = ("--disable-pip-version-check", "freeze", "--all", "--exclude-editable")
        freeze = [str(python), "-m", "pip", *options]
        lines = subprocess.run(
            freeze, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        pins = sorted(
            (line for line in lines if line.partition("==")[0].lower() not in NOT_PINNED),
            key=str.lower,
        )
        strange = [pin for pin in pins if "==" not in pin]
        if strange:
            fail(
                f"these are not from an index and cannot be pinned by version: {', '.join(strange)}"
            )
        version = ".".join(map(str, sys.version_info[:2]))
        CONSTRAINTS.write_text(HEADER.format(version=version) + "\n".join(pins) + "\n")
        write_lock(python)
    say(f"wrote {len(pins)} pins to {CONSTRAINTS.name}, and {LOCK.name}")


def write_lock(python: Path) -> None:
    """Write constraints.lock from the files that the index serves now for the pins."""
    with tempfile.TemporaryDirectory(prefix="gcspy-files-") as name:
        folder = Path(name)
        download(python, folder)
        lines = CONSTRAINTS.read_text().splitlines()
        lock.write(LOCK, folder, (line for line in lines if "==" in line))


def main(arguments: list[str]) -> None:
    """Do what the command line asks for."""
    if sys.version_info < (3, 11):  # noqa: UP036  # this file runs before any requirement was checked
        fail(
            f"needs Python 3.11 or newer, this is {sys.version.split()[0]}; make PYTHON=/path/to/python3.11 …"
        )
    if arguments == ["--renew"]:
        renew()
    elif not arguments:
        prepare(ROOT / ".venv")
    else:
        fail(f"unknown arguments {' '.join(arguments)}; known: --renew")


if __name__ == "__main__":
    main(sys.argv[1:])
