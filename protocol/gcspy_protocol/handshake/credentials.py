"""What an end knows, and how it uses that over the way that the connection goes.

| way | versions | a client with a token |
|---|---|---|
| plain TCP | 2 to 2 with a token, else 1 to 2 | never sends it, and takes no welcome from a server that has not proved itself |
| Unix socket | 1 to 2 | never sends it; proves itself where the server asks for that, as through a tunnel |
| TLS | 1 to 2 | sends it to the server whose certificate was checked |

Knows no sockets: who makes the connection says which way it goes.
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
"""Where the peer has to prove itself: version 1 cannot."""


class Channel(Enum):
    """The way that a connection goes."""

    PLAIN_TCP = "plain TCP"
    """Any local program may listen there, or read what passes."""
    LOCAL = "a Unix socket"
    """The kernel tells the server whose program the client is."""
    TLS = "TLS"
    """Nobody reads along, and the server's certificate was checked."""


def channel_of(address: Address) -> Channel:
    """The way that a connection to an address goes."""
    if isinstance(address, UnixAddress):
        return Channel.LOCAL
    return Channel.TLS if address.tls else Channel.PLAIN_TCP


def new_nonce() -> bytes:
    """32 random bytes of the system's generator."""
    return secrets.token_bytes(NONCE_BYTES)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one end knows.

    Attributes:
        token: The secret of the session; empty: none.
        channel: The way that the connection goes.
    """

    token: str
    channel: Channel

    def __repr__(self) -> str:
        return f"Credentials({'a' if self.token else 'no'} token over {self.channel.value})"

    @property
    def insists(self) -> bool:
        """Whether the peer must have proved itself before it is believed."""
        return bool(self.token) and self.channel is Channel.PLAIN_TCP

    @property
    def versions(self) -> tuple[int, int]:
        """Lowest and highest protocol version to offer."""
        return _PROVING if self.insists else VERSIONS

    @property
    def why_no_other_version(self) -> str:
        """The reason, where versions are left out."""
        return "version 1 would send the token in the clear over plain TCP" if self.insists else ""

    def greeting(self, hello: Hello, *, nonce: bytes | None = None) -> Hello:
        """A client's greeting, with the token or a nonce as the way allows.

        Args:
            hello: What else is said.
            nonce: Only for tests: otherwise new.
        """
        if not self.token:
            return hello
        if self.channel is Channel.TLS:
            return replace(hello, token=self.token)
        return replace(hello, nonce=nonce or new_nonce())
