"""The class at a player: its leader, and the followers (SPEC.md section 8.12).

Each client of a player has a playback of its own, unless it follows. So there must be a leader that
plain followers see. It is the first client that greeted with a request for control, until it hands
over or leaves.

Knows clients and whose playback they see; does not know the recording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcspy_session.client import ClientConnection

if TYPE_CHECKING:
    from gcspy_replay.player.playback_session import PlaybackSession
    from gcspy_replay.player.player import Player

__all__ = ["ClassOf"]


class ClassOf:
    """The class of a player.

    Args:
        player: The player.

    Attributes:
        leader: Number of the client whose playback the followers see; None: there is none.
    """

    def __init__(self, player: Player) -> None:
        self.leader: int | None = None
        self._player = player
        self._willing: dict[int, ClientConnection] = {}

    @property
    def playback_session(self) -> PlaybackSession | None:
        """The leader's playback, once it can be seen."""
        found = None if self.leader is None else self._player.playback_session_of(self.leader)
        return found if found is not None and found.ready else None

    def offers(self, client: ClientConnection) -> None:
        """A client would lead."""
        self._willing[client.number] = client

    def choose(self) -> None:
        """If there is no leader, choose the first client that requested control and follows nobody; the others join it."""
        if self.leader is None:
            self.leader = next(
                (number for number in self._willing if self._leads_own(number)), None
            )
            if self.leader is not None:
                self._player.gather()

    def _leads_own(self, number: int) -> bool:
        playback_session = self._player.playback_session_of(number)
        found = (
            None
            if playback_session is None or not playback_session.ready
            else playback_session.leader
        )
        return number in self._player.welcomed and found is not None and found.number == number

    def leaves(self, client: ClientConnection, playback_session: PlaybackSession) -> None:
        """A client is about to go from the playback that it sees: if it led the class, who inherits leads it."""
        self._willing.pop(client.number, None)
        if client.number == self.leader:
            heir = playback_session.heir
            self.leader = None if heir is None else heir.number
            self.choose()

    def passes(self, playback_session: PlaybackSession, heir: ClientConnection) -> None:
        """A playback passes to another client: with the class, if it was the leader's."""
        if playback_session.leader is not None and playback_session.leader.number == self.leader:
            self.leader = heir.number

    # ------------------------------------------------------------------ with the playback before at rest

    def join(self, client: ClientConnection) -> None:
        """A client joins the class's playback, unless that has changed meanwhile."""
        leading = self.playback_session
        if (
            leading is not None
            and client.presence.following
            and leading is not self._player.playback_session_of(client.number)
        ):
            self._player.follow(client, leading)

    def part(self, client: ClientConnection) -> None:
        """A client gets its own playback, starting where the class is."""
        here = self._player.playback_session_of(client.number)
        if here is not None and client is not here.leader and not client.presence.following:
            self._player.part(client, here.playback)

    def come(self, client: ClientConnection, playback_session: PlaybackSession) -> None:
        """A client comes to lead a playback, if that is still there."""
        if playback_session.leader is None or not playback_session.ready:
            return
        if self._player.playback_session_of(client.number) is not playback_session:
            self._player.follow(client, playback_session)
        self._player.take_over(playback_session, client)
