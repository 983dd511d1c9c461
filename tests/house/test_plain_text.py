"""Whether every text of the window goes through `gcspy_client/view/plain`: names are strangers'.

Qt takes a text that looks like HTML for HTML in labels, tooltips and message boxes, by itself. So
outside of that folder nothing may import a Qt class that shows text, nor call what gives one to Qt.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.rooms import PACKAGES, ROOT, parsed

PLAIN = ROOT / "gcspy_client" / "view" / "plain"

TEXT_CLASSES = frozenset(
    [
        "QAction",
        "QAbstractItemModel",
        "QAbstractListModel",
        "QAbstractTableModel",
        "QCheckBox",
        "QColorDialog",
        "QColumnView",
        "QCommandLinkButton",
        "QComboBox",
        "QCompleter",
        "QErrorMessage",
        "QFileDialog",
        "QFileSystemModel",
        "QFontComboBox",
        "QFontDialog",
        "QGraphicsSimpleTextItem",
        "QGraphicsTextItem",
        "QGroupBox",
        "QInputDialog",
        "QLabel",
        "QLCDNumber",
        "QLineEdit",
        "QListWidgetItem",
        "QMdiSubWindow",
        "QMenu",
        "QMessageBox",
        "QPlainTextEdit",
        "QProgressDialog",
        "QPushButton",
        "QRadioButton",
        "QShortcutEvent",
        "QSplashScreen",
        "QSqlTableModel",
        "QStandardItem",
        "QStandardItemModel",
        "QStaticText",
        "QStatusBar",
        "QStatusTipEvent",
        "QStringListModel",
        "QSystemTrayIcon",
        "QTabBar",
        "QTableWidgetItem",
        "QTabWidget",
        "QTextBrowser",
        "QTextCursor",
        "QTextDocument",
        "QTextDocumentFragment",
        "QTextEdit",
        "QTextLayout",
        "QToolBox",
        "QToolButton",
        "QToolTip",
        "QTreeWidgetItem",
        "QUndoView",
        "QWebEngineView",
        "QWhatsThis",
        "QWhatsThisClickedEvent",
        "QWidgetAction",
        "QWizard",
        "QWizardPage",
        "QGraphicsProxyWidget",
        "QQuickWidget",
        "QQmlEngine",
        "QDesktopServices",
    ]
)
"""Qt's classes that show a text, or open what a text names."""

TEXT_CALLS = frozenset(
    [
        "addAction",
        "addItem",
        "addLegend",
        "addRow",
        "appendHtml",
        "drawStaticText",
        "drawText",
        "elidedText",
        "insertHtml",
        "insertMarkdown",
        "setDetailedText",
        "setHtml",
        "setInformativeText",
        "setLabel",
        "setLabelText",
        "setMarkdown",
        "setOpenExternalLinks",
        "setOpenLinks",
        "setStatusTip",
        "setTabText",
        "setTabToolTip",
        "setTextFormat",
        "setToolTip",
        "setWhatsThis",
        "setWindowTitle",
        "setWindowFilePath",
        "showMessage",
        "showText",
        "toHtml",
        "openUrl",
        "setAccessibleDescription",
        "setAccessibleName",
        "setBuddy",
        "setTitle",
        "setHorizontalHeaderLabels",
        "setHeaderLabels",
        "setVerticalHeaderLabels",
        "setHeaderData",
        "addMenu",
    ]
)
"""Methods that give a text to Qt, or to pyqtgraph, which makes HTML of labels and titles."""

GRAPH_CLASSES = frozenset({"TextItem", "LabelItem", "LegendItem", "ImageView", "TableWidget"})
"""Classes of pyqtgraph that make HTML of a text."""

ALLOWED = {
    # Menus of the window's own table of actions, whose ampersands are mnemonics; no name is in it.
    ("gcspy_client/view/actions.py", "QMenu"),
    ("gcspy_client/view/actions.py", "QAction"),
    ("gcspy_client/view/actions.py", "addMenu"),
    ("gcspy_client/view/actions.py", "addAction"),
    # Qt's actions of that table, so that the window hears their keys.
    ("gcspy_client/view/window.py", "addAction"),
    # Rows that have a label of ours; with a text Qt would make one by itself.
    ("gcspy_client/view/start/connect_dialog.py", "addRow"),
    # They add items of our own and curves, not texts.
    ("gcspy_client/view/panels/plot.py", "addItem"),
    ("gcspy_client/view/shell/guide_window.py", "addItem"),
    ("gcspy_client/view/start/start_page.py", "addItem"),
    ("gcspy_client/view/spaces/formulas.py", "addItem"),
    # The type of an argument of Qt's that this writes a number into.
    ("gcspy_client/view/panels/filters.py", "QAbstractItemModel"),
    # The type of what is printed; made in the folder of plain texts.
    ("gcspy_client/view/shell/key_sheet.py", "QTextDocument"),
    # Where Qt puts the tabs of panels; their titles are our own.
    ("gcspy_client/view/shell/docks.py", "QTabWidget"),
    # Sets a margin of tables in the guide's document; gives it no text.
    ("gcspy_client/view/shell/guide_window.py", "QTextDocument"),
    ("gcspy_client/view/shell/guide_window.py", "QTextCursor"),
}


def breaches(source: str) -> list[tuple[int, str]]:
    """Return where a module makes a text of Qt's by itself: the line, and with what."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("PySide6"):
            found += [
                (node.lineno, one.name)
                for one in node.names
                if one.name in TEXT_CLASSES or one.name == "*"
            ]
        elif isinstance(node, ast.Import):
            found += [
                (node.lineno, one.name) for one in node.names if one.name.startswith("PySide6")
            ]
        elif (isinstance(node, ast.Attribute) and node.attr in TEXT_CALLS | GRAPH_CLASSES) or (
            isinstance(node, ast.Attribute) and node.attr in TEXT_CLASSES
        ):
            found.append((node.lineno, node.attr))
        elif isinstance(node, ast.FunctionDef) and [
            node.name,
            *(one.arg for one in node.args.args[1:2]),
        ] in (["data", "index"], ["headerData", "section"]):
            found.append((node.lineno, node.name))
    return found


SOURCES = sorted(
    path
    for folder in PACKAGES.values()
    for path in folder.rglob("*.py")
    if (PLAIN not in path.parents and b"PySide6" in path.read_bytes())
    or b"pyqtgraph" in path.read_bytes()
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_text_goes_to_qt_but_as_plain_text(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = [
        f"{name}:{line}: {what}"
        for line, what in breaches(path.read_text(encoding="utf-8"))
        if (name, what) not in ALLOWED
    ]
    assert not found, (
        "use gcspy_client.view.plain, where a text is plain by construction:\n" + "\n".join(found)
    )


def test_the_exceptions_are_still_needed() -> None:
    there = {
        (str(path.relative_to(ROOT)), what)
        for path in SOURCES
        for _, what in breaches(path.read_text(encoding="utf-8"))
    }
    assert there >= ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        "from PySide6.QtWidgets import QLabel",
        "from PySide6.QtWidgets import (\n    QWidget,\n    QLabel as Quiet,\n)",
        "from PySide6.QtWidgets import *",
        "import PySide6.QtWidgets as w",
        "from PySide6 import QtWidgets\nQtWidgets.QLabel('x')",
        "widget.setToolTip(name)",
        "tell = widget.setToolTip",
        "painter.drawText(place, name)",
        "plot.setLabel('left', name)",
        "pg.TextItem(html=name)",
        "class Model(Base):\n    def data(self, index, role=0):\n        return name",
    ],
)
def test_a_text_that_goes_to_qt_otherwise_is_noticed(source: str) -> None:
    assert breaches(source)


def test_the_places_that_show_texts_are_looked_at() -> None:
    assert len(SOURCES) > 60
