"""The requests of a lesson's step, as messages to the session: shared by the window and the recorder of lessons.

Knows steps, kinds of event and settings; knows no link, and not when a step is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gcspy_protocol.errors import ExpressionError, UnknownName
from gcspy_protocol.expression import bind, parse_condition
from gcspy_protocol.messages import Message, SetFilters
from gcspy_protocol.model import EventFilter, EventKind, Space
from gcspy_protocol.settings import SetSetting, Setting, SettingKind

from gcspy_client.lessons.lesson import LessonStep

__all__ = ["filters_of", "problem_of_event", "settings_of"]


def filters_of(step: LessonStep, events: Iterable[EventKind]) -> tuple[list[Message], str]:
    """The event filters of a step; those that it does not name let everything pass.

    Returns:
        The requests to send, and the problem; empty: none.
    """
    if step.filters is None:
        return [], ""
    names = {kind.name: kind.id for kind in events}
    filters = [one.of(names[one.event]) for one in step.filters if one.event in names]
    others = [
        EventFilter(event=number)
        for number in names.values()
        if number not in {one.event for one in filters}
    ]
    strange = [one.event for one in step.filters if one.event not in names]
    return [SetFilters(filters=(*filters, *others))], _strange("kind of event", strange)


def problem_of_event(step: LessonStep, spaces: Iterable[Space]) -> str:
    """Why the event of a step would never come, as its condition is unclear; empty: it may come.

    A name that does not exist yet is not a problem: its space may come later.
    """
    if not step.until:
        return ""
    try:
        bind(parse_condition(step.until), spaces)
    except UnknownName:
        return ""
    except ExpressionError as error:
        return f"until: {error}"
    return ""


def settings_of(
    wanted: Mapping[str, int | str], settings: Iterable[Setting]
) -> tuple[list[Message], str]:
    """Settings of a step or of a solution, by name.

    Returns:
        The requests to send, and the problem; empty: none.
    """
    known = {setting.name: setting for setting in settings}
    wrong = _strange("setting", [name for name in wanted if name not in known])
    messages: list[Message] = []
    for name, value in wanted.items():
        if name not in known:
            continue
        setting = known[name]
        number = _value_of(setting, value)
        if number is None or not setting.allows(number):
            among = ", ".join(setting.choices) or f"{setting.minimum} to {setting.maximum}"
            wrong = f"{name} cannot be {value!r}: it may be {among}"
        else:
            messages.append(SetSetting(id=setting.id, value=number))
    return messages, wrong


def _value_of(setting: Setting, value: int | str) -> int | None:
    """The number of a value that is said by its name."""
    if setting.kind is SettingKind.ACTION:
        return setting.value + 1
    if isinstance(value, int):
        return value
    return setting.minimum + setting.choices.index(value) if value in setting.choices else None


def _strange(what: str, names: list[str]) -> str:
    return f"there is no {what} {', '.join(map(repr, names))} here" if names else ""
