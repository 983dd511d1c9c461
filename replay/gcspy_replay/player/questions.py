"""Questions about the displayed event: passed to the source of the recording (SPEC.md section 8.11).

A recording contains no answers. A trace of objects can answer, at any event. The player gets a
`TraceQueryService`, and passes it the event, the space and the bytes in question.

Knows playbacks and questions; does not know who answers, or from which data.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from gcspy_protocol.details import MEMORY_KIND, Answer, AnswerState, DetailTable, Query
from gcspy_protocol.errors import GCspyError

from gcspy_replay.playback import RecordingPlayback

__all__ = [
    "Shown",
    "TraceQueryService",
    "answer",
    "no_process",
    "not_recorded",
    "shown_by",
    "shown_to_all",
    "without",
]

log = logging.getLogger("gcspy.server")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """The subject of a question.

    Attributes:
        number: Number of the event in the recording.
        sequence: Sequence of the same event, in the recorded session.
        space: Name of the space; empty: all objects.
        extent: Address and bytes of the tile, bytes 0: of one object; None: the whole space, or a tile that has none.
        tile: Number of the tile; None: the whole space.
    """

    number: int
    sequence: int
    space: str
    extent: tuple[int, int] | None
    tile: int | None


TraceQueryService = Callable[[Query, Shown], DetailTable | None]
"""Answers a question, in any thread, one at a time; None: not known. Errors of ours become the reason."""


def shown_by(playback: RecordingPlayback, query: Query) -> Shown | Answer:
    """The subject of a question, with the playback at rest; or the answer, if there is none."""
    session = playback.session
    event, state = session.last_event, session.spaces.get(query.space)
    if event is None or state is None:
        return without(
            query, 0, AnswerState.UNKNOWN, "the space does not exist at the current event"
        )
    if query.kind not in state.space.details:
        told = ", ".join(state.space.details) or "nothing"
        reason = f"this space does not answer {query.kind[:100]!r}; it answers {told}"
        return without(query, event.sequence, AnswerState.REFUSED, reason)
    tile = None if query.key is None else state.names.index_of(query.key)
    if tile is None and query.key is not None:
        return without(
            query, event.sequence, AnswerState.GONE, "the tile does not exist at this event"
        )
    return Shown(
        number=playback.number,
        sequence=event.sequence,
        space=state.space.name,
        extent=None if tile is None else state.names.extent(tile),
        tile=tile,
    )


def shown_to_all(playback: RecordingPlayback, query: Query) -> Shown | Answer:
    """The subject of a question about all objects (`HEAP_KINDS`), which names no space, or a tile for its addresses."""
    event, state = playback.session.last_event, playback.session.spaces.get(query.space)
    if event is None:
        return without(query, 0, AnswerState.UNKNOWN, "there is no event yet")
    if not query.space:
        extent = None if query.key is None else (query.key, 0)
        return Shown(
            number=playback.number, sequence=event.sequence, space="", extent=extent, tile=None
        )
    tile = None if state is None or query.key is None else state.names.index_of(query.key)
    extent = None if state is None or tile is None else state.names.extent(tile)
    if state is None or extent is None:
        reason = "this tile does not exist at this event, or stands for no addresses"
        return without(query, event.sequence, AnswerState.GONE, reason)
    return Shown(
        number=playback.number,
        sequence=event.sequence,
        space=state.space.name,
        extent=extent,
        tile=tile,
    )


def answer(query_service: TraceQueryService, query: Query, shown: Shown) -> Answer:
    """Have a question answered; never raises."""
    try:
        table = query_service(query, shown)
    except GCspyError as error:
        return without(query, shown.sequence, AnswerState.UNKNOWN, str(error))
    except Exception:  # a fault of the query_service must not end the session
        log.exception("space %r: failed to report %r", shown.space, query.kind)
        table = None
    if table is None:
        return without(query, shown.sequence, AnswerState.UNKNOWN, "there is no data on it")
    return Answer(
        number=query.number,
        space=query.space,
        sequence=shown.sequence,
        state=AnswerState.ANSWERED,
        table=table,
    )


def not_recorded(query: Query) -> Answer:
    """The answer of a plain recording."""
    reason = "a recording contains no answers to queries"
    return without(query, 0, AnswerState.NOT_RECORDED, reason)


def no_process(query: Query) -> Answer:
    """The answer of a plain recording to who holds objects, and of every one to what memory is for: it has no process, and no references."""
    reason = "a recording cannot be asked who holds objects: ask the process while it runs"
    if query.kind == MEMORY_KIND:
        reason = "a recording cannot be asked what memory is for: `gcspy why FILE` says what grew"
    return without(query, 0, AnswerState.NOT_RECORDED, reason)


def without(query: Query, sequence: int, state: AnswerState, reason: str) -> Answer:
    """An answer without a table."""
    return Answer(
        number=query.number, space=query.space, sequence=sequence, state=state, reason=reason[:2000]
    )
