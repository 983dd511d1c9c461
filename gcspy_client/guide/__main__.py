"""`python -m gcspy_client.guide FILE`: write the guide as one document; its pictures lie in `../screenshots`."""

from __future__ import annotations

import sys
from pathlib import Path

from gcspy_client.app import application
from gcspy_client.guide import document
from gcspy_client.view.window import MainWindow

__all__ = ["text_for_docs"]


def text_for_docs() -> str:
    """The document as it lies in `docs/`."""
    application()
    window = MainWindow()
    try:
        keys = [(row.menu, row.keys, row.about) for row in window.actions_table.key_rows()]
    finally:
        window.close()
    return document(keys, pictures="../screenshots")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text_for_docs(), encoding="utf-8")
