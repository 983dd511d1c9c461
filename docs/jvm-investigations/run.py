"""Does the investigations of `docs/jvm-investigations.md` again: each program as it is, recorded, and in pairs with what mends it, not watched.

    python docs/jvm-investigations/run.py --programs FOLDER -o FOLDER [attachments] [sessions] [accounts]

Needs a JDK on the path, and Debian's packages of H2 and Jython, which it downloads into the first folder. Writes recordings into the second,
packs them, and prints what the page's tables say.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcspy_protocol.errors import GCspyError

import gcspy
from benchmarks.targets.java_programs import fetch

HERE = Path(__file__).parent
_H2 = ("libh2-java",)
_JYTHON = (
    "jython", "antlr3", "libantlr3-runtime-java", "libasm-java", "libjnr-posix-java", "libjnr-ffi-java", "libjnr-constants-java", "libjffi-java",
    "libjnr-netdb-java", "libicu4j-java", "libnetty-java", "libcommons-compress-java", "libbcprov-java", "libbcpkix-java", "libbackport9-java",
)  # fmt: skip
_PATIENCE_SECS = 120.0


@dataclass(frozen=True)
class Investigation:
    """A program, what is wrong with it, and what mends it.

    Attributes:
        name: Of the recording.
        flags: Of the JVM as it is.
        program: Its class or file, with arguments.
        cured_flags: Of the JVM where that is the cure.
        cured_program: The program where that is the cure.
        clock_hz: Of the recording.
    """

    name: str
    flags: tuple[str, ...]
    program: tuple[str, ...]
    cured_flags: tuple[str, ...]
    cured_program: tuple[str, ...]
    clock_hz: float = 20.0


_SERIAL = ("-XX:+UseSerialGC",)
INVESTIGATIONS = (
    Investigation(
        "attachments",
        ("-XX:+UseG1GC", "-Xmx192m", "-XX:G1HeapRegionSize=1m"), ("Attachments", "1500", "150"),
        ("-XX:+UseG1GC", "-Xmx192m", "-XX:G1HeapRegionSize=4m"), ("Attachments", "1500", "150"),
    ),
    Investigation(
        "sessions",
        (*_SERIAL, "-Xms128m", "-Xmx128m", "-Xmn24m"), ("sessions.py", "1500000", "8000"),
        (*_SERIAL, "-Xms128m", "-Xmx128m", "-Xmn96m", "-XX:SurvivorRatio=2"), ("sessions.py", "1500000", "8000"),
    ),
    Investigation(
        "accounts",
        (*_SERIAL, "-Xms512m", "-Xmx512m", "-Xmn32m"), ("accounts.py", "4000000", "2000000"),
        (*_SERIAL, "-Xms512m", "-Xmx512m", "-Xmn32m"), ("accounts.py", "4000000", "2000000", "array"),
    ),
)  # fmt: skip


class Program:
    """A program that waits for a line before it begins and before it ends.

    Args:
        jars: Folder of the packages' files.
        classes: Folder of the compiled programs.
        flags: Of the JVM.
        words: Its class or file, with arguments.
    """

    def __init__(
        self, jars: Path, classes: Path, flags: tuple[str, ...], words: tuple[str, ...]
    ) -> None:
        if words[0].endswith(".py"):
            path = [str(jar) for jar in (jars / "usr/share/java").glob("*.jar")]
            home = [f"-Dpython.home={jars / 'usr/share/jython'}", "-Dpython.cachedir.skip=true"]
            main = [
                *home,
                "-cp",
                os.pathsep.join(path),
                "org.python.util.jython",
                str(HERE / words[0]),
            ]
        else:
            main = [
                "-cp",
                os.pathsep.join([str(classes), str(jars / "usr/share/java/h2.jar")]),
                words[0],
            ]
        self.process = subprocess.Popen(
            ["java", *flags, *main, *words[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self.line().strip() != "ready":
            raise SystemExit(f"{' '.join(words)} does not start")

    def line(self) -> str:
        """Wait for a line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def go_on(self) -> None:
        """Let the program continue."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self) -> dict[str, Any]:
        """Return what it says of itself, and let it end."""
        found: dict[str, Any] = json.loads(self.line())
        self.go_on()
        self.process.wait()
        return found


def record(program: Program, file: Path, clock_hz: float) -> dict[str, Any]:
    """Record a program from before it begins until it has reported."""
    command = [
        sys.executable,
        "-m",
        "gcspy",
        "record",
        str(program.process.pid),
        "-o",
        str(file),
        "--force",
        "--level",
        "2",
    ]
    recorder = subprocess.Popen(
        [*command, "--clock", str(clock_hz), "--tiles", "2048", "--budget", "off"]
    )
    until = time.monotonic() + _PATIENCE_SECS
    while events_in(file) < 1 and time.monotonic() < until:
        time.sleep(0.2)
    program.go_on()
    line = program.line()
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    program.go_on()
    program.process.wait()
    found: dict[str, Any] = json.loads(line)
    return found


def events_in(file: Path) -> int:
    """Count the events that a recording has by now."""
    try:
        with gcspy.open(str(file)) as session:
            return len(session)
    except (OSError, GCspyError):
        return 0  # it has just been begun


def investigate(one: Investigation, jars: Path, classes: Path, output: Path, pairs: int) -> None:
    """Record a program, and run it in pairs with its cure."""
    file = output / f"{one.name}.gcspy"
    print(
        f"\n{one.name}, recorded:",
        record(Program(jars, classes, one.flags, one.program), file, one.clock_hz),
        flush=True,
    )
    subprocess.run([sys.executable, "-m", "gcspy", "pack", str(file), "--force"], check=False)
    ratios = []
    for _ in range(pairs):
        said = []
        for flags, words in ((one.flags, one.program), (one.cured_flags, one.cured_program)):
            program = Program(jars, classes, flags, words)
            program.go_on()
            said.append(program.finish())
        print("  as it is:", said[0], "\n  mended:  ", said[1], flush=True)
        ratios.append(said[0]["millis"] / said[1]["millis"])
    if ratios:
        print(f"  median of the ratios by the clock: {statistics.median(ratios):.2f}")


def main() -> None:
    """Run the chosen command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=Path, required=True, help="folder of the packages")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each as it is and mended")
    parser.add_argument("which", nargs="*", default=[one.name for one in INVESTIGATIONS])
    request = parser.parse_args()
    request.output.mkdir(parents=True, exist_ok=True)
    jars = fetch(request.programs, (*_H2, *_JYTHON)).resolve()
    classes = request.programs.resolve() / "investigations"
    classes.mkdir(exist_ok=True)
    sources = sorted(HERE.glob("*.java"))
    subprocess.run(
        [
            "javac",
            "-nowarn",
            "-d",
            str(classes),
            "-cp",
            str(jars / "usr/share/java/h2.jar"),
            *map(str, sources),
        ],
        check=True,
    )
    for one in INVESTIGATIONS:
        if one.name in request.which:
            investigate(one, jars, classes, request.output.resolve(), request.pairs)


if __name__ == "__main__":
    main()
