"""What proves that an end knows the token: HMAC-SHA256 over who says it and all that both have said.

    key    SHA-256 of the token as UTF-8
    proof  HMAC-SHA256 of key, over
             label of the role, 16 bytes
             SHA-256 of all bytes that the client has sent so far, 32 bytes
             SHA-256 of all bytes that the server has sent so far, 32 bytes

Both nonces are in those bytes, so that a proof fits one connection; the label keeps a proof from
being sent back to whom it came from; the preambles are in them, so that nobody can change the
versions. Knows bytes; does not know frames or who may send what.
"""

from __future__ import annotations

import hashlib
import hmac

from gcspy_protocol.model import Role

__all__ = ["LABELS", "Transcript", "is_proof", "key_of", "proof_of"]

LABELS = {Role.SERVER: b"GCspy server 2\r\n", Role.CLIENT: b"GCspy client 2\r\n"}
"""First bytes of what is signed, by who signs."""


class Transcript:
    """All bytes of a connection so far, by who sent them; of each direction a running SHA-256 is kept."""

    def __init__(self) -> None:
        self._hashes = {role: hashlib.sha256() for role in Role}

    def add(self, sender: Role, *parts: bytes) -> None:
        """Bytes that an end has sent, behind those of before."""
        for part in parts:
            self._hashes[sender].update(part)

    def digest(self) -> bytes:
        """SHA-256 of the client's bytes and of the server's, 64 bytes."""
        return self._hashes[Role.CLIENT].digest() + self._hashes[Role.SERVER].digest()


def key_of(token: str) -> bytes:
    """The key that a token stands for, 32 bytes."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def proof_of(key: bytes, role: Role, transcript: Transcript) -> bytes:
    """What an end with this role sends to prove that it knows the key, 32 bytes."""
    return hmac.digest(key, LABELS[role] + transcript.digest(), "sha256")


def is_proof(proof: bytes, key: bytes, role: Role, transcript: Transcript) -> bool:
    """Whether that is what an end with this role sends; compared in constant time."""
    return hmac.compare_digest(proof, proof_of(key, role, transcript))
