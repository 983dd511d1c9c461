"""What a playback needs of the player that hosts it."""

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
        """Answer a greeting: who we are, and what there is to see."""
        ...

    def clients_for(self, playback_session: PlaybackSession) -> Message:
        """Return who is present, as the viewers of a playback are told."""
        ...

    def tell_clients(self) -> None:
        """Tell everyone who is present and who leads."""
        ...

    def take_over(self, playback_session: PlaybackSession, heir: ClientConnection) -> None:
        """Let a viewer lead a playback."""
        ...
