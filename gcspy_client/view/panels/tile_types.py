"""The types of the tile under the mouse, in its tooltip: asked for when the mouse rests on a tile.

Knows questions and tooltips; does not know how a tile is described otherwise.
"""

from __future__ import annotations

from typing import Final

from gcspy_protocol.details import Answer, AnswerState
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.messages import Message
from PySide6.QtCore import QTimer

from gcspy_client.model.panels.tile_questions import QuestionSubject, TileQuestions
from gcspy_client.model.spaces.tile_text import types_line
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part

__all__ = ["TileTypes"]

_FIRST: Final = 4 << 24
"""First number of its questions; other parts ask over the same connection."""

_TYPES: Final = "types"

_REST_MILLIS: Final = 150
"""A mouse that rests for so long may want to know; Qt shows a tooltip after 700 ms."""

_NOT_KEPT: Final = "Types: known of the latest event only"


class TileTypes(Part):
    """Adds types to the tooltips of a window.

    Attributes:
        asking: The question and the answer.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.asking = TileQuestions(desk.link.send, first=_FIRST)
        self._tile: tuple[int, int] | None = None  # the space, and the key of the tile
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST_MILLIS)
        self._rest.timeout.connect(self._ask)
        desk.spaces.hovered.connect(self._hovered)
        desk.link.welcomed.connect(self._forget)
        desk.link.received.connect(self._take)

    def _forget(self) -> None:
        self._tile = None
        self._rest.stop()
        self.asking.forget()

    def _hovered(self, space_id: int, tile: int) -> None:
        space = self._desk.session.interpreter.spaces.get(space_id)
        self._rest.stop()
        if space is None or not 0 <= tile < space.count or not self._can_ask(space):
            self._tile = None
            return
        self._tile = space_id, space.names.key(tile)
        self._rest.start()

    def _can_ask(self, space: SpaceState) -> bool:
        return _TYPES in space.space.details and self._desk.link.status.phase.connected

    def _ask(self) -> None:
        """Ask about the tile on which the mouse rests."""
        session = self._desk.session
        if self._tile is None or session.live.welcome is None or session.live.last_event is None:
            return
        if not session.is_live:
            self._tell(_NOT_KEPT)  # the server knows the present only
            return
        subject = QuestionSubject(
            session.live.welcome.session, self._tile[0], _TYPES, self._tile[1]
        )
        sequence = session.live.last_event.sequence
        self.asking.request(subject, sequence, exact=session.is_playback)
        answer = self.asking.answer(sequence, live=True)
        if answer is not None:
            self._tell(_words(answer))

    def _take(self, messages: list[Message]) -> None:
        mine = [one for one in messages if isinstance(one, Answer) and one.number > _FIRST]
        for answer in mine:
            self.asking.take(answer)
        if mine and not self._rest.isActive():
            self._ask()  # another tile may have been pointed at meanwhile

    def _tell(self, words: str) -> None:
        if self._tile is not None and self._tile[0] in self._desk.spaces.panels:
            self._desk.spaces.panels[self._tile[0]].add_to_tip(self._tile[1], words)

    def stop(self) -> None:
        """Ask nothing any more; no timer is left."""
        self._tile = None
        self._rest.stop()


def _words(answer: Answer) -> str:
    if answer.state is AnswerState.ANSWERED:
        return types_line(answer.table)
    if answer.state is AnswerState.NOT_RECORDED:
        return "Types: not recorded"
    return "Types: unknown"
