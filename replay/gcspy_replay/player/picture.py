"""An event of a playback as it is shared among the clients that see it.

Knows passages and subscriptions; does not know clients.
"""

from __future__ import annotations

from collections.abc import Iterable

from gcspy_protocol.frames.transcoding import without_zstd
from gcspy_protocol.messages import Fired

from gcspy_replay.playback import Transition
from gcspy_session.interest import EVERYTHING, Interest

__all__ = ["PlayedPicture"]


class PlayedPicture:
    """A transition, encoded once for all clients with the same subscription.

    Args:
        passage: The transition.
        fired: The triggers that fired at it.

    Attributes:
        passage: The transition.
        fired: The triggers that fired at it.
        sequence: Number among the events that this playback has shown.
        moment_nanos: When it was shown, by the loop's clock.
    """

    def __init__(self, passage: Transition, *, fired: tuple[Fired, ...] = ()) -> None:
        self.passage = passage
        self.fired = fired
        self.sequence = 0
        self.moment_nanos = 0
        self._bytes: dict[Interest, bytes] = {}
        self._plain: dict[Interest, bytes] = {}

    def prepare(self, wants: Iterable[Interest]) -> None:
        """Encode it for these subscriptions, in whatever thread this is."""
        for one in wants:
            self.bytes_for(one)

    def bytes_for(self, wants: Interest, *, zstd: bool = True) -> bytes:
        """All its bytes but those of the schema, for clients with that subscription, who take zstd or do not."""
        if not zstd:
            plain = self._plain.get(wants)
            if plain is None:
                plain = self._plain[wants] = without_zstd(self.bytes_for(wants))
            return plain
        found = self._bytes.get(wants)
        if found is None:
            found = self.passage.event_bytes(None if wants == EVERYTHING else wants.has)
            self._bytes[wants] = found
        return found
