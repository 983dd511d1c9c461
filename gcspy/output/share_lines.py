"""Prints how others can join."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import replace

from gcspy_protocol.address import TcpAddress, parse_address

from gcspy.output.terminal import say

__all__ = ["reachable", "reachable_ones", "say_addresses"]


def say_addresses(
    addresses: Iterable[str], *, original_port: int | None = None, pages: Iterable[str] = ()
) -> None:
    """Print a join line for each address, one for visualisers of GCspy 1.0 if they have a port, and one for each page."""
    if original_port is not None:
        say(f"gcspy: a visualiser of GCspy 1.0 connects to 127.0.0.1, port {original_port}")
    for address in addresses:
        say(f"gcspy: join with  gcspy view {reachable(address)}")
    for page in pages:
        say(f"gcspy: join with a web browser at  {page}")


def reachable_ones(addresses: Iterable[str]) -> tuple[str, ...]:
    """Replace several addresses in this way."""
    return tuple(map(reachable, addresses))


def reachable(address: str) -> str:
    """An address that others can use: for a server that listens at all interfaces it has this machine's name."""
    place = parse_address(address)
    if isinstance(place, TcpAddress) and place.host in ("0.0.0.0", "::"):
        place = replace(place, host=socket.gethostname())
    return str(place)
