"""A blocking connection to a server: for text tools and tests, without trio and without Qt.

    with connect("unix:/run/user/1000/gcspy/4711.sock", client="gcspy tail") as link:
        for message in link:
            change = interpreter.apply(message)

`gcspy.connection.reconnecting_link` restores a lost one. Knows sockets and the sans-IO
`Connection`; does not know the meaning of the messages.
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
from gcspy_protocol.errors import (
    CommandError,
    LinkError,
    LocalProtocolError,
    Refused,
    RemoteProtocolError,
    Unproven,
)
from gcspy_protocol.handshake.credentials import Credentials, channel_of
from gcspy_protocol.messages import (
    Challenge,
    Error,
    ErrorCode,
    Goodbye,
    Hello,
    Message,
    Ping,
    Pong,
    Proof,
    Welcome,
)
from gcspy_protocol.model import Role

__all__ = ["Link", "Tap", "connect"]

_RECEIVE_BYTES = 1 << 20

_REST_SECS = 1.0
"""How long to wait for the last data of a server that has closed its end."""

Tap = Callable[[bytes], None]
"""Receives all bytes of the server, from the first on, unchanged."""


class Link:
    """An open connection after the greeting; made by `connect`.

    Attributes:
        address: The server's address.
        welcome: The server's greeting; also the first message of the iteration.
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
            timeout_secs: How long to wait in all; None: no limit.

        Returns:
            A message, or None if the server said goodbye before, or nothing arrived in time
            (`closed` says which).

        Raises:
            LinkError: The connection is lost.
            Refused: The server ended the connection with an error, which was the previous message.
            RemoteProtocolError: The server violated the protocol.
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
        """Read bytes from the socket; False if none arrived in time."""
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
                f"the server at {self.address} closed the connection without a goodbye; is its process still running?"
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
        """Read what the server sent before it closed: usually the reason."""
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
        address: The server's address; see `gcspy_protocol.address`.
        token: The secret for TCP. Over plain TCP and Unix sockets it is never sent, only proved.
        client: Name of this program, as the others see it.
        wants_control: Request to be the controller.
        pause_at_connect: As controller, pause after the first transmission.
        person: Name of the user, for a class.
        following: Follow the leader of the class.
        timeout_secs: For connecting, and for all of the greeting.
        tap: Receives all bytes that the server sends.

    Raises:
        CommandError: The address is malformed, or it is plain TCP beyond this machine.
        LinkError: No server listens there, or it does not answer.
        Refused: The server refused, or has not proved that it knows the token.
        VersionMismatch: It speaks other protocol versions.
        RemoteProtocolError: It is not a GCspy server.
    """
    place = parse_address(address) if isinstance(address, str) else address
    sock = _open(place, timeout_secs)
    try:
        credentials = Credentials(token, channel_of(place))
        connection = Connection(Role.CLIENT, credentials=credentials)
        hello = Hello(
            client=client,
            wants_control=wants_control,
            pause_at_connect=pause_at_connect,
            person=person,
            following=following,
        )
        give_up = time.monotonic() + timeout_secs
        greeting = credentials.greeting(hello)
        exchange = _Greeting(place, sock, connection, tap, give_up, insists=credentials.insists)
        welcome = exchange.run(greeting)
    except Unproven as error:
        _tell_unproven(sock, connection)
        sock.close()
        raise Refused(
            f"the server at {place} cannot prove that it knows the token ({error})",
            code=ErrorCode.TOKEN.name.lower(),
            remedy="the token was not sent: check the address with the person who started the server, and give its token with --token-file, GCSPY_TOKEN or at the prompt",
        ) from error
    except BaseException:
        sock.close()
        raise
    return Link(place, sock, connection, welcome, tap=tap)


def _refused(place: Address, error: Error) -> Refused:
    """The error of a connection that the server ended after its Welcome."""
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
        plain = _open_tcp(place, timeout_secs)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise LinkError(
            f"cannot connect to {place}: {error.strerror or error}; is the server running? (`gcspy ps` lists targets)"
        ) from error
    return _encrypt(place, plain) if place.tls else plain


def _open_tcp(place: TcpAddress, timeout_secs: float) -> socket.socket:
    """Connect to the host; without TLS only if it is this machine."""
    if place.tls:
        return socket.create_connection((place.host, place.port), timeout_secs)
    failure = OSError(f"{place.host} has no address")
    for _, _, _, _, where in socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM):
        host = str(where[0])
        if not TcpAddress(host, place.port).is_loopback:
            raise CommandError(
                f"{place.exposure}: connect to tls:{place}#sha256=… as the server prints it, "
                f"or through a tunnel, `ssh -N -L {place.port}:127.0.0.1:{place.port} {place.host}`"
            )
        try:
            return socket.create_connection((host, place.port), timeout_secs)
        except OSError as error:
            failure = error
    raise failure


def _tell_unproven(sock: socket.socket, connection: Connection) -> None:
    """Send the server a line for its log, so that its administrator learns of a wrong token."""
    why = Error(
        code=ErrorCode.TOKEN,
        message="wrong token: the server's proof does not match this client's token",
        fatal=True,
    )
    try:
        sock.sendall(connection.send(why))
    except (OSError, LocalProtocolError):
        return  # it does not read any more, or nothing may be sent


def _encrypt(place: TcpAddress, plain: socket.socket) -> ssl.SSLSocket:
    """Use TLS, and trust exactly the certificate that the join line names."""
    try:
        if place.fingerprint is None:
            raise LinkError(
                f"{place}: the fingerprint is missing; use the complete join line, including #sha256=…"
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
            f"{place}: the server's certificate has the fingerprint {found}: this is not the server of the join line, or the connection is intercepted; ask for the join line again"
        )
    return encrypted


class _Greeting:
    """The exchange of greetings and proofs; messages behind the Welcome stay in the connection.

    Args:
        place: The server's address.
        sock: The socket.
        connection: Its protocol.
        tap: Receives all bytes of the server.
        give_up: When to stop waiting, by the monotonic clock: a server that sends single bytes does
            not prolong it.
        insists: Whether the server has to prove itself.
    """

    def __init__(
        self,
        place: Address,
        sock: socket.socket,
        connection: Connection,
        tap: Tap | None,
        give_up: float,
        *,
        insists: bool,
    ) -> None:
        self._place, self._socket, self._connection = place, sock, connection
        self._tap, self._give_up = tap, give_up
        self._any_came = False
        self._insists = insists

    def run(self, hello: Hello) -> Welcome:
        """Greet, exchange proofs if needed, and wait for the Welcome."""
        try:
            self._socket.sendall(self._connection.preamble() + self._connection.send(hello))
            while isinstance(message := self._next(), Challenge | Proof):
                if isinstance(message, Proof):
                    self._insists = False
                    self._socket.sendall(self._connection.prove())
        except TimeoutError as error:
            raise LinkError(
                f"the server at {self._place} does not answer; is it a GCspy server?"
            ) from error
        except OSError as error:
            raise LinkError(
                f"the connection to {self._place} is lost: {error.strerror or error}"
            ) from error
        if isinstance(message, Error):
            raise self._refused(message)
        if not isinstance(message, Welcome):
            raise RemoteProtocolError(
                f"{type(message).__name__} instead of a welcome from {self._place}"
            )
        return message

    def _refused(self, error: Error) -> Refused:
        code = error.code.name.lower()
        if not self._insists:
            return Refused(error.message, code=code, remedy=error.remedy)
        # A server that has not proved itself is quoted, without its advice.
        return Refused(
            f"the server at {self._place} has not proved that it knows the token, and reports: {error.message}",
            code=code,
        )

    def _next(self) -> Message:
        """Wait for the next message."""
        while (message := self._connection.next_message()) is None:
            left = self._give_up - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            data = self._socket.recv(_RECEIVE_BYTES)
            if not data:
                self._end_of_data()
            self._any_came = True
            self._connection.receive_data(data)
            if self._tap is not None:
                self._tap(data)
        return message

    def _end_of_data(self) -> None:
        """The server closed before its Welcome."""
        if not self._any_came:
            # A tunnel does so if its other end cannot connect: that violates no protocol.
            raise LinkError(
                f"{self._place} closed the connection before its greeting; is the server running?"
            )
        spoke = self._connection.their_versions is not None
        try:
            self._connection.receive_eof()
        except RemoteProtocolError as error:
            if spoke:  # it was cut off, or killed: the caller decides whether to try again
                raise LinkError(
                    f"{self._place} closed the connection before its welcome: {error}"
                ) from error
            raise
