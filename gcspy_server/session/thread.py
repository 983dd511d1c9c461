"""The thread in which a session lives: trio's loop, started and stopped from the driver's side.

A daemon thread: a program that forgets to close its server can still end.
Knows threads, listeners and the session; knows nothing of what is sent.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import trio

from gcspy_server.interpreter.core import Core
from gcspy_server.session.client import log
from gcspy_server.session.listeners import Listener, close_all, open_all
from gcspy_server.session.options import SessionOptions
from gcspy_server.session.session import Introduction, Session
from gcspy_server.session.transport import Transport, peer_of

if TYPE_CHECKING:
    from gcspy_server.server import Server

__all__ = ["SessionThread"]


class SessionThread:
    """Runs one session.

    Args:
        server: Whom it introduces.
        core: The driver's side.
        addresses: Where to listen.
        token: What TCP clients must know.
        options: Limits and deadlines.
    """

    def __init__(
        self,
        server: Server,
        core: Core,
        addresses: Sequence[str],
        *,
        token: str | None,
        options: SessionOptions,
    ) -> None:
        self._introduction = Introduction(
            server=server.name,
            events=server.events,
            mode=server.mode,
            pause_acts_on=server.pause_acts_on,
            general_info=server.general_info,
            target=server.target,
            wall_offset_nanos=time.time_ns() - time.monotonic_ns(),
        )
        self._core = core
        self._addresses = addresses
        self._token = token
        self._options = options
        self._started = threading.Event()
        self._loop: trio.lowlevel.TrioToken | None = None
        self._stop: trio.Event | None = None
        self._listeners: list[Listener] = []
        self._thread = threading.Thread(target=self._run, name="gcspy-session", daemon=True)

    def start(self) -> tuple[str, ...]:
        """Listen, and start the thread.

        Returns:
            The addresses that clients join with.

        Raises:
            LinkError: An address is taken.
            CommandError: An address may not be listened at.
        """
        self._listeners = open_all(self._addresses, token=self._token)
        self._thread.start()
        self._started.wait()
        return tuple(str(listener.address) for listener in self._listeners)

    def stop(self) -> None:
        """End the session and wait for its thread; harmless when it has ended."""
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
            log.exception("the session ended by an internal error")
        finally:
            close_all(self._listeners)
            self._started.set()

    async def _main(self) -> None:
        self._loop = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        session = Session(self._introduction, self._core, token=self._token, options=self._options)
        async with trio.open_nursery() as nursery:
            await nursery.start(session.run)
            async with trio.open_nursery() as clients:
                for listener in self._listeners:
                    clients.start_soon(partial(_listen, listener, session, clients))
                self._started.set()
                await self._stop.wait()
                await session.close("the server closed the session")
                clients.cancel_scope.cancel()
            nursery.cancel_scope.cancel()


async def _listen(listener: Listener, session: Session, clients: trio.Nursery) -> None:
    accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener.socket))

    async def handle(stream: trio.SocketStream) -> None:
        await session.serve(_transport(stream, listener))

    await trio.serve_listeners(handle, [accepting], handler_nursery=clients)


def _transport(stream: trio.SocketStream, listener: Listener) -> Transport:
    who, uid = peer_of(stream)
    if listener.tls is not None:
        encrypted = trio.SSLStream(stream, listener.tls, server_side=True, https_compatible=True)
        return Transport(encrypted, f"tls {who.removeprefix('tcp ')}", trusted=False)
    if uid is None:
        return Transport(stream, who, trusted=False)
    ours = os.geteuid()
    refusal = "" if uid in (ours, 0) else f"uid {uid} may not connect to a session of uid {ours}"
    return Transport(stream, who, trusted=True, refusal=refusal)
