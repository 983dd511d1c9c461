"""One end of a connection, without a socket: bytes in, messages out (SPEC.md sections 2 to 4).

    PREAMBLE ──their magic and versions──▶ GREETING ──HELLO / WELCOME──▶ OPEN ──GOODBYE, fatal ERROR, eof──▶ CLOSED
        │                                   │    └─HELLO with a nonce / CHALLENGE─▶ PROVING
        │                                   │         of a client: ──PROOF─▶ OPEN
        │                                   │         of a server: ──PROOF─▶ PROVEN ──WELCOME─▶ OPEN
        └────────────────────── anything else ──────────────▶ BROKEN ◀────────────┘

A server that needs no proof welcomes a client with a nonce at once.

The trio server, the Qt window, the text client and the tests use the same class; they only move
bytes. Data of an event are released together with the Event that ends it, after its CRC was
checked. So no client ever sees an incomplete or damaged event.

Knows order and permissions; does not know sockets, clocks or threads.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

from gcspy_protocol.codec import crc_of_crcs, decode, encode, unpack
from gcspy_protocol.compiled.event_reader import EventReader
from gcspy_protocol.compiled.stream_library import streams_library
from gcspy_protocol.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    Unproven,
    VersionMismatch,
)
from gcspy_protocol.frames.frame import FLAG_ZSTD, HEADER, Header, raw_size
from gcspy_protocol.handshake.credentials import VERSIONS, Channel, Credentials, new_nonce
from gcspy_protocol.handshake.frames import HANDSHAKE_FRAMES, check_handshake_header
from gcspy_protocol.handshake.proofs import Transcript, is_proof, key_of, proof_of
from gcspy_protocol.limits import CLIENT_LIMITS, SERVER_LIMITS, Limits
from gcspy_protocol.messages import (
    Challenge,
    Error,
    Event,
    FrameType,
    Goodbye,
    Hello,
    Message,
    Proof,
    StreamDelta,
    Unknown,
    Welcome,
)
from gcspy_protocol.model import Role

__all__ = [
    "MAGIC",
    "VERSIONS",
    "Connection",
    "ConnectionState",
    "is_event_frame",
    "may_send",
    "preamble",
]

MAGIC = b"GCspy\r\n\x1a"
"""First eight bytes in either direction; CR, LF and Ctrl-Z reveal a transfer that converts line ends."""

_PREAMBLE = struct.Struct("<8sHH")

_COMPACT_BYTES = 1 << 20

_TYPE_AT = 4
"""Place of the type in a frame's header."""

_UNPROVEN_BYTES = 64 << 10
"""Largest payload of a server that has to prove itself and has not: usually an ERROR."""

_PROVING_VERSION = 2
"""The first protocol version with CHALLENGE and PROOF."""

_BOTH = frozenset({FrameType.GOODBYE, FrameType.PING, FrameType.PONG, FrameType.ERROR})

_FROM_SERVER = _BOTH | {
    FrameType.SPACE_DEFINED,
    FrameType.SPACE_REMOVED,
    FrameType.EPOCH_END,
    FrameType.TILE_NAMES,
    FrameType.TILES,
    FrameType.STREAM_KEY,
    FrameType.STREAM_DELTA,
    FrameType.SUMMARY,
    FrameType.SPACE_INFO,
    FrameType.NEW_NAMES,
    FrameType.EVENT,
    FrameType.COUNTERS,
    FrameType.STATE,
    FrameType.FILTERS,
    FrameType.CLIENTS,
    FrameType.MISSED,
    FrameType.PLAYBACK,
    FrameType.TIMELINE,
    FrameType.POSITION,
    FrameType.TRIGGERS,
    FrameType.FIRED,
    FrameType.BUDGET,
    FrameType.SETTINGS,
    FrameType.ANSWER,
    FrameType.LOOKED,
}

_FROM_CLIENT = _BOTH | {
    FrameType.SET_FILTERS,
    FrameType.PAUSE,
    FrameType.RESUME,
    FrameType.STEP,
    FrameType.SUBSCRIBE,
    FrameType.TAKE_CONTROL,
    FrameType.HAND_OVER,
    FrameType.NAME_SUCCESSOR,
    FrameType.TILE_NAMES_REQUEST,
    FrameType.SET_PLAYBACK,
    FrameType.SEEK,
    FrameType.FOLLOW,
    FrameType.LOSSLESS,
    FrameType.TRIGGER,
    FrameType.SET_SETTING,
    FrameType.QUERY,
    FrameType.ATTEND,
    FrameType.LOOK,
}


class ConnectionState(Enum):
    """State of a connection; see the diagram at the top of the module."""

    PREAMBLE = "preamble"
    GREETING = "greeting"
    PROVING = "proving"
    PROVEN = "proven"
    OPEN = "open"
    CLOSED = "closed"
    BROKEN = "broken"


_ALLOWED: dict[tuple[Role, ConnectionState], frozenset[FrameType]] = {
    (Role.SERVER, ConnectionState.GREETING): frozenset(
        {FrameType.WELCOME, FrameType.ERROR, FrameType.CHALLENGE}
    ),
    (Role.SERVER, ConnectionState.PROVING): frozenset({FrameType.PROOF, FrameType.ERROR}),
    (Role.SERVER, ConnectionState.PROVEN): frozenset({FrameType.WELCOME, FrameType.ERROR}),
    (Role.SERVER, ConnectionState.OPEN): frozenset(_FROM_SERVER),
    (Role.CLIENT, ConnectionState.GREETING): frozenset({FrameType.HELLO, FrameType.GOODBYE}),
    (Role.CLIENT, ConnectionState.PROVING): frozenset(
        {FrameType.PROOF, FrameType.ERROR, FrameType.GOODBYE}
    ),
    (Role.CLIENT, ConnectionState.OPEN): frozenset(_FROM_CLIENT),
}
"""Types of frame that an end with this role may send in this state."""


def preamble(versions: tuple[int, int] = VERSIONS) -> bytes:
    """First 12 bytes of either direction: magic, lowest and highest version (u16 each)."""
    return _PREAMBLE.pack(MAGIC, *versions)


def is_event_frame(frame_type: int) -> bool:
    """Whether frames of this type, known or not, belong to an event: 0x20 to 0x2E."""
    return 0x20 <= frame_type < FrameType.EVENT


def may_send(role: Role, frame_type: int) -> bool:
    """Whether an end with this role sends frames of this type at any time."""
    return any(frame_type in types for (sender, _), types in _ALLOWED.items() if sender is role)


class Connection:
    """One end of a connection.

    Args:
        role: Role of this end.
        limits: Limits on what the peer may send; the default depends on the role.
        versions: Lowest and highest protocol version spoken here; by default what the credentials allow.
        credentials: This end's token and the kind of channel; None: no token, and a channel
            that needs no proof.
    """

    def __init__(
        self,
        role: Role,
        *,
        limits: Limits | None = None,
        versions: tuple[int, int] | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._role = role
        self._peer_role = Role.SERVER if role is Role.CLIENT else Role.CLIENT
        self._limits = limits or (CLIENT_LIMITS if role is Role.CLIENT else SERVER_LIMITS)
        self._credentials = credentials or Credentials("", Channel.LOCAL)
        self._versions = versions or self._credentials.versions
        self._transcript: Transcript | None = None
        self._their_versions: tuple[int, int] | None = None
        self._our_state = ConnectionState.GREETING
        self._their_state = ConnectionState.PREAMBLE
        self._buffer = bytearray()
        self._at = 0
        self._offset = 0
        self._ready: deque[Message] = deque()
        self._held: list[Message] = []
        self._held_crcs = bytearray()
        self._held_bytes = 0
        self._failure: RemoteProtocolError | None = None
        library = streams_library() if role is Role.CLIENT else None
        self._event_reader = None if library is None else EventReader(library, self._limits)
        self._frames_read = 0
        self._bytes_read = 0
        if self._credentials.token:
            self._transcript = Transcript()
            self._transcript.add(role, self.preamble())

    @property
    def read_so_far(self) -> tuple[int, int]:
        """Number of frames read from the peer, and their bytes after decompression."""
        return self._frames_read, self._bytes_read

    @property
    def unread_bytes(self) -> int:
        """Number of bytes received from the peer and not read yet."""
        return len(self._buffer) - self._at

    @property
    def our_state(self) -> ConnectionState:
        """State of our direction: it determines which frames we may still send."""
        return self._our_state

    @property
    def their_state(self) -> ConnectionState:
        """State of the peer's direction: it determines which frames we may still receive."""
        return self._their_state

    @property
    def their_versions(self) -> tuple[int, int] | None:
        """Lowest and highest version of the peer, after its preamble."""
        return self._their_versions

    @property
    def version(self) -> int | None:
        """The version in use: the highest that both speak; None before the peer's preamble."""
        return (
            None
            if self._their_versions is None
            else min(self._versions[1], self._their_versions[1])
        )

    def preamble(self) -> bytes:
        """The bytes to send first."""
        return preamble(self._versions)

    # ------------------------------------------------------------------ sending

    def send(self, message: Message) -> bytes:
        """Encode a message that may be sent now.

        Raises:
            LocalProtocolError: Our role may not send it, or not in this state.
        """
        frame_type = self._type_of(message)
        if is_event_frame(frame_type):
            raise LocalProtocolError(
                f"{frame_type.name} is part of an event: use encode_event or send_event"
            )
        self._check_may_send(frame_type)
        self._check_order(message)
        data = encode(message).data
        if self._transcript is not None:
            self._transcript.add(self._role, data)
        if isinstance(message, Hello):
            self._our_state = ConnectionState.PROVING if message.nonce else ConnectionState.OPEN
        elif isinstance(message, Challenge):
            self._our_state = ConnectionState.PROVING
        elif isinstance(message, Proof):
            server = self._role is Role.SERVER
            self._our_state = ConnectionState.PROVEN if server else ConnectionState.OPEN
        elif isinstance(message, Welcome):
            self._our_state = ConnectionState.OPEN
            if self._their_state is ConnectionState.PROVING:
                self._their_state = ConnectionState.OPEN  # it offered a proof, and need not give it
            self._transcript = None
        elif isinstance(message, Goodbye) or (isinstance(message, Error) and message.fatal):
            self._our_state = ConnectionState.CLOSED
        return data

    def prove(self, *, nonce: bytes | None = None) -> bytes:
        """Return the bytes that prove that we know the token, after the peer's greeting or proof.

        For a server these are CHALLENGE and PROOF, for a client PROOF.

        Args:
            nonce: A server's nonce, for tests only; otherwise a new one.

        Raises:
            LocalProtocolError: We have no token, or the state does not allow it.
        """
        data = b""
        if self._role is Role.SERVER:
            data = self.send(Challenge(nonce=nonce or new_nonce()))
        if self._transcript is None:
            raise LocalProtocolError("there is no token to prove")
        proof = proof_of(key_of(self._credentials.token), self._role, self._transcript)
        return data + self.send(Proof(proof=proof))

    def _check_order(self, message: Message) -> None:
        """Refuse to send the token where it would be disclosed, or to welcome a client that has not proved itself."""
        credentials, theirs = self._credentials, self._their_state
        match message:
            case Hello():
                if message.token and credentials.channel is Channel.PLAIN_TCP:
                    raise LocalProtocolError("the token is never sent over plain TCP")
                if credentials.insists and not message.nonce:
                    raise LocalProtocolError("a greeting over plain TCP needs a nonce")
            case Challenge():
                if theirs is not ConnectionState.PROVING or self._transcript is None:
                    raise LocalProtocolError("a challenge that the client did not request")
            case Proof() if self._role is Role.CLIENT:
                if theirs is not ConnectionState.PROVEN:
                    raise LocalProtocolError("a proof before the server has proved itself")
            case Welcome():
                asked = self._our_state is ConnectionState.PROVEN
                if (asked or credentials.insists) and not (
                    asked and theirs is ConnectionState.OPEN
                ):
                    raise LocalProtocolError("a welcome before the client has proved itself")

    def send_event(self, event: bytes) -> bytes:
        """Send an event that `codec.encode_event` made; clients with the same subscription get the same bytes.

        Raises:
            LocalProtocolError: The state does not allow it.
        """
        self._check_may_send(FrameType.EVENT)
        return event

    @staticmethod
    def _type_of(message: Message) -> FrameType:
        name = "".join(
            "_" + c if c.isupper() and i else c for i, c in enumerate(type(message).__name__)
        ).upper()
        if isinstance(message, (Event, Unknown)):
            raise LocalProtocolError(f"{type(message).__name__} is never sent alone")
        return FrameType[name]

    def _check_may_send(self, frame_type: FrameType) -> None:
        allowed = _ALLOWED.get((self._role, self._our_state), frozenset())
        if frame_type not in allowed:
            raise LocalProtocolError(
                f"a {self._role.value} in state {self._our_state.value} may not send {frame_type.name}"
            )

    # ---------------------------------------------------------------- receiving

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes from the peer; any division into pieces gives the same messages."""
        if self._their_state not in (ConnectionState.CLOSED, ConnectionState.BROKEN):
            self._buffer += data

    def receive_eof(self) -> None:
        """Note that the peer has closed its direction. Earlier messages can still be read.

        Raises:
            RemoteProtocolError: In the middle of a frame or an event, or before the greeting.
        """
        if self._failure is None:
            while self._their_state is not ConnectionState.CLOSED and self._read_one():
                pass
        if self._their_state is not ConnectionState.CLOSED:
            left, frames = len(self._buffer) - self._at, len(self._held_crcs) // 4
            if left:
                self._fail(
                    RemoteProtocolError(
                        f"the peer closed the connection in the middle of a frame: {left} bytes of it came"
                    )
                )
            elif frames:
                self._fail(
                    RemoteProtocolError(
                        f"the peer closed the connection in the middle of an event: {frames} frames came"
                    )
                )
            elif self._their_state in (ConnectionState.PROVING, ConnectionState.PROVEN):
                self._fail(
                    RemoteProtocolError(
                        "the peer closed the connection in the middle of the handshake"
                    )
                )
            elif self._their_state is not ConnectionState.OPEN:
                self._fail(
                    RemoteProtocolError("the peer closed the connection before its greeting")
                )
            else:
                self._their_state = ConnectionState.CLOSED
        if self._failure is not None:
            raise self._failure

    def messages(self) -> Iterator[Message]:
        """All complete messages.

        Raises:
            RemoteProtocolError: The peer violated the protocol; earlier messages were yielded
                first.
        """
        while (message := self.next_message()) is not None:
            yield message

    def next_message(self) -> Message | None:
        """The next message, or None when more bytes are needed.

        Raises:
            RemoteProtocolError: The peer violated the protocol; every later call raises the same.
            VersionMismatch: No version in common.
        """
        while not self._ready:
            if self._failure is not None:
                raise self._failure
            if self._their_state is ConnectionState.CLOSED or not self._read_one():
                return None
        return self._ready.popleft()

    def _read_one(self) -> bool:
        """Read the preamble or one frame, if it is complete."""
        if self._their_state is ConnectionState.PREAMBLE:
            return self._read_preamble()
        return self._read_event() or self._read_frame()

    def _read_event(self) -> bool:
        """Read a whole event, if it is complete and nothing is wrong with it; otherwise its frames are read one by one."""
        reader = self._event_reader
        if (
            reader is None
            or self._held_crcs
            or self._their_state is not ConnectionState.OPEN
            or self._transcript is not None
            or len(self._buffer) - self._at < HEADER.size
            or not 0x20 <= self._buffer[self._at + _TYPE_AT] <= FrameType.EVENT
        ):
            return False
        event = reader.read(self._buffer, self._at)
        if event is None:
            return False
        self._frames_read += event.frames
        self._bytes_read += event.raw_bytes
        self._ready.extend(event.messages)
        self._consume(event.sent_bytes)
        return True

    def _fail(self, error: RemoteProtocolError) -> RemoteProtocolError:
        if self._failure is not None:
            return self._failure
        error.offset = self._offset
        self._failure = error
        self._their_state = ConnectionState.BROKEN
        self._buffer.clear()
        self._at = 0
        return error

    def _read_preamble(self) -> bool:
        got = bytes(self._buffer[: len(MAGIC)])
        if got != MAGIC[: len(got)]:
            raise self._fail(RemoteProtocolError(f"not a GCspy peer: it began with {got!r}"))
        if len(self._buffer) < _PREAMBLE.size:
            return False
        _, low, high = _PREAMBLE.unpack_from(self._buffer)
        self._their_versions = (low, high)
        if low > high or max(low, self._versions[0]) > min(high, self._versions[1]):
            reason = self._credentials.why_no_other_version if low < _PROVING_VERSION else ""
            raise self._fail(
                VersionMismatch(theirs=(low, high), ours=self._versions, reason=reason)
            )
        if self._transcript is not None:
            self._transcript.add(self._peer_role, bytes(self._buffer[: _PREAMBLE.size]))
        self._consume(_PREAMBLE.size)
        self._their_state = ConnectionState.GREETING
        return True

    def _consume(self, size: int) -> None:
        self._at += size
        self._offset += size
        if self._at == len(self._buffer):
            self._buffer.clear()
            self._at = 0
        elif self._at > _COMPACT_BYTES:
            del self._buffer[: self._at]
            self._at = 0

    def _read_frame(self) -> bool:
        """Read one frame, if it is complete."""
        available = len(self._buffer) - self._at
        if available < HEADER.size:
            return False
        header = Header._make(HEADER.unpack_from(self._buffer, self._at))
        most = self._most_bytes()
        if header.length > most:
            raise self._fail(
                RemoteProtocolError(
                    f"frame type {header.type:#04x} claims {header.length} bytes, over the limit of {most}"
                )
            )
        known = self._check_may_receive(header.type)
        if header.type in HANDSHAKE_FRAMES:
            try:
                check_handshake_header(header)
            except RemoteProtocolError as error:
                raise self._fail(error) from None
        size = HEADER.size + header.length
        if available < size:
            return False
        with memoryview(self._buffer)[self._at : self._at + size] as view:
            head, payload = bytes(view[: HEADER.size]), bytes(view[HEADER.size :])
        try:
            # A frame that this version cannot read may use an unknown compression.
            if is_event_frame(header.type):
                self._hold(header, payload, known=known)
            raw = unpack(header, payload, self._limits, self._offset) if known else payload
            self._frames_read += 1
            self._bytes_read += HEADER.size + len(raw)
            message = decode(header, raw, self._limits)
            if isinstance(message, StreamDelta) and header.flags & FLAG_ZSTD:
                message = replace(message, packed=payload)
            self._release(header, head, payload, message)
        except RemoteProtocolError as error:
            raise self._fail(error) from None
        if self._transcript is not None:
            self._transcript.add(self._peer_role, head, payload)
        self._consume(size)
        return True

    def _most_bytes(self) -> int:
        """Largest payload that the peer may send now."""
        if self._must_prove:
            return min(_UNPROVEN_BYTES, self._limits.payload_bytes)
        return self._limits.payload_bytes

    @property
    def _must_prove(self) -> bool:
        """Whether the peer is a server that has to prove itself, and has not."""
        return (
            self._role is Role.CLIENT
            and self._credentials.insists
            and self._their_state in (ConnectionState.GREETING, ConnectionState.PROVING)
        )

    def _check_may_receive(self, number: int) -> bool:
        """Return whether this version knows the type of a frame, which must be allowed now."""
        try:
            frame_type = FrameType(number)
        except ValueError:
            if self._their_state is ConnectionState.OPEN:
                return False  # of a later version: skipped
            raise self._fail(
                RemoteProtocolError(f"frame type {number:#04x} before the greeting")
            ) from None
        if frame_type is FrameType.WELCOME and self._must_prove:
            raise self._fail(Unproven("it sent a welcome without proving that it knows the token"))
        allowed = _ALLOWED[(self._peer_role, self._their_state)]
        if frame_type not in allowed or not self._is_asked_for(frame_type):
            raise self._fail(
                RemoteProtocolError(
                    f"a {self._peer_role.value} in state {self._their_state.value} may not send {frame_type.name}"
                )
            )
        return True

    def _is_asked_for(self, frame_type: FrameType) -> bool:
        """Return whether a frame of a handshake answers one of ours; true for other frames."""
        if frame_type not in HANDSHAKE_FRAMES:
            return True
        if self._transcript is None or (self.version or 0) < _PROVING_VERSION:
            return False
        if self._role is Role.CLIENT:
            return self._our_state is ConnectionState.PROVING
        return self._our_state is ConnectionState.PROVEN

    def _hold(self, header: Header, payload: bytes, *, known: bool) -> None:
        """Account for a frame of an event, before it is decompressed."""
        size = raw_size(header, payload, self._limits, self._offset) if known else len(payload)
        # With the header: a CRC is stored for each frame, even for an empty one.
        self._held_bytes += HEADER.size + size
        if self._held_bytes > self._limits.event_bytes:
            raise RemoteProtocolError(f"an event of more than {self._limits.event_bytes} bytes")

    def _release(self, header: Header, head: bytes, payload: bytes, message: Message) -> None:
        """Hold frames of an event back until it ends; release all others."""
        if is_event_frame(header.type):
            self._held_crcs += zlib.crc32(payload, zlib.crc32(head)).to_bytes(4, "little")
            if not isinstance(message, Unknown):
                self._held.append(message)
        elif header.type == FrameType.EVENT:
            if header.flags & FLAG_ZSTD:
                raise RemoteProtocolError(
                    "an EVENT frame is compressed: its CRC has to be readable"
                )
            self._end_event(head, payload)
            self._ready.extend(self._held)
            self._ready.append(message)
            self._held.clear()
        elif self._held_crcs and not isinstance(message, Unknown):
            raise RemoteProtocolError(f"{FrameType(header.type).name} in the middle of an event")
        else:
            self._follow(message)
            self._ready.append(message)

    def _end_event(self, head: bytes, payload: bytes) -> None:
        promised = int.from_bytes(payload[:4], "little")
        found = crc_of_crcs(bytes(self._held_crcs), head + payload[4:])
        self._held_crcs.clear()
        self._held_bytes = 0
        if found != promised:
            raise RemoteProtocolError(
                f"damaged event: CRC {found:#010x} instead of {promised:#010x}"
            )

    def _follow(self, message: Message) -> None:
        match message:
            case Hello():
                proving = message.nonce and (self.version or 0) >= _PROVING_VERSION
                self._their_state = ConnectionState.PROVING if proving else ConnectionState.OPEN
            case Challenge():
                self._their_state = ConnectionState.PROVING
            case Proof():
                self._follow_proof(message)
            case Welcome():
                self._follow_welcome()
            case Goodbye():
                self._their_state = ConnectionState.CLOSED
            case Error() if message.fatal:
                self._their_state = ConnectionState.CLOSED

    def _follow_proof(self, message: Proof) -> None:
        """Check a proof; its header has shown that it is allowed."""
        assert self._transcript is not None
        key = key_of(self._credentials.token)
        if not is_proof(message.proof, key, self._peer_role, self._transcript):
            raise Unproven(
                "its proof does not match: it has another token, it answers another connection, or the data was changed in transit"
            )
        server = self._peer_role is Role.SERVER
        self._their_state = ConnectionState.PROVEN if server else ConnectionState.OPEN

    def _follow_welcome(self) -> None:
        if self._our_state is ConnectionState.PROVING:
            if self._their_state is ConnectionState.PROVEN:
                raise RemoteProtocolError("a welcome before our proof")
            self._our_state = ConnectionState.OPEN  # it needs no proof
        self._their_state = ConnectionState.OPEN
        self._transcript = None
