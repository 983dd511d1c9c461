"""The link: a Qt socket under the sans-IO connection, with reconnecting.

It moves bytes and says where it stands; what messages mean is the session's
business. There is no thread and no second event loop: everything happens in
Qt's, and after `shut` no timer and no socket is left.

A read buffer is bounded, so that a window that cannot keep up slows its own
socket down; the server then leaves events out and says how many. So does a tap that has
no room: reading is held until it has.
"""

from __future__ import annotations

import time
from typing import Protocol

from gcspy_protocol.address import Address, TcpAddress, UnixAddress
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    Unproven,
    VersionMismatch,
)
from gcspy_protocol.handshake.credentials import Channel, Credentials, channel_of
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
from PySide6.QtCore import QCryptographicHash, QObject, Qt, QTimer, Signal
from PySide6.QtNetwork import QAbstractSocket, QHostAddress, QLocalSocket, QSslSocket, QTcpSocket

from gcspy_client.model.shell.link_meter import LinkMeter
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus, retry_delay_secs

__all__ = ["WindowLink", "Tap"]

_READ_BUFFER_BYTES = 8 << 20
"""Two keyframes of a million i4 tiles: enough to be read at once, bounded all the same."""

_GREETING_MILLIS = 10_000
"""From the first try to the welcome; a local server needs some 5 ms, one across the world some 500."""

_PING_MILLIS = 1_500
"""A held target is released if its controller is silent for 5 s (server's `silence_secs`)."""

_QUICK_PING_MILLIS = 500
"""A controller with a successor has to be heard each 1.5 s (server's `succession_secs`), however much it has to read before it sees the server's pings."""

_SILENT_MILLIS = 15_000
"""A peer that has left all pings of this span unanswered is dead."""

_LASTING_SECS = 2.0
"""A connection that is lost sooner counts as another failed try."""

_REFUSAL_REMEDIES = {
    ErrorCode.TOKEN: "give the token of the session with --token-file or GCSPY_TOKEN, or in Connect…",
    ErrorCode.BUSY: "reconnect when another client has left",
    ErrorCode.TOO_MUCH: "reconnect, and request less at a time",
    ErrorCode.TOO_SLOW: "reconnect; if it happens again, use a faster network",
}


class Tap(Protocol):
    """Gets all data that a link receives, before any other code."""

    def connected(self) -> None:
        """A connection begins: what is received from now on is its."""

    def received(self, data: bytes, messages: list[Message]) -> bool:
        """Take what was read, and the messages that it completed.

        Returns:
            Whether there is room for more; otherwise nothing is read before `WindowLink.read_on`.
        """


class WindowLink(QObject):
    """One connection to a server, made again when it is lost.

    Attributes:
        status: Its state.
        meter: The traffic of the connection since it was made.
        tap: Gets all received data; None: there is none. Set it before `open`.
        person: Name of the user, sent with the greeting; empty: not given.
        follows: Whether the greeting says that this client follows the leader of the class.

    Signals:
        status_changed: A `LinkStatus`.
        welcomed: A new connection was welcomed: code that applies the messages starts again.
        received: A list of messages, in order.
        refused: A non-fatal `Error`: a command was refused.
    """

    status_changed = Signal(object)
    welcomed = Signal()
    received = Signal(object)
    refused = Signal(object)
    _room = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.status = LinkStatus(phase=LinkPhase.IDLE)
        self.meter = LinkMeter()
        self.tap: Tap | None = None
        self.person = ""
        self.follows = False
        self._held = False
        self._address: Address | None = None
        self._token = ""
        self._wants_control = True
        self._socket: QLocalSocket | QTcpSocket | None = None
        self._credentials = Credentials("", Channel.LOCAL)
        self._connection = Connection(Role.CLIENT)
        self._proven = False
        self._attempt = 0
        self._was_live = False
        self._live_since = 0.0
        self._pings = 0
        self._unanswered = 0
        self._ping_millis = _PING_MILLIS
        self._retry = self._timer(self._connect, single=True)
        self._patience = self._timer(self._give_up_waiting, single=True)
        self._heartbeat = self._timer(self._ping, single=False)
        self._room.connect(self._release, Qt.ConnectionType.QueuedConnection)

    def _timer(self, slot: object, *, single: bool) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(single)
        timer.timeout.connect(slot)
        return timer

    # ------------------------------------------------------------------ for the user

    @property
    def address(self) -> Address | None:
        """The server's address, since `open`."""
        return self._address

    def open(
        self, address: Address, *, token: str | None = None, wants_control: bool = True
    ) -> None:
        """Connect to a server, leaving any other."""
        self.close()
        self._address = address
        self._token = token or ""
        self._wants_control = wants_control
        self._attempt = 0
        self._was_live = False
        self._connect()

    def beat(self, *, quickly: bool) -> None:
        """Send pings more often, as long as a successor is named."""
        millis = _QUICK_PING_MILLIS if quickly else _PING_MILLIS
        if millis != self._ping_millis:
            self._unanswered, self._ping_millis = 0, millis
            if self._heartbeat.isActive():
                self._heartbeat.start(millis)

    def reconnect(self) -> None:
        """Connect again to the same server, now."""
        if self._address is not None:
            self.open(self._address, token=self._token, wants_control=self._wants_control)

    def close(self, reason: str = "") -> None:
        """Say goodbye and stay disconnected."""
        if self._socket is not None and self.status.phase is LinkPhase.LIVE:
            self.send(Goodbye(reason=reason))
            self._socket.flush()
        self._drop_socket()
        self._retry.stop()
        if self.status.phase is not LinkPhase.IDLE:
            self._tell(LinkPhase.IDLE, "disconnected", "")

    def shut(self) -> None:
        """Say goodbye, and never signal again: the window is being closed."""
        self.blockSignals(True)
        self.close("the window was closed")

    def send(self, message: Message) -> None:
        """Send a message; nothing happens when no server is connected."""
        if self._socket is None or self.status.phase is not LinkPhase.LIVE:
            return
        try:
            self._socket.write(self._connection.send(message))
        except LocalProtocolError:
            return  # the connection has said goodbye in the meantime: as good as not connected

    def read_on(self) -> None:
        """The tap has room again; from any thread."""
        self._room.emit()

    @property
    def version(self) -> int | None:
        """Version of the protocol; None before the server has said what it speaks."""
        return self._connection.version

    @property
    def is_held(self) -> bool:
        """Whether nothing is read because the tap has no room."""
        return self._held

    def fail(self, error: RemoteProtocolError) -> None:
        """The messages do not fit together: end the connection and say why."""
        self._end(
            LinkPhase.FAILED,
            f"the server broke the protocol: {error}",
            "report this, with the server's version",
        )

    # -------------------------------------------------------------------- connecting

    def _connect(self) -> None:
        self._drop_socket()
        assert self._address is not None
        self._attempt += 1
        self._credentials = Credentials(self._token, channel_of(self._address))
        self._connection = Connection(Role.CLIENT, credentials=self._credentials)
        self._proven = False
        self.meter = LinkMeter()
        if self.tap is not None:
            self.tap.connected()
        if _is_elsewhere(self._address):
            self._refuse_plain_tcp()
            return
        self._tell(LinkPhase.CONNECTING, "", "")
        self._patience.start(_GREETING_MILLIS)
        if isinstance(self._address, UnixAddress):
            local = QLocalSocket(self)
            self._socket = local
            local.connected.connect(self._greet)
            local.errorOccurred.connect(self._local_error)
            self._wire(local)
            local.connectToServer(self._address.path)
        elif self._address.tls:
            secure = QSslSocket(self)
            self._socket = secure
            pinned = self._address.fingerprint is not None
            secure.setPeerVerifyMode(
                QSslSocket.PeerVerifyMode.QueryPeer
                if pinned
                else QSslSocket.PeerVerifyMode.VerifyPeer
            )
            secure.encrypted.connect(self._check_certificate)
            secure.errorOccurred.connect(self._tcp_error)
            self._wire(secure)
            secure.connectToHostEncrypted(self._address.host, self._address.port)
        else:
            tcp = QTcpSocket(self)
            self._socket = tcp
            tcp.connected.connect(self._greet)
            tcp.errorOccurred.connect(self._tcp_error)
            self._wire(tcp)
            tcp.connectToHost(self._address.host, self._address.port)

    def _wire(self, socket: QLocalSocket | QTcpSocket) -> None:
        socket.setReadBufferSize(_READ_BUFFER_BYTES)
        socket.readyRead.connect(self._read)
        socket.disconnected.connect(self._disconnected)

    def _check_certificate(self) -> None:
        """TLS stands: nothing was sent so far, and nothing is unless this is the pinned certificate."""
        socket, address = self._socket, self._address
        if not isinstance(socket, QSslSocket) or not isinstance(address, TcpAddress):
            return
        if address.fingerprint is not None:
            digest = socket.peerCertificate().digest(QCryptographicHash.Algorithm.Sha256)
            found = bytes(digest.toHex().data()).decode("ascii")
            if found != address.fingerprint:
                self._end(
                    LinkPhase.FAILED,
                    f"the certificate of {address.host}:{address.port} is not the pinned one (its SHA-256 begins "
                    f"{found[:16]}…, expected {address.fingerprint[:16]}…)",
                    "ask for the current join line; if you used the current one, the connection is intercepted",
                )
                return
        self._greet()

    def _refuse_plain_tcp(self) -> None:
        """The server is on another machine, and what it sends would go there and back in the clear."""
        place = self._address
        assert isinstance(place, TcpAddress)
        self._end(
            LinkPhase.FAILED,
            place.exposure,
            f"connect to tls:{place}#sha256=… as the server prints it, or through a tunnel: "
            f"ssh -N -L {place.port}:127.0.0.1:{place.port} {place.host}",
        )

    def _greet(self) -> None:
        if self._socket is None:
            return
        if (
            self._credentials.channel is Channel.PLAIN_TCP
            and isinstance(self._socket, QTcpSocket)
            and not self._socket.peerAddress().isLoopback()
        ):
            self._refuse_plain_tcp()  # a name that leads elsewhere: nothing was sent so far
            return
        self._tell(LinkPhase.GREETING, "", "")
        hello = Hello(
            client="gcspy window",
            wants_control=self._wants_control,
            person=self.person,
            following=self.follows,
        )
        greeting = self._connection.send(self._credentials.greeting(hello))
        self._socket.write(self._connection.preamble() + greeting)

    def _prove(self) -> None:
        """The server has proved that it knows the token: prove the same."""
        self._proven = True
        if self._socket is not None:
            self._socket.write(self._connection.prove())

    def _give_up_waiting(self) -> None:
        if self.status.phase is LinkPhase.CONNECTING:
            self._lose(
                f"no answer within {_GREETING_MILLIS // 1000} s",
                "check the address and the network",
            )
        elif self.status.phase is LinkPhase.GREETING:
            self._lose(
                f"the server accepted the connection but sent no greeting within {_GREETING_MILLIS // 1000} s",
                "check that a GCspy server listens there",
            )

    # --------------------------------------------------------------------- receiving

    def _read(self) -> None:
        if not self._held:
            self._read_now()

    def _release(self) -> None:
        self._held = False
        self._read_now()

    def _read_now(self) -> None:
        socket = self._socket
        if socket is None:
            return
        self._unanswered = 0
        # One whose other end has gone may be closed by now, of which Qt would complain.
        data = bytes(socket.readAll().data()) if socket.bytesAvailable() else b""
        self._connection.receive_data(data)
        self._deliver(data)

    def _deliver(self, data: bytes) -> None:
        """Hand on every message that is complete; then, if the peer broke the protocol, end."""
        batch: list[Message] = []
        failure: RemoteProtocolError | None = None
        try:
            for message in self._connection.messages():
                if isinstance(message, Proof):
                    self._prove()
                elif not isinstance(message, Challenge):
                    batch.append(message)
        except RemoteProtocolError as error:
            failure = error
        for message in batch:
            if isinstance(message, Ping):
                self.send(Pong(number=message.number))
            elif isinstance(message, Pong):
                self.meter.ponged(message.number, time.monotonic_ns())
            elif isinstance(message, Welcome):
                self._live()
        self.meter.take(len(data), batch)
        if self.tap is not None and data:
            self._held = not self.tap.received(data, batch)
        # Hand on before judging: what was whole is shown, also when the next frame is not.
        connection = self._connection
        news = [m for m in batch if not isinstance(m, (Ping, Pong, Error, Goodbye))]
        if news:
            self.received.emit(news)
        for message in batch:
            if isinstance(message, (Error, Goodbye)) and connection is self._connection:
                self._dismissed(message)
        if failure is not None and connection is self._connection and self._socket is not None:
            self._judge(failure)

    def _live(self) -> None:
        self._patience.stop()
        self._was_live = True
        self._live_since = time.monotonic()
        self._unanswered = 0
        self._heartbeat.start(self._ping_millis)
        self.welcomed.emit()
        self._tell(LinkPhase.LIVE, "", "")
        self._ping()

    def _dismissed(self, message: Error | Goodbye) -> None:
        if isinstance(message, Goodbye):
            self._end(
                LinkPhase.ENDED,
                f"the server closed the connection: {message.reason or 'it was closed'}",
                "",
            )
        elif message.fatal:
            remedy = message.remedy or _REFUSAL_REMEDIES.get(message.code, "")
            who = "the server refused the connection"
            if self._credentials.insists and not self._proven:
                # A server that has not proved itself is quoted, without its advice.
                who, remedy = (
                    "the server has not proved that it knows the token: it reports",
                    "",
                )
            self._end(LinkPhase.FAILED, f"{who}: {message.message}", remedy)
        else:
            self.refused.emit(message)

    def _judge(self, error: RemoteProtocolError) -> None:
        if isinstance(error, Unproven):
            self._tell_unproven()
            self._end(
                LinkPhase.FAILED,
                f"the server at {self._address} cannot prove that it knows the token ({error})",
                "the token was not sent: check the address with the person who started the server, and give its token with --token-file or GCSPY_TOKEN, or in Connect…",
            )
        elif isinstance(error, VersionMismatch):
            self._end(LinkPhase.FAILED, "another protocol version", str(error))
        elif self.status.phase is LinkPhase.GREETING:
            self._end(LinkPhase.FAILED, str(error), "check that a GCspy server listens there")
        else:
            self._lose(f"the server sent invalid data: {error}", "")

    def _tell_unproven(self) -> None:
        """Send the server a line for its log, so that its administrator learns of a wrong token."""
        why = Error(
            code=ErrorCode.TOKEN,
            message="wrong token: the server's proof does not match this client's token",
            fatal=True,
        )
        if self._socket is not None:
            self._socket.write(self._connection.send(why))
            self._socket.flush()

    def _ping(self) -> None:
        if self._held:
            self._unanswered = 0  # it is we who do not listen
        if self._unanswered * self._ping_millis >= _SILENT_MILLIS:
            self._lose(f"the server has been silent for {_SILENT_MILLIS // 1000} s", "")
            return
        self._pings += 1
        self._unanswered += 1
        self.meter.pinged(self._pings, time.monotonic_ns())
        self.send(Ping(number=self._pings))

    # ------------------------------------------------------------------------- ending

    def _disconnected(self) -> None:
        self._read_now()  # data before the end counts, and may be a goodbye
        if self._socket is None:
            return
        try:
            self._connection.receive_eof()
        except RemoteProtocolError as error:
            # Cut off while it greeted again, it may be there in a moment, as if it had not answered.
            if self.status.phase is LinkPhase.GREETING and not self._was_live:
                self._judge(error)
                return
        self._lose("the server closed the connection without a goodbye", "")

    def _local_error(self, error: QLocalSocket.LocalSocketError) -> None:
        if self._socket is None or error is QLocalSocket.LocalSocketError.PeerClosedError:
            return  # `disconnected` follows
        kinds = QLocalSocket.LocalSocketError
        messages = {
            kinds.ServerNotFoundError: (
                "there is no socket at this path",
                "the server has ended, or the path is wrong",
            ),
            kinds.ConnectionRefusedError: (
                "no server listens at this socket",
                "the server has ended: start it again with `gcspy attach PID`",
            ),
            kinds.SocketAccessError: (
                "this socket belongs to another user",
                "connect as the user who started the server",
            ),
        }
        self._lose(*messages.get(error, (self._socket.errorString(), "")))

    def _tcp_error(self, error: QAbstractSocket.SocketError) -> None:
        if self._socket is None or error is QAbstractSocket.SocketError.RemoteHostClosedError:
            return  # `disconnected` follows
        kinds = QAbstractSocket.SocketError
        messages = {
            kinds.ConnectionRefusedError: (
                "no server listens there",
                "check host and port, or start the server with `gcspy attach PID --no-window --listen HOST:PORT`",
            ),
            kinds.HostNotFoundError: (
                "there is no such host",
                "check the spelling, or use its numeric address",
            ),
            kinds.SslHandshakeFailedError: (
                f"TLS failed: {self._socket.errorString()}",
                "use the complete join line, tls:HOST:PORT#sha256=…, as printed by the server",
            ),
        }
        self._lose(
            *messages.get(error, (self._socket.errorString(), "check the address and the network"))
        )

    def _lose(self, message: str, remedy: str) -> None:
        """The connection is gone: try again if there ever was one, give up if there was none."""
        was_live = self.status.phase is LinkPhase.LIVE
        self._drop_socket()
        if not self._was_live:
            self._tell(LinkPhase.FAILED, message, remedy)
            return
        # One who welcomes us and hangs up again and again is dialled less and less often.
        if was_live and time.monotonic() - self._live_since >= _LASTING_SECS:
            self._attempt = 0
        delay = retry_delay_secs(self._attempt)
        self._retry.start(round(delay * 1000))
        self._tell(LinkPhase.LOST, message, remedy, retry_secs=delay)

    def _end(self, phase: LinkPhase, message: str, remedy: str) -> None:
        self._drop_socket()
        self._retry.stop()
        self._tell(phase, message, remedy)

    def _drop_socket(self) -> None:
        self._patience.stop()
        self._heartbeat.stop()
        self._held = False
        socket, self._socket = self._socket, None
        if socket is None:
            return
        socket.blockSignals(True)
        if self.status.phase is LinkPhase.LIVE:
            socket.disconnectFromServer() if isinstance(
                socket, QLocalSocket
            ) else socket.disconnectFromHost()
        socket.abort()
        socket.deleteLater()

    def _tell(
        self, phase: LinkPhase, message: str, remedy: str, *, retry_secs: float | None = None
    ) -> None:
        self.status = LinkStatus(
            phase=phase,
            address=str(self._address) if self._address is not None else "",
            message=message,
            remedy=remedy,
            attempt=self._attempt,
            retry_secs=retry_secs,
        )
        self.status_changed.emit(self.status)


def _is_elsewhere(address: Address) -> bool:
    """Whether an address is plain TCP to another machine; of a name that is known when it is connected to."""
    if isinstance(address, UnixAddress) or address.tls or address.is_loopback:
        return False
    return not QHostAddress(address.host).isNull()
