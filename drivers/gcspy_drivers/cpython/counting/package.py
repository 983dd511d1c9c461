"""The package that counts, for a program that does not have it: where it is, and its sources."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["folder_of_package", "package_as_json"]

_PACKAGE = "gcspy_counting"


def _folder() -> Path:
    import gcspy_counting

    return Path(gcspy_counting.__file__).parent


def folder_of_package() -> str:
    """Return the folder from which the package can be imported."""
    return str(_folder().parent)


def package_as_json(sites: str, include: tuple[str, ...], hot_secs: float) -> bytes:
    """Return the sources of the package by module, and what is counted, for `gcspy_counting.live.attachment`.

    Args:
        sites: Which instructions are sites.
        include: Names of library modules that are counted in, too.
        hot_secs: Only functions that run within so many seconds are counted; 0: all.
    """
    folder = _folder()
    texts = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [_PACKAGE, *path.relative_to(folder).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        texts[".".join(parts)] = path.read_text(encoding="utf-8")
    return json.dumps([texts, sites, include, hot_secs]).encode()
