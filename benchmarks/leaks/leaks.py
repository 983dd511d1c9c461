"""Programs that leak, for one cause each: what `gcspy why` says of them, in how many seconds, and whether it names the holder.

    python -m benchmarks.leaks.leaks [--only NAME]... [--group standard|pypi|java]... [--hold] [--json]

Each program is started and grows; `gcspy why PID` is run on it while it grows on, with the command alone, or with `--hold`. The holder that the program's docstring states must be the first row of what holds what grew, and be named in the sentence.

Packages are installed once into an environment of their own in the user's cache, and programs in Java are compiled there; what cannot
be had is skipped and said. Some 40 s a program; not one of those that run by default.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.figures import tell
from benchmarks.leaks.answers import Answer, ask
from benchmarks.leaks.leak_programs import LeakingProgram, programs, running

__all__ = ["Row", "main", "measure"]

_BUDGET = "at most 60 s"


@dataclass(frozen=True, slots=True)
class Row:
    """The answers about a program.

    Attributes:
        program: Its name.
        group: Its group, by its requirements.
        cause: Why it leaks.
        first_secs: Until the first answer.
        whole_secs: Until the end of the command.
        said: The sentence, or why there is none.
        holder: The first holder that was listed.
        named: Whether that is the right one, and the sentence names it.
        load: Processes that wanted a core in the minute before.
    """

    program: str
    group: str
    cause: str
    first_secs: float
    whole_secs: float
    said: str
    holder: str
    named: bool
    load: float


def measure(program: LeakingProgram, python: str, options: Sequence[str] = ()) -> Row:
    """Start a program, and ask why it grows.

    Args:
        program: Which.
        python: The interpreter of programs in Python.
        options: More options of the command.

    Raises:
        Unavailable: It cannot run here.
    """
    with running(program, python) as process:
        answer = ask(process.pid, options)
    return Row(
        program.name,
        program.group,
        program.cause,
        round(answer.first_secs, 1),
        round(answer.whole_secs, 1),
        answer.problem or answer.sentence or "nothing grew",
        answer.holder,
        names(program, answer),
        round(os.getloadavg()[0], 1),
    )


def names(program: LeakingProgram, answer: Answer) -> bool:
    """Return whether an answer names the holder that the program states."""
    right = program.holder.fullmatch(answer.holder) is not None
    return right and answer.holder in answer.sentence


def _chosen(options: argparse.Namespace) -> list[LeakingProgram]:
    found = programs()
    if unknown := set(options.only or ()) - {program.name for program in found}:
        raise Unavailable(
            f"there is no program {', '.join(sorted(unknown))}; there are {', '.join(program.name for program in found)}"
        )
    return [
        program
        for program in found
        if (not options.only or program.name in options.only)
        and (not options.group or program.group in options.group)
    ]


def _print_row(cells: Iterable[object]) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def _measured(chosen: Iterable[LeakingProgram], options: argparse.Namespace) -> list[Row]:
    """Measure and print row by row."""
    rows: list[Row] = []
    skipped: set[str] = set()
    for program in chosen:
        if program.group in skipped:
            continue
        try:
            row = measure(program, options.python, ["--hold"] if options.hold else ())
        except Unavailable as why:
            print(
                f"skipped: {program.group} programs from {program.name} on: {why}", file=sys.stderr
            )
            skipped.add(program.group)
            continue
        rows.append(row)
        if not options.json:
            named = "yes" if row.named else "no"
            held = f"{row.said} First holder: {row.holder or 'none'}."
            _print_row(
                (row.program, row.cause, row.first_secs, row.whole_secs, held, named, row.load)
            )
    return rows


def main() -> int:
    """Print the table; the exit code is 1 when there is none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--hold", action="store_true", help="with --hold, for which a JVM writes heap dumps"
    )
    parser.add_argument("--python", default=sys.executable, help="interpreter of the programs")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="only this one (may be given again)"
    )
    parser.add_argument(
        "--group",
        action="append",
        choices=("standard", "pypi", "java"),
        help="only these (may be given again)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    options = parser.parse_args()
    try:
        chosen = _chosen(options)
    except Unavailable as why:
        parser.error(str(why))
    if not options.json:
        _print_row(
            ("program", "cause", "first answer, s", "whole, s", "what was said", "named", "load")
        )
        _print_row(["---"] * 7)
    rows = _measured(chosen, options)
    named = sum(row.named for row in rows)
    if options.json:
        facts = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "system": platform.platform(),
            "cores": os.cpu_count(),
        }
        print(
            json.dumps({**facts, "named": named, "rows": [asdict(row) for row in rows]}, indent=2)
        )
    else:
        print(f"{named} of {len(rows)} named; {os.cpu_count()} cores")
    tell("leaks whose holder is named", named / max(1, len(rows)), budget="11 of 12")
    for row in rows:
        tell(
            f"{row.program}: named by" if row.named else f"{row.program}: NOT named",
            row.whole_secs,
            "s",
            _BUDGET,
        )
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
