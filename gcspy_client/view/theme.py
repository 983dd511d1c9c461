"""Colours, fonts and the style sheet of the window, dark and light.

The palette (`gcspy_client.model.palette`) has the colours of tiles; this module has only
those of the widgets around them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from gcspy_client.model.palette import CANVAS, Theme, sequential

__all__ = ["Tokens", "dress", "numbers_font", "small_font", "system_theme", "tokens"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The colours of one theme, as ``#rrggbb``."""

    window: str
    surface: str
    raised: str
    border: str
    text: str
    dim: str
    accent: str
    on_accent: str
    good: str
    warning: str
    error: str
    canvas: str


def _canvas(theme: Theme) -> str:
    red, green, blue = sequential(theme).rgb(CANVAS)
    return f"#{red:02x}{green:02x}{blue:02x}"


@lru_cache
def tokens(theme: Theme) -> Tokens:
    """The colours around the tiles; text on each surface has a contrast of at least 4.5 : 1."""
    if theme.strong:
        return _strong_tokens(theme)
    if theme is Theme.DARK:
        return Tokens(
            window="#1a1d22",
            surface="#21252b",
            raised="#2b3038",
            border="#3a404a",
            text="#e8eaed",
            dim="#a2abb6",
            accent="#6cb6ff",
            on_accent="#0c1622",
            good="#63c993",
            warning="#f2b257",
            error="#ff8073",
            canvas=_canvas(theme),
        )
    return Tokens(
        window="#eef0f3",
        surface="#ffffff",
        raised="#e6e9ed",
        border="#c6ccd4",
        text="#1c2026",
        dim="#59626d",
        accent="#0a60c2",
        on_accent="#ffffff",
        good="#1d7a48",
        warning="#8f5600",
        error="#b3261e",
        canvas=_canvas(theme),
    )


def _strong_tokens(theme: Theme) -> Tokens:
    """Black and white, and colours with a contrast of at least 7 : 1 on either surface."""
    if theme is Theme.CONTRAST_DARK:
        return Tokens(
            window="#000000",
            surface="#000000",
            raised="#1f2328",
            border="#c9d1d9",
            text="#ffffff",
            dim="#dfe3e8",
            accent="#ffd84d",
            on_accent="#000000",
            good="#7ee787",
            warning="#ffb657",
            error="#ff9d94",
            canvas=_canvas(theme),
        )
    return Tokens(
        window="#ffffff",
        surface="#ffffff",
        raised="#eef0f2",
        border="#3d444d",
        text="#000000",
        dim="#24292f",
        accent="#0349b4",
        on_accent="#ffffff",
        good="#055d20",
        warning="#6b3d00",
        error="#8d0f16",
        canvas=_canvas(theme),
    )


def system_theme() -> Theme:
    """Return the theme that the desktop requests; dark if it requests none."""
    scheme = QGuiApplication.styleHints().colorScheme()
    return Theme.LIGHT if scheme is Qt.ColorScheme.Light else Theme.DARK


def small_font(base: QFont) -> QFont:
    """Return the font of captions: a step smaller than the base."""
    font = QFont(base)
    font.setPointSizeF(max(7.0, base.pointSizeF() * 0.88))
    return font


def numbers_font(base: QFont) -> QFont:
    """A fixed-pitch font, so that digits that change do not move what is beside them."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(max(7.0, base.pointSizeF() * 0.95))
    return font


def dress(window: QWidget, theme: Theme, *, points: float = 0.0) -> None:
    """Dress a window and all that is in it, and what belongs to no window: tooltips, say.

    The style sheet is the window's and not the application's, so that it can be set on a complete
    window: Qt looks up the rules again for each widget that gets another parent, and that was four
    fifths of the time it took to build one.

    Args:
        window: The window.
        theme: The theme of its colours.
        points: Size of all type in it; 0: each part has its own.
    """
    t = tokens(theme)
    sheet = _style_sheet(t) + (f"QWidget {{ font-size: {points:.1f}pt; }}" if points else "")
    if window.styleSheet() == sheet:
        return
    application = QApplication.instance()
    if isinstance(application, QApplication):
        application.setPalette(_palette(t))
    window.setStyleSheet(sheet)


def _palette(t: Tokens) -> QPalette:
    palette = QPalette()
    roles = {
        QPalette.ColorRole.Window: t.window,
        QPalette.ColorRole.WindowText: t.text,
        QPalette.ColorRole.Base: t.surface,
        QPalette.ColorRole.AlternateBase: t.raised,
        QPalette.ColorRole.Text: t.text,
        QPalette.ColorRole.Button: t.raised,
        QPalette.ColorRole.ButtonText: t.text,
        QPalette.ColorRole.Highlight: t.accent,
        QPalette.ColorRole.HighlightedText: t.on_accent,
        QPalette.ColorRole.ToolTipBase: t.raised,
        QPalette.ColorRole.ToolTipText: t.text,
        QPalette.ColorRole.PlaceholderText: t.dim,
        QPalette.ColorRole.Mid: t.border,
        QPalette.ColorRole.Link: t.accent,
    }
    for role, colour in roles.items():
        palette.setColor(role, QColor(colour))
    for role in (
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
        QPalette.ColorRole.WindowText,
    ):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(t.dim))
    return palette


def _style_sheet(t: Tokens) -> str:
    return f"""
    QMainWindow, QDialog {{ background: {t.window}; }}
    QToolTip {{ background: {t.raised}; color: {t.text}; border: 1px solid {t.border}; padding: 4px; }}
    QMenuBar {{ background: {t.window}; color: {t.text}; padding: 1px 6px; }}
    QMenuBar::item {{ padding: 3px 9px; border-radius: 4px; background: transparent; }}
    QMenuBar::item:selected {{ background: {t.raised}; }}
    QMenu {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.border}; padding: 4px; }}
    QMenu::item {{ padding: 5px 26px 5px 22px; border-radius: 4px; }}
    QMenu::item:selected {{ background: {t.accent}; color: {t.on_accent}; }}
    QMenu::item:disabled {{ color: {t.dim}; }}
    QMenu::separator {{ height: 1px; background: {t.border}; margin: 4px 6px; }}
    QScrollArea {{ background: transparent; border: none; }}
    QScrollBar:vertical {{ background: transparent; width: 10px; margin: 0; }}
    QScrollBar::handle:vertical {{ background: {t.border}; border-radius: 4px; min-height: 24px; margin: 1px; }}
    QScrollBar:horizontal {{ background: transparent; height: 10px; margin: 0; }}
    QScrollBar::handle:horizontal {{ background: {t.border}; border-radius: 4px; min-width: 24px; margin: 1px; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QSplitter::handle {{ background: transparent; }}
    QSplitter::handle:hover {{ background: {t.border}; }}
    QPushButton {{ background: {t.raised}; color: {t.text}; border: 1px solid {t.border};
        border-radius: 5px; padding: 4px 14px; }}
    PlainPushButton:hover {{ border-color: {t.accent}; }}
    PlainPushButton:focus {{ border-color: {t.accent}; }}
    PlainPushButton:pressed {{ background: {t.border}; }}
    PlainPushButton:disabled {{ color: {t.dim}; background: {t.window}; border-color: {t.raised}; }}
    QPushButton[primary="true"] {{ background: {t.accent}; color: {t.on_accent}; border-color: {t.accent};
        font-weight: bold; }}
    QPushButton[primary="true"]:disabled {{ background: {t.raised}; color: {t.dim}; border-color: {t.raised}; }}
    QComboBox {{ background: {t.raised}; color: {t.text}; border: 1px solid {t.border}; border-radius: 5px;
        padding: 4px 10px; }}
    PlainComboBox:hover, PlainComboBox:focus {{ border-color: {t.accent}; }}
    QComboBox::drop-down {{ border: none; width: 22px; }}
    PlainComboBox QAbstractItemView {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.border};
        selection-background-color: {t.accent}; selection-color: {t.on_accent}; outline: none; }}
    QLineEdit {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.border}; border-radius: 5px;
        padding: 5px 8px; selection-background-color: {t.accent}; selection-color: {t.on_accent};
        placeholder-text-color: {t.dim}; }}
    PlainLineEdit:focus {{ border-color: {t.accent}; }}
    QTableView, QTreeView {{ background: {t.surface}; color: {t.text}; border: none; gridline-color: transparent;
        selection-background-color: {t.raised}; selection-color: {t.text}; outline: none; }}
    QTableView::item {{ padding: 0 6px; border: none; }}
    QTreeView::item {{ padding: 2px 3px; border: none; }}
    QHeaderView {{ background: {t.surface}; border: none; }}
    QHeaderView::section {{ background: {t.surface}; color: {t.dim}; border: none;
        border-bottom: 1px solid {t.border}; padding: 3px 9px; }}
    QHeaderView::up-arrow, QHeaderView::down-arrow {{ subcontrol-position: top center; width: 12px; height: 7px; }}
    QTableView[dense="true"]::item {{ padding: 0 3px; }}
    QTableView[dense="true"] QHeaderView::section, QTreeView QHeaderView::section {{ padding: 3px 4px; }}
    QFrame[card="true"] {{ background: {t.surface}; border: 1px solid {t.border}; border-radius: 7px; }}
    QDockWidget {{ color: {t.dim}; }}
    QMainWindow::separator {{ background: transparent; width: 7px; height: 7px; }}
    QMainWindow::separator:hover {{ background: {t.border}; }}
    QTabBar {{ background: transparent; qproperty-drawBase: 0; }}
    QTabBar::tab {{ background: transparent; color: {t.dim}; border: none; border-bottom: 2px solid transparent;
        padding: 2px 10px 3px 10px; margin: 0; }}
    QTabBar::tab:selected {{ color: {t.text}; border-bottom-color: {t.accent}; }}
    QTabBar::tab:hover:!selected {{ color: {t.text}; border-bottom-color: {t.border}; }}
    QFrame[sheet="true"] {{ background: {t.surface}; border: 1px solid {t.accent}; border-radius: 7px; }}
    QFrame[drop="yes"] {{ background: #e6{t.surface[1:]}; border: 2px dashed {t.accent}; border-radius: 9px; }}
    QFrame[drop="no"] {{ background: #e6{t.surface[1:]}; border: 2px dashed {t.error}; border-radius: 9px; }}
    QListView {{ background: {t.surface}; color: {t.text}; border: none; outline: none; }}
    QLabel {{ background: transparent; }}
    QLabel[dim="true"] {{ color: {t.dim}; }}
    QLabel[caption="true"] {{ color: {t.dim}; font-weight: bold; }}
    QLabel[tone="dim"] {{ color: {t.dim}; }}
    QLabel[tone="live"] {{ color: {t.accent}; font-weight: bold; }}
    QLabel[tone="good"] {{ color: {t.good}; }}
    QLabel[tone="warning"] {{ color: {t.warning}; }}
    QLabel[tone="error"] {{ color: {t.error}; }}
    QLabel[chip="true"] {{ background: {t.raised}; color: {t.text}; border-radius: 8px; padding: 1px 9px; }}
    QFrame[banner="warning"] {{ background: {t.surface}; border: 1px solid {t.warning}; border-radius: 7px; }}
    QFrame[banner="error"] {{ background: {t.surface}; border: 1px solid {t.error}; border-radius: 7px; }}
    QFrame[banner="fired"] {{ background: {t.surface}; border: 1px solid {t.error}; border-radius: 7px; }}
    QToolButton {{ background: transparent; border: 1px solid transparent; border-radius: 5px; padding: 0; }}
    PlainToolButton:hover:enabled {{ background: {t.raised}; border-color: {t.border}; }}
    PlainToolButton:focus {{ border-color: {t.accent}; }}
    PlainToolButton:pressed:enabled {{ background: {t.border}; }}
    PlainToolButton:checked {{ background: {t.accent}; border-color: {t.accent}; }}
    QPushButton[badge] {{ padding: 2px 11px; border-radius: 11px; font-weight: bold; }}
    QPushButton[badge="live"]:disabled {{ background: {t.good}; color: {t.window}; border-color: {t.good}; }}
    QPushButton[badge="behind"] {{ background: transparent; color: {t.accent}; border-color: {t.accent}; }}
    QPushButton[badge="past"] {{ background: {t.accent}; color: {t.on_accent}; border-color: {t.accent};
        padding: 2px 14px; border-radius: 10px; }}
    QPushButton[badge="none"]:disabled {{ background: transparent; color: {t.dim}; border-color: {t.border}; }}
    QPushButton[chip="filter"] {{ background: {t.raised}; color: {t.warning}; border-color: {t.warning};
        border-radius: 9px; padding: 1px 9px; }}
    QPushButton[chip="plain"] {{ border-radius: 9px; padding: 1px 9px; }}
    QPushButton[chip="filter"]:disabled {{ color: {t.dim}; border-color: {t.border}; }}
    QSpinBox[cell="true"] {{ padding: 0; border-radius: 0; }}
    QSpinBox {{ background: {t.raised}; color: {t.text}; border: 1px solid {t.border}; border-radius: 5px;
        padding: 3px 6px; }}
    QSpinBox:focus {{ border-color: {t.accent}; }}
    QFrame[panel="true"] {{ background: {t.surface}; border: 1px solid {t.border}; border-radius: 7px; }}
    QFrame[panel="true"][active="true"] {{ border: 2px solid {t.accent}; }}
    QFrame[panel="true"][past="true"] {{ border: 1px dashed {t.accent}; background: {t.window}; }}
    QFrame[panel="true"][past="true"][active="true"] {{ border: 2px dashed {t.accent}; background: {t.window}; }}
    """
