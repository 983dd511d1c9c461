"""A client written from `protocol/SPEC.md` alone: with struct, hashlib, hmac and a socket, and nothing of ours.

It speaks version 2 over plain TCP, proves that it knows the token, and reads frames. The
msgpack here is as much of it as a greeting needs.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import struct
from collections.abc import Mapping

MAGIC = b"GCspy\r\n\x1a"
HEADER = struct.Struct("<IBBHHHQQ")
HELLO, WELCOME, ERROR, GOODBYE, CHALLENGE, PROOF = 1, 2, 3, 4, 7, 8
PREAMBLE_BYTES = 12
PROOF_FRAME_BYTES = HEADER.size + 32


def pack_text(text: str) -> bytes:
    """A text as msgpack: str 16."""
    data = text.encode()
    return b"\xda" + struct.pack(">H", len(data)) + data


def pack_map(fields: Mapping[str, str]) -> bytes:
    """A map of texts as msgpack: a fixmap."""
    return bytes([0x80 | len(fields)]) + b"".join(
        pack_text(key) + pack_text(value) for key, value in fields.items()
    )


def pack_frame(kind: int, payload: bytes) -> bytes:
    """A frame of section 3.1."""
    return HEADER.pack(len(payload), kind, 0, 0, 0, 0, 0, 0) + payload


def proof_of(token: str, label: bytes, client: bytes, server: bytes) -> bytes:
    """The payload of PROOF (section 4.4)."""
    key = hashlib.sha256(token.encode()).digest()
    said = label + hashlib.sha256(client).digest() + hashlib.sha256(server).digest()
    return hmac.new(key, said, hashlib.sha256).digest()


class IndependentClient:
    """One connection; all that both ends said is kept.

    Args:
        host: Where the server listens.
        port: And at which port.

    Attributes:
        sent: All bytes that were sent.
        received: All bytes that came.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), 60)
        self.sent = b""
        self.received = b""
        self._read = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)
        self.sent += data

    def end(self) -> None:
        """Announce that no more is sent; reading continues."""
        self._socket.shutdown(socket.SHUT_WR)

    def take(self, size: int) -> bytes:
        """The next bytes of what the server says."""
        while len(self.received) < self._read + size:
            data = self._socket.recv(65536)
            if not data:
                raise EOFError(
                    f"the server closed after {len(self.received)} bytes, {self._read + size} wanted"
                )
            self.received += data
        self._read += size
        return self.received[self._read - size : self._read]

    def frame(self) -> tuple[int, bytes]:
        """Type and payload of the next frame."""
        length, kind, *_ = HEADER.unpack(self.take(HEADER.size))
        return kind, self.take(length)

    def greet(self, fields: Mapping[str, str], versions: tuple[int, int] = (2, 2)) -> None:
        """Send preamble and HELLO."""
        self.send(MAGIC + struct.pack("<HH", *versions) + pack_frame(HELLO, pack_map(fields)))

    def challenged(self) -> tuple[bytes, bytes]:
        """Greet with a nonce, and read what the server answers.

        Returns:
            The server's bytes up to its proof, and the proof.
        """
        self.greet({"client": "independent", "nonce": os.urandom(32).hex()})
        assert self.take(8) == MAGIC
        low, high = struct.unpack("<HH", self.take(4))
        assert low <= 2 <= high
        kind, nonce = self.frame()
        assert (kind, len(nonce)) == (CHALLENGE, 32), (kind, nonce)
        said = self.received[: self._read]
        kind, proof = self.frame()
        assert (kind, len(proof)) == (PROOF, 32)
        return said, proof

    def prove(self, token: str) -> None:
        """Greet, check the server's proof, send ours."""
        said, proof = self.challenged()
        wanted = proof_of(token, b"GCspy server 2\r\n", self.sent, said)
        assert hmac.compare_digest(proof, wanted), "the server does not know the token"
        answer = proof_of(token, b"GCspy client 2\r\n", self.sent, self.received[: self._read])
        self.send(pack_frame(PROOF, answer))

    def refusal(self) -> str:
        """Read on until the server's ERROR and the end of the connection.

        Returns:
            The payload of ERROR, as far as it is text.
        """
        if not self._read:
            self.take(PREAMBLE_BYTES)
        while (frame := self.frame())[0] != ERROR:
            pass
        while data := self._socket.recv(65536):
            self.received += data
        return frame[1].decode("utf-8", "replace")
