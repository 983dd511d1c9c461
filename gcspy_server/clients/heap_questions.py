"""Questions of the controller about all objects and all memory of a target: one is answered at a time, in a worker thread beside the sampling.

Such an answer takes seconds and a copy of the target's memory. So only the controller may ask. It
gets reports on the progress. A new question, or the end of the client's connection, cancels the
previous question. Knows clients and the functions that answer; does not know how they do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial

import trio
from gcspy_protocol.codec import encode
from gcspy_protocol.details import (
    LEAST_SAMPLE_BYTES,
    MEMORY_KIND,
    Answer,
    AnswerState,
    Cell,
    DetailTable,
    MemoryReport,
    Query,
)
from gcspy_protocol.errors import GCspyError, Unsupported

from gcspy_server.heap_question import HeapQuestion, HeapQuestionKind, Investigator
from gcspy_server.interpreter.detail_tables import extent_of
from gcspy_server.memory_report import Explainer, MemoryQuestion
from gcspy_server.names import TileNames
from gcspy_session.client import ClientConnection

__all__ = ["HeapQuestions"]

log = logging.getLogger("gcspy.server")

_TELL_SECS = 0.2
"""Time between two progress messages."""

_MOST_CHARS = 500
"""Characters of one cell: 1,024 rows of three texts are 6 MB at most."""

_MOST_REPORT_CHARS = 250
"""Characters of one cell of a report: three tables of 1,024 rows, with six texts together, are 6 MB at most."""

_MOST_NOTE = 2000

_NOBODY = "the driver of this session does not follow references between objects"
_NOBODY_EXPLAINS = "the driver of this session does not say what all of the memory is for"

_Progress = Callable[[str, int, int], None]


class _GivenUp(Exception):
    """No client waits for the answer any more."""


@dataclass(eq=False)
class _Work:
    """A question in progress, or waiting for the previous one to end.

    Attributes:
        client: The client that asked.
        query: The client's question.
        answer: Asks the driver, in a worker thread, with a function to report progress.
        given_up: Whether the question was cancelled.
        early: The report of the first of two samples, once there is one, until it is sent.
        step: The current step, its progress, and its total.
    """

    client: ClientConnection
    query: Query
    answer: Callable[[_Work, _Progress], Answer]
    given_up: bool = False
    early: Answer | None = None
    step: tuple[str, int, int] = field(default=("waiting for the end of the question before", 0, 0))


class HeapQuestions:
    """Questions of the controller about objects.

    Args:
        connected: Numbers of the clients that are connected.
        investigator: Answers a question about objects in any thread, if the driver can.
        explainer: Reports on all memory in any thread, if the driver can.
        names: Tile names, by number of the space.
        sequence: Number of the latest snapshot.
    """

    def __init__(
        self,
        connected: Callable[[], Container[int]],
        investigator: Callable[[], Investigator | None],
        explainer: Callable[[], Explainer | None],
        names: Callable[[int], TileNames | None],
        sequence: Callable[[], int],
    ) -> None:
        self._connected = connected
        self._investigator, self._explainer = investigator, explainer
        self._names, self._sequence = names, sequence
        self._waiting: _Work | None = None
        self._current: _Work | None = None
        self._more = trio.Event()

    def ask(self, client: ClientConnection, query: Query, *, controls: bool) -> None:
        """Answer a question later, or refuse it now.

        Args:
            client: The client that asks.
            query: The question: one of `HEAP_KINDS`, or `MEMORY_KIND`.
            controls: Whether that client controls the session.
        """
        if not controls:
            reason = "only the client that controls the session may ask who holds objects"
            client.send(self._without(query, AnswerState.REFUSED, reason))
            return
        found = self._about_memory(query) if query.kind == MEMORY_KIND else self._about_heap(query)
        if isinstance(found, Answer):
            client.send(found)
            return
        for before in (self._current, self._waiting):
            self._give_up(before)
        self._waiting = _Work(client, query, found)
        self._more.set()

    def _about_memory(self, query: Query) -> Callable[[_Work, _Progress], Answer] | Answer:
        """Return the function that answers a question about all memory; an answer instead if there is none."""
        explainer = self._explainer()
        if explainer is None:
            return self._without(query, AnswerState.REFUSED, _NOBODY_EXPLAINS)
        question = MemoryQuestion(
            over_secs=query.over_millis / 1000,
            most=query.most,
            held=query.held,
            sample_bytes=query.sample_bytes and max(query.sample_bytes, LEAST_SAMPLE_BYTES),
        )
        return partial(self._explain, explainer, question)

    def _about_heap(self, query: Query) -> Callable[[_Work, _Progress], Answer] | Answer:
        """Return the function that answers a question about objects; an answer instead if there is none, or no objects."""
        investigator = self._investigator()
        if investigator is None:
            return self._without(query, AnswerState.REFUSED, _NOBODY)
        question = self._question(query)
        if isinstance(question, Answer):
            return question
        return partial(self._investigate, investigator, question)

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
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tell_progress, work)
            answer = await trio.to_thread.run_sync(
                partial(self._result_of, work), abandon_on_cancel=True
            )
            nursery.cancel_scope.cancel()
        self._send_early(work)
        if answer is not None and not self._nobody_waits(work):
            work.client.send(answer)

    async def _tell_progress(self, work: _Work) -> None:
        told: tuple[str, int, int] | None = None
        while not self._nobody_waits(work):
            self._send_early(work)
            step = work.step
            if step != told:
                told = step
                what, done, total = step
                under_way = self._without(work.query, AnswerState.UNDER_WAY, what)
                message = replace(under_way, done=done, total=total)
                work.client.push_if_room(encode(message).data)
            await trio.sleep(_TELL_SECS)

    def _send_early(self, work: _Work) -> None:
        early, work.early = work.early, None
        if early is not None and not self._nobody_waits(work):
            work.client.send(early)

    def _nobody_waits(self, work: _Work) -> bool:
        return work.given_up or work.client.number not in self._connected()

    def _result_of(self, work: _Work) -> Answer | None:
        """Runs in a worker thread; None: no client waits for the answer any more."""

        def progress(what: str, done: int, total: int) -> None:
            work.step = (what, max(0, done), max(0, total))
            if self._nobody_waits(work):
                raise _GivenUp

        try:
            return work.answer(work, progress)
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

    def _investigate(
        self, investigator: Investigator, question: HeapQuestion, work: _Work, progress: _Progress
    ) -> Answer:
        table = investigator(question, progress)
        return replace(
            self._without(work.query, AnswerState.ANSWERED, ""),
            table=_bounded(table, question.most, _MOST_CHARS),
        )

    def _explain(
        self, explainer: Explainer, question: MemoryQuestion, work: _Work, progress: _Progress
    ) -> Answer:
        """Report on one sample, or on two; the report on the first of two is sent while the second is awaited."""
        found: list[MemoryReport] = []
        for report in explainer(question, progress):
            found.append(_bounded_report(report, question.most))
            if question.over_secs and len(found) == 1:
                under_way = self._without(work.query, AnswerState.UNDER_WAY, "")
                work.early = replace(under_way, report=found[0])
        return replace(self._without(work.query, AnswerState.ANSWERED, ""), report=found[-1])

    def _without(self, query: Query, state: AnswerState, reason: str) -> Answer:
        return Answer(
            number=query.number,
            space=query.space,
            sequence=self._sequence(),
            state=state,
            reason=reason[:_MOST_NOTE],
        )


def _bounded(table: DetailTable, most: int, most_chars: int) -> DetailTable:
    """The same with no more rows than requested, and without texts that are too long to read."""

    def cut(cell: Cell) -> Cell:
        if isinstance(cell, str) and len(cell) > most_chars:
            return cell[: most_chars - 1] + "…"
        return cell

    return replace(
        table,
        rows=tuple(tuple(map(cut, row)) for row in table.rows[:most]),
        rest_cells=tuple(map(cut, table.rest_cells)),
        note=table.note[:_MOST_NOTE],
    )


def _bounded_report(report: MemoryReport, most: int) -> MemoryReport:
    def bounded(table: DetailTable) -> DetailTable:
        return _bounded(table, most, _MOST_REPORT_CHARS)

    return replace(
        report,
        memory=bounded(report.memory),
        holders=bounded(report.holders),
        sites=bounded(report.sites),
        note=report.note[:_MOST_NOTE],
    )
