"""Questions about all objects and all memory, put to a running session: who holds objects, and why its process grows.

Knows the messages of a question and its answers; does not know drivers, and formats nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from gcspy_protocol.details import (
    MEMORY_KIND,
    Answer,
    AnswerState,
    DetailTable,
    MemoryReport,
    Query,
)
from gcspy_protocol.errors import LinkError, Refused, RemoteProtocolError, TargetError
from gcspy_protocol.messages import Clients, Error, Subscribe, TakeControl

from gcspy.connection.link import Link, connect
from gcspy.output.progress import results_with_steps, steps_shown
from gcspy_server.api import HeapQuestion, MemoryQuestion

__all__ = ["ask_session", "explain_session"]

_NUMBER = 1
_CONTROL_SECS = 1.0
_CONTROL_REST_SECS = 0.05
_OF_REFUSAL = "the client that controls the session can ask with W, or hand over its control"
_OF_SILENCE = (
    "if its gcspy is older than this one, run this command with the PID where the process runs"
)


def ask_session(address: str, question: HeapQuestion, token: str) -> DetailTable:
    """Ask a session about the objects of its process.

    Args:
        address: The session's address.
        question: The question.
        token: The secret for TCP; empty: none.

    Raises:
        LinkError: The session cannot be joined, refuses, or ends.
        TargetError: It cannot answer: there are no such objects, or its process cannot be read.
    """
    query = Query(
        number=_NUMBER,
        space=0,
        kind=question.kind.value,
        key=question.address,
        most=question.most,
        text=question.type_name,
        held=question.held,
    )
    with _joined(address, token) as link, steps_shown() as progress:
        for answer in _answers(link, query, progress):
            if answer.state is AnswerState.ANSWERED:
                return answer.table
    raise _unanswered(address)


def explain_session(address: str, question: MemoryQuestion, token: str) -> Iterator[MemoryReport]:
    """Ask a session what the memory of its process is used for, and why it grows.

    Args:
        address: The session's address.
        question: The question.
        token: The secret for TCP; empty: none.

    Yields:
        The result of the first sample; then, if a second one is requested, the growth until then.

    Raises:
        LinkError: The session cannot be joined, refuses, or ends.
        TargetError: It cannot answer: its process cannot be read, or has ended.
        RemoteProtocolError: A report has another form than it should.
    """
    query = Query(
        number=_NUMBER,
        space=0,
        kind=MEMORY_KIND,
        most=question.most,
        held=question.held,
        over_millis=round(question.over_secs * 1000),
        sample_bytes=question.sample_bytes,
    )
    with _joined(address, token) as link:
        answers = results_with_steps(partial(_answers, link, query))
        for is_later in (False, True):
            answer = next(answers, None)
            if answer is None:
                raise _unanswered(address)
            if answer.report is None:
                raise RemoteProtocolError(f"{address}: an answer without a report")
            _check(answer.report, is_later=is_later)
            yield answer.report
            if answer.state is AnswerState.ANSWERED:
                return
        raise RemoteProtocolError(f"{address}: more reports than samples")


@contextmanager
def _joined(address: str, token: str) -> Iterator[Link]:
    """Join a session as a client that reads no events, and controls it if nobody does."""
    with connect(address, token=token, client="gcspy", wants_control=True) as link:
        link.send(Subscribe(spaces=()))
        _take_control(link)
        yield link


def _take_control(link: Link) -> None:
    """Take control if nobody has it; a client that has just left may still be in the server's books."""
    give_up = time.monotonic() + _CONTROL_SECS
    has_control = link.welcome.controller
    while not has_control and (left := give_up - time.monotonic()) > 0:
        link.send(TakeControl())
        while (message := link.receive(left)) is not None:
            if isinstance(message, Clients) and message.controller == link.welcome.client_id:
                has_control = True
                break
            if isinstance(message, Error):
                time.sleep(_CONTROL_REST_SECS)
                break


def _answers(
    link: Link, query: Query, progress: Callable[[str, int, int], None]
) -> Iterator[Answer]:
    """Put a question, and yield its answers with a report or a table; what is under way goes to `progress`."""
    link.send(query)
    begun = False
    for message in link:
        if not isinstance(message, Answer) or message.number != query.number:
            continue
        if message.state is AnswerState.UNDER_WAY and message.report is None:
            begun = True
            progress(message.reason, message.done, message.total)
            continue
        if message.state is AnswerState.REFUSED:
            raise Refused(
                f"the session at {link.address} refused: {message.reason}",
                code=message.state.value,
                remedy=_OF_REFUSAL if "controls" in message.reason else "",
            )
        if message.state not in (AnswerState.ANSWERED, AnswerState.UNDER_WAY):
            remedy = f"; {_OF_SILENCE}" if query.kind == MEMORY_KIND and not begun else ""
            raise TargetError(
                f"the session at {link.address} cannot answer: {message.reason}{remedy}"
            )
        yield message


def _check(report: MemoryReport, *, is_later: bool) -> None:
    """Refuse a report that is not of the form that is printed: it comes from a stranger.

    Raises:
        RemoteProtocolError: A column is missing, or the time between two samples.
    """
    grew = ("Grew",) if is_later else ()
    for table, wanted in (
        (report.memory, ("What", "Objects", "Bytes", *grew)),
        (report.holders, ("Holder", "Type", "Objects", "Retained", *grew)),
    ):
        names = tuple(column.name for column in table.columns[: len(wanted)])
        if names != wanted:
            raise RemoteProtocolError(
                f"a report with the columns {names} where {wanted} were expected"
            )
    if (report.grew is not None, report.secs > 0) != (is_later, is_later):
        raise RemoteProtocolError(
            f"a report of {report.secs:g} s that grew by {report.grew} where sample {1 + is_later} was expected"
        )


def _unanswered(address: str) -> LinkError:
    return LinkError(f"the session at {address} ended without an answer")
