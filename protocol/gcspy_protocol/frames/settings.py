"""The frames of the messages about settings and the budget (SPEC.md sections 8.9 and 8.10).

Knows their bytes; does not know who may send them, or when.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.budget import WHOLE_BUDGET, Budget
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import Frame, Header
from gcspy_protocol.frames.map_frame import pack_map_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType
from gcspy_protocol.model import Mode
from gcspy_protocol.settings import (
    MOST_CHOICES,
    MOST_SETTINGS,
    SetSetting,
    Setting,
    SettingKind,
    Settings,
)

__all__ = ["pack_settings", "read_settings"]

_I64 = (1 << 63) - 1
_U32 = (1 << 32) - 1
_MOST_KINDS = 65_536


def pack_settings(message: Settings | SetSetting | Budget) -> Frame:
    """The frame of a message.

    Raises:
        LocalProtocolError: A number does not fit its field.
    """
    match message:
        case Settings():
            settings = [_setting(one) for one in message.settings]
            return pack_map_frame(FrameType.SETTINGS, {"settings": settings})
        case SetSetting():
            return pack_map_frame(FrameType.SET_SETTING, {"id": message.id, "value": message.value})
        case Budget():
            return pack_map_frame(FrameType.BUDGET, _budget(message))


def _budget(budget: Budget) -> dict[str, Any]:
    return {
        "setting": budget.setting,
        "allowed": budget.allowed,
        "spent": budget.spent,
        "sequence": budget.sequence,
        "level": budget.level_setting,
        "asked": budget.asked,
        "given": budget.given,
        "spaces": budget.spaces,
        "covered": budget.covered,
        "every": budget.every_nanos,
        "full": budget.full_nanos,
        "gathered": list(budget.gathered),
        "left_out": list(budget.left_out),
        "reason": budget.reason,
    }


def _setting(setting: Setting) -> dict[str, Any]:
    modes = {"modes": [mode.value for mode in setting.modes]} if setting.modes else {}
    return {
        "id": setting.id,
        "name": setting.name,
        "about": setting.about,
        "kind": setting.kind.value,
        "value": setting.value,
        "min": setting.minimum,
        "max": setting.maximum,
        "choices": list(setting.choices),
        "costs": list(setting.costs),
        "applies": setting.applies,
        **modes,
    }


def read_settings(header: Header, payload: bytes, limits: Limits) -> Settings | SetSetting | Budget:
    """The message of a frame of one of these types, after decompression.

    Raises:
        RemoteProtocolError: The payload does not fit its type.
    """
    kind = FrameType(header.type)
    fields = Fields.unpack(payload or pack_map({}), kind.name.lower(), text_chars=limits.text_chars)
    if kind is FrameType.SET_SETTING:
        return SetSetting(
            id=fields.integer("id", 0, _U32), value=fields.integer("value", -_I64, _I64)
        )
    if kind is FrameType.BUDGET:
        return _read_budget(fields)
    return Settings(settings=tuple(_read(one) for one in fields.maps("settings", MOST_SETTINGS)))


def _read(fields: Fields) -> Setting:
    minimum = fields.integer("min", -_I64, _I64, 0)
    return Setting(
        id=fields.integer("id", 0, _U32),
        name=fields.text("name"),
        about=fields.text("about", ""),
        kind=fields.choice("kind", SettingKind),
        value=fields.integer("value", -_I64, _I64, 0),
        minimum=minimum,
        maximum=fields.integer("max", minimum, _I64, minimum),
        choices=fields.texts("choices", MOST_CHOICES),
        costs=fields.integers("costs", MOST_CHOICES, 0, _I64),
        applies=fields.integer("applies", 0, _I64, 0),
        modes=fields.choices("modes", MOST_CHOICES, Mode),
    )


def _read_budget(fields: Fields) -> Budget:
    return Budget(
        setting=fields.integer("setting", 0, _U32, 0),
        allowed=fields.integer("allowed", 0, WHOLE_BUDGET, WHOLE_BUDGET),
        spent=fields.integer("spent", 0, _I64, 0),
        sequence=fields.integer("sequence", 0, _I64, 0),
        level_setting=fields.integer("level", 0, _U32, 0),
        asked=fields.integer("asked", -_I64, _I64, 0),
        given=fields.integer("given", -_I64, _I64, 0),
        spaces=fields.integer("spaces", 0, _U32, 0),
        covered=fields.integer("covered", 0, _U32, 0),
        every_nanos=fields.integer("every", 0, _I64, 0),
        full_nanos=fields.integer("full", 0, _I64, 0),
        gathered=fields.integers("gathered", _MOST_KINDS, 0, _I64),
        left_out=fields.integers("left_out", _MOST_KINDS, 0, _I64),
        reason=fields.text("reason", ""),
    )
