"""A connection that is restored when it is lost, up to a time limit.

Each connection begins with a Welcome, at which code that follows the messages starts again; its
`session` says whether it is the same session. Knows links; does not know how they are made, nor the
meaning of the messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType

from gcspy_protocol.errors import LinkError, Refused
from gcspy_protocol.messages import ErrorCode, Message, Welcome

from gcspy.connection.link import Link

__all__ = ["ReconnectingLink"]

_FIRST_RETRY_SECS = 0.1
_LONGEST_RETRY_SECS = 2.0
_LASTING_SECS = 2.0
"""A connection that is lost sooner counts as another try: who accepts us and hangs up is not dialled again at once, nor for ever."""


class ReconnectingLink:
    """A link, and its replacements.

    Args:
        dial: Makes a connection; its first exception is not caught.
        within_secs: How long to try to connect again; None: not at all, as for an ordinary link.
        say: Called when the connection is lost, and when it is restored.

    Attributes:
        lost: How often a connection was lost.
    """

    def __init__(
        self,
        dial: Callable[[], Link],
        *,
        within_secs: float | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._dial, self._within_secs, self._say = dial, within_secs, say
        self._latest = dial()
        self._connected = True
        self._made = time.monotonic()
        self._until = self._next_try = self._wait_secs = 0.0
        self.lost = 0

    @property
    def welcome(self) -> Welcome:
        """The server's greeting on the latest connection."""
        return self._latest.welcome

    @property
    def address(self) -> str:
        """The server's address."""
        return str(self._latest.address)

    @property
    def closed(self) -> bool:
        """Whether the server ended the session on purpose."""
        return self._connected and self._latest.closed

    def receive(self, timeout_secs: float | None = None) -> Message | None:
        """The next message, of this connection or of a restored one.

        Args:
            timeout_secs: How long to wait in all, without the time for connecting; None: no limit.

        Returns:
            A message, or None if the server said goodbye before, or nothing arrived in time
            (`closed` says which).

        Raises:
            LinkError: The connection is lost, and could not be restored in time.
            Refused: The server ended it with an error, other than that we were too slow.
            RemoteProtocolError: The server violated the protocol.
        """
        give_up = None if timeout_secs is None else time.monotonic() + timeout_secs
        while True:
            if not self._connected and not self._connect(give_up):
                return None
            left = None if give_up is None else max(0.0, give_up - time.monotonic())
            try:
                return self._latest.receive(left)
            except LinkError as error:
                self._lose(error)

    def _lose(self, error: LinkError) -> None:
        """Handle a lost connection: try again, unless that is not requested or it would be refused again."""
        refused = isinstance(error, Refused) and error.code != ErrorCode.TOO_SLOW.name.lower()
        if self._within_secs is None or refused:
            raise error
        self._latest.close()
        self._connected = False
        self.lost += 1
        now = time.monotonic()
        if self.lost > 1 and now - self._made < _LASTING_SECS:
            self._wait(error)
            self._say(f"{error}; trying again")
            return
        self._wait_secs = _FIRST_RETRY_SECS
        self._until = now + self._within_secs
        self._next_try = now
        self._say(f"{error}; trying to reconnect for {self._within_secs:g} s")

    def _wait(self, error: LinkError) -> None:
        """Wait longer before each try; raise when that would be too long."""
        self._next_try = time.monotonic() + self._wait_secs
        self._wait_secs = min(_LONGEST_RETRY_SECS, 2 * self._wait_secs)
        if self._next_try > self._until:
            raise LinkError(f"not reconnected within {self._within_secs:g} s: {error}") from error

    def _connect(self, give_up: float | None) -> bool:
        """Try until it is restored; False if that fails in time."""
        while True:
            now = time.monotonic()
            if give_up is not None and give_up < self._next_try:
                time.sleep(max(0.0, give_up - now))
                return False
            time.sleep(max(0.0, self._next_try - now))
            try:
                self._latest = self._dial()
            except Refused:
                raise
            except LinkError as error:
                self._wait(error)
            else:
                self._connected, self._made = True, time.monotonic()
                self._say(f"reconnected to {self.address}")
                return True

    def __iter__(self) -> Iterator[Message]:
        while (message := self.receive()) is not None:
            yield message

    def send(self, message: Message) -> None:
        """Send a message on the current connection; without one it is not sent.

        Raises:
            LinkError: The connection is lost, and is not to be restored.
        """
        if not self._connected:
            return
        try:
            self._latest.send(message)
        except LinkError as error:
            self._lose(error)

    def close(self) -> None:
        """Say goodbye and close; harmless if it is closed or lost."""
        self._latest.close()

    def __enter__(self) -> ReconnectingLink:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
