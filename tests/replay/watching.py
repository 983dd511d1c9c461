"""Clients of a player: what they know, beside what the recording says at that number."""

from __future__ import annotations

from gcspy_protocol import messages as m
from gcspy_protocol.messages import Message
from gcspy_protocol.playback import Seek
from gcspy_replay.file import Recording

from gcspy.connection.link import connect
from tests.replay.viewing import assert_same_state
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

__all__ = ["Watcher"]


class Watcher(Viewer):
    """A client of a player.

    Args:
        address: Of the player.
        recording: The played recording, read separately.
        name: As the others see it.
        control: Whether it would lead a class.
        person: Who sits there.
        following: Whether it follows the leader of the class.
    """

    def __init__(
        self,
        address: str,
        recording: Recording,
        name: str = "watcher",
        *,
        control: bool = False,
        person: str = "",
        following: bool = False,
    ) -> None:
        self.recording = recording
        self.positions: list[int] = []
        super().__init__(
            connect(
                address,
                client=name,
                wants_control=control,
                person=person,
                following=following,
                timeout_secs=PATIENCE_SECS,
            )
        )

    def read(self) -> Message:
        message = super().read()
        if isinstance(message, m.Position):
            self.positions.append(message.number)
        return message

    def until_position(self, number: int) -> None:
        """Wait until this event is shown, and compare."""
        self.until(lambda: bool(self.positions) and self.positions[-1] == number)
        self.assert_as_recorded()

    def assert_as_recorded(self) -> None:
        """It knows what the recording says of the event at which it is, when everything about it has come."""
        self.sync()
        assert_same_state(self.state, self.recording.seek(self.state.position))

    def seek(self, number: int) -> None:
        """Go to an event and wait for it."""
        self.positions.clear()
        self.send(Seek(number=number))
        self.until_position(number)
