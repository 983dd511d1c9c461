"""A progress bar on standard error, where that is a terminal and the work is long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far some work is.

    Args:
        what: What is done, as a label.

    Yields:
        To be called with how much is done, and of how much.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None  # a bar in a file or a pipe would be noise
        return
    # rich takes 60 ms to import, which a command in a script is spared.
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
