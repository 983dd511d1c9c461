"""Markdown of a lesson as HTML that loads, opens and runs nothing.

A lesson may come from anybody. HTML in its text is shown as text, a picture is replaced by its words, and a link by its words and its address.
"""

from __future__ import annotations

from functools import cache

from gcspy_protocol.text.visible import visible_lines
from markdown_it import MarkdownIt
from markdown_it.token import Token

__all__ = ["html_of_markdown", "words_of_markdown"]

_MOST_CHARS = 200_000


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def html_of_markdown(text: str) -> str:
    """HTML of headings, paragraphs, lists, tables and emphasis, without links, pictures and attributes of the text's author."""
    parser = _parser()
    tokens = parser.parse(visible_lines(text[:_MOST_CHARS]))
    for token in tokens:
        if token.children is not None:
            token.children = _harmless(token.children)
    return str(parser.renderer.render(tokens, parser.options, {}))


def words_of_markdown(text: str) -> str:
    """The words of a paragraph, without its emphasis: for questions and answers, which screen readers say."""
    words: list[str] = []
    for token in _parser().parseInline(visible_lines(text[:_MOST_CHARS])):
        words += [
            " " if one.type in ("softbreak", "hardbreak") else one.content
            for one in _harmless(token.children or [])
        ]
    return "".join(words)


def _harmless(tokens: list[Token]) -> list[Token]:
    """The tokens of a paragraph with words in the place of links and pictures."""
    found: list[Token] = []
    addresses: list[str] = []
    for token in tokens:
        if token.type == "link_open":
            addresses.append(str(token.attrs.get("href", "")))
        elif token.type == "link_close":
            address = addresses.pop() if addresses else ""
            if not address.startswith("page:"):  # a page of the guide, which is not here
                found.append(_words(f" ({address})"))
        elif token.type == "image":
            found.append(_words(f"[picture: {token.content or 'without a name'}]"))
        else:
            found.append(token)
    return found


def _words(text: str) -> Token:
    return Token("text", "", 0, content=text)
