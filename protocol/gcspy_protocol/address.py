"""Addresses of servers, as users write them.

    unix:/run/user/1000/gcspy/4711.sock     a Unix socket; a bare absolute path is one too
    127.0.0.1:4711   tcp:localhost:4711     TCP, needs a token
    [::1]:4711                              TCP over IPv6
    tls:host.example:4711#sha256=9f86d0…    TLS; the fingerprint is the server certificate's, and is
                                            what makes the server trusted

Knows text; does not know sockets, files or name resolution.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from gcspy_protocol.errors import CommandError

__all__ = ["Address", "TcpAddress", "UnixAddress", "parse_address"]

_UNIX_PATH_BYTES = 107
"""Longest path of a Unix socket on Linux, without its terminating zero (unix(7): sun_path has 108 bytes)."""

_FORMS = "use unix:/PATH, HOST:PORT, [IPV6]:PORT or tls:HOST:PORT#sha256=FINGERPRINT"
_SHA256_DIGITS = 64


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A Unix socket.

    Attributes:
        path: Absolute path of the socket.
    """

    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host and port, plain or with TLS.

    Attributes:
        host: Name or address, IPv6 without brackets.
        port: 0 to 65535; 0 only to listen at any free one.
        tls: Whether TLS is spoken.
        fingerprint: With TLS, SHA-256 of the server's certificate in lower-case hexadecimal; None:
            not given.
    """

    host: str
    port: int
    tls: bool = False
    fingerprint: str | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def exposure(self) -> str:
        """The reason to refuse plain TCP to or from other machines."""
        return f"{self} can be reached from other machines, and plain TCP would carry the heap in the clear"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        text = f"{'tls:' if self.tls else ''}{host}:{self.port}"
        return text if self.fingerprint is None else f"{text}#sha256={self.fingerprint}"


Address = UnixAddress | TcpAddress


def parse_address(text: str) -> Address:
    """Read an address.

    Raises:
        CommandError: It has none of the forms above.
    """
    scheme, colon, rest = text.partition(":")
    if text.startswith("/") or (colon and scheme == "unix"):
        return _unix(text.removeprefix("unix:"), text)
    tls = bool(colon) and scheme == "tls"
    place, mark, fragment = (rest if tls or scheme == "tcp" else text).partition("#")
    fingerprint = _fingerprint(fragment, text) if mark else None
    if fingerprint is not None and not tls:
        raise CommandError(f"address {text!r}: only tls:HOST:PORT takes a fingerprint")
    host, colon, port = place.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise CommandError(f"address {text!r}: put the IPv6 address into brackets, [{host}]:{port}")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise CommandError(f"address {text!r} is invalid: {_FORMS}")
    return TcpAddress(host, int(port), tls, fingerprint)


def _unix(path: str, text: str) -> UnixAddress:
    if not path.startswith("/") or "\0" in path:
        raise CommandError(
            f"address {text!r}: the path of a Unix socket is absolute, as in unix:/tmp/x.sock"
        )
    size = len(path.encode("utf-8", "surrogateescape"))
    if size > _UNIX_PATH_BYTES:
        raise CommandError(
            f"address {text!r}: {size} bytes, a Unix socket's path has at most {_UNIX_PATH_BYTES}; use a shorter one"
        )
    return UnixAddress(path)


def _fingerprint(fragment: str, text: str) -> str:
    kind, _, digits = fragment.partition("=")
    digits = digits.replace(":", "").lower()
    if (
        kind != "sha256"
        or len(digits) != _SHA256_DIGITS
        or not set(digits) <= set("0123456789abcdef")
    ):
        raise CommandError(
            f"address {text!r}: after # comes sha256= and {_SHA256_DIGITS} hexadecimal digits, got {len(digits)}"
        )
    return digits
