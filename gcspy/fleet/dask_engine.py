"""Workers of a Dask cluster as an engine.

Functions and arguments are texts and numbers; workers need gcspy in the version of this process, and the same files under the
same names. Scheduling, and calling again what a dead worker had, is Dask's. Dask's links carry pickled objects and know
no user unless its own TLS is set up: a scheduler is to be trusted as a shell on this machine is.

Knows Dask; does not know what the functions do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode

if TYPE_CHECKING:
    from distributed import Client

    from gcspy.fleet.engine import Engine

__all__ = ["DaskEngine", "dask_engine"]

R = TypeVar("R")

_PATIENCE_SECS: Final = 10


class DaskEngine:
    """The workers of a scheduler.

    Args:
        client: A connection to it.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def call(
        self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, R]]:
        """See `gcspy.fleet.engine.Engine.call`."""
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        futures = [self._client.submit(function, *task, pure=False) for task in tasks]
        numbers = {each.key: number for number, each in enumerate(futures)}
        try:
            for each in as_completed(futures, loop=self._client.loop):
                yield numbers[each.key], each.result()
                each.release()
        except KilledWorker as error:
            raise CommandError(
                f"several Dask workers were killed by the same part of the work: {error.task}; do they have enough memory?",
                exit_code=ExitCode.FAILED,
            ) from error
        finally:
            self._client.cancel(futures)


@contextmanager
def dask_engine(address: str) -> Iterator[Engine]:
    """The engine of a scheduler; the connection is closed when the block ends.

    Raises:
        CommandError: Dask is not installed, or the scheduler cannot be reached.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise CommandError(
            "this engine needs the package distributed, which is not installed; in a clone of gcspy: pip install '.[dask]'",
            exit_code=ExitCode.MISSING_PART,
        ) from error
    try:
        client = Client(address, timeout=_PATIENCE_SECS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise CommandError(
            f"no Dask scheduler answers at {address}: {error}; is it running, and reachable from here?",
            exit_code=ExitCode.FAILED,
        ) from error
    with client:
        yield DaskEngine(client)
