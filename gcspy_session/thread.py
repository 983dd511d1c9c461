"""The thread that serves clients: trio's loop, started and stopped from outside of it.

A daemon thread: a program that forgets to close its server can still end. Knows threads and
listeners; does not know the data.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import trio

from gcspy_session.client import log
from gcspy_session.network.acceptor import ClientHost, accept_all
from gcspy_session.network.listeners import SocketListener, close_all, open_all

__all__ = ["SessionThread"]


class SessionThread:
    """Runs a host: a session, or a player.

    Args:
        host: Makes the host, in the thread, with the loop running.
        addresses: The addresses to listen at.
        token: The token for TCP clients.
    """

    def __init__(
        self, host: Callable[[], ClientHost], addresses: Sequence[str], *, token: str | None
    ) -> None:
        self._make_host = host
        self._addresses = addresses
        self._token = token
        self._started = threading.Event()
        self._loop: trio.lowlevel.TrioToken | None = None
        self._stop: trio.Event | None = None
        self._listeners: list[SocketListener] = []
        self._thread = threading.Thread(target=self._run, name="gcspy-session", daemon=True)

    def start(self) -> tuple[str, ...]:
        """Listen, and start the thread.

        Returns:
            The addresses for clients.

        Raises:
            LinkError: An address is taken.
            CommandError: An address may not be listened at.
        """
        self._listeners = open_all(self._addresses, token=self._token)
        self._thread.start()
        self._started.wait()
        return tuple(str(listener.address) for listener in self._listeners)

    def stop(self) -> None:
        """End the session and wait for its thread; harmless if it has ended."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            try:
                loop.run_sync_soon(stop.set)
            except trio.RunFinishedError:
                pass  # it has ended already
        self._thread.join()

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException:  # noqa: BLE001 - whatever it was, it must not end the program in which this thread runs
            log.exception("the session ended because of an internal error")
        finally:
            close_all(self._listeners)
            self._started.set()

    async def _main(self) -> None:
        self._loop = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        host = self._make_host()
        async with trio.open_nursery() as nursery:
            await nursery.start(host.run)
            async with trio.open_nursery() as clients:
                accept_all(self._listeners, host, clients)
                self._started.set()
                await self._stop.wait()
                await host.close("the server closed the session")
                clients.cancel_scope.cancel()
            nursery.cancel_scope.cancel()
