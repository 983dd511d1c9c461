"""Lazy imports of public names of a package, so that importing the package costs nothing.

Knows names and modules; does not know their purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["importer"]


def importer(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's `__getattr__`.

    Args:
        package: Its name, for the message.
        homes: The module of each name.
    """

    def import_name(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home), name)

    return import_name
