"""The frames of the messages about settings (SPEC.md section 8.9).

Knows their bytes; does not know who may send them, or when.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.fields import Fields, pack_map
from gcspy_protocol.frame import Frame, Header, pack_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType
from gcspy_protocol.settings import MOST_CHOICES, MOST_SETTINGS, SetSetting, Setting, SettingKind, Settings

__all__ = ["pack_settings", "read_settings"]

_I64 = (1 << 63) - 1
_U32 = (1 << 32) - 1


def pack_settings(message: Settings | SetSetting) -> Frame:
    """The frame of a message.

    Raises:
        LocalProtocolError: A number does not fit its field.
    """
    match message:
        case Settings():
            settings = [_setting(one) for one in message.settings]
            return pack_frame(FrameType.SETTINGS, pack_map({"settings": settings}))
        case SetSetting():
            return pack_frame(FrameType.SET_SETTING, pack_map({"id": message.id, "value": message.value}))


def _setting(setting: Setting) -> dict[str, Any]:
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
    }


def read_settings(header: Header, payload: bytes, limits: Limits) -> Settings | SetSetting:
    """The message of a frame of one of these types, after decompression.

    Raises:
        RemoteProtocolError: The payload is not what its type promises.
    """
    kind = FrameType(header.type)
    if len(payload) > limits.map_bytes:
        what = f"{len(payload)} bytes, over the limit of {limits.map_bytes}"
        raise RemoteProtocolError(f"{kind.name.lower()}: a map of {what}")
    fields = Fields.unpack(payload or pack_map({}), kind.name.lower(), text_chars=limits.text_chars)
    if kind is FrameType.SET_SETTING:
        return SetSetting(id=fields.integer("id", 0, _U32), value=fields.integer("value", -_I64, _I64))
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
    )
