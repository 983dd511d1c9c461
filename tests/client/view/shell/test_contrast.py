"""Themes: what is written can be read on what it stands on."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor

from gcspy_client.model.palette import Theme
from gcspy_client.view.theme import tokens
from tests.client.view.widgets.test_check_box import contrast


@pytest.mark.parametrize("theme", list(Theme))
def test_words_have_the_contrast_that_their_theme_promises(theme: Theme) -> None:
    t = tokens(theme)
    least = 7.0 if theme.strong else 4.5
    for words in (t.text, t.dim, t.accent, t.good, t.warning, t.error):
        for ground in (t.window, t.surface):
            assert contrast(QColor(words), QColor(ground)) >= least, (theme, words, ground)
    assert contrast(QColor(t.on_accent), QColor(t.accent)) >= 4.5
    if theme.strong:
        assert contrast(QColor(t.border), QColor(t.surface)) >= 3
