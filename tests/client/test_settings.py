"""Stored settings: they are typed and checked when read, and a wrong one stops nothing."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings

from gcspy_client.settings import VARIABLE, UserSettings


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.ini"


def test_what_is_stored_is_there_the_next_time_with_its_type(path: Path) -> None:
    one = UserSettings(path)
    one.store("a", True)
    one.store("b", 7)
    one.store("c", ["x", "y"])
    one.store("d", Colour.BLUE)
    one.store("e", {"k": [1, "two"]})
    one.store("f", 'words, "quoted" and \n broken')
    one.store_data("g", bytes(range(256)))
    one.write()
    other = UserSettings(path)
    assert other.flag("a", False) is True
    assert other.number("b", 0, low=0, high=9) == 7
    assert other.texts("c") == ("x", "y")
    assert other.choice("d", Colour) is Colour.BLUE
    assert other.mapping("e") == {"k": [1, "two"]}
    assert other.text("f") == 'words, "quoted" and \n broken'
    assert other.data("g") == bytes(range(256))
    other.forget("b")
    assert other.number("b", 3, low=0, high=9) == 3


@pytest.mark.parametrize(
    "stored",
    ["", "{", "null", "[1, 2", "true", "12", '"purple"', "[" * 5000, '{"a": 1}', "\x00\xff"],
)
def test_a_damaged_value_is_as_if_it_had_never_been_stored(path: Path, stored: str) -> None:
    kept = QSettings(str(path), QSettings.Format.IniFormat)
    kept.setValue("a", stored)
    kept.sync()
    settings = UserSettings(path)
    assert settings.number("a", 5, low=1, high=9) == 5
    assert settings.choice("a", Colour) is None
    assert settings.texts("a") == ()
    assert settings.data("a") == b""
    assert settings.text("a", "default") in ("default", "purple")
    assert settings.flag("a", True) is True
    assert settings.mapping("a") in ({}, {"a": 1})


def test_bytes_with_one_bit_changed_are_not_given_to_qt(path: Path) -> None:
    settings = UserSettings(path)
    settings.store_data("a", b"layout")
    text = settings.text("a")
    assert settings.data("a") == b"layout"
    for place in range(len(text)):
        settings.store("a", text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :])
        assert settings.data("a") in (
            b"",
            b"layout",
        )  # the last characters hold some bits that mean nothing
    settings.store("a", text[:-4])
    assert settings.data("a") == b""


def test_the_environment_names_another_file_or_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(path))
    UserSettings.of_user().store("a", 1)
    assert UserSettings(path).number("a", 0, low=0, high=9) == 1
    monkeypatch.setenv(VARIABLE, "none")
    nothing = UserSettings.of_user()
    nothing.store("a", 2)
    assert nothing.number("a", 0, low=0, high=9) == 2, "as long as the process lives"
    assert UserSettings.of_user().number("a", 0, low=0, high=9) == 0


def test_a_file_that_is_a_folder_is_no_reason_to_fail(tmp_path: Path) -> None:
    settings = UserSettings(tmp_path)
    settings.store("a", 1)
    settings.write()
    assert settings.number("b", 4, low=0, high=9) == 4
