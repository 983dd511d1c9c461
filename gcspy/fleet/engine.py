"""Where plain functions are called with many arguments: in this process, or in several of this machine.

Knows processes; does not know what the functions do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol, TypeVar

from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode

__all__ = ["Engine", "LocalEngine", "engine_of"]

R = TypeVar("R")

_MOST_DEATHS: Final = 3
_DASK: Final = "dask"


class Engine(Protocol):
    """Calls functions."""

    def call(
        self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, R]]:
        """Call a function with each of some arguments; yield the number of the task and its result, as they come.

        The function may be called again for a task whose worker died.

        Raises:
            CommandError: Workers keep dying, or cannot be reached.
            Exception: What the function raised.
        """
        ...


class LocalEngine:
    """Processes of this machine.

    Args:
        jobs: How many; 1: none beside this one.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def call(
        self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, R]]:
        """See `Engine.call`."""
        if self._jobs == 1:
            yield from ((number, function(*task)) for number, task in enumerate(tasks))
            return
        left = dict(enumerate(tasks))
        deaths = 0
        while left:
            try:
                with ProcessPoolExecutor(min(self._jobs, len(left))) as pool:
                    futures: dict[Future[R], int] = {
                        pool.submit(function, *task): number for number, task in left.items()
                    }
                    for each in as_completed(futures):
                        result = each.result()
                        del left[futures[each]]
                        yield futures[each], result
            except BrokenProcessPool as error:
                deaths += 1
                if deaths >= _MOST_DEATHS:
                    raise CommandError(
                        f"processes that work through {len(left):,} of {len(tasks):,} parts were killed, {deaths} times:"
                        " the machine may lack memory; use fewer --jobs",
                        exit_code=ExitCode.FAILED,
                    ) from error


def engine_of(name: str, jobs: int) -> AbstractContextManager[Engine]:
    """Return the engine of an option's value: "local", or the address of a Dask scheduler.

    Raises:
        CommandError: There is none of that name, it is not installed, or its scheduler cannot be reached.
    """
    if name == "local":
        return nullcontext(LocalEngine(jobs))
    scheme, _, address = name.partition("://")
    if scheme in (_DASK, f"{_DASK}+tls") and address:
        from gcspy.fleet.dask_engine import dask_engine

        return dask_engine(("tls" if scheme.endswith("tls") else "tcp") + "://" + address)
    raise CommandError(
        f"unknown engine {name!r}: write local, dask://HOST:PORT, or dask+tls://HOST:PORT if the scheduler uses TLS"
    )
