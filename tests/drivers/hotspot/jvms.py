"""JVMs to watch: found on this machine, started with a tiny program that obeys commands and is otherwise idle.

A JVM whose program is idle runs by itself now and then. So the tests compare readings from outside
with the JVM's own report between two equal readings; see `agreed`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import pytest

from tests.once import made_once
from tests.waiting import PATIENCE_SECS

HOMES = "GCSPY_JAVA_HOMES"
"""Folders, each a JVM's home or full of them, for versions besides the one on the path."""

PROGRAM = """
import java.util.*;

public class Still {
    static final List<Object> kept = new ArrayList<>();
    static volatile boolean churning;

    public static void main(String[] arguments) throws Exception {
        Scanner commands = new Scanner(System.in);
        System.out.println("ready");
        while (commands.hasNext()) {
            String command = commands.next();
            int number = commands.nextInt();
            if (command.equals("keep")) keep(number);
            if (command.equals("drop")) kept.clear();
            if (command.equals("waste")) for (int i = 0; i < number * 16; i++) waste = new byte[64 * 1024];
            if (command.equals("large")) kept.add(new byte[number << 20]);
            if (command.equals("store")) for (int i = 0; i < number; i++) ((Object[]) kept.get(0))[i] = new Object();
            if (command.equals("collect")) System.gc();
            if (command.equals("churn")) churn(number);
            if (command.equals("park")) park(number);
            System.out.println("done");
        }
    }

    static byte[] waste;

    static void park(int threads) throws Exception {
        Runnable wait = () -> { while (true) java.util.concurrent.locks.LockSupport.park(); };
        for (int i = 0; i < threads; i++) {
            Thread one = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, wait);
            while (one.getState() != Thread.State.WAITING) Thread.yield();
            kept.add(one);
        }
    }

    static void keep(int megabytes) {
        for (int i = 0; i < megabytes; i++) {
            Object[] parts = new Object[1024];
            for (int k = 0; k < 1023; k++) parts[k] = new byte[1000];
            kept.add(parts);
        }
    }

    static void churn(int megabytes) {
        churning = megabytes > 0;
        if (!churning) return;
        Thread thread = new Thread(() -> {
            List<Object> some = new ArrayList<>();
            while (churning) {
                some.add(new byte[10000]);
                if (some.size() > megabytes * 100) some.subList(0, megabytes * 50).clear();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
"""

T = TypeVar("T")


class Jvm:
    """A running JVM with the program.

    Args:
        java: The launcher.
        classes: Folder with the compiled program.
        flags: Flags of the JVM's start.
        before: A command that runs the launcher in its place, or as its only child: to become another user, or to be in a container.
    """

    def __init__(self, java: str, classes: Path, *flags: str, before: Sequence[str] = ()) -> None:
        self.java, self.flags = java, flags
        self.process = subprocess.Popen(
            [*before, java, *flags, "-cp", str(classes), "Still", "an argument"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        first = self._line()
        while first not in ("ready", ""):  # a warning about flags comes before it
            first = self._line()
        self.pid = self.process.pid
        if not first:
            self.end()
            pytest.skip(
                f"{' '.join([*before, java])} does not start with {' '.join(flags)}: not tested here"
            )
        children = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        )
        if children:
            self.pid = int(children[0])
        if not listens(self.pid):  # some do from their start
            remove_socket(self.pid)

    def __enter__(self) -> Jvm:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def tell(self, command: str, number: int = 1) -> None:
        """Have the program do something, and wait until it is done."""
        if self.process.stdin is None:
            raise AssertionError("stdin is a pipe")
        self.process.stdin.write(f"{command} {number}\n")
        self.process.stdin.flush()
        while (line := self._line()) != "done":
            assert line, f"the JVM ended at {command!r}"

    def ask(self, *words: str) -> str:
        """Ask the JVM what a ``jcmd`` would, by the attach protocol."""
        return attach(self.pid, "jcmd", " ".join(words))

    def end(self) -> None:
        """End it and wait until it is gone."""
        self.process.kill()
        self.process.wait()
        remove_socket(self.pid)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _line(self) -> str:
        if self.process.stdout is None:
            raise AssertionError("stdout is a pipe")
        return self.process.stdout.readline().strip()


def socket_of(pid: int) -> Path:
    """Return the socket at which a JVM of a number listens."""
    return Path("/tmp") / f".java_pid{pid}"  # whatever TMPDIR says


def listens(pid: int) -> bool:
    """Whether anybody listens at the socket of a number: none does at one that was left."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(socket_of(pid)))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


def remove_socket(pid: int) -> None:
    """Remove the socket of a JVM that was killed.

    It stays behind otherwise, and the next process of its number, if it is another user's, can
    neither remove it nor listen there.
    """
    socket_of(pid).unlink(missing_ok=True)


def attach(pid: int, *words: str) -> str:
    """Speak the attach protocol: four texts that end with zero, then the answer, whose first line is a code."""
    path = socket_of(pid)
    if not path.exists():
        request = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
        request.touch()
        try:
            os.kill(pid, signal.SIGQUIT)
            while not path.exists():
                os.kill(pid, 0)
        finally:
            request.unlink()
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_SECS)
        line.connect(str(path))
        line.sendall(b"1\0" + b"".join(word.encode() + b"\0" for word in (*words, "", "")[:4]))
        answer = b""
        while piece := line.recv(1 << 16):
            answer += piece
    code, _, text = answer.decode().partition("\n")
    assert code == "0", f"the JVM answers {answer!r}"
    return text


def agreed(read: Callable[[], T], said: Callable[[], str]) -> tuple[T, str]:
    """Return what was read and what the JVM says, where reading it before and after that gave the same."""
    for _ in range(50):
        before, text, after = read(), said(), read()
        if before == after:
            return before, text
    raise AssertionError(f"the JVM never stood still; at last {before} and {after}")


def find_javas() -> list[str]:
    """Find launchers: that of the path, and those of the homes that `HOMES` names."""
    found = []
    usual = shutil.which("java")
    if usual:
        found.append(os.path.realpath(usual))
    for name in filter(None, os.environ.get(HOMES, "").split(os.pathsep)):
        folder = Path(name)
        homes = [folder] if (folder / "bin/java").exists() else sorted(folder.iterdir())
        found += [str(home / "bin/java") for home in homes if (home / "bin/java").exists()]
    return list(dict.fromkeys(found))


def find_javac() -> str | None:
    """Find a compiler, on the path or beside a launcher."""
    beside = [str(Path(java).with_name("javac")) for java in find_javas()]
    return shutil.which("javac") or next((path for path in beside if os.path.exists(path)), None)


def compile_program(folder: Path) -> Path:
    """Compile the program; skips where there is no compiler."""
    return compile_java(folder, {"Still": PROGRAM})


def compile_java(folder: Path, sources: Mapping[str, str]) -> Path:
    """Compile classes so that a Java 8 runs them, once a run; skips where there is no compiler.

    Args:
        folder: Where their files are put.
        sources: By the name of the class.

    Returns:
        The folder.
    """
    javac = find_javac()
    if javac is None:
        pytest.skip(f"no javac on PATH or in {HOMES}: JVMs are not tested here")

    def compile_in(made: Path) -> None:
        files = [f"{name}.java" for name in sources]
        for file, source in zip(files, sources.values(), strict=True):
            (made / file).write_text(source)
        # It ends before its own hot loops would be worth a better compiler.
        quick = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
        done = subprocess.run(
            [javac, *quick, "--release", "8", "-Xlint:-options", "-nowarn", *files],
            cwd=made,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECS,
        )
        assert all((made / f"{name}.class").exists() for name in sources), done.stderr

    text = repr(sorted(sources.items())).encode()
    made = made_once(f"java-{hashlib.sha256(text).hexdigest()[:16]}", compile_in)
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder


def kib(text: str, pattern: str) -> int:
    """Return the number of a text such as ``used 123K`` as bytes."""
    match = re.search(pattern, text)
    assert match is not None, f"{pattern} is not in {text}"
    return int(match[1]) * 1024
