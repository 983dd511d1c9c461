"""The messages of a handshake: the server's nonce, and the proofs of the token."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NONCE_BYTES", "PROOF_BYTES", "Challenge", "Proof"]

NONCE_BYTES = 32
"""Random bytes, new for each connection."""

PROOF_BYTES = 32
"""HMAC-SHA256."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Challenge:
    """Server to client, after a greeting with a nonce: the server's nonce. Its proof follows.

    Attributes:
        nonce: 32 random bytes, new for each connection.
    """

    nonce: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """From both: the server first, then the client.

    Attributes:
        proof: 32 bytes, see `gcspy_protocol.handshake.proofs`.
    """

    proof: bytes
