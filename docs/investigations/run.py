"""Does the investigations of `docs/investigations.md` again: each program as it is, recorded, and once more with what mends it.

    python docs/investigations/run.py --python VENV/bin/python -o FOLDER [linter] [workbook] [graph]

VENV has what `docs/investigations/requirements.txt` names. Writes recordings into FOLDER and prints what the page's tables say.
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
from pathlib import Path
from typing import Any

from gcspy_protocol.errors import GCspyError

import gcspy

HERE = Path(__file__).parent
PAIRS = 7
_PATIENCE_SECS = 60.0


class Program:
    """A program that waits for a line before it begins and before it ends.

    Args:
        python: The interpreter that has the packages.
        name: The program's file.
        arguments: What it is called with.
    """

    def __init__(self, python: str, name: str, *arguments: str) -> None:
        # Ours is no place for it to import from.
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.process = subprocess.Popen(
            [python, str(HERE / name), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
        )

    def line(self) -> str:
        """Wait for a line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def go_on(self) -> None:
        """Let the program continue."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


def figures_of(python: str, name: str, *arguments: str) -> dict[str, Any]:
    """Run a program without watching it, and return what it says of itself."""
    program = Program(python, name, *arguments)
    program.line()
    program.go_on()
    found: dict[str, Any] = json.loads(program.line())
    program.go_on()
    program.process.wait()
    return found


def record(program: Program, file: Path, *, level: int, clock: float) -> dict[str, Any]:
    """Attach to a program that is ready, record it until it reports, and a little longer."""
    file.unlink(missing_ok=True)
    assert program.line().strip() == "ready"
    command = [
        sys.executable,
        "-m",
        "gcspy",
        "record",
        str(program.process.pid),
        "-o",
        str(file),
        "--force",
    ]
    recorder = subprocess.Popen(
        [*command, "--level", str(level), "--clock", str(clock), "--budget", "off"]
    )
    until = time.monotonic() + _PATIENCE_SECS
    while events_in(file) < 1 and time.monotonic() < until:
        time.sleep(0.2)
    program.go_on()
    found: dict[str, Any] = json.loads(program.line())
    until = time.monotonic() + _PATIENCE_SECS
    seen = events_in(file)
    # The event read at this moment began before the program reported; one more may follow.
    while events_in(file) < seen + 3 and time.monotonic() < until:
        time.sleep(0.5)
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    program.go_on()
    program.process.wait()
    return found


def events_in(file: Path) -> int:
    """Count the events that a recording has by now."""
    try:
        with gcspy.open(str(file)) as session:
            return len(session)
    except (OSError, GCspyError):
        return 0  # it has just been begun


def linter(python: str, folder: Path) -> None:
    """A leak."""
    file = folder / "linter.gcspy"
    own = record(Program(python, "linter.py", "24"), file, level=3, clock=0.5)
    session = gcspy.open(str(file))
    first, last = growth(session)
    print("\nlinter: it says", own)
    for options in ((), ("--clear-cache-post-run=y",), ("forget", "--clear-cache-post-run=y")):
        for files in ("8", "16", "24"):
            print(
                f"not watched, {files} files {' '.join(options)}:",
                figures_of(python, "linter.py", files, *options),
            )
    for name in sorted(last, key=lambda one: first.get(one, (0, 0))[0] - last[one][0])[:10]:
        then, now = first.get(name, (0, 0)), last[name]
        print(f"  {name:40} {then[1]:>9,} {now[1]:>9,}   {now[0] - then[0]:>+12,} bytes")
    for space in ("GC generations", "Whole arenas", "Objects in arenas"):
        print(f"  {space}: {session[-1][space].info}")


def growth(session: Any) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
    """Return bytes and objects of each type at the first and at the last event."""
    found = []
    for number in (0, -1):
        moment = session[[row["number"] for row in session.events][number]]
        space = moment["Types"]
        names = [space.tile_name(tile) for tile in range(space.tiles)]
        columns = zip(space["Bytes"].values.tolist(), space["Objects"].values.tolist(), strict=True)
        sums: dict[str, tuple[int, int]] = {}
        for name, (size, count) in zip(names, columns, strict=True):
            before = sums.get(name, (0, 0))  # two modules may have a type of this name
            sums[name] = (before[0] + size, before[1] + count)
        found.append(sums)
    return found[0], found[1]


def workbook(python: str, folder: Path) -> None:
    """Fragmentation."""
    file = folder / "workbook.gcspy"
    own = record(Program(python, "workbook.py", "12000"), file, level=3, clock=1.0)
    print("\nworkbook: it says", own)
    print("read-only it says", figures_of(python, "workbook.py", "12000", "read-only"))
    session = gcspy.open(str(file))
    last = session[-1]
    for space in ("Size classes", "Whole arenas", "Objects in arenas", "GC generations"):
        print(f"  {space}: {last[space].info}")
    sizes = last["Size classes"]
    for tile in (sizes["Lost"].values.argsort()[::-1][:5]).tolist():
        row = ", ".join(
            f"{name} {int(sizes[name].values[tile]):,}"
            for name in ("Held", "Used", "Lost", "Pools", "Partly used")
        )
        print(f"  {sizes.tile_name(tile)}: {row}")


def graph(python: str, folder: Path) -> None:
    """A threshold that is wrong."""
    for name, arguments in (("graph", ()), ("graph-100000", ("100000",))):
        file, address = folder / f"{name}.gcspy", f"unix:{folder / name}.sock"
        (folder / f"{name}.sock").unlink(missing_ok=True)
        run = [
            sys.executable,
            "-m",
            "gcspy",
            "run",
            "--python",
            python,
            "--no-window",
            "--wait",
            "--level",
            "1",
            "--budget",
            "off",
        ]
        served = subprocess.Popen(
            [*run, "--clock", "1", "--listen", address, str(HERE / "graph.py"), "28", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        until = time.monotonic() + _PATIENCE_SECS
        while not (folder / f"{name}.sock").exists() and time.monotonic() < until:
            time.sleep(0.1)
        subprocess.run(
            [
                sys.executable,
                "-m",
                "gcspy",
                "record",
                address,
                "-o",
                str(file),
                "--force",
                "--lossless",
            ],
            check=False,
        )
        said, _ = served.communicate()
        print(f"\n{name}: it says", [line for line in said.splitlines() if line.startswith("{")])
        session = gcspy.open(str(file))
        clock = [event for event in session.events if event["event"] == 0]
        print(f"  {len(session)} events;", session[int(clock[-1]["number"])]["GC generations"].info)
    pairs = []
    for _ in range(PAIRS):
        pair = [figures_of(python, "graph.py", "28", *more)["millis"] for more in ((), ("100000",))]
        pairs.append(pair)
    print("  pairs, not watched, ms of processor time:", pairs)
    print(f"  median of the ratios: {statistics.median(one / other for one, other in pairs):.2f}")


def main() -> None:
    """Run the chosen command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True, help="interpreter of the programs")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("which", nargs="*", default=["linter", "workbook", "graph"])
    request = parser.parse_args()
    request.output.mkdir(parents=True, exist_ok=True)
    for name in request.which:
        {"linter": linter, "workbook": workbook, "graph": graph}[name](
            request.python, request.output.resolve()
        )


if __name__ == "__main__":
    main()
