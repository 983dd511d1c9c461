"""The controller's settings: sent to every client, applied between events, costed, and refused where impossible."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.messages import ErrorCode

from gcspy_server.api import LEVEL, ServedSession, ServerDescription, Setting, SettingKind
from gcspy_server.interpreter.setting_table import SettingTable
from tests.server.target import START, Target
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

LEVELS = ("1: little", "2: more", "3: most")


def a_level(**fields: int) -> Setting:
    return Setting(
        id=1, name="Level", value=fields.get("value", 2), minimum=1, maximum=3, choices=LEVELS
    )


def test_a_value_is_taken_between_events_and_says_when_it_applied() -> None:
    table = SettingTable()
    table.add(a_level())
    assert table.take(1) == 2
    assert table.gathered(1, 1000, 0)
    (told,) = table.announcement().settings
    assert (told.value, told.applies, told.costs) == (2, 1, (0, 1000, 0))
    table.set(1, 3)
    # An event that was begun before is still one of the old value.
    assert not table.gathered(2, 1100, 0)
    (told,) = table.announcement().settings
    assert (told.value, told.applies, told.costs) == (3, 0, (0, 1100, 0))
    assert table.take(1) == 3
    assert table.gathered(3, 5000, 0)
    (told,) = table.announcement().settings
    assert (told.value, told.applies, told.costs) == (3, 3, (0, 1100, 5000))


SECOND = 1_000_000_000


def test_a_cost_is_told_again_when_it_moved_by_a_fifth_at_most_once_a_second() -> None:
    table = SettingTable()
    table.add(a_level())
    table.take(1)
    assert table.gathered(1, 1000, 5)
    assert not table.gathered(2, 1199, 5 + SECOND)
    assert table.gathered(3, 1200, 5 + SECOND)
    assert not table.gathered(4, 9000, 4 + 2 * SECOND)
    assert table.gathered(5, 9000, 5 + 2 * SECOND)
    assert not table.gathered(6, 7201, 5 + 9 * SECOND)
    assert table.gathered(7, 7200, 5 + 9 * SECOND)


def test_small_steps_of_a_cost_add_up() -> None:
    table = SettingTable()
    table.add(a_level())
    table.take(1)
    told = [cost for cost in range(1000, 2000, 10) if table.gathered(1, cost, cost * SECOND)]
    assert told == [1000, 1200, 1440, 1730]


def test_a_first_cost_and_a_value_that_applies_are_told_at_once() -> None:
    table = SettingTable()
    table.add(a_level())
    table.take(1)
    assert table.gathered(1, 0, 7)
    assert table.gathered(2, 1000, 7)  # before, it was too short to be measured
    assert not table.gathered(3, 5000, 8)
    table.set(1, 3)
    table.take(1)
    assert table.gathered(4, 5000, 9)
    (told,) = table.announcement().settings
    assert told.costs == (0, 5000, 5000)  # with the latest of all


@pytest.mark.parametrize(
    ("setting", "about"),
    [
        (
            Setting(id=1, name="x", value=4, minimum=1, maximum=3, choices=LEVELS),
            "4 is not between",
        ),
        (
            Setting(id=1, name="x", value=1, minimum=1, maximum=2, choices=LEVELS),
            "3 names for 2 values",
        ),
        (
            Setting(id=1, name="x", value=1, minimum=3, maximum=1, kind=SettingKind.RANGE),
            "not between",
        ),
    ],
)
def test_a_setting_that_contradicts_itself_is_refused(setting: Setting, about: str) -> None:
    with pytest.raises(LocalProtocolError, match=about):
        SettingTable().add(setting)


def test_a_number_is_used_once_and_unknown_ones_are_refused() -> None:
    table = SettingTable()
    table.add(a_level())
    with pytest.raises(LocalProtocolError, match="already used"):
        table.add(a_level())
    with pytest.raises(LocalProtocolError, match="does not exist"):
        table.set(7, 1)
    with pytest.raises(LocalProtocolError, match="does not exist"):
        table.take(7)
    with pytest.raises(LocalProtocolError, match="from 1 to 3"):
        table.set(1, 4)
    assert table.announcement() == m.Settings(settings=(a_level_told(),))


def a_level_told() -> Setting:
    return Setting(
        id=1, name="Level", value=2, minimum=1, maximum=3, choices=LEVELS, costs=(0, 0, 0)
    )


def test_a_driver_with_levels_has_the_setting_and_begins_with_the_nearest() -> None:
    for asked, given in ((2, 2), (4, 3), (0, 1)):
        server = ServerDescription(name="x", events=("Clock",), levels=LEVELS, level=asked).server()
        (level,) = server.settings
        assert (level.id, level.value, level.choices) == (LEVEL, given, LEVELS)
        assert server.take_setting(LEVEL) == given
    assert ServerDescription(name="x", events=("Clock",)).server().settings == ()


def test_what_the_controller_sets_is_told_to_everybody_and_applies_at_the_next_event(
    serve: Serve, join: Join
) -> None:
    target = Target()
    target.server.add_setting(a_level())
    (address,) = serve(target).addresses
    controller, viewer = join(address, control=True), join(address)
    controller.sync()
    viewer.sync()
    assert viewer.state.settings == m.Settings(settings=(a_level_told(),))
    assert target.server.take_setting(1) == 2
    controller.send(m.SetSetting(id=1, value=3))
    (told,) = viewer.next(m.Settings).settings
    assert (told.value, told.applies) == (3, 0)
    assert target.server.take_setting(1) == 3
    with target.running(START):
        (told,) = viewer.next(m.Settings).settings
    assert (told.value, told.applies, told.costs[:2]) == (3, 1, (0, 0))
    assert told.costs[2] > 0
    assert controller.next(m.Settings).settings[0].value == 3


def test_a_viewer_may_set_nothing_and_a_controller_only_what_there_is(
    serve: Serve, join: Join
) -> None:
    target = Target()
    target.server.add_setting(a_level())
    (address,) = serve(target).addresses
    controller, viewer = join(address, control=True), join(address)
    viewer.send(m.SetSetting(id=1, value=3))
    assert viewer.next(m.Error).code is ErrorCode.NOT_CONTROLLER
    for ident, value in ((2, 1), (1, 0), (1, 4)):
        controller.send(m.SetSetting(id=ident, value=value))
        assert controller.next(m.Error).code is ErrorCode.BAD_REQUEST
    assert target.server.take_setting(1) == 2
