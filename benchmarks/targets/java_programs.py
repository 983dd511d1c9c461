"""Real Java programs for benchmarks and investigations: javac, Lucene and H2, each around a few lines that give it its work.

Their jars and the sources that they work on come as Debian packages, by `apt-get download`, into a folder that may be kept. Each runs inside of
`java/Timed.java`, which waits for a line before it begins, and writes what it took.

Knows packages and command lines; does not know the observer.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.environment import Unavailable

__all__ = [
    "PROGRAMS",
    "JavaProgram",
    "JavaPrograms",
    "JavaRun",
    "PACKAGES",
    "fetch",
    "unpack_sources",
]

_HERE = Path(__file__).parent / "java"
PACKAGES = ("openjdk-17-source", "libh2-java", "liblucene4.10-java")
_SOURCES = "java.base/"
_WANTED = ("java/util/", "java/text/")
"""Folders of the JDK's sources that are compiled and indexed; the compiler takes the rest from the running JDK."""


@dataclass(frozen=True, slots=True)
class JavaProgram:
    """One program.

    Attributes:
        name: Its name in tables.
        main: Its class.
        megabytes: Of heap; some ten to a hundred collections with each collector.
        rounds: How often it does its work, for about five seconds.
        jars: Required jars beside the JDK.
        arguments: Of its class, from the folder of sources, one for what it writes, and the rounds.
    """

    name: str
    main: str
    megabytes: int
    rounds: int
    jars: tuple[str, ...]
    arguments: Callable[[Path, Path, int], Sequence[str]]


PROGRAMS = (
    JavaProgram("javac", "Compiling", 160, 1, (), lambda sources, out, rounds: [str(sources), str(out), str(rounds), "java/util/concurrent"]),
    JavaProgram(
        "Lucene", "Indexing", 64, 2, ("lucene-core-4.10.4.jar", "lucene-analyzers-common-4.10.4.jar"),
        lambda sources, _out, rounds: [str(sources), str(rounds), "java/util", "java/text"],
    ),
    JavaProgram("H2", "Querying", 96, 4, ("h2.jar",), lambda _sources, _out, rounds: ["20000", str(rounds * 1000)]),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JavaRun:
    """A program's report of its run.

    Attributes:
        wall_secs: By the clock.
        own_secs: Of the process's processor time, all of its threads.
        collections: Of all collectors.
        pause_millis: Their duration, as the JVM counts it.
        finished: Whether it came to its end; else it was ended after `wall_secs`, which is then a lower bound.
        began_nanos: When it began, by the monotonic clock.
        ended_nanos: When it had ended.
    """

    wall_secs: float
    own_secs: float
    collections: int
    pause_millis: int
    finished: bool = True
    began_nanos: int = 0
    ended_nanos: int = 0


class JavaPrograms:
    """The programs, ready to run.

    Args:
        java: The launcher of the JVM.
        folder: Where they are, or are put.
        sources: Folder with the sources of the JDK that runs them, from `unpack_sources`; None: those of OpenJDK 17, below `folder`.

    Raises:
        Unavailable: They cannot be had.
    """

    def __init__(self, java: str, folder: Path, sources: Path | None = None) -> None:
        self._java = java
        self._classes = folder / "classes"
        self._sources = sources or folder / "sources"
        self._jars = fetch(folder, PACKAGES) / "usr/share/java"
        if not self._sources.is_dir():
            unpack_sources(folder / "root/usr/lib/jvm/openjdk-17/lib/src.zip", self._sources)
        self._compile()

    def command(
        self, program: JavaProgram, told: Path, flags: Sequence[str], *, scale: float = 1.0
    ) -> list[str]:
        """A program's command line.

        Args:
            program: Which.
            told: The file into which it writes its result; a folder ``out`` is made beside it.
            flags: Of the JVM; they come after the size of the heap.
            scale: Factor of the number of rounds.
        """
        out = told.parent / "out"
        out.mkdir(exist_ok=True)
        path = os.pathsep.join(
            [str(self._classes), *(str(self._jars / jar) for jar in program.jars)]
        )
        rounds = max(1, round(program.rounds * scale))
        heap = f"-Xmx{program.megabytes}m"
        return [
            self._java,
            heap,
            *flags,
            "-cp",
            path,
            "Timed",
            str(told),
            program.main,
            *program.arguments(self._sources, out, rounds),
        ]

    def run(
        self,
        program: JavaProgram,
        told: Path,
        flags: Sequence[str],
        *,
        scale: float,
        most_secs: float,
        started: Callable[[int], None] = lambda _pid: None,
    ) -> JavaRun:
        """Run a program to its end, or until it has taken too long.

        Args:
            program: Which.
            told: The file into which it writes its result.
            flags: Of the JVM.
            scale: Factor of the number of rounds.
            most_secs: Time limit; the program is ended after it.
            started: Called with the process, which waits during the call: to attach something to
                it.

        Raises:
            Unavailable: It failed.
        """
        told.unlink(missing_ok=True)
        command = self.command(program, told, flags, scale=scale)
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said = process.stdout.readline() if process.stdout else ""
                if said.strip() != "ready":
                    raise Unavailable(
                        f"{program.name} does not start: {said}{process.stderr.read() if process.stderr else ''}"
                    )
                started(process.pid)
                _, complaints = process.communicate("\n", timeout=most_secs)
            except subprocess.TimeoutExpired:
                return JavaRun(most_secs, 0.0, 0, 0, finished=False)
            finally:
                _end(process)
        if not told.exists():
            raise Unavailable(
                f"{program.name} ended with exit code {process.returncode}: {complaints.strip()[-300:]}"
            )
        wall, own, *numbers = told.read_text().split()
        collections, millis, began, ended = map(int, numbers)
        return JavaRun(
            float(wall),
            float(own),
            collections,
            millis,
            began_nanos=began,
            ended_nanos=ended,
        )

    def _compile(self) -> None:
        javac = shutil.which("javac")
        if javac is None:
            raise Unavailable(
                "there is no javac on PATH: install a JDK, such as openjdk-17-jdk-headless"
            )
        self._classes.mkdir(exist_ok=True)
        path = os.pathsep.join(str(jar) for jar in self._jars.glob("*.jar"))
        command = [
            javac,
            "-nowarn",
            "-Xlint:-options",
            "-d",
            str(self._classes),
            "-cp",
            path,
            *map(str, sorted(_HERE.glob("*.java"))),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"the programs do not compile: {done.stderr[-500:]}")


def unpack_sources(archive: Path, folder: Path) -> None:
    """Unpack what is compiled and indexed of the sources of a JDK (`lib/src.zip`).

    Raises:
        Unavailable: They are not there.
    """
    if not archive.is_file():
        raise Unavailable(f"the JDK has no sources: {archive}")
    with zipfile.ZipFile(archive) as found:
        for name in found.namelist():
            wanted = name.startswith(tuple(_SOURCES + part for part in _WANTED))
            if wanted and name.endswith(".java"):
                file = folder / name.removeprefix(_SOURCES)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(found.read(name))


def _end(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended
    process.wait()


def fetch(folder: Path, packages: Sequence[str]) -> Path:
    """Put the files of Debian's packages into a folder, as they would be installed; those that are there already stay.

    Returns:
        The folder that is their root.

    Raises:
        Unavailable: They cannot be downloaded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("apt-get") is None:
        raise Unavailable("there is no apt-get: the programs are packages of Debian")
    for name in packages:
        if any(folder.glob(f"{name}_*.deb")):
            continue
        done = subprocess.run(
            ["apt-get", "download", "--quiet", name],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"apt-get could not download {name}: {done.stderr.strip()[-300:]}")
        (package,) = folder.glob(f"{name}_*.deb")
        subprocess.run(["dpkg", "-x", str(package), str(folder / "root")], check=True)
    return folder / "root"
