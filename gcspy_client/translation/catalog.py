"""A gettext catalog: English texts and their translations, read from a `.po` file.

Knows the file; does not know what its texts are for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gcspy_protocol.errors import CommandError

if TYPE_CHECKING:
    import polib

__all__ = ["MOST_CATALOG_BYTES", "Catalog", "placeholders", "read_catalog", "write_catalog"]

MOST_CATALOG_BYTES: Final = 4 << 20
_WRAP: Final = 98
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


def placeholders(text: str) -> frozenset[str]:
    """The names in braces of a text, which stand for values."""
    return frozenset(_PLACEHOLDER.findall(text))


@dataclass(frozen=True, slots=True)
class Catalog:
    """Translations into one language.

    Attributes:
        language: The language: ``de``, ``pt_BR``.
        texts: Translations by English text; one that is empty or uncertain (*fuzzy*) is left out.
        path: The file it was read from; empty: none.
    """

    language: str = "en"
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    path: str = ""

    def text(self, english: str) -> str:
        """The translation, or the English text."""
        return self.texts.get(english) or english

    def missing(self, wanted: Iterable[str]) -> list[str]:
        """Those of some English texts that have no translation, in their order."""
        return [one for one in dict.fromkeys(wanted) if one and one not in self.texts]

    def problems(self, wanted: Iterable[str]) -> list[str]:
        """The problems of it for some English texts: each that is missing, obsolete, or without a placeholder or an emphasis of the original."""
        needed = list(dict.fromkeys(wanted))
        found = [f"not translated: {_short(one)}" for one in self.missing(needed)]
        found += [f"no longer used: {_short(one)}" for one in self.texts if one not in set(needed)]
        for english in needed:
            there = self.texts.get(english)
            if there is None:
                continue
            if placeholders(there) != placeholders(english):
                found.append(f"other placeholders than in English: {_short(english)}")
            for mark in ("**", "`"):
                if english.count(mark) != there.count(mark):
                    found.append(f"another number of {mark} than in English: {_short(english)}")
        return found


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 72 else f"{line[:69]}…")


def _parsed(path: Path) -> polib.POFile:
    import polib  # only where another language than English is read

    try:
        if path.stat().st_size > MOST_CATALOG_BYTES:
            raise CommandError(
                f"{path} has more than {MOST_CATALOG_BYTES:,} bytes: it is not a catalog of translations"
            )
        return polib.pofile(str(path), encoding="utf-8", wrapwidth=_WRAP)
    except OSError as error:
        why = error.strerror or str(error).removeprefix("Syntax error in po file ")
        raise CommandError(f"{path} cannot be read as a gettext catalog: {why}") from None
    except (ValueError, IndexError, LookupError) as error:
        raise CommandError(f"{path} cannot be read as a gettext catalog: {error}") from None


def read_catalog(path: Path, language: str) -> Catalog:
    """Read a catalog.

    Raises:
        CommandError: There is no such file, or it is not a gettext catalog.
    """
    texts = {one.msgid: one.msgstr for one in _parsed(path) if one.translated()}
    return Catalog(language, MappingProxyType(texts), str(path))


def write_catalog(path: Path, language: str, wanted: Mapping[str, str]) -> int:
    """Make a catalog, or bring one up to date: new texts are added, translations stay, and what is no longer used goes to its end.

    Args:
        path: The file.
        language: The language.
        wanted: Where each English text is used, by the text, in the order of the file.

    Returns:
        How many texts were added.

    Raises:
        CommandError: The file there is not a catalog, or cannot be written.
    """
    import polib

    reference = polib.POFile(wrapwidth=_WRAP)
    for text, place in wanted.items():
        reference.append(polib.POEntry(msgid=text, comment=place))
    if path.exists():
        there = _parsed(path)
        before = {one.msgid for one in there}
    else:
        there, before = polib.POFile(wrapwidth=_WRAP), set()
    there.merge(reference)
    places = {text: number for number, text in enumerate(wanted)}
    there.sort(key=lambda entry: places.get(entry.msgid, len(places)))
    there.metadata = {
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
    }
    try:
        there.save(str(path))
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
    return len(set(wanted) - before)
