"""The language of the reader, and texts in it.

`--lang` sets `GCSPY_LANG` for the command and the processes it starts; without it the variables of gettext decide: `LANGUAGE`, `LC_ALL`, `LC_MESSAGES`
and `LANG`, in this order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from gcspy_client.translation.catalog import Catalog, read_catalog

__all__ = [
    "LANGUAGE_VARIABLE",
    "chosen_language",
    "current_language",
    "interface_catalog",
    "languages",
    "translate",
]

LANGUAGE_VARIABLE: Final = "GCSPY_LANG"
_VARIABLES: Final = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_NAME: Final = re.compile(r"([a-zA-Z]{2,3})(?:[_-]([a-zA-Z]{2}))?(?:[.@].*)?")
_ENGLISH: Final = "en"


def chosen_language(text: str) -> str:
    """The language of a text such as ``de``, ``de-AT`` or ``de_AT.UTF-8``, as gettext writes it; empty: it names none."""
    found = _NAME.fullmatch(text.strip())
    if found is None:
        return _ENGLISH if text.strip().upper() in ("C", "POSIX", "C.UTF-8", "C.UTF8") else ""
    return found[1].lower() + (f"_{found[2].upper()}" if found[2] else "")


def current_language(environment: Mapping[str, str] | None = None) -> str:
    """The reader's language; English if nothing says another.

    Args:
        environment: The environment; None: that of the process.
    """
    there = os.environ if environment is None else environment
    own = chosen_language(there.get(LANGUAGE_VARIABLE, ""))
    if own:
        return own
    for variable in _VARIABLES:
        for one in there.get(variable, "").split(":"):
            language = chosen_language(one)
            if language:
                return language
    return _ENGLISH


def languages() -> tuple[str, ...]:
    """The languages besides English of which there is a catalog of the interface's words."""
    folder = files("gcspy_client.translation").joinpath("catalogs")
    names = (file.name for file in folder.iterdir())
    return tuple(sorted(name.removesuffix(".po") for name in names if name.endswith(".po")))


@cache
def interface_catalog(language: str) -> Catalog:
    """The words of the lesson panel and of the page in a language: those of the country, else of the language, else none.

    Raises:
        CommandError: The catalog is damaged.
    """
    for name in (language, language.partition("_")[0]):
        path = Path(str(files("gcspy_client.translation").joinpath("catalogs", f"{name}.po")))
        if path.exists():
            return read_catalog(path, name)
    return Catalog(language)


def translate(english: str, /, **values: object) -> str:
    """A text of the interface in the reader's language, with values for its placeholders.

    Args:
        english: The text, written out where it is used: that is how it is found for translators.
        values: What stands for each name in braces.
    """
    text = interface_catalog(current_language()).text(english)
    if not values:
        return text
    try:
        return text.format(**values)
    except (KeyError, IndexError, ValueError):  # a mistake of the translation
        return english.format(**values)
