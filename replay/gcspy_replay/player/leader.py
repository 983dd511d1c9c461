"""The leader of a playback as the controller watchdog of sessions sees it (SPEC.md sections 4.3 and 8.5).

Followers of a playback wait for its leader. A pulled cable or a sleeping computer of the leader is
not reported by the connection.

Knows one playback and its viewers; does not know when a client has been silent for too long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcspy_session.client import ClientConnection

if TYPE_CHECKING:
    from gcspy_replay.player.host import PlaybackHost
    from gcspy_replay.player.playback_session import PlaybackSession

__all__ = ["LeaderOf"]


class LeaderOf:
    """The leader of a playback, and its successor: host and roles of a `ControllerWatchdog`.

    Args:
        player: The player.
        playback_session: The playback and its viewers.
    """

    held = False
    """False: there is no program to hold."""

    def __init__(self, player: PlaybackHost, playback_session: PlaybackSession) -> None:
        self._player, self._playback_session = player, playback_session

    @property
    def roles(self) -> LeaderOf:
        """Itself."""
        return self

    @property
    def controller(self) -> int | None:
        """Number of the leader."""
        leader = self._playback_session.leader
        return None if leader is None else leader.number

    @property
    def successor(self) -> int | None:
        """Number of the follower that the leader has named."""
        return self._playback_session.successor

    @property
    def fallback(self) -> int | None:
        """Number of the first follower, who would also inherit if the leader left."""
        heir = self._playback_session.heir
        return None if heir is None else heir.number

    def client(self, number: int | None) -> ClientConnection | None:
        """One who sees the playback."""
        return self._playback_session.viewer(number)

    def hand_over(self, client: int) -> None:
        """Let another viewer lead: the replacement of a silent leader, or that leader again."""
        heir = self._playback_session.viewer(client)
        if heir is not None:
            back = client == self._playback_session.silent
            self._playback_session.silent = None if back else self.controller
            self._player.take_over(self._playback_session, heir)

    def name_successor(self, client: int | None) -> None:
        """Name the successor."""
        self._playback_session.successor = client

    def tell_clients(self) -> None:
        """Send all clients the list of leaders."""
        self._player.tell_clients()
