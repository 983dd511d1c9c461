"""Words in the language of the reader: of lessons, of the lesson panel and of the page for browsers.

Each text stands in the sources in English. A gettext catalog (a `.po` file) has its translation; a text that a catalog does not have stays English.
Knows catalogs and the environment; does not know windows or lessons.
"""

from __future__ import annotations

from gcspy_client.translation.catalog import Catalog, read_catalog
from gcspy_client.translation.language import (
    LANGUAGE_VARIABLE,
    chosen_language,
    current_language,
    interface_catalog,
    languages,
    translate,
)

__all__ = [
    "LANGUAGE_VARIABLE",
    "Catalog",
    "chosen_language",
    "current_language",
    "interface_catalog",
    "languages",
    "read_catalog",
    "translate",
]
