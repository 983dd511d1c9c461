"""A progress bar on standard error, where that is a terminal and the work is long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["Progress", "progress_bar", "results_with_steps", "steps_shown"]

Progress = Callable[[str, int, int], None]
"""Called with the current step of some work, its progress, and its total; 0: not known."""

T = TypeVar("T")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show the progress of some work.

    Args:
        what: Label of the work.

    Yields:
        A function to call with the progress and the total.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None  # no bar in a file or a pipe
        return
    # rich takes 60 ms to import, which scripts need not wait for.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield advance


@contextmanager
def steps_shown() -> Iterator[Progress]:
    """Show the current step of work that has several.

    Yields:
        A function to call with the current step, its progress, and its total; 0: not known.
    """
    if not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("") as status:

        def show(what: str, done: int, total: int) -> None:
            much = f" ({done:,} of {total:,})" if total else f" ({done:,})" if done else ""
            status.update(what + much)

        yield show


def results_with_steps(work: Callable[[Progress], Iterator[T]]) -> Iterator[T]:
    """Do work that has several results, and show its current step; not while a result is handled.

    Args:
        work: Begins the work; its argument is as of `steps_shown`.

    Yields:
        The results.
    """
    shown: list[Progress] = []

    def show(what: str, done: int, total: int) -> None:
        shown[-1](what, done, total)

    results = work(show)
    while True:
        # The display is removed before the caller prints something.
        with steps_shown() as progress:
            shown.append(progress)
            result = next(results, None)
        if result is None:
            return
        yield result
