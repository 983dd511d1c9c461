"""`WorkLayout`: which panels are open, and which spaces, for one kind of work; as a file that others can open.

A file is untrusted: it names panels and spaces, and nothing in it is executed or handed to Qt as
it is.

Knows names; does not know widgets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gcspy_protocol.errors import CommandError

__all__ = [
    "LAYOUTS",
    "LAYOUT_SUFFIX",
    "MOST_OWN",
    "WorkLayout",
    "layout_content",
    "layout_of",
    "read_layout",
    "write_layout",
]

MOST_OWN: Final = 32
"""Layouts that a user keeps under names of their own."""

LAYOUT_SUFFIX: Final = ".gcspy-layout"

_FORMAT: Final = "gcspy layout"
_VERSION: Final = 1
_MOST_BYTES: Final = 1 << 16
_MOST_NAMES: Final = 1024
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class WorkLayout:
    """A layout.

    Attributes:
        name: For menus.
        about: Its purpose.
        panels: Names of the open panels; all others are closed.
        opened: Spaces that are open (True) or folded to a line, by their names; others as there is room.
        hidden: Spaces that are not shown, by their names; None: those that the user hid.
    """

    name: str
    about: str = ""
    panels: tuple[str, ...] = ()
    opened: Mapping[str, bool] = field(default_factory=dict)
    hidden: tuple[str, ...] | None = None


_ALWAYS = ("view", "tile")

LAYOUTS: Final = (
    WorkLayout("Overview", "the default panels", (*_ALWAYS, "trend", "events")),
    WorkLayout("Leak", "what grew, and who holds it", ("view", "trend", "growth", "holders")),
    WorkLayout(
        "Fragmentation", "tiles over time, and magnified", (*_ALWAYS, "magnification", "history")
    ),
    WorkLayout(
        "Collector",
        "events, their cost, and tiles over time",
        ("view", "events", "cost", "history"),
    ),
    WorkLayout("Teaching", "the legend alone, so that the tiles have the room", ("view",)),
    WorkLayout("Compare", "two moments, or two sessions", (*_ALWAYS, "bookmarks", "compare")),
)
"""The layouts that come with GCspy, in the order of their keys."""


def read_layout(path: Path) -> WorkLayout:
    """Read a layout.

    Raises:
        CommandError: The file cannot be read, or is not a layout.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise CommandError(f"{path}: a layout has at most {_MOST_BYTES:,} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: not a layout: {error}") from None
    try:
        return layout_of(found, path.stem)
    except CommandError as error:
        raise CommandError(f"{path}: {error}") from None


def layout_of(found: object, name: str) -> WorkLayout:
    """Check a layout that was read from a file or from the settings.

    Args:
        found: As JSON has it.
        name: Name of the layout.

    Raises:
        CommandError: It is not a layout.
    """
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise CommandError("not a layout: it does not say that it is one")
    if found.get("version") != _VERSION:
        raise CommandError(
            f"its version is {str(found.get('version'))[:20]}, and this GCspy knows version {_VERSION}"
        )
    panels, opened = found.get("panels"), found.get("opened", {})
    hidden = found.get("hidden")
    lists = (panels, [] if hidden is None else hidden)
    if not isinstance(opened, dict) or not all(map(_are_names, (*lists, [*opened]))):
        raise CommandError("not a layout: panels and spaces are lists of names")
    if not all(isinstance(on, bool) for on in opened.values()):
        raise CommandError("not a layout: a space is open (true) or folded (false)")
    return WorkLayout(
        name,
        panels=tuple(panels or ()),
        opened=opened,
        hidden=None if hidden is None else tuple(hidden),
    )


def layout_content(layout: WorkLayout) -> dict[str, object]:
    """A layout as JSON has it; `layout_of` reads it."""
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "panels": list(layout.panels),
        "opened": dict(layout.opened),
        **({} if layout.hidden is None else {"hidden": list(layout.hidden)}),
    }


def write_layout(path: Path, layout: WorkLayout) -> None:
    """Write a layout.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        path.write_text(json.dumps(layout_content(layout), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None


def _are_names(found: Any) -> bool:
    return (
        isinstance(found, list)
        and len(found) <= _MOST_NAMES
        and all(isinstance(name, str) and len(name) <= _LONGEST for name in found)
    )
