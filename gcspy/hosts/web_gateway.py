"""A gateway for web browsers: serves the page, and joins each page to the session as one more client.

A page is a client like a window: its bytes are those of `protocol/SPEC.md`, in binary messages of a WebSocket, and the gateway passes them to the
session's Unix socket and back. So roles, limits, queues and classes are the session's, and a page that reads slowly loses events as a slow window does:
nothing is queued here.

The Unix socket trusts this user's processes. Therefore the gateway asks each page for a proof of the token first; the token itself is never sent. It
accepts WebSockets only from the page that it served (origin), and on loopback only under the names of loopback, so that no other page can use a browser.

Knows HTTP, WebSockets and sockets; does not know frames.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

import trio
from gcspy_protocol.address import TcpAddress, UnixAddress, parse_address
from gcspy_protocol.errors import CommandError
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.trio.server import ServerConnection, serve

from gcspy_session.network.listeners import close_all, open_all

if TYPE_CHECKING:
    from gcspy_client.lessons import Lesson
    from gcspy_session.network.listeners import SocketListener

__all__ = ["WebGateway", "proof_of"]

_SESSION: Final = "/session"
_MOST_CONNECTIONS: Final = 300
"""A class of 256 clients, and browsers that load the page meanwhile. For one more, the connection is closed at once."""

_MOST_MESSAGE_BYTES: Final = 64 << 10
"""The greatest frame that a server accepts (SPEC.md 3.2)."""

_GREETING_SECS: Final = 15.0
_READ_BYTES: Final = 64 << 10
_LABEL: Final = b"GCspy page 1\r\n\r\n"
_WRONG_SECS: Final = 1.0
"""Time for which a page that does not know the token waits, so that guesses are slow."""

_GOODBYE_SECS: Final = 1.0
_GONE: Final = (ConnectionClosed, OSError, trio.BrokenResourceError, trio.ClosedResourceError)
"""Errors of a line whose other end has gone."""

_log = logging.getLogger("gcspy")
_quiet = logging.getLogger("gcspy.web")
_quiet.setLevel(logging.CRITICAL)
"""What strangers send is not worth a line each."""


def proof_of(token: str, nonce: bytes) -> str:
    """The proof of a page that it knows the token: HMAC-SHA256 with SHA-256 of the token as key, in hexadecimal."""
    return hmac.new(hashlib.sha256(token.encode()).digest(), _LABEL + nonce, "sha256").hexdigest()


class _BoundedListener(trio.abc.Listener[trio.SocketStream]):
    """A listener that closes connections beyond a number, so that they cannot take all descriptors of the process."""

    def __init__(self, listening: trio.socket.SocketType) -> None:
        self.socket = listening
        self._listener = trio.SocketListener(listening)
        self._open: list[trio.SocketStream] = []

    async def accept(self) -> trio.SocketStream:
        """The next connection for which there is room."""
        while True:
            stream = await self._listener.accept()
            self._open = [one for one in self._open if one.socket.fileno() >= 0]
            if len(self._open) < _MOST_CONNECTIONS:
                self._open.append(stream)
                return stream
            await trio.aclose_forcefully(stream)

    async def aclose(self) -> None:
        """Stop listening."""
        await self._listener.aclose()


class WebGateway:
    """A gateway, in a thread of its own.

    Args:
        session: The session's Unix address.
        addresses: Addresses to listen at: loopback, or with TLS.
        token: The token of the session.
        title: Title of the page.
        lesson: The lesson that the session is of, if it does not come with GCspy.

    Attributes:
        pages: Addresses of the page, for browsers; with TLS, the fingerprint of the certificate is after the blank.

    Raises:
        CommandError: An address is malformed, or needs TLS.
        LinkError: An address is taken.
    """

    def __init__(
        self,
        session: str,
        addresses: Sequence[str],
        *,
        token: str,
        title: str,
        lesson: Lesson | None = None,
    ) -> None:
        place = parse_address(session)
        if not isinstance(place, UnixAddress):
            raise CommandError(f"{session}: pages join at a Unix socket")
        self._path, self._token, self._title, self._lesson = place.path, token, title, lesson
        self._listeners = open_all(addresses, token=token)
        self.pages = tuple(map(_page_address, self._listeners))
        self._pages: set[ServerConnection] = set()
        self._stop: Callable[[], None] | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gcspy web", daemon=True)
        self._thread.start()
        self._started.wait()

    def close(self) -> None:
        """Close all pages, and stop listening."""
        if self._stop is not None:
            with suppress(trio.RunFinishedError):
                self._stop()
        self._thread.join()

    # ------------------------------------------------------------------ its thread

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException:  # noqa: BLE001 - whatever it was, the session goes on without pages
            _log.exception("web pages are not served any more because of an internal error")
        finally:
            close_all(self._listeners)
            self._started.set()

    async def _main(self) -> None:
        loop = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            for listener in self._listeners:
                accepting = _BoundedListener(trio.socket.from_stdlib_socket(listener.socket))
                nursery.start_soon(self._serve, accepting, listener.tls, _hosts(listener))

            def stop() -> None:
                loop.run_sync_soon(nursery.start_soon, self._say_end, nursery.cancel_scope)

            self._stop = stop
            self._started.set()

    async def _say_end(self, scope: trio.CancelScope) -> None:
        """Tell all pages that the session ends, and end."""
        with trio.move_on_after(_GOODBYE_SECS):
            async with trio.open_nursery() as nursery:
                for page in self._pages:
                    nursery.start_soon(_say, page, {"ended": True})
        scope.cancel()

    async def _serve(
        self,
        accepting: _BoundedListener,
        tls: ssl.SSLContext | None,
        hosts: frozenset[str],
    ) -> None:
        scheme = "http" if tls is None else "https"

        def process(page: ServerConnection, request: Request) -> Response | None:
            return self._answer(page, request, scheme, hosts)

        async with accepting:
            await serve(
                self._join,
                listeners=[cast(trio.SocketListener, accepting)],
                ssl=tls,
                process_request=process,
                server_header=None,
                compression=None,
                open_timeout=_GREETING_SECS,
                max_size=_MOST_MESSAGE_BYTES,
                max_queue=4,
                logger=_quiet,
            )

    # ------------------------------------------------------------------ HTTP

    def _answer(
        self, page: ServerConnection, request: Request, scheme: str, hosts: frozenset[str]
    ) -> Response | None:
        """The answer to a request; None: it is a WebSocket that may be opened."""
        hosts_given = request.headers.get_all("Host")
        host = hosts_given[0] if len(hosts_given) == 1 else ""
        if not host or (hosts and _name_of(host) not in hosts):
            return page.respond(
                HTTPStatus.MISDIRECTED_REQUEST, "This is not the address of the page.\n"
            )
        path = request.path.partition("?")[0]
        if path == _SESSION:
            origins = request.headers.get_all("Origin")
            if origins != [f"{scheme}://{host}"]:
                return page.respond(
                    HTTPStatus.FORBIDDEN, "Only the page of this address may connect.\n"
                )
            return None
        if path != "/":
            return page.respond(HTTPStatus.NOT_FOUND, "There is only one page: /\n")
        return _response(self._page)

    @cached_property
    def _page(self) -> bytes:
        from gcspy_client.lessons import shipped_lessons
        from gcspy_client.page import page_of_session
        from gcspy_client.translation import LANGUAGE_VARIABLE, chosen_language

        lessons = [*shipped_lessons(), *([] if self._lesson is None else [self._lesson])]
        own = chosen_language(os.environ.get(LANGUAGE_VARIABLE, ""))
        return page_of_session(self._title, lessons, asks_token=bool(self._token), language=own)

    # ------------------------------------------------------------------ pages

    async def _join(self, page: ServerConnection) -> None:
        """Join a page to the session, until either of them ends."""
        try:
            if not await self._knows_token(page):
                return
            async with await trio.open_unix_socket(self._path) as stream:
                await _say(page, {"ready": True})
                self._pages.add(page)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_pass_up, page, stream, nursery.cancel_scope)
                    await _pass_down(stream, page)
                    nursery.cancel_scope.cancel()
        except _GONE:
            pass
        finally:
            self._pages.discard(page)

    async def _knows_token(self, page: ServerConnection) -> bool:
        nonce = secrets.token_bytes(32)
        await _say(page, {"nonce": nonce.hex()})
        proof: object = ""
        with trio.move_on_after(_GREETING_SECS):
            message = await page.recv()
            with suppress(ValueError, RecursionError, AttributeError):
                proof = json.loads(message).get("proof") if isinstance(message, str) else ""
        given = proof if isinstance(proof, str) else ""
        if hmac.compare_digest(
            given.encode(errors="replace"), proof_of(self._token, nonce).encode()
        ):
            return True
        await trio.sleep(_WRONG_SECS)
        await _say(page, {"error": "The token is wrong."})
        return False


async def _say(page: ServerConnection, words: Mapping[str, str | bool]) -> None:
    """Send something that is not the session's; a page that is gone misses it."""
    with suppress(*_GONE):
        await page.send(json.dumps(words))


async def _pass_up(
    page: ServerConnection, stream: trio.SocketStream, scope: trio.CancelScope
) -> None:
    """From a page to the session: binary messages only."""
    with suppress(*_GONE):
        async for message in page:
            if isinstance(message, str):
                break
            await stream.send_all(message)
    scope.cancel()


async def _pass_down(stream: trio.SocketStream, page: ServerConnection) -> None:
    """From the session to a page: reads no more while the page does not."""
    with suppress(*_GONE):
        while data := await stream.receive_some(_READ_BYTES):
            await page.send(bytes(data))


def _response(body: bytes) -> Response:
    headers = Headers()
    for name, value in (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ):
        headers[name] = value
    return Response(HTTPStatus.OK, "OK", headers, body)


def _name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _hosts(listener: SocketListener) -> frozenset[str]:
    """The names under which a page is served; empty: any, since TLS names the machine."""
    return (
        frozenset() if listener.tls is not None else frozenset({"127.0.0.1", "localhost", "[::1]"})
    )


def _page_address(listener: SocketListener) -> str:
    """The address of the page for browsers."""
    place = listener.address
    assert isinstance(place, TcpAddress)
    host = socket.gethostname() if place.host in ("0.0.0.0", "::") else place.host
    host = f"[{host}]" if ":" in host else host
    if listener.tls is None:
        return f"http://{host}:{place.port}/"
    return f"https://{host}:{place.port}/ (SHA-256 of its certificate: {place.fingerprint})"
