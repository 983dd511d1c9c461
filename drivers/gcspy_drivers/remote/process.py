"""The identity of the target: the same process, or reported as gone.

A PID is only a number, and the kernel reuses it. Everything under ``/proc`` is therefore read
through a directory that is opened once and belongs to this very process forever: the kernel answers
ESRCH once it has ended, even if the number has a new owner. `Process.check` confirms afterwards
those reads that can only be addressed by number (``process_vm_readv``).

Does not know the target's memory or runtime.

Source: proc(5), pid_namespaces(7), ptrace(2) "Ptrace access mode checking", Yama in the kernel's
admin-guide/LSM/Yama.rst.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.exit_status import ExitStatus, status_words

__all__ = ["MAX_FILE_BYTES", "Process", "Stat", "permission_remedy"]

MAX_FILE_BYTES: Final = 256 << 20
"""Maximum size of the kernel's files: 65,530 mappings (the kernel's default limit) have about 50 MB of ``smaps``."""

_STAT_BYTES = 4096  # one line; comm is at most 64 bytes, the other 51 fields are numbers
_MOST_THREADS = 32  # whose children are listed: 15 µs each
_ENDING_SECS, _ENDING_POLL_SECS = 0.5, 0.002
_CAP_SYS_PTRACE = 1 << 19  # linux/capability.h


@dataclass(frozen=True, kw_only=True)
class Stat:
    """Fields of ``/proc/PID/stat``.

    Attributes:
        name: The command's short name (15 bytes at most).
        state: One letter; ``X`` means that it has ended, ``Z`` too unless it has other threads.
        threads: Number of threads, including the first one even if that has ended.
        start_ticks: Start time in clock ticks since boot: with the PID it identifies the process.
        start_stack: Bottom of the main stack: changes when the process executes another program. 0
            if we may not know.
        exit_status: Status of a zombie, as ``waitpid`` has it. 0 also if it lives or we may not know.
    """

    name: str
    state: str
    threads: int
    start_ticks: int
    start_stack: int
    exit_status: int

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended.

        A process whose first thread has ended before the others, or is about to because another
        executes a program, has not.
        """
        return self.state == "X" or (self.state == "Z" and self.threads <= 1)

    @property
    def known_exit_status(self) -> int | None:
        """Status of a zombie; None: not known, which 0 may mean, too."""
        return self.exit_status or None


class Process:
    """One process, by identity and not only by number.

    Args:
        pid: Its process id in our own PID namespace.
        start_ticks: The start time it had when it was found, if it was found earlier; a process
            with this number and another start time is a different one.

    Raises:
        TargetGone: There is no such process, it has ended, or the number belongs to another one now.
        NotPermitted: The system does not let us examine it at all.
    """

    def __init__(self, pid: int, *, start_ticks: int | None = None) -> None:
        self.pid = pid
        self._stat_fd = -1
        self._directory_fd = -1
        self._exit_status: ExitStatus | None = None
        try:
            self._directory_fd = os.open(
                f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            )
            self._stat_fd = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory_fd)
        except (FileNotFoundError, ProcessLookupError):
            self.close()
            raise TargetGone(
                f"there is no process {pid}: `gcspy ps` lists the processes that can be monitored"
            ) from None
        except PermissionError as error:  # /proc is mounted with hidepid
            self.close()
            raise NotPermitted(
                f"no permission to inspect process {pid} ({error.strerror})",
                remedy=permission_remedy(pid),
            ) from None
        # Before the first look at its state: if it is alive then, the number was its own here.
        self._exit_status = ExitStatus(pid)
        try:
            found = self.stat()
            self._refuse_ended(found)
            if start_ticks is not None and found.start_ticks != start_ticks:
                raise TargetGone(
                    f"process {pid} has ended and its PID now belongs to another process (started at tick {found.start_ticks}, not {start_ticks}): see `gcspy ps`"
                )
        except TargetGone:
            self.close()
            raise
        self.start_ticks = found.start_ticks
        self.name = found.name
        self._start_stack = found.start_stack

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the process. Reading it afterwards raises `TargetGone`. May be called twice."""
        stat_fd, self._stat_fd = self._stat_fd, -1
        directory_fd, self._directory_fd = self._directory_fd, -1
        for fd in (stat_fd, directory_fd):
            if fd >= 0:
                os.close(fd)
        if self._exit_status is not None:
            self._exit_status.close()

    def vectors(self, remote: int, _pieces: int, /) -> tuple[int, int]:
        """Return the process that pieces of memory are copied from, and the address of their vectors: itself, and the same."""
        return self.pid, remote

    def stat(self) -> Stat:
        """Read its state: one ``pread`` of a file that is open already.

        Raises:
            TargetGone: It has ended and was waited for.
        """
        if self._stat_fd < 0:
            raise TargetGone(f"process {self.pid} was released: attach again to monitor it")
        try:
            return self._read_stat()
        except ProcessLookupError:
            raise self.gone() from None

    def _read_stat(self) -> Stat:
        line = os.pread(self._stat_fd, _STAT_BYTES, 0)
        # The name may contain blanks and parentheses; what follows its last one cannot.
        before, _, after = line.rpartition(b")")
        fields = after.split()
        return Stat(
            name=before.partition(b"(")[2].decode("utf-8", "replace"),
            state=fields[0].decode("ascii"),
            threads=int(fields[17]),
            start_ticks=int(fields[19]),
            start_stack=int(fields[25]),
            exit_status=int(fields[49]),
        )

    def gone(self, why: str = "") -> TargetGone:
        """Make the error that the process has ended, and how, as far as that is known.

        A process that is just ending loses its memory first; its status is waited for, for a moment.

        Args:
            why: How it was noticed.
        """
        words = status_words(self._end_status()) or (f" ({why})" if why else "")
        return TargetGone(f"process {self.pid} has ended{words}")

    def _end_status(self) -> int | None:
        give_up = time.monotonic() + _ENDING_SECS
        while self._exit_status is not None and self._stat_fd >= 0:
            status = self._exit_status.read()
            if status is not None:
                return status
            try:
                now = self._read_stat()
            except ProcessLookupError:
                return self._exit_status.read()
            if now.has_ended:
                return now.known_exit_status
            if time.monotonic() >= give_up:
                break
            time.sleep(_ENDING_POLL_SECS)
        return None

    def check(self) -> None:
        """Confirm that this is still the same process, running the same program. About 10 µs.

        Call it after a batch of ``process_vm_readv``: the number belonged to our process at the
        end, and numbers do not return to their old owner, so all data came from it.

        Raises:
            TargetGone: It has ended, even if its number is in use again, or it executed another
                program.
        """
        now = self.stat()
        self._refuse_ended(now)
        # 0 means "you may not know", which can begin when the target drops its rights.
        if now.start_stack and self._start_stack and now.start_stack != self._start_stack:
            raise TargetGone(
                f"process {self.pid} has executed another program ({now.name}): attach again"
            )

    def alive(self) -> bool:
        """Whether `check` succeeds."""
        try:
            self.check()
        except TargetError:
            return False
        return True

    def age_secs(self) -> float:
        """Return how long ago it was started, to a hundredth of a second; executing another program does not make it younger."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.start_ticks / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int | None:
        """Return the bytes of its resident set, as counted by the kernel; None: it has no memory any more, or the system does not say.

        Up to 64 pages per thread may not be counted yet (proc_pid_statm(5)); ``smaps`` is exact,
        and takes a thousand times as long.
        """
        try:
            fields = self.read_file("statm").split()
        except TargetError:
            return None
        return int(fields[1]) * PAGE_BYTES or None if len(fields) > 1 else None

    def child_ids(self) -> list[int]:
        """Return the ids of its child processes, zombies included; those of its first threads only, if it has many.

        A kernel without ``CONFIG_PROC_CHILDREN`` lists none.

        Raises:
            TargetGone: The process has ended.
        """
        found: list[int] = []
        for thread in sorted(self.thread_ids())[:_MOST_THREADS]:
            try:
                found += map(int, self.read_file(f"task/{thread}/children").split())
            except TargetGone:
                raise
            except TargetError:  # the thread has ended
                continue
        return found

    def read_file(self, name: str, *, most_bytes: int = MAX_FILE_BYTES) -> bytes:
        """Read one of its files under ``/proc/PID``, whole.

        Args:
            name: Such as ``maps`` or ``task/17/syscall``.
            most_bytes: Maximum length. A process controls its ``cmdline`` and ``environ``, which
                may be all of its memory.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not show us this file.
            TargetError: It is longer than that.
        """
        fd = self.open_file(name)
        left = most_bytes + 1
        try:
            chunks = []
            while left and (chunk := os.read(fd, min(left, 1 << 20))):
                chunks.append(chunk)
                left -= len(chunk)
        except OSError as error:
            self.refuse(error, f"/proc/{self.pid}/{name}")
        finally:
            os.close(fd)
        if not left:
            raise TargetError(
                f"/proc/{self.pid}/{name} is longer than {most_bytes} bytes: it was not read"
            )
        return b"".join(chunks)

    def open_file(self, name: str) -> int:
        """Open one of the kernel's own files under ``/proc/PID`` for reading and return the descriptor, which the caller closes.

        Never a file of the target: if the last part of the name is a link, such as ``exe``, this is
        refused.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not show us this file.
            TargetError: It is a link, or does not exist.
        """
        return self._open(name, os.O_RDONLY | os.O_NOFOLLOW)

    def follow(self, name: str) -> int:
        """Follow a link of the kernel under ``/proc/PID``, such as ``root`` or ``exe``.

        Returns:
            A descriptor (``O_PATH``: it opens nothing), which the caller closes.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us.
            TargetError: There is no such link.
        """
        return self._open(name, os.O_PATH)

    def _open(self, name: str, flags: int) -> int:
        if self._directory_fd < 0:
            raise TargetGone(f"process {self.pid} was released: attach again to monitor it")
        try:
            return os.open(name, flags | os.O_CLOEXEC, dir_fd=self._directory_fd)
        except OSError as error:
            self.refuse(error, f"/proc/{self.pid}/{name}")

    def read_link(self, name: str) -> str | None:
        """Return the target of a link under ``/proc/PID``, such as ``exe`` or ``ns/pid``; None if we may not know."""
        if self._directory_fd < 0:
            raise TargetGone(f"process {self.pid} was released: attach again to monitor it")
        try:
            return os.readlink(name, dir_fd=self._directory_fd)
        except OSError:
            return None

    def thread_ids(self) -> list[int]:
        """List the ids of its threads.

        Raises:
            TargetGone: The process has ended.
        """
        fd = self.open_file("task")
        try:
            return [int(name) for name in os.listdir(fd)]
        except OSError as error:
            self.refuse(error, f"/proc/{self.pid}/task")
        finally:
            os.close(fd)

    def refuse(self, error: OSError, what: str) -> NoReturn:
        """Convert a refusal of the system into one of our errors.

        Args:
            error: The system's error.
            what: Name of the file that was read, for the message.

        Raises:
            TargetGone: ESRCH, ENOENT or EIO of a process that no longer exists.
            NotPermitted: EPERM or EACCES, with the remedy.
            TargetError: Anything else.
        """
        if error.errno in (errno.EPERM, errno.EACCES):
            self.stat()  # a process that ended meanwhile is gone, not forbidden
            raise NotPermitted(
                f"no permission to read process {self.pid} ({what}: {error.strerror})",
                remedy=permission_remedy(self.pid),
            ) from None
        if error.errno in (errno.ESRCH, errno.ENOENT):
            self._refuse_ended(self.stat())
            if error.errno == errno.ESRCH:
                raise self.gone(f"{what}: {error.strerror}") from None
        raise TargetError(
            f"could not read {what} of process {self.pid}: {error.strerror} (errno {error.errno})"
        ) from None

    def _refuse_ended(self, stat: Stat) -> None:
        if stat.has_ended:
            words = status_words(stat.known_exit_status)
            raise TargetGone(
                f"process {self.pid} ({stat.name}) has ended{words or ': it is a zombie that its parent has not reaped'}"
            )


def permission_remedy(pid: int) -> str:
    """Explain which right is missing for reading a process, and how to get it.

    Reading another process's memory needs the rights of a debugger. The kernel does not say which
    rule refused, so this checks each of them, in the order of likelihood.
    """
    ours = os.geteuid()
    theirs = _owner(pid)
    if _has_capability("self", _CAP_SYS_PTRACE):
        return (
            "this process has CAP_SYS_PTRACE, so a container, a user namespace or a security module (SELinux, AppArmor, "
            "seccomp) refuses: run gcspy in the target's own container, or start the container with --cap-add=SYS_PTRACE"
        )
    if theirs is not None and theirs != ours:
        return (
            f"it belongs to uid {theirs} and gcspy runs as uid {ours}: run gcspy as that user, or as root "
            f"(`sudo gcspy attach {pid}`)"
        )
    scope = _yama_scope()
    if scope == 1:
        return (
            "kernel.yama.ptrace_scope is 1, so only a parent may read its children: run gcspy as root "
            f"(`sudo gcspy attach {pid}`), or until the next boot `sudo sysctl kernel.yama.ptrace_scope=0`"
        )
    if scope == 2:
        return f"kernel.yama.ptrace_scope is 2, so only an administrator may: `sudo gcspy attach {pid}`"
    if scope == 3:
        return "kernel.yama.ptrace_scope is 3, so no user may, not even root, until the next boot"
    return (
        "gcspy needs the same rights as a debugger: the same user as the target and all of its capabilities, in the same "
        "container, or CAP_SYS_PTRACE; a process that changed its user since it started needs CAP_SYS_PTRACE as well "
        f"(`sudo gcspy attach {pid}`)"
    )


def _owner(pid: int) -> int | None:
    """Return the real uid of a process. Not the owner of its directory, which is root when it is not dumpable."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            for line in status:
                if line.startswith(b"Uid:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def _has_capability(who: int | Literal["self"], bit: int) -> bool:
    try:
        with open(f"/proc/{who}/status", "rb") as status:
            for line in status:
                if line.startswith(b"CapEff:"):
                    return bool(int(line.split()[1], 16) & bit)
    except OSError:
        pass
    return False


def _yama_scope() -> int | None:
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
