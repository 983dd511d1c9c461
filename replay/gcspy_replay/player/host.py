"""The interface of the player for its playbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from gcspy_protocol.messages import Message

from gcspy_session.client import ClientConnection
from gcspy_session.options import SessionOptions

if TYPE_CHECKING:
    from gcspy_replay.player.playback_session import PlaybackSession

__all__ = ["PlaybackHost"]


class PlaybackHost(Protocol):
    """Keeps the viewers of all playbacks."""

    @property
    def options(self) -> SessionOptions:
        """The bounds of the session."""
        ...

    @property
    def welcomed(self) -> Mapping[int, ClientConnection]:
        """Clients that got their bootstrap, by number."""
        ...

    def welcome(self, client: ClientConnection, playback_session: PlaybackSession) -> None:
        """Answer a greeting: the session, and its content."""
        ...

    def clients_for(self, playback_session: PlaybackSession) -> Message:
        """Return the clients, as sent to the viewers of a playback."""
        ...

    def tell_clients(self) -> None:
        """Send all clients the list of clients and leaders."""
        ...

    def take_over(self, playback_session: PlaybackSession, heir: ClientConnection) -> None:
        """Let a viewer lead a playback."""
        ...
