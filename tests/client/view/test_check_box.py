"""The check box is seen on its ground, and the check in it, in both themes."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.view.theme import dress
from gcspy_client.view.widgets.check_box import CheckBox


def contrast(one: QColor, other: QColor) -> float:
    """As WCAG 2 defines it."""

    def luminance(colour: QColor) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.getRgbF()[:3]]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def row_through_the_box(image: QImage) -> list[QColor]:
    return [QColor(image.pixel(x, image.height() // 2)) for x in range(16)]


@pytest.mark.parametrize("theme", list(Theme))
def test_an_empty_box_has_a_frame_and_a_checked_one_a_check(theme: Theme, qtbot: QtBot) -> None:
    box = CheckBox("All processes")
    qtbot.addWidget(box)
    dress(box, theme)
    box.setAutoFillBackground(True)
    ground = box.palette().window().color()
    empty = row_through_the_box(box.grab().toImage())
    assert max(contrast(colour, ground) for colour in empty) >= 3
    box.setChecked(True)
    checked = row_through_the_box(box.grab().toImage())
    filled = checked[2]
    assert contrast(filled, ground) >= 3
    assert max(contrast(colour, filled) for colour in checked[3:12]) >= 3
