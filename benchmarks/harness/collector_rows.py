"""Options and main loop of benchmarks that have rows for each collector of a JVM."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

from benchmarks.targets.java_target import NoJava

__all__ = ["jvm_options", "measure_each"]


def jvm_options(about: str | None, collectors: Iterable[str], *, events: int) -> argparse.Namespace:
    """Return the options: `java`, `collector` (None: all), `megabytes`, `events`.

    Args:
        about: A docstring, whose first line describes the benchmark.
        collectors: Names that can be chosen.
        events: The default number of events of a row.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--java", default="java", help="launcher of the JVM")
    parser.add_argument(
        "--collector",
        action="append",
        choices=list(collectors),
        help="only this one (may be given again)",
    )
    parser.add_argument("--megabytes", type=int, default=512, help="size of the heap")
    parser.add_argument("--events", type=int, default=events, help="of each row")
    return parser.parse_args()


def measure_each(collectors: Iterable[str], measure: Callable[[str], object]) -> int:
    """Measure with each collector that the JVM has; return the exit code: 1 when nothing could be measured."""
    measured = 0
    for name in collectors:
        try:
            measure(name)
            measured += 1
        except NoJava as why:
            print(f"{name} is left out: {why}", file=sys.stderr)
    return 0 if measured else 1
