"""Where rounds of a soak happen: a folder, a process that starts commands, and targets that record when they last worked.

Where it is permitted, all of it has a separate /tmp, so that the files left there are ours alone.
`Ground.left` is the residue of a round: processes, files of the runtime folder, files of /tmp.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak import beating_target as beats

__all__ = ["Command", "Ground", "Round", "Target", "ground_of", "until"]

ROOT = Path(__file__).resolve().parents[2]

PATIENCE_SECS = 60.0
"""Time limit for anything that must happen; after it, the wait has failed."""

_POLL_SECS = 0.002


def until(done: Callable[[], object], secs: float = PATIENCE_SECS) -> bool:
    """Wait until something is so; False when it is not in time."""
    give_up = time.monotonic() + secs
    while not done():
        if time.monotonic() > give_up:
            return bool(done())
        time.sleep(_POLL_SECS)
    return True


class Target:
    """A program that beats; see `beating_target`.

    Attributes:
        pid: Its process.
    """

    def __init__(self, pid: int, shared: mmap.mmap) -> None:
        self.pid = pid
        self._shared = shared

    def _get(self, place: int) -> int:
        return int(beats.PUT.unpack_from(self._shared, place)[0])

    def mark(self) -> None:
        """Measure the longest standstill from now on."""
        beats.PUT.pack_into(self._shared, beats.MARK, time.monotonic_ns())

    def beat_since(self, nanos: int) -> bool:
        """Whether both threads have worked after a time, and the longest standstill is that after the mark."""
        return self._get(beats.LATEST) > nanos and self._get(beats.HOLDS_FOR) == self._get(
            beats.MARK
        )

    def second(self) -> int:
        """Units of the second thread."""
        return self._get(beats.SECOND)

    @property
    def longest_secs(self) -> float:
        """The longest standstill after the mark."""
        return self._get(beats.LONGEST) / 1e9

    def traced_by(self) -> list[str]:
        """Threads that are traced or stopped."""
        found = []
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            try:
                status = (task / "status").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # ended meanwhile
            lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            if lines["TracerPid"] != "0" or lines["State"][0] in "tT":
                found.append(f"{task.name}: {lines['State']}, traced by {lines['TracerPid']}")
        return found

    def residue(self) -> dict[str, list[str]]:
        """Return the state that an observer might have changed: descriptors, mapped files, number of threads."""
        folder = Path(f"/proc/{self.pid}")
        descriptors = []
        for entry in (folder / "fd").iterdir():
            try:
                descriptors.append(os.readlink(entry).partition(":")[0])
            except FileNotFoundError:
                continue
        maps = (line.split(maxsplit=5) for line in (folder / "maps").read_text().splitlines())
        files = {parts[5] for parts in maps if len(parts) > 5 and parts[5].startswith("/")}
        return {
            "descriptors": sorted(descriptors),
            "files": sorted(files),
            "threads": [str(len(list((folder / "task").iterdir())))],
        }


@dataclass
class Command:
    """A command that was started.

    Attributes:
        name: Its words, for a human.
        pid: Its process.
        out: The file that its output goes to.
        err: The file that its errors go to.
    """

    name: str
    pid: int
    out: Path
    err: Path
    _ended: Mapping[int, int] = field(repr=False)

    @property
    def status(self) -> int | None:
        """Exit code, or minus the signal; None while it runs."""
        return self._ended.get(self.pid)

    def says(self) -> str:
        """Return its standard output."""
        return self.out.read_text(errors="replace") if self.out.exists() else ""

    def complains(self) -> str:
        """Return its standard error."""
        return self.err.read_text(errors="replace") if self.err.exists() else ""

    def send(self, number: int) -> None:
        """Send a signal, if the process still runs."""
        if self.status is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass


@dataclass
class Round:
    """The state before a round, to be compared with the state after it."""

    processes: set[int]
    runtime: set[str]
    tmp: set[str]


class Ground:
    """The place; made by `ground_of`.

    Attributes:
        folder: Everything of it; the same path for the commands and for us.
        own_tmp: Whether the commands have a /tmp of their own.
        runtime: Where commands have their sockets.
    """

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], *, own_tmp: bool) -> None:
        self.folder, self.own_tmp = folder, own_tmp
        self.runtime = folder / "run" / "gcspy"
        self._process = process
        self._ended: dict[int, int] = {}
        self._answers: list[int] = []
        self._changed = threading.Condition()
        self._made = 0
        self._ready = self._over = False
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            with self._changed:
                if "ended" in said:
                    self._ended[said["ended"]] = said["status"]
                elif "pid" in said:
                    self._ended.pop(said["pid"], None)  # of an earlier process of this number
                    self._answers.append(said["pid"])
                else:
                    self._ready = True
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def wait_ready(self) -> None:
        """Wait until commands can be started: everything is imported then, which takes long where nothing is compiled yet."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._over)
            assert self._ready, f"what starts commands has ended: {self._process.wait()}"

    def start(
        self,
        *argv: str,
        program: bool = False,
        env: Mapping[str, str] | None = None,
        fsize: int | None = None,
        clock: tuple[float, float] | None = None,
    ) -> Command:
        """Start a gcspy command, or another program.

        Args:
            argv: Its words.
            program: Whether it is another program.
            env: Environment variables on top of ours.
            fsize: The longest file that it may write.
            clock: After how many seconds its wall clock jumps, and by how many.
        """
        self._made += 1
        out, err = (self.folder / "out" / f"{self._made}.{end}" for end in ("out", "err"))
        request = {
            "argv": argv,
            "program": program,
            "out": str(out),
            "err": str(err),
            "env": dict(env or {}),
            "fsize": fsize,
            "clock": clock,
        }
        assert self._process.stdin is not None
        with self._changed:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            assert self._changed.wait_for(lambda: self._answers, PATIENCE_SECS), "nothing starts"
            pid = self._answers.pop()
        return Command(" ".join(argv), pid, out, err, self._ended)

    def forget(self, *commands: Command) -> None:
        """Remove the files of what was printed."""
        for command in commands:
            command.out.unlink(missing_ok=True)
            command.err.unlink(missing_ok=True)

    def children(self, pid: int | None = None) -> list[int]:
        """The children of a process, by default of what starts the commands; those that have ended are left out."""
        parent = self._process.pid if pid is None else pid
        found: list[int] = []
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            return []
        return [one for one in found if _state(one) not in ("", "Z", "X")]

    def processes(self) -> set[int]:
        """All processes that come from here."""
        found: set[int] = set()
        waiting = self.children()
        while waiting:
            pid = waiting.pop()
            if pid not in found:
                found.add(pid)
                waiting += self.children(pid)
        return found

    def runtime_files(self) -> set[str]:
        """Return the names of the files in the runtime folder."""
        return {path.name for path in self.runtime.iterdir()} if self.runtime.is_dir() else set()

    def tmp_files(self) -> set[str]:
        """The files in /tmp as the commands see it; where it is shared, only those with our name."""
        names = os.listdir(Path("/proc", str(self._process.pid), "root", "tmp"))
        return {
            name
            for name in names
            if not name.startswith((".java_pid", "hsperfdata_", ".X"))
            and (self.own_tmp or name.startswith(("gcspy-", ".attach_pid")))
        }

    def inside(self, path: Path) -> Path:
        """A path of the commands, as we can open it: they may have mounts that we have not."""
        return Path(f"/proc/{self._process.pid}/root") / path.relative_to("/")

    def begin(self) -> Round:
        """Read the present state."""
        return Round(self.processes(), self.runtime_files(), self.tmp_files())

    def left(self, before: Round, secs: float = PATIENCE_SECS) -> list[str]:
        """Wait until nothing is there that was not; return what stays. Sockets of the runtime folder are not waited for."""
        until(lambda: not self.processes() - before.processes, secs)
        until(lambda: not self.tmp_files() - before.tmp, secs if self.own_tmp else 2 * secs)
        return [
            *(f"process {pid} {_words(pid)}" for pid in self.processes() - before.processes),
            *(f"/tmp/{name}" for name in self.tmp_files() - before.tmp),
        ]

    def target(self, *command: str) -> Target:
        """Start a program that beats; the last word is the file that it maps, which is made here."""
        shared = self.shared_page()
        made = self.start(*command, str(shared[0]), program=True)
        assert until(lambda: "ready" in made.says() or made.status is not None), command
        assert made.status is None, made.complains()
        return Target(made.pid, shared[1])

    def shared_page(self) -> tuple[Path, mmap.mmap]:
        """A file of one page of zeros, mapped."""
        self._made += 1
        path = self.folder / "beats" / str(self._made)
        path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open("r+b") as file:
            return path, mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def end(self) -> None:
        """End everything that was started here."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._reading.join()
        self._process.stdout.close()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return "(gone)"


def _may_mount() -> bool:
    """Whether a mount name space of one's own is permitted here."""
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp"],
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0


SMALL_KIB = 512
"""Size of the disk that is soon full."""


@contextmanager
def ground_of(env: Mapping[str, str] | None = None) -> Iterator[Ground]:
    """Make a ground for the body of the `with`.

    Args:
        env: Environment variables of all commands, on top of ours.
    """
    own_tmp = shutil.which("unshare") is not None and _may_mount()
    # Not below /tmp, which the commands see another of; short, as sockets lie in it.
    folder = Path(tempfile.mkdtemp(prefix="gcspy-soak-", dir="/dev/shm"))
    for name in ("run", "out", "beats", "files", "small"):
        (folder / name).mkdir(mode=0o700)
    command: Sequence[str] = [sys.executable, "-m", "tests.soak.starter"]
    if own_tmp:
        mounts = (
            "mount -t tmpfs tmpfs /tmp"
            f" && mount -t tmpfs -o size={SMALL_KIB}k tmpfs {folder}/small"
            ' && exec "$@"'
        )
        command = ["unshare", "--mount", "sh", "-c", mounts, "sh", *command]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "OPENBLAS_NUM_THREADS": "1",
            "GCSPY_SETTINGS": "none",
            "PYTHONFAULTHANDLER": "1",
            **(env or {}),
        },
    )
    ground = Ground(folder, process, own_tmp=own_tmp)
    try:
        ground.wait_ready()
        yield ground
    finally:
        ground.end()
        shutil.rmtree(folder)
