"""``python -m tests.mutation``: plants faults one at a time, and says which of them no test of the folder found.

Faults are drawn by a seed from the sources of a room; each is planted in a copy of the project, never
in the project itself. The tests of the room's own folder that run the line are run until one fails;
if none does, those that run anything of the line's folder (it may run in a child process, or compiled).
Survivors that are judged are listed in ``judged.toml``, with the reason.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tests.mutation.coverage_plugin import function
from tests.mutation.faults import Fault, faults
from tests.mutation.judged import judged
from tests.mutation.reach import Reach, measured

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {
    "protocol": ("protocol/gcspy_protocol", "tests/protocol"),
    "server": ("gcspy_server", "tests/server"),
    "session": ("gcspy_session", "tests/server"),
    "drivers": ("drivers/gcspy_drivers", "tests/drivers"),
    "replay": ("replay/gcspy_replay", "tests/replay"),
    "objects": ("objects/gcspy_objects", "tests/objects"),
    "original": ("original/gcspy_original", "tests/original"),
    "model": ("gcspy_client/model", "tests/client/model"),
}
_FOUND = {"died", "hung"}
_PATHS = (".", "protocol", "drivers", "replay", "objects", "original")
_MOST_SECS = 600


def copied(folder: Path) -> dict[str, str]:
    """Copy the project's files into a folder, and return the environment that imports from there."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    built = [str(path.relative_to(ROOT)) for path in (ROOT / "drivers").rglob("*.so")]
    for name in [*names, *built]:
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    path = os.pathsep.join(str(folder / part) for part in _PATHS)
    # Compiled code is kept for all runs: else each of them compiles Qt's and numpy's modules again,
    # which takes longer than most tests.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        "PYTHONPATH": path,
        "PYTHONPYCACHEPREFIX": str(folder / ".compiled"),
        "QT_QPA_PLATFORM": "offscreen",
    }


def drawn(copy: Path, package: str, count: int, seed: int) -> list[tuple[str, Fault]]:
    """Draw faults from a room's sources, at most one a line, in the order of a seed."""
    found = {
        (str(path.relative_to(copy)), fault.line, fault.kind): fault
        for path in sorted((copy / package).rglob("*.py"))
        for fault in faults(path.read_bytes())
    }
    keys = sorted(found)
    chosen = random.Random(seed).sample(keys, min(count, len(keys)))
    return [(path, found[path, line, kind]) for path, line, kind in chosen]


def placed(copy: Path, package: str, place: str) -> list[tuple[str, Fault]]:
    """Return all faults of one line, if it is one of a room's sources: ``gcspy_server/server.py:37``."""
    path, _, line = place.rpartition(":")
    if not Path(path).is_relative_to(package):
        return []
    return [(path, fault) for fault in faults((copy / path).read_bytes(), [int(line)])]


def verdict(copy: Path, environment: dict[str, str], tests: list[str]) -> tuple[str, str]:
    """Run tests until one fails: "died", "survived", "hung" or "unreached", and which test failed."""
    if not tests:
        return "unreached", ""
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--timeout", "120",
        "--tb=no", "-rfE", "-p", "no:randomly", *tests,
    ]  # fmt: skip
    with tempfile.TemporaryFile("w+") as said:
        running = subprocess.Popen(
            command,
            cwd=copy,
            env=environment,
            stdout=said,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            end = "died" if running.wait(_MOST_SECS) else "survived"
        except subprocess.TimeoutExpired:
            end = "hung"
        finally:
            if running.poll() is None:
                os.killpg(running.pid, 9)
                running.wait()
        said.seek(0)
        failed = [line for line in said if line.startswith(("FAILED ", "ERROR "))]
    return end, failed[0].partition(" ")[2].partition(" - ")[0].strip() if failed else ""


@contextmanager
def changed(path: Path, text: bytes, number: int) -> Iterator[None]:
    """Have another text in a file while the body runs.

    Python identifies the compiled code of a file by the file's size and its time in seconds; so each number sets another time.
    """
    before, status = path.read_bytes(), path.stat()
    path.write_bytes(text)
    os.utime(path, (status.st_atime, status.st_mtime + 1 + number))
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def judge(
    copy: Path,
    environment: dict[str, str],
    reach: Reach,
    planted: tuple[str, Fault],
    number: int,
    most_secs: float,
) -> dict[str, object]:
    """Plant one fault, run its tests, and take it away again.

    The tests that it is shown to at once take ``most_secs`` together when they run without it.
    """
    path, fault = planted
    source = (copy / path).read_bytes()
    begun = time.monotonic()
    asked: list[str] = []
    end, by = "unreached", ""
    for names in (reach.tests(path, fault.line), reach.around(path)):
        tests = reach.within(most_secs, [name for name in names if name not in asked])
        if not tests:
            continue
        asked += tests
        with changed(copy / path, fault.plant(source), number):
            end, by = verdict(copy, environment, tests)
        # A test that fails without the fault, too, has found nothing: the others are asked.
        while function(by) in tests and verdict(copy, environment, [by])[0] != "survived":
            tests.remove(function(by))
            with changed(copy / path, fault.plant(source), number):
                end, by = verdict(copy, environment, tests)
        if end in _FOUND:
            break
    return {
        "end": end,
        "by": by,
        "path": path,
        "line": fault.line,
        "kind": fault.kind,
        "change": fault.shown(source),
        "tests": len(asked),
        "seconds": round(time.monotonic() - begun, 1),
    }


@click.command()
@click.option("--room", "rooms", type=click.Choice(list(ROOMS)), multiple=True, help="Only these.")
@click.option("--count", default=20, show_default=True, help="How many faults a room.")
@click.option(
    "--part",
    default="",
    help="Only this folder of the sources, and the folder of its name of the tests: 'remote' of drivers.",
)
@click.option(
    "--tests",
    multiple=True,
    help="Only these files or folders of tests, from the root, in place of the room's.",
)
@click.option("--seed", default=1, show_default=True)
@click.option("--at", "places", multiple=True, help="All faults of this line, PATH:LINE.")
@click.option(
    "--secs",
    default=240.0,
    show_default=True,
    help="Show a fault to tests that take so long together: first to those of its line, then to those of its folder.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep there which tests run which lines, and measure only what changed.",
)
@click.option(
    "--json", "output", type=click.Path(path_type=Path), help="Write every verdict there."
)
def main(
    rooms: tuple[str, ...],
    count: int,
    part: str,
    tests: tuple[str, ...],
    seed: int,
    places: tuple[str, ...],
    secs: float,
    keep: Path | None,
    output: Path | None,
) -> None:
    """Plant COUNT faults in each room, and name those that survive its tests."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    reasons = judged()
    verdicts: list[dict[str, object]] = []
    for room in rooms or ROOMS:
        package, folder = (str(Path(one, part)) for one in ROOMS[room])
        kept = keep / f"{room}-{part or 'all'}.json".replace("/", "-") if keep else None
        with tempfile.TemporaryDirectory(prefix="gcspy-mutants-") as name:
            copy = Path(name)
            environment = copied(copy)
            click.echo(
                f"{room}: running {', '.join(tests or [folder])} once, to see which tests run which lines",
                err=True,
            )
            reach = measured(copy, environment, package, tests or [folder], kept)
            chosen = [one for place in places for one in placed(copy, package, place)]
            for number, planted in enumerate(
                chosen if places else drawn(copy, package, count, seed)
            ):
                result = {"room": room, **judge(copy, environment, reach, planted, number, secs)}
                reason = reasons.get((str(result["path"]), str(result["change"])), "")
                verdicts.append({**result, "reason": reason})
                click.echo(
                    f"{result['end']:9} {result['path']}:{result['line']} {result['change']} "
                    f"({result['tests']} tests, {result['seconds']} s){' judged: ' + reason if reason else ''}"
                )
                if output is not None:
                    output.write_text(json.dumps(verdicts, indent=1))
    if not verdicts:
        raise click.ClickException("no fault can be planted there")
    ends = Counter(str(one["end"]) for one in verdicts)
    found = sum(ends[end] for end in _FOUND)
    click.echo(
        f"{len(verdicts)} faults planted, {found} found ({found / len(verdicts):.1%}): {dict(ends)}"
    )
    unjudged = [one for one in verdicts if one["end"] not in _FOUND and not one["reason"]]
    sys.exit(bool(unjudged))


if __name__ == "__main__":
    main()
