"""The page of a session during a block, if one is asked for. Loads the gateway and its libraries only then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["web_gateway"]


@contextmanager
def web_gateway(
    session: str,
    addresses: Sequence[str],
    token: str | None,
    *,
    title: str,
    lesson: str = "",
) -> Iterator[tuple[str, ...]]:
    """A gateway during the block; without addresses there is none.

    Args:
        session: The session's Unix address.
        addresses: Addresses to listen at.
        token: The token of the session.
        title: Title of the page.
        lesson: File of a lesson that does not come with GCspy; empty: there is none.

    Yields:
        The addresses of the page, for browsers.

    Raises:
        CommandError: An address is malformed, or needs TLS.
        LinkError: An address is taken.
    """
    if not addresses:
        yield ()
        return
    from gcspy.hosts.web_gateway import WebGateway
    from gcspy_client.lessons import find_lesson

    own = find_lesson(lesson) if lesson else None
    gateway = WebGateway(session, addresses, token=token or "", title=title, lesson=own)
    try:
        yield gateway.pages
    finally:
        gateway.close()
