"""A player in a thread of its own, for code without a loop: the command line, tests, programs.

Knows threads and addresses; the player knows the recording.
"""

from __future__ import annotations

from types import TracebackType

from gcspy_replay.file import Recording
from gcspy_replay.player.player import PlaybackStart, Player
from gcspy_replay.player.questions import TraceQueryService
from gcspy_session.options import SessionOptions
from gcspy_session.thread import SessionThread

__all__ = ["PlayerThread", "serve_recording"]


class PlayerThread:
    """A recording that can be joined, until this is closed; made by `serve_recording`.

    Attributes:
        addresses: Addresses for clients, in the order given.
        pages: Addresses of its page, for web browsers; set by the host that serves them.
    """

    def __init__(self, addresses: tuple[str, ...], thread: SessionThread) -> None:
        self.addresses = addresses
        self.pages: tuple[str, ...] = ()
        self._thread = thread

    def close(self) -> None:
        """Say goodbye to every client, stop listening and close the recording."""
        self._thread.stop()

    def __enter__(self) -> PlayerThread:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def serve_recording(
    recording: Recording,
    *addresses: str,
    token: str | None = None,
    options: SessionOptions | None = None,
    beginning: PlaybackStart | None = None,
    growing: bool | None = None,
    query_service: TraceQueryService | None = None,
) -> PlayerThread:
    """Serve clients, from a thread of its own.

    Args:
        recording: The recording; closed together with the result.
        addresses: ``unix:/path``, ``tcp:HOST:PORT`` (port 0: any), ``tls:HOST:PORT``.
        token: The token for TCP clients; required for TCP and TLS.
        options: Limits and deadlines.
        beginning: How each playback begins.
        growing: Whether a recorder may still write it; None: if it was not closed.
        query_service: Answers questions about tiles, at the displayed event of a playback; None:
            there is none.

    Raises:
        LinkError: An address is taken, or may not be listened at.
        CommandError: An address may not be listened at.
    """
    try:
        player = Player(
            recording,
            token=token,
            options=options,
            beginning=beginning,
            growing=growing,
            query_service=query_service,
        )
        thread = SessionThread(lambda: player, addresses, token=token)
        return PlayerThread(thread.start(), thread)
    except BaseException:
        recording.close()
        raise
