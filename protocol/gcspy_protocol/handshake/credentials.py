"""The secret of an end, and its use on each kind of channel.

| way | versions | a client with a token |
|---|---|---|
| plain TCP | 2 to 2 with a token, else 1 to 2 | never sends it, and takes no welcome from a server that has not proved itself |
| Unix socket | 1 to 2 | never sends it; proves itself where the server asks for that, as through a tunnel |
| TLS | 1 to 2 | sends it to the server whose certificate was checked |

Knows no sockets: the code that makes the connection names the channel.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from enum import Enum

from gcspy_protocol.address import Address, UnixAddress
from gcspy_protocol.handshake.messages import NONCE_BYTES
from gcspy_protocol.messages import Hello

__all__ = ["Channel", "Credentials", "channel_of", "new_nonce"]

VERSIONS = (1, 2)
"""Lowest and highest protocol version that this code speaks."""

_PROVING = (2, 2)
"""Version where the peer has to prove itself, which version 1 cannot."""


class Channel(Enum):
    """The kind of channel that a connection uses."""

    PLAIN_TCP = "plain TCP"
    """Any local program may listen there, or read the data."""
    LOCAL = "a Unix socket"
    """The kernel identifies the client's process to the server."""
    TLS = "TLS"
    """Nobody can read the data, and the server's certificate was checked."""


def channel_of(address: Address) -> Channel:
    """The channel of a connection to an address."""
    if isinstance(address, UnixAddress):
        return Channel.LOCAL
    return Channel.TLS if address.tls else Channel.PLAIN_TCP


def new_nonce() -> bytes:
    """32 random bytes from the system's generator."""
    return secrets.token_bytes(NONCE_BYTES)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secret of one end.

    Attributes:
        token: The secret of the session; empty: none.
        channel: The channel of the connection.
    """

    token: str
    channel: Channel

    def __repr__(self) -> str:
        return f"Credentials({'a' if self.token else 'no'} token over {self.channel.value})"

    @property
    def insists(self) -> bool:
        """Whether the peer must prove itself."""
        return bool(self.token) and self.channel is Channel.PLAIN_TCP

    @property
    def versions(self) -> tuple[int, int]:
        """Lowest and highest protocol version to offer."""
        return _PROVING if self.insists else VERSIONS

    @property
    def why_no_other_version(self) -> str:
        """The reason, if versions are left out."""
        return "version 1 would send the token in the clear over plain TCP" if self.insists else ""

    def greeting(self, hello: Hello, *, nonce: bytes | None = None) -> Hello:
        """A client's greeting, with the token or a nonce as the channel allows.

        Args:
            hello: The other fields.
            nonce: For tests only; otherwise a new one.
        """
        if not self.token:
            return hello
        if self.channel is Channel.TLS:
            return replace(hello, token=self.token)
        return replace(hello, nonce=nonce or new_nonce())
