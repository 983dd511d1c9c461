"""Questions of the controller about all objects of a target: one is answered at a time, in a worker thread beside the sampling.

Such an answer takes seconds and a copy of the target's memory. So only the controller may ask. It
gets reports on the progress. A new question, or the end of the client's connection, cancels the
previous question. Knows clients and one function that answers; does not know how it does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial

import trio
from gcspy_protocol.codec import encode
from gcspy_protocol.details import Answer, AnswerState, Cell, DetailTable, Query
from gcspy_protocol.errors import GCspyError, Unsupported

from gcspy_server.heap_question import HeapQuestion, HeapQuestionKind, Investigator
from gcspy_server.interpreter.detail_tables import extent_of
from gcspy_server.names import TileNames
from gcspy_session.client import ClientConnection

__all__ = ["HeapQuestions"]

log = logging.getLogger("gcspy.server")

_TELL_SECS = 0.2
"""Time between two progress messages."""

_MOST_CHARS = 500
"""Characters of one cell: 1,024 rows of three texts are 6 MB at most."""

_MOST_NOTE = 2000

_NOBODY = "the driver of this session does not follow references between objects"


class _GivenUp(Exception):
    """No client waits for the answer any more."""


@dataclass(eq=False)
class _Work:
    """A question in progress, or waiting for the previous one to end.

    Attributes:
        client: The client that asked.
        query: The client's question.
        question: The same, to the driver.
        given_up: Whether the question was cancelled.
        step: The current step, its progress, and its total.
    """

    client: ClientConnection
    query: Query
    question: HeapQuestion
    given_up: bool = False
    step: tuple[str, int, int] = field(default=("waiting for the end of the question before", 0, 0))


class HeapQuestions:
    """Questions of the controller about objects.

    Args:
        connected: Numbers of the clients that are connected.
        investigator: Answers a question in any thread, if the driver can.
        names: Tile names, by number of the space.
        sequence: Number of the latest snapshot.
    """

    def __init__(
        self,
        connected: Callable[[], Container[int]],
        investigator: Callable[[], Investigator | None],
        names: Callable[[int], TileNames | None],
        sequence: Callable[[], int],
    ) -> None:
        self._connected, self._investigator = connected, investigator
        self._names, self._sequence = names, sequence
        self._waiting: _Work | None = None
        self._current: _Work | None = None
        self._more = trio.Event()

    def ask(self, client: ClientConnection, query: Query, *, controls: bool) -> None:
        """Answer a question later, or refuse it now.

        Args:
            client: The client that asks.
            query: The question: one of `HEAP_KINDS`.
            controls: Whether that client controls the session.
        """
        if not controls:
            reason = "only the client that controls the session may ask who holds objects"
            client.send(self._without(query, AnswerState.REFUSED, reason))
            return
        if self._investigator() is None:
            client.send(self._without(query, AnswerState.REFUSED, _NOBODY))
            return
        found = self._question(query)
        if isinstance(found, Answer):
            client.send(found)
            return
        for before in (self._current, self._waiting):
            self._give_up(before)
        self._waiting = _Work(client, query, found)
        self._more.set()

    def _question(self, query: Query) -> HeapQuestion | Answer:
        """The question for the driver; an answer instead if the tile has no objects."""
        address, extent_bytes = query.key, 0
        if query.space and query.key is not None:
            names = self._names(query.space)
            extent = None if names is None else extent_of(names, query.key)
            if extent is None:
                reason = "this tile no longer exists, or stands for no addresses"
                return self._without(query, AnswerState.GONE, reason)
            address, extent_bytes = extent
        return HeapQuestion(
            kind=HeapQuestionKind(query.kind),
            type_name=query.text,
            address=address,
            extent_bytes=extent_bytes,
            most=query.most,
            held=query.held,
        )

    def _give_up(self, work: _Work | None) -> None:
        if work is None or work.given_up:
            return
        work.given_up = True
        if work.client.number in self._connected():
            work.client.send(
                self._without(work.query, AnswerState.REFUSED, "another question took its place")
            )

    async def run(self) -> None:
        """Answer questions, until cancelled."""
        try:
            while True:
                self._current, self._waiting = self._waiting, None
                if self._current is not None:
                    await self._answer(self._current)
                    continue
                self._more = trio.Event()
                await self._more.wait()
        finally:
            if self._current is not None:
                self._current.given_up = True

    async def _answer(self, work: _Work) -> None:
        investigator = self._investigator()
        if investigator is None:
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tell_progress, work)
            answer = await trio.to_thread.run_sync(
                partial(self._investigate, work, investigator), abandon_on_cancel=True
            )
            nursery.cancel_scope.cancel()
        if answer is not None and not self._nobody_waits(work):
            work.client.send(answer)

    async def _tell_progress(self, work: _Work) -> None:
        told: tuple[str, int, int] | None = None
        while not self._nobody_waits(work):
            step = work.step
            if step != told:
                told = step
                what, done, total = step
                under_way = self._without(work.query, AnswerState.UNDER_WAY, what)
                message = replace(under_way, done=done, total=total)
                work.client.push_if_room(encode(message).data)
            await trio.sleep(_TELL_SECS)

    def _nobody_waits(self, work: _Work) -> bool:
        return work.given_up or work.client.number not in self._connected()

    def _investigate(self, work: _Work, investigator: Investigator) -> Answer | None:
        """Runs in a worker thread; None: no client waits for the answer any more."""

        def progress(what: str, done: int, total: int) -> None:
            work.step = (what, max(0, done), max(0, total))
            if self._nobody_waits(work):
                raise _GivenUp

        try:
            table = investigator(work.question, progress)
        except _GivenUp:
            return None
        except Unsupported as error:
            return self._without(work.query, AnswerState.REFUSED, str(error))
        except GCspyError as error:
            return self._without(work.query, AnswerState.UNKNOWN, str(error))
        except Exception:  # a driver's fault must not end the session
            log.exception("the driver failed to answer %r", work.query.kind)
            reason = "the driver failed: the log of the server says how"
            return self._without(work.query, AnswerState.UNKNOWN, reason)
        return replace(
            self._without(work.query, AnswerState.ANSWERED, ""),
            table=_bounded(table, work.query.most),
        )

    def _without(self, query: Query, state: AnswerState, reason: str) -> Answer:
        return Answer(
            number=query.number,
            space=query.space,
            sequence=self._sequence(),
            state=state,
            reason=reason[:_MOST_NOTE],
        )


def _bounded(table: DetailTable, most: int) -> DetailTable:
    """The same with no more rows than requested, and without texts that are too long to read."""
    return replace(
        table,
        rows=tuple(tuple(map(_cut, row)) for row in table.rows[:most]),
        rest_cells=tuple(map(_cut, table.rest_cells)),
        note=table.note[:_MOST_NOTE],
    )


def _cut(cell: Cell) -> Cell:
    if isinstance(cell, str) and len(cell) > _MOST_CHARS:
        return cell[: _MOST_CHARS - 1] + "…"
    return cell
