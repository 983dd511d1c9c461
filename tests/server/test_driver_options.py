"""Options of drivers: declared with a type and bounds, and refused in words."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest
from gcspy_protocol.errors import CommandError

from gcspy_server.driver_options import (
    OPTIONS_GROUP,
    DriverOption,
    OptionValue,
    announced_options,
    named_values,
    values_for,
)

DEPTH = DriverOption(name="depth", default=3, about="How deep.", minimum=1, maximum=9)
SHARE = DriverOption(name="share", default=0.5, about="How much.", minimum=0.0)
FAST = DriverOption(name="fast", default=False, about="Whether it is fast.")
HOW = DriverOption(name="how", default="slow", about="How.", choices=("slow", "quick"))
ALL = (DEPTH, SHARE, FAST, HOW)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (DEPTH, "9", 9),
        (SHARE, " 0.25", 0.25),
        (FAST, "Yes", True),
        (FAST, "off", False),
        (HOW, "quick", "quick"),
    ],
)
def test_a_value_is_read_by_the_type_of_the_default(
    option: DriverOption, text: str, value: OptionValue
) -> None:
    found = option.parse(text)
    assert found == value
    assert type(found) is type(option.default)


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        (DEPTH, "10", "option depth is a whole number from 1 to 9; got '10'"),
        (DEPTH, "2.5", "a whole number from 1 to 9"),
        (SHARE, "-1", "option share is a number of at least 0; got '-1'"),
        (SHARE, "nan", "a number of at least 0"),
        (FAST, "perhaps", "option fast is yes or no"),
        (HOW, "sideways", "option how is slow, quick; got 'sideways'"),
    ],
)
def test_what_an_option_may_not_be_is_refused_in_words(
    option: DriverOption, text: str, told: str
) -> None:
    with pytest.raises(CommandError) as refused:
        option.parse(text)
    assert told in str(refused.value)


def test_a_value_for_one_driver_comes_before_one_for_all() -> None:
    given = named_values(["depth=4", "deep.depth=5", "other.how=quick"])
    values, taken = values_for("deep", ALL, given)
    assert values == {"depth": 5, "share": 0.5, "fast": False, "how": "slow"}
    assert taken == {"depth", "deep.depth"}
    values, taken = values_for("other", ALL, given)
    assert (values["depth"], values["how"]) == (4, "quick")
    assert taken == {"depth", "other.how"}


@pytest.mark.parametrize("texts", [["depth"], ["=4"], ["depth=4", "depth=5"]])
def test_what_is_no_pair_or_comes_twice_is_refused(texts: list[str]) -> None:
    with pytest.raises(CommandError):
        named_values(texts)


MIXED = (DEPTH, "share")
LISTED = [DEPTH]


def test_options_that_packages_announce_are_read_and_what_is_none_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = "tests.server.test_driver_options:"
    names = {"one": "ALL", "mixed": "MIXED", "listed": "LISTED", "missing": "NOTHING"}
    found = EntryPoints(
        EntryPoint(name, here + where, OPTIONS_GROUP) for name, where in names.items()
    )
    monkeypatch.setattr("gcspy_server.driver_options.installed_entry_points", lambda: found)
    announced = announced_options()
    assert list(announced) == ["listed", "missing", "mixed", "one"]
    assert announced["one"] == ALL
    for name, where in (("mixed", "MIXED"), ("listed", "LISTED")):
        assert announced[name] == (
            f"cannot be read: tests.server.test_driver_options:{where} is not a tuple of DriverOption"
        )
    assert str(announced["missing"]).startswith("cannot be read: AttributeError")
