"""A JVM with a heap of a given size: filled to a share with small objects, and then idle or at work, by an option.

Compiled where the benchmark runs, by the compiler on the path. Knows Java; does not know the
observer.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["NoJava", "java_target"]

_PROGRAM = """
import java.util.*;

public class Filled {
    static volatile boolean working;
    static volatile Object waste;

    public static void main(String[] arguments) throws Exception {
        int megabytes = Integer.parseInt(arguments[0]), bytes = Integer.parseInt(arguments[1]);
        int many = (1 << 20) / ((bytes + 16 + 7) / 8 * 8 + 4);
        List<Object> kept = new ArrayList<>();
        for (int i = 0; i < megabytes; i++) {
            Object[] parts = new Object[many];
            for (int k = 0; k < many; k++) parts[k] = new byte[bytes];
            kept.add(parts);
        }
        Thread thread = new Thread(() -> {
            while (true) {
                if (!working) { Thread.onSpinWait(); try { Thread.sleep(1); } catch (InterruptedException e) { } continue; }
                for (int i = 0; i < 1000; i++) waste = new byte[1000];
            }
        });
        thread.setDaemon(true);
        thread.start();
        System.gc();
        System.out.println("ready");
        Scanner commands = new Scanner(System.in);
        while (commands.hasNext()) {
            working = commands.next().equals("work");
            System.out.println("done");
        }
        System.out.println(kept.size());
    }
}
"""


class NoJava(Exception):
    """There is no JVM here, or it does not start so."""


class JavaTarget:
    """The running JVM.

    Args:
        process: It, with its program ready.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def work(self, wanted: bool) -> None:
        """Have it make garbage, or stand still, from now on."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("both are pipes")
        self._process.stdin.write("work\n" if wanted else "rest\n")
        self._process.stdin.flush()
        if self._process.stdout.readline().strip() != "done":
            raise NoJava("the JVM ended")


@contextmanager
def java_target(
    java: str, flags: Sequence[str], megabytes: int, *, each: int = 1000
) -> Iterator[JavaTarget]:
    """Start a JVM and wait until its heap is filled.

    Args:
        java: Its launcher.
        flags: Flags of its start.
        megabytes: This much is kept.
        each: Bytes that each object keeps, without its header.

    Raises:
        NoJava: It cannot be started.
    """
    javac = shutil.which("javac")
    if javac is None or shutil.which(java) is None:
        raise NoJava(
            f"no {java if javac else 'javac'} on PATH: install a JDK, such as openjdk-17-jdk-headless"
        )
    with tempfile.TemporaryDirectory(prefix="gcspy-java-") as folder:
        Path(folder, "Filled.java").write_text(_PROGRAM)
        subprocess.run(
            [javac, "--release", "11", "-d", folder, Path(folder, "Filled.java")],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        command = [java, *flags, "-cp", folder, "Filled", str(megabytes), str(each)]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                said = ""
                while said != "ready":
                    line = process.stdout.readline() if process.stdout else ""
                    if not line:
                        raise NoJava(f"{java} does not start with {' '.join(flags)}: {said}")
                    said = line.strip()
                yield JavaTarget(process)
            finally:
                process.kill()
