"""Questions of clients for detail: one is answered at a time, in a worker thread, with pauses so that sampling is not affected.

Knows clients; does not know the questions, nor how they are answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container

import trio
from gcspy_protocol.details import Answer, AnswerState, Query

from gcspy_session.client import ClientConnection

__all__ = ["MOST_WAITING", "REST", "Questions"]

MOST_WAITING = 4
"""Questions that a client may have waiting: one in progress, and those that it asked meanwhile."""

REST = 4
"""After an answer there is a pause of this many times its duration: all clients together take a fifth of a core at most."""

_LONGEST_REST_SECS = 2.0


class Questions:
    """Unanswered questions of the clients of a session.

    Args:
        connected: Numbers of the clients that are connected.
        rest: Duration of the pause after an answer, as a multiple of the answer's.
    """

    def __init__(self, connected: Callable[[], Container[int]], *, rest: int = REST) -> None:
        self._connected, self._rest = connected, rest
        self._waiting: deque[tuple[ClientConnection, Callable[[], Answer]]] = deque()
        self._more = trio.Event()

    def ask(self, client: ClientConnection, query: Query, answer: Callable[[], Answer]) -> None:
        """Answer a question later, or refuse it now.

        Args:
            client: The client that asks.
            query: The question.
            answer: Answers it; called in a worker thread.
        """
        if sum(1 for one, _ in self._waiting if one is client) >= MOST_WAITING:
            reason = f"{MOST_WAITING} queries of this client are pending: send more when they are answered"
            client.send(
                Answer(
                    number=query.number,
                    space=query.space,
                    sequence=0,
                    state=AnswerState.REFUSED,
                    reason=reason,
                )
            )
            return
        self._waiting.append((client, answer))
        self._more.set()

    async def run(self) -> None:
        """Answer questions, until cancelled."""
        while True:
            while self._waiting:
                await self._next()
            self._more = trio.Event()
            await self._more.wait()

    async def _next(self) -> None:
        client, work = self._waiting[0]
        began = trio.current_time()
        if client.number in self._connected():
            answer = await trio.to_thread.run_sync(work, abandon_on_cancel=True)
            if client.number in self._connected():
                client.send(answer)
        self._waiting.popleft()
        await trio.sleep(min(_LONGEST_REST_SECS, self._rest * (trio.current_time() - began)))
