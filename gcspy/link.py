"""A blocking connection to a server: for text tools and tests, without trio and without Qt.

    with connect("unix:/run/user/1000/gcspy/4711.sock", client="gcspy tail") as link:
        for message in link:
            change = interpreter.apply(message)

`gcspy.lasting` makes a lost one anew. Knows sockets and the sans-IO
`Connection`; knows nothing of what the messages mean.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType

from gcspy_protocol import Connection
from gcspy_protocol.address import Address, TcpAddress, UnixAddress, parse_address
from gcspy_protocol.errors import LinkError, Refused, RemoteProtocolError
from gcspy_protocol.messages import Error, Goodbye, Hello, Message, Ping, Pong, Welcome
from gcspy_protocol.model import Role

__all__ = ["Link", "Tap", "connect"]

_RECEIVE_BYTES = 1 << 20

_REST_SECS = 1.0
"""How long the rest of what a server said is waited for that has closed its end."""

Tap = Callable[[bytes], None]
"""Told of all bytes that a server sends, from the first on, as the connection is."""


class Link:
    """An open connection, greeted and welcomed; made by `connect`.

    Attributes:
        address: Where it leads.
        welcome: How the server introduced itself; also the first message of the iteration.
    """

    def __init__(
        self,
        address: Address,
        sock: socket.socket,
        connection: Connection,
        welcome: Welcome,
        *,
        tap: Tap | None = None,
    ) -> None:
        self._tap = tap
        self.address = address
        self.welcome = welcome
        self._socket = sock
        self._connection = connection
        self._ready: deque[Message] = deque([welcome])
        self._dismissal: Error | None = None

    def receive(self, timeout_secs: float | None = None) -> Message | None:
        """The next message; pings are answered on the way.

        Args:
            timeout_secs: How long to wait in all; None: without end.

        Returns:
            A message, or None when the server said goodbye before, or nothing came in time
            (`closed` tells which).

        Raises:
            LinkError: The connection is lost.
            Refused: The server ended the connection with an error, which was the message before.
            RemoteProtocolError: The server broke the protocol.
        """
        give_up = None if timeout_secs is None else time.monotonic() + timeout_secs
        while True:
            message = self._ready.popleft() if self._ready else self._connection.next_message()
            if isinstance(message, Ping):
                self.send(Pong(number=message.number))
            elif message is not None:
                if isinstance(message, Error) and message.fatal:
                    self._dismissal = message
                return message
            elif self._dismissal is not None:
                raise _refused(self.address, self._dismissal)
            elif self.closed or not self._fill(give_up):
                return None

    @property
    def closed(self) -> bool:
        """Whether the server ended the connection on purpose."""
        return self._connection.their_state.value == "closed"

    def _fill(self, give_up: float | None) -> bool:
        """Take bytes from the socket; False when none came in time."""
        left = None if give_up is None else give_up - time.monotonic()
        if left is not None and left <= 0:
            return False
        self._socket.settimeout(left)
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except TimeoutError:
            return False
        except OSError as error:
            raise LinkError(
                f"the connection to {self.address} is lost: {error.strerror or error}"
            ) from error
        if not data:
            try:
                self._connection.receive_eof()
            except RemoteProtocolError as error:
                raise LinkError(f"the connection to {self.address} was cut: {error}") from error
            raise LinkError(
                f"the server at {self.address} is gone without a goodbye; is its process alive?"
            )
        self._connection.receive_data(data)
        if self._tap is not None:
            self._tap(data)
        return True

    def __iter__(self) -> Iterator[Message]:
        while (message := self.receive()) is not None:
            yield message

    def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            LinkError: The connection is lost.
            Refused: The server had ended it with an error.
        """
        data = self._connection.send(message)
        self._socket.settimeout(None)
        try:
            self._socket.sendall(data)
        except OSError as error:
            self._read_rest()
            for one in self._ready:
                if isinstance(one, Error) and one.fatal:
                    raise _refused(self.address, one) from error
            raise LinkError(
                f"the connection to {self.address} is lost: {error.strerror or error}"
            ) from error

    def _read_rest(self) -> None:
        """Read what the server sent before it closed: the reason, as a rule."""
        try:
            while self._fill(time.monotonic() + _REST_SECS):
                pass
        except LinkError:
            pass  # the end, which is what was read for
        try:
            self._ready.extend(self._connection.messages())
        except RemoteProtocolError:
            pass  # a frame was cut; what came before it is there

    def close(self) -> None:
        """Say goodbye and close; harmless when it is closed or lost."""
        if self._socket.fileno() < 0:
            return
        try:
            if not self.closed:
                self.send(Goodbye())
        except LinkError:
            pass  # the server is gone: that is what we wanted
        finally:
            self._socket.close()

    def __enter__(self) -> Link:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def connect(
    address: str | Address,
    *,
    token: str = "",
    client: str = "gcspy",
    wants_control: bool = False,
    pause_at_connect: bool = False,
    person: str = "",
    following: bool = False,
    timeout_secs: float = 5.0,
    tap: Tap | None = None,
) -> Link:
    """Connect to a server and greet it.

    Args:
        address: Where; see `gcspy_protocol.address`.
        token: The secret that TCP needs.
        client: Name of this program, as the others see it.
        wants_control: Ask to be the controller.
        pause_at_connect: As controller, pause after the first transmission.
        person: Name of who sits there, for a class.
        following: Follow the one who leads the class.
        timeout_secs: For connecting and for the server's answer.
        tap: Told of all bytes that the server sends.

    Raises:
        CommandError: The address is malformed.
        LinkError: Nobody listens there, or nobody answers.
        Refused: The server said no.
        VersionMismatch: It speaks other protocol versions.
        RemoteProtocolError: It is no GCspy server.
    """
    place = parse_address(address) if isinstance(address, str) else address
    sock = _open(place, timeout_secs)
    try:
        connection = Connection(Role.CLIENT)
        hello = Hello(
            client=client,
            token=token,
            wants_control=wants_control,
            pause_at_connect=pause_at_connect,
            person=person,
            following=following,
        )
        welcome = _greet(place, sock, connection, hello, tap)
    except BaseException:
        sock.close()
        raise
    return Link(place, sock, connection, welcome, tap=tap)


def _refused(place: Address, error: Error) -> Refused:
    """The error of a connection that the server ended after it had welcomed us."""
    return Refused(
        f"the server at {place} ended the connection: {error.message}",
        code=error.code.name.lower(),
        remedy=error.remedy,
    )


def _open(place: Address, timeout_secs: float) -> socket.socket:
    try:
        if isinstance(place, UnixAddress):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(timeout_secs)
                sock.connect(place.path)
            except BaseException:
                sock.close()
                raise
            return sock
        plain = socket.create_connection((place.host, place.port), timeout_secs)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise LinkError(
            f"cannot connect to {place}: {error.strerror or error}; is the server running? (`gcspy ps` lists targets)"
        ) from error
    return _encrypt(place, plain) if place.tls else plain


def _encrypt(place: TcpAddress, plain: socket.socket) -> ssl.SSLSocket:
    """Speak TLS, and trust exactly the certificate that the join line names."""
    try:
        if place.fingerprint is None:
            raise LinkError(
                f"{place}: the fingerprint is missing; use the whole join line, with #sha256=…"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # the pin below is stricter than any authority
        try:
            encrypted = context.wrap_socket(plain)
        except OSError as error:
            raise LinkError(f"{place} does not speak TLS: {error}") from error
    except BaseException:
        plain.close()
        raise
    found = hashlib.sha256(encrypted.getpeercert(binary_form=True) or b"").hexdigest()
    if not hmac.compare_digest(found, place.fingerprint):
        encrypted.close()
        raise LinkError(
            f"{place}: the server's certificate has the fingerprint {found}: it is another server than the join line "
            "means, or somebody is in between; ask for the join line again"
        )
    return encrypted


def _greet(
    place: Address, sock: socket.socket, connection: Connection, hello: Hello, tap: Tap | None
) -> Welcome:
    """Exchange the greetings; messages behind the Welcome stay in the connection."""
    any_came = False
    try:
        sock.sendall(connection.preamble() + connection.send(hello))
        while (message := connection.next_message()) is None:
            data = sock.recv(_RECEIVE_BYTES)
            if not data and not any_came:
                # As a tunnel does whose other end has nobody to connect to: that breaks no protocol.
                raise LinkError(
                    f"{place} closed the connection before it greeted; is the server running?"
                )
            any_came = True
            if not data:
                connection.receive_eof()
            connection.receive_data(data)
            if tap is not None:
                tap(data)
    except TimeoutError as error:
        raise LinkError(f"the server at {place} does not answer; is it a GCspy server?") from error
    except OSError as error:
        raise LinkError(f"the connection to {place} is lost: {error.strerror or error}") from error
    if isinstance(message, Error):
        raise Refused(message.message, code=message.code.name.lower(), remedy=message.remedy)
    if not isinstance(message, Welcome):
        raise RemoteProtocolError(f"{type(message).__name__} instead of a welcome from {place}")
    return message
