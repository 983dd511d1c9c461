"""The numbers of each version of CPython, and the one place where versions are compared.

A new version is a module ``v3_NN`` with its `VersionLayout`, and a line here.
"""

from __future__ import annotations

from gcspy_protocol.errors import Unsupported

from gcspy_drivers.cpython.layouts import (
    debug_offsets,
    v3_9,
    v3_10,
    v3_11,
    v3_12,
    v3_13,
    v3_14,
    v3_15,
)
from gcspy_drivers.cpython.layouts.layout import (
    GcLayout,
    GraphLayout,
    ObjectLayout,
    ObmallocHome,
    ObmallocLayout,
    PoolGeometry,
    VersionLayout,
)

__all__ = [
    "KNOWN",
    "GcLayout",
    "GraphLayout",
    "VersionLayout",
    "ObjectLayout",
    "ObmallocHome",
    "ObmallocLayout",
    "PoolGeometry",
    "debug_offsets",
    "is_known",
    "known_graph_text",
    "known_text",
    "layout_for",
]

KNOWN: dict[tuple[int, int], VersionLayout] = {
    module.LAYOUT.version: module.LAYOUT
    for module in (v3_9, v3_10, v3_11, v3_12, v3_13, v3_14, v3_15)
}
"""Layouts by major and minor version."""


def is_known(version: tuple[int, ...]) -> bool:
    """Return whether a version of CPython can be read."""
    return version[:2] in KNOWN


def known_text() -> str:
    """Name the versions that can be read, for messages."""
    return "CPython " + ", ".join(f"{major}.{minor}" for major, minor in sorted(KNOWN))


def known_graph_text() -> str:
    """Name the versions whose references can be followed, for messages."""
    found = sorted(version for version, layout in KNOWN.items() if layout.graph is not None)
    return "CPython " + ", ".join(f"{major}.{minor}" for major, minor in found)


def layout_for(version: tuple[int, ...]) -> VersionLayout:
    """Return the numbers for a version.

    Args:
        version: Major and minor version, and more.

    Raises:
        Unsupported: The version is not known yet.
    """
    if not is_known(version):
        raise Unsupported(
            "this version of Python cannot be read",
            found="CPython " + ".".join(map(str, version)),
            known=known_text(),
        )
    return KNOWN[(version[0], version[1])]
