"""The user guide: one source for the help in the window and for `docs/guide.md`.

A page is Markdown in `pages/`, in the order of the file names. Two kinds of line are filled in: ``{keys: View}`` becomes the table of the
keys of a menu, and ``![words](picture:NAME)`` a picture of `screenshots/`, which the window leaves out.

Knows texts; does not know widgets. The owner of the table of actions provides the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files

__all__ = ["KEYS_OF_ALL", "Keys", "Page", "document", "pages"]

Keys = tuple[str, str, str]
"""Menu, keys, and what they do."""

KEYS_OF_ALL = "all"
"""``{keys: all}``: of every menu, each under its own heading."""

_KEYS = re.compile(r"^\{keys: (.+)\}$", re.MULTILINE)
_PICTURE = re.compile(r"^!\[(.*)\]\(picture:([a-z0-9-]+)\)$", re.MULTILINE)
_PAGE_LINK = re.compile(r"\]\(page:([a-z-]+)\)")
_HEADING = re.compile(r"^#+ ", re.MULTILINE)

_HEAD = """\
<!-- Written by `python -m gcspy_client.guide`, from gcspy_client/guide/pages; don't edit. -->

# GCspy: a guide

The functions of the window, and how to use them. F1 opens the same pages in the window.
"""


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        name: For links, ``[words](page:NAME)``.
        title: Its heading.
        source: The Markdown, heading included, before anything was filled in.
    """

    name: str
    title: str
    source: str

    def text(self, keys: Iterable[Keys]) -> str:
        """The description of the window: Markdown with keys, without pictures."""
        return _PICTURE.sub("", _with_keys(self.source, list(keys)))

    def pictures(self) -> list[str]:
        """Names of the pictures that the page asks for."""
        return [match[2] for match in _PICTURE.finditer(self.source)]


def pages() -> tuple[Page, ...]:
    """All pages, in their order."""
    found = []
    for file in sorted(files(__name__).joinpath("pages").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".md"):
            source = file.read_text(encoding="utf-8")
            title = source.partition("\n")[0].removeprefix("# ")
            found.append(Page(file.name.removesuffix(".md").partition("-")[2], title, source))
    return tuple(found)


def document(keys: Iterable[Keys], *, pictures: str) -> str:
    """The guide as one document.

    Args:
        keys: All keys of the window.
        pictures: The folder of the pictures, relative to the document.
    """
    rows, every = list(keys), pages()
    contents = "\n".join(f"* [{page.title}](#{page.name})" for page in every)
    return "\n".join([_HEAD, contents, "", *_bodies(every, rows, pictures)])


def _bodies(every: Iterable[Page], keys: list[Keys], pictures: str) -> Iterator[str]:
    for page in every:
        text = _PICTURE.sub(rf"![\1]({pictures}/\2.png)", page.source)
        text = _PAGE_LINK.sub(r"](#\1)", _with_keys(text, keys))
        yield (
            f'<a id="{page.name}"></a>\n\n'
            + _HEADING.sub(lambda match: "#" + match[0], text).rstrip()
            + "\n"
        )


def _with_keys(text: str, keys: list[Keys]) -> str:
    return _KEYS.sub(lambda match: _key_tables(match[1], keys), text)


def _key_tables(wanted: str, keys: list[Keys]) -> str:
    if wanted != KEYS_OF_ALL:
        return _key_table([row for row in keys if row[0] == wanted])
    menus = dict.fromkeys(menu for menu, _, _ in keys)
    return "\n\n".join(
        f"## {menu}\n\n" + _key_table([row for row in keys if row[0] == menu]) for menu in menus
    )


def _key_table(rows: list[Keys]) -> str:
    lines = [f"| {_cell(what)} | {_cell(about)} |" for _, what, about in rows]
    return "\n".join(["| Keys | What they do |", "|---|---|", *lines])


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
