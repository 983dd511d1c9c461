"""Servers of GCspy 1.0, as users write them: ``gcspy666://HOST:PORT``.

Knows text, and where the session of such a server listens; does not know the wire.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gcspy_protocol.address import TcpAddress, UnixAddress, parse_address
from gcspy_protocol.errors import CommandError

from gcspy_session.network.address import runtime_directory

__all__ = ["SCHEME", "OriginalServer", "names_original_server"]

SCHEME: Final = "gcspy666://"


def names_original_server(source: str) -> bool:
    """Whether the user's argument is the address of a server of GCspy 1.0."""
    return source.startswith(SCHEME)


@dataclass(frozen=True, slots=True)
class OriginalServer:
    """Host and port of a server of GCspy 1.0."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> OriginalServer:
        """Read an address.

        Raises:
            CommandError: It has another form.
        """
        rest = text.removeprefix(SCHEME).rstrip("/")
        try:
            place = parse_address(f"tcp:{rest}")
        except CommandError as error:
            raise CommandError(f"address {text!r} is invalid: use {SCHEME}HOST:PORT") from error
        if not isinstance(place, TcpAddress) or not place.port:
            raise CommandError(f"address {text!r} is invalid: use {SCHEME}HOST:PORT")
        return cls(place.host, place.port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{host}:{self.port}"

    def session_address(self) -> UnixAddress:
        """Return the socket of its session on this machine: such a server serves one client, which all others join.

        Raises:
            LinkError: The folder for sockets cannot be made.
        """
        name = re.sub(r"[^A-Za-z0-9.]", "_", self.host)[:40]
        return UnixAddress(str(runtime_directory() / f"gcspy666-{name}-{self.port}.sock"))
