"""The frames of a class on one session (SPEC.md section 8.12).

Knows their bytes; does not know who may send them, or when.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.attendance import (
    LOOK_CHARS,
    MOST_STEPS,
    MOST_TRIES,
    Attend,
    Focus,
    LessonPlace,
    Look,
    Looked,
)
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import Frame, Header
from gcspy_protocol.frames.map_frame import pack_map_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType

__all__ = ["pack_attendance", "read_attendance"]

_I64 = (1 << 63) - 1
_U64 = (1 << 64) - 1


def pack_attendance(message: Attend | Look | Looked) -> Frame:
    """The frame of a message.

    Raises:
        LocalProtocolError: A number does not fit its field.
    """
    match message:
        case Attend():
            fields: dict[str, Any] = {"person": message.person, "following": message.following}
            if message.step is not None:
                fields |= {"step": message.step, "tries": list(message.tries)}
            return pack_map_frame(FrameType.ATTEND, fields)
        case Look():
            return pack_map_frame(FrameType.LOOK, _place(message.at))
        case Looked():
            return pack_map_frame(
                FrameType.LOOKED, {"client": message.client, **_place(message.at)}
            )


def _place(at: Focus) -> dict[str, Any]:
    """The fields of a place; unspecified fields have no key."""
    named = {
        "space": at.space,
        "stream": at.stream,
        "key": at.key,
        "view": at.view or None,
        "panel": at.panel or None,
        "sequence": at.sequence,
    }
    found = {name: value for name, value in named.items() if value is not None}
    if at.lesson is not None:
        found |= {"lesson": at.lesson.lesson, "step": at.lesson.step}
        found |= {"attempt": at.lesson.attempt} if at.lesson.attempt else {}
        found |= {"revealed": True} if at.lesson.revealed else {}
    return found


def _lesson(fields: Fields) -> LessonPlace | None:
    """The place in a lesson; None: there is none."""
    name = fields.text("lesson", "")[:LOOK_CHARS]
    if not name:
        return None
    return LessonPlace(
        lesson=name,
        step=fields.integer("step", 0, MOST_STEPS - 1, 0),
        attempt=fields.integer("attempt", 0, MOST_TRIES, 0),
        revealed=fields.flag("revealed", False),
    )


def read_attendance(header: Header, payload: bytes, limits: Limits) -> Attend | Look | Looked:
    """The message of a frame of one of these types, after decompression.

    Raises:
        RemoteProtocolError: The payload does not fit its type.
    """
    kind = FrameType(header.type)
    what = kind.name.lower()
    if len(payload) > limits.map_bytes:
        raise RemoteProtocolError(
            f"{what}: a map of {len(payload)} bytes, over the limit of {limits.map_bytes}"
        )
    fields = Fields.unpack(payload or pack_map({}), what, text_chars=limits.text_chars)
    if kind is FrameType.ATTEND:
        return Attend(
            person=fields.text("person", ""),
            following=fields.flag("following", False),
            step=fields.optional_integer("step", 0, MOST_STEPS - 1),
            tries=fields.integers("tries", MOST_TRIES, 0, 0xFF) if "tries" in fields else (),
        )
    at = Focus(
        space=fields.optional_integer("space", 0, 0xFFFF),
        stream=fields.optional_integer("stream", 0, 0xFFFE),
        key=fields.optional_integer("key", 0, _U64),
        view=fields.text("view", "")[:LOOK_CHARS],
        panel=fields.text("panel", "")[:LOOK_CHARS],
        sequence=fields.optional_integer("sequence", 1, _I64),
        lesson=_lesson(fields),
    )
    if kind is FrameType.LOOK:
        return Look(at=at)
    return Looked(client=fields.integer("client", 0, _I64), at=at)
