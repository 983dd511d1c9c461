"""A program that runs with counters in it, and what it reports at its end."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcspy_protocol.errors import CommandError, TargetGone, Unsupported

__all__ = ["CountSettings", "CountedRun", "run_counted"]

_CHECK_SECS = 30.0
_LARGEST_REPORT = 1 << 30
"""Bytes of the largest report that is read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CountSettings:
    """Settings of a count.

    Attributes:
        plan: Places of the counters, as in `gcspy_counting.plans.plan.PlanKind`.
        sites: Which instructions are sites, as in `gcspy_counting.sites.SiteChoice`.
        include: Names of library modules that are counted in, too.
        graph: Qualified name of the function whose graph is drawn.
    """

    plan: str
    sites: str
    include: tuple[str, ...] = ()
    graph: str | None = None


@dataclass(frozen=True, slots=True)
class CountedRun:
    """Report of a counted program.

    Attributes:
        exit_code: Its exit code, as a shell reports it.
        report: What it reported: `sites` and sums, as in `gcspy_counting.begin`.
    """

    exit_code: int
    report: dict[str, Any]


def run_counted(
    python: str, form: str, program: str, arguments: tuple[str, ...], settings: CountSettings
) -> CountedRun:
    """Run a program to its end. Its input and output are ours.

    Args:
        python: Its interpreter.
        form: ``script``, ``module`` or ``code``.
        program: The program.
        arguments: Its arguments.
        settings: What is counted.

    Raises:
        CommandError: The interpreter or the program is not there.
        Unsupported: The interpreter is not one of 3.11 to 3.14.
        TargetGone: The program was ended by a signal, or replaced itself, so that there are no counts.
    """
    import gcspy_counting

    _check_interpreter(python)
    if form == "script" and not Path(program).is_file():
        raise CommandError(f"no such file: {program}; give a Python script, or -m MODULE")
    begin = Path(gcspy_counting.__file__).parent / "begin.py"
    with tempfile.TemporaryDirectory(prefix="gcspy-count-") as folder:
        result = Path(folder) / "counts.json"
        told = {
            "result": str(result),
            "plan": settings.plan,
            "sites": settings.sites,
            "include": list(settings.include),
            "replan": True,
            "graph": settings.graph,
        }
        process = subprocess.Popen(
            [python, str(begin), json.dumps(told), form, program, *arguments]
        )
        # The terminal sends Ctrl-C to the whole group: the program decides what it means.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            status = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        if not result.exists():
            raise TargetGone(_why_nothing(status))
        if result.stat().st_size > _LARGEST_REPORT:
            raise CommandError("the report of the program is larger than 1 GiB: it is not read")
        report = json.loads(result.read_text(encoding="utf-8"))
    return CountedRun(128 - status if status < 0 else status, report)


def _why_nothing(status: int) -> str:
    if status < 0:
        name = signal.Signals(-status).name
        return f"the program was ended by {name}: it could not report its counts"
    return f"the program ended with code {status} without reporting its counts, as after os._exit"


def _check_interpreter(python: str) -> None:
    question = (
        "import sys; locked = getattr(sys, '_is_gil_enabled', lambda: True)(); "
        "print(sys.implementation.name + '-free-threaded' * (not locked), *sys.version_info[:2])"
    )
    try:
        answer = subprocess.run(
            [python, "-I", "-c", question],
            capture_output=True,
            text=True,
            timeout=_CHECK_SECS,
            check=True,
        ).stdout.split()
    except OSError as error:
        raise CommandError(f"cannot start {python}: {error.strerror}; give --python") from error
    except (subprocess.SubprocessError, ValueError) as error:
        raise CommandError(f"{python} is not a Python interpreter; give --python") from error
    if len(answer) != 3:
        raise CommandError(f"{python} is not a Python interpreter; give --python")
    if answer[:2] != ["cpython", "3"] or answer[2] not in ("11", "12", "13", "14"):
        raise Unsupported(
            f"allocations are not counted in {python}",
            found=f"{answer[0]} {'.'.join(answer[1:])}",
            known="CPython 3.11 to 3.14",
        )
