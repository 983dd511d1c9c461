"""Check box and radio button are seen on their ground, and the mark in them, in both themes."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.view.theme import dress, tokens
from gcspy_client.view.widgets.check_box import CheckBox, RadioButton


def luminance(colour: QColor) -> float:
    """As WCAG 2 defines it."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (colour.redF(), colour.greenF(), colour.blueF())
    )
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)


def contrast(one: QColor, other: QColor) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def colours_of(image: QImage) -> Counter[int]:
    """Of the pixels of the box, without the words."""
    return Counter(image.pixel(x, y) for x in range(15) for y in range(image.height()))


@pytest.mark.parametrize("kind", [CheckBox, RadioButton])
@pytest.mark.parametrize("theme", list(Theme))
def test_an_empty_box_has_a_frame_and_a_checked_one_a_mark(
    theme: Theme, kind: type[CheckBox | RadioButton], qtbot: QtBot
) -> None:
    box = kind("All processes")
    qtbot.addWidget(box)
    dress(box, theme)
    box.setAutoFillBackground(True)
    empty = colours_of(box.grab().toImage())
    ground, filled = QColor(tokens(theme).window), QColor(tokens(theme).accent)
    assert max(contrast(QColor(colour), ground) for colour in empty) >= 3
    box.setChecked(True)
    checked = colours_of(box.grab().toImage())
    assert checked[filled.rgb()] > 50
    assert contrast(filled, ground) >= 3
    assert (
        max(
            contrast(QColor(colour), filled)
            for colour, count in checked.items()
            if colour not in empty and count
        )
        >= 3
    )
