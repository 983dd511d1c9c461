"""Proofs of the token: HMAC-SHA256 over the role and all exchanged bytes.

    key    SHA-256 of the token as UTF-8
    proof  HMAC-SHA256 of key, over
             label of the role, 16 bytes
             SHA-256 of all bytes that the client has sent so far, 32 bytes
             SHA-256 of all bytes that the server has sent so far, 32 bytes

The bytes include both nonces, so that a proof fits one connection only. The label prevents a proof
from being sent back to its author. The preambles are included, so that nobody can change the
versions. Knows bytes; does not know frames or who may send which.
"""

from __future__ import annotations

import hashlib
import hmac

from gcspy_protocol.model import Role

__all__ = ["LABELS", "Transcript", "is_proof", "key_of", "proof_of"]

LABELS = {Role.SERVER: b"GCspy server 2\r\n", Role.CLIENT: b"GCspy client 2\r\n"}
"""First bytes of the signed text, by role."""


class Transcript:
    """A running SHA-256 of all bytes of a connection so far, for each direction."""

    def __init__(self) -> None:
        self._hashes = {role: hashlib.sha256() for role in Role}

    def add(self, sender: Role, *parts: bytes) -> None:
        """Append bytes that an end has sent."""
        for part in parts:
            self._hashes[sender].update(part)

    def digest(self) -> bytes:
        """SHA-256 of the client's bytes and of the server's, 64 bytes."""
        return self._hashes[Role.CLIENT].digest() + self._hashes[Role.SERVER].digest()


def key_of(token: str) -> bytes:
    """The key derived from a token, 32 bytes."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def proof_of(key: bytes, role: Role, transcript: Transcript) -> bytes:
    """The proof that an end with this role sends for a key, 32 bytes."""
    return hmac.digest(key, LABELS[role] + transcript.digest(), "sha256")


def is_proof(proof: bytes, key: bytes, role: Role, transcript: Transcript) -> bool:
    """Whether a proof is the one for this role; compared in constant time."""
    return hmac.compare_digest(proof, proof_of(key, role, transcript))
