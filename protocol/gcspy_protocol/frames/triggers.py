"""The frames of the messages about triggers (SPEC.md section 8.8).

Knows their bytes; does not know who may send them, or when.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.expression.evaluation import Operand
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import Frame, Header
from gcspy_protocol.frames.map_frame import pack_map_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType
from gcspy_protocol.triggers import (
    Fired,
    Trigger,
    TriggerAction,
    Triggers,
    TriggerState,
    TriggerStatus,
)

__all__ = ["pack_trigger", "read_trigger"]

_I64 = (1 << 63) - 1
_U64 = (1 << 64) - 1
_U32 = (1 << 32) - 1
_MOST_READ = 1024
"""Maximum triggers and operands that are read; our server has fewer."""


def pack_trigger(message: Trigger | Triggers | Fired) -> Frame:
    """The frame of a message.

    Raises:
        LocalProtocolError: A number does not fit its field.
    """
    match message:
        case Trigger():
            return pack_map_frame(FrameType.TRIGGER, _trigger(message))
        case Triggers():
            triggers = [_status(one) for one in message.triggers]
            return pack_map_frame(
                FrameType.TRIGGERS, {"triggers": triggers, "fired": message.fired}
            )
        case Fired():
            fields = {
                **_trigger(message.trigger),
                "sequence": message.sequence,
                "time": message.time_nanos,
                "event": message.event,
                "occurrence": message.occurrence,
                "pauses": message.pauses,
                "operands": [_operand(one) for one in message.operands],
            }
            return pack_map_frame(FrameType.FIRED, fields)


def _trigger(trigger: Trigger) -> dict[str, Any]:
    return {
        "id": trigger.id,
        "expression": trigger.expression,
        "space": trigger.space,
        "action": trigger.action.value,
        "once": trigger.once,
        "enabled": trigger.enabled,
        "note": trigger.note,
    }


def _status(status: TriggerStatus) -> dict[str, Any]:
    return {
        **_trigger(status.trigger),
        "state": status.state.value,
        "fired": status.fired,
        "sequence": status.sequence,
        "event": status.event,
        "occurrence": status.occurrence,
        "operands": [_operand(one) for one in status.operands],
        "why": status.why,
    }


def _operand(operand: Operand) -> dict[str, Any]:
    value = operand.value
    if isinstance(value, int) and not -_I64 <= value <= _U64:
        value = float(value)  # a sum over u8 may be longer than the wire's integers
    return {
        "text": operand.text,
        "value": value,
        "covered": operand.covered,
        "tiles": operand.tiles,
    }


def read_trigger(header: Header, payload: bytes, limits: Limits) -> Trigger | Triggers | Fired:
    """The message of a frame of one of these types, after decompression.

    Raises:
        RemoteProtocolError: The payload does not fit its type.
    """
    kind = FrameType(header.type)
    fields = Fields.unpack(payload or pack_map({}), kind.name.lower(), text_chars=limits.text_chars)
    match kind:
        case FrameType.TRIGGER:
            return _read_trigger(fields)
        case FrameType.TRIGGERS:
            return Triggers(
                triggers=tuple(_read_status(one) for one in fields.maps("triggers", _MOST_READ)),
                fired=fields.integer("fired", 0, _I64, 0),
            )
        case _:
            return Fired(
                trigger=_read_trigger(fields),
                sequence=fields.integer("sequence", 0, _I64),
                time_nanos=fields.integer("time", 0, _I64),
                event=fields.integer("event", 0, 0xFFFF),
                occurrence=fields.integer("occurrence", 0, _U64),
                pauses=fields.flag("pauses", False),
                operands=_read_operands(fields),
            )


def _read_trigger(fields: Fields) -> Trigger:
    return Trigger(
        id=fields.integer("id", 0, _U32),
        expression=fields.text("expression", ""),
        space=fields.text("space", ""),
        action=fields.choice("action", TriggerAction, TriggerAction.PAUSE),
        once=fields.flag("once", False),
        enabled=fields.flag("enabled", True),
        note=fields.text("note", ""),
    )


def _read_status(fields: Fields) -> TriggerStatus:
    return TriggerStatus(
        trigger=_read_trigger(fields),
        state=fields.choice("state", TriggerState),
        fired=fields.integer("fired", 0, _I64, 0),
        sequence=fields.integer("sequence", 0, _I64, 0),
        event=fields.integer("event", 0, 0xFFFF, 0),
        occurrence=fields.integer("occurrence", 0, _U64, 0),
        operands=_read_operands(fields),
        why=fields.text("why", ""),
    )


def _read_operands(fields: Fields) -> tuple[Operand, ...]:
    return tuple(
        Operand(
            text=one.text("text"),
            value=one.scalar("value"),
            covered=one.integer("covered", 0, _U32, 0),
            tiles=one.integer("tiles", 0, _U32, 0),
        )
        for one in fields.maps("operands", _MOST_READ)
    )
