"""One HTML document of the parts of this folder, with a policy that lets it load and run nothing else.

Texts of strangers are data of the document: JSON in an element that no browser runs, without a character that could end it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

from gcspy_client.lessons.lesson import Lesson
from gcspy_client.lessons.lesson_translation import translated_lesson
from gcspy_client.page.lesson_texts import texts_of_lesson
from gcspy_client.translation import interface_catalog, languages
from gcspy_client.translation.messages import page_messages

__all__ = ["SCRIPTS", "make_document", "page_of_session", "script", "words_of_page"]

SCRIPTS: Final = (
    "words.js",
    "msgpack.js",
    "wire.js",
    "palette.js",
    "codes.js",
    "text.js",
    "layout.js",
    "tiles.js",
    "store.js",
    "history.js",
    "timeline.js",
    "graph.js",
    "flow.js",
    "lesson.js",
    "page.js",
    "live.js",
)
"""The page's program, in an order in which each part needs only those before it."""

_BEGIN: Final = "\nbegin();\n"
_GENERATOR: Final = "GCspy"


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def script(*, begins: bool = True) -> str:
    """The page's program as one text.

    Args:
        begins: Whether it starts by itself; tests call its parts instead.
    """
    return "\n".join(map(_part, SCRIPTS)) + (_BEGIN if begins else "")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(value: Mapping[str, Any]) -> str:
    """JSON that ends no element of HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for one in "<>&\u2028\u2029":
        text = text.replace(one, f"\\u{ord(one):04x}")
    return text


def make_document(facts: Mapping[str, Any], events: str = "") -> bytes:
    """A whole page.

    Args:
        facts: What the page shows: texts, numbers, lists and maps; `title` is its title.
        events: Packed events in base64; empty: it gets them from a session.
    """
    program, style = script(), _part("page.css")
    connects = "'self'" if facts.get("live") else "'none'"
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(program)}'; style-src 'sha256-{_digest(style)}'; "
        f"img-src data:; connect-src {connects}; base-uri 'none'; form-action 'none'"
    )
    return (
        Template(_part("page.html"))
        .substitute(
            policy=policy,
            generator=_GENERATOR,
            title=escape(str(facts["title"])),
            style=style,
            facts=_data(facts),
            events=events,
            script=program,
        )
        .encode(errors="replace")
    )


def words_of_page(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The words of the page in some languages, by language and English text; a language without a catalog is left out."""
    wanted = page_messages()
    found = {}
    for name in names:
        there = interface_catalog(name).texts
        if there:
            found[name] = {text: there[text] for text in wanted if text in there}
    return found


def page_of_session(
    title: str, lessons: Iterable[Lesson], *, asks_token: bool, language: str = ""
) -> bytes:
    """The page of a session that is served to browsers.

    Args:
        title: Name of the session.
        lessons: Lessons whose texts the page has, so that it can follow a leader through them.
        asks_token: Whether a browser must know the token.
        language: Its language; empty: each browser takes its own, if there are words in it.
    """
    shipped = tuple(lessons)
    names = (language,) if language else languages()
    translations = {
        name: {
            one.name: texts_of_lesson(one)
            for one in (translated_lesson(lesson, name) for lesson in shipped)
            if one.original is not None
        }
        for name in names
    }
    facts = {
        "live": True,
        "title": title,
        "subtitle": "live",
        "theme": "",
        "kinds": [],
        "lessons": {one.name: texts_of_lesson(one) for one in shipped},
        "translations": translations,
        "language": language,
        "words": words_of_page(names),
        "lesson": None,
        "asksToken": asks_token,
    }
    return make_document(facts)
