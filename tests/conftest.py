"""Fixtures of all tests: no screen, and no file, thread or process left behind."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

from gcspy.recorder import priority
from tests.fork_server import ForkServer, install, real_starts
from tests.once import RUN_FOLDER
from tests.reporting import ProgressReport
from tests.rewriting import RewritingPlugin

# Before anything imports Qt.
os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ.pop("GCSPY_TOKEN", None)
os.environ["LANGUAGE"] = "en"  # of lessons; tests of languages set their own

# Whatever a test starts and crashes says where.
os.environ["PYTHONFAULTHANDLER"] = "1"

# No test, and nothing that a test starts, reads or writes what the user chose.
os.environ["GCSPY_SETTINGS"] = "none"
os.environ["GCSPY_CACHE"] = "no"

# Compiling takes a thread and seconds: tests/drivers/cpython/test_machine_code.py does it, and compares.
os.environ["GCSPY_MACHINE_CODE"] = "no"

# A shell has what it runs in the background ignore Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Inherited by whatever the tests start, and by what that starts: so that orphans are found as well.
_RUN_MARK = "GCSPY_TEST_RUN"
os.environ[_RUN_MARK] = uuid.uuid4().hex

# What the workers of a run share is in one folder that is removed with the run.
_OWN_FOLDER = None if RUN_FOLDER in os.environ else tempfile.mkdtemp(prefix="gcspy-tests-")
os.environ.setdefault(RUN_FOLDER, _OWN_FOLDER or "")

# Programs that tests start find code compiled by others, even where the environment forbids keeping
# it: hundreds of starts. It is kept where Python keeps it, since pip has compiled the packages there.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Hundreds of starts of commands and sidecars, too.
_FORK_SERVER = ForkServer()
install(_FORK_SERVER)


@pytest.hookimpl(trylast=True)  # the terminal is made in the same step
def pytest_configure(config: pytest.Config) -> None:
    """Name tests that take long as they end, where there is a terminal to name them on; share rewriting between workers."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ProgressReport(terminal), "progress-report")
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        number = int(worker["workerid"].removeprefix("gw"))
        config.pluginmanager.register(RewritingPlugin(number, worker["workercount"]), "rewriting")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected: what is made then stays, and looking through it took a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Remove what was compiled."""
    if _OWN_FOLDER is not None:
        shutil.rmtree(_OWN_FOLDER, ignore_errors=True)


# No deadline: the machine that runs this may be busy. No database: a run leaves no file. Each run draws other examples, so that
# few of them in each of many runs find what many would in one; `make soak` draws many.
settings.register_profile(
    "usual",
    max_examples=10,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("soak", settings.get_profile("usual"), max_examples=500)
settings.load_profile("usual")

_GRACE_SECS = 5.0  # how long a thread or process that was told to end may take; a test never waits for it otherwise


def _children() -> set[int]:
    """Return the direct children of this process, from one small file a thread (psutil would read all of /proc)."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return {child.pid for child in psutil.Process().children()} - _FORK_SERVER.pids
    found: set[int] = set()
    for task in tasks.iterdir():
        try:
            found.update(map(int, (task / "children").read_text().split()))
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that ended meanwhile
    return found - _FORK_SERVER.pids


def _threads() -> set[threading.Thread]:
    # trio keeps idle worker threads for ten seconds for later requests; they end by themselves. fsspec's are for the whole process.
    shared = ("Trio ", "fsspecIO", "asyncio_")
    return {thread for thread in threading.enumerate() if not thread.name.startswith(shared)}


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} ({' '.join(process.cmdline()) or process.name()})"
    except psutil.Error:
        return str(process.pid)


def _still_there(pids: set[int]) -> list[psutil.Process]:
    processes = []
    for pid in pids:
        try:
            processes.append(psutil.Process(pid))
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(processes, timeout=_GRACE_SECS)
    return list(alive)


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, timeout=_GRACE_SECS)


@pytest.fixture(scope="session", autouse=True)
def _usual_priority() -> Iterator[None]:
    """Keep the priority of a worker: commands that are called in it are no programs of their own, and all later tests would inherit it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(priority, "give_way", lambda address: None)
        yield


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Fail the test that leaves a thread, a child process (those of wider fixtures are theirs) or another priority."""
    threads, children = _threads(), _children()
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    yield
    # The application of windows (`GarbageTimer`) switches the collector off while it exists, which is as long as this process.
    gc.enable()
    assert os.getpriority(os.PRIO_PROCESS, 0) == nice, "the test changed the priority of the tests"
    for thread in _threads() - threads:
        thread.join(_GRACE_SECS)
    left_threads = [thread.name for thread in _threads() - threads]
    new_children = _children() - children
    left_children = _still_there(new_children) if new_children else []
    names = [_describe(process) for process in left_children]
    _end(left_children)
    assert not left_threads, f"the test left threads running: {left_threads}"
    assert not names, f"the test left child processes running: {names}"


@pytest.fixture(scope="session", autouse=True)
def _no_orphans() -> Iterator[None]:
    """Fail the run that leaves any process running, also one whose parent is gone."""
    yield
    _FORK_SERVER.stop()
    mark = os.environ[_RUN_MARK]
    left = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(_RUN_MARK) == mark:
                left.append(process)
        except (psutil.Error, OSError):
            continue  # removed meanwhile, or another process's
    _, left = psutil.wait_procs(left, timeout=_GRACE_SECS)
    names = [_describe(process) for process in left]
    _end(left)
    assert not names, f"the tests left processes running: {names}"


@pytest.fixture(name="real_starts")
def _real_starts() -> Iterator[None]:
    """Have commands loaded as ever, and not forked from a process that has loaded them."""
    with real_starts():
        yield


@pytest.fixture(scope="session")
def soak_seed() -> int:
    """Return the seed of a long test: `make soak SEED=7` sets it, and a failure shows it."""
    return int(os.environ.get("GCSPY_SOAK_SEED", "1"))
