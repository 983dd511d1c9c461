"""The texts of the interface that can be translated, found in the sources: calls of `translate` in Python, of `T` in the page's program, texts of its document.

For translators and the lint; the running program needs it not.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Final

__all__ = ["catalog_path", "interface_messages", "page_messages"]

_CALL: Final = re.compile(r'\bT\(("(?:[^"\\]|\\.)*")')
_ATTRIBUTES: Final = ("title", "aria-label", "aria-roledescription")
_LETTER: Final = re.compile(r"[A-Za-z]{2}")


class _DocumentTexts(HTMLParser):
    """Texts of a document, and those of its attributes that people read or hear."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._skips = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skips = tag in ("script", "style", "title")
        self.found += [value for name, value in attrs if name in _ATTRIBUTES and value]

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if not self._skips and _LETTER.search(text) and not text.startswith("$"):
            self.found.append(text)


def page_messages() -> dict[str, str]:
    """The texts of the page for browsers: where each is used, by the text."""
    folder = Path(str(files("gcspy_client.page")))
    parser = _DocumentTexts()
    parser.feed((folder / "page.html").read_text(encoding="utf-8"))
    found = dict.fromkeys(parser.found, "page.html")
    for path in sorted(folder.glob("*.js")):
        for quoted in _CALL.findall(path.read_text(encoding="utf-8")):
            found.setdefault(json.loads(quoted), path.name)
    return found


def _calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "translate"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.args[0].value


def interface_messages() -> dict[str, str]:
    """All texts of the interface: where each is used, by the text."""
    room = Path(str(files("gcspy_client")))
    found: dict[str, str] = {}
    for folder in ("lessons", "model", "view/lessons"):
        for path in sorted((room / folder).glob("*.py")):
            for text in _calls(path):
                found.setdefault(text, path.relative_to(room).as_posix())
    for text, place in page_messages().items():
        found.setdefault(text, f"page/{place}")
    return found


def catalog_path(language: str) -> Path:
    """The file of the interface's words in a language, whether it exists or not."""
    return Path(str(files("gcspy_client.translation"))) / "catalogs" / f"{language}.po"
