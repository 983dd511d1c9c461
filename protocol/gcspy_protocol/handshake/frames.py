"""The frames of a handshake (SPEC.md section 4.4).

Knows their bytes; does not know who may send them, or when.
"""

from __future__ import annotations

from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.frame import FLAG_ZSTD, Frame, Header, pack_frame
from gcspy_protocol.handshake.messages import NONCE_BYTES, PROOF_BYTES, Challenge, Proof
from gcspy_protocol.messages import FrameType

__all__ = ["HANDSHAKE_FRAMES", "check_handshake_header", "pack_handshake", "read_handshake"]

HANDSHAKE_FRAMES = frozenset({FrameType.CHALLENGE, FrameType.PROOF})

_MOST_BYTES = 1024
"""Maximum bytes of a payload: 32 now, and more that a later version may append."""


def pack_handshake(message: Challenge | Proof) -> Frame:
    """The frame of a message.

    Raises:
        LocalProtocolError: The nonce or proof has the wrong length.
    """
    if isinstance(message, Challenge):
        kind, data, size = FrameType.CHALLENGE, message.nonce, NONCE_BYTES
    else:
        kind, data, size = FrameType.PROOF, message.proof, PROOF_BYTES
    if len(data) != size:
        raise LocalProtocolError(f"{kind.name.lower()}: {len(data)} bytes instead of {size}")
    return pack_frame(kind, data, compress=False)


def check_handshake_header(header: Header) -> None:
    """Refuse a frame of a handshake before all of it is received.

    Raises:
        RemoteProtocolError: It claims too many bytes, or is compressed.
    """
    name = FrameType(header.type).name.lower()
    if header.length > _MOST_BYTES:
        raise RemoteProtocolError(
            f"{name}: claims {header.length} bytes, over the limit of {_MOST_BYTES}"
        )
    if header.flags & FLAG_ZSTD:
        raise RemoteProtocolError(f"{name}: it is compressed, which frames of a handshake are not")


def read_handshake(header: Header, payload: bytes) -> Challenge | Proof:
    """The message of a frame of one of these types.

    Raises:
        RemoteProtocolError: The payload is too short.
    """
    kind = FrameType(header.type)
    size = NONCE_BYTES if kind is FrameType.CHALLENGE else PROOF_BYTES
    if len(payload) < size:
        raise RemoteProtocolError(f"{kind.name.lower()}: {len(payload)} bytes, {size} needed")
    data = bytes(payload[:size])
    return Challenge(nonce=data) if kind is FrameType.CHALLENGE else Proof(proof=data)
