"""Files to begin with, for students who write a collector or a program.

Knows files only.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

__all__ = ["TEMPLATES", "template"]

TEMPLATES: Final = ("collector", "program", "lesson")


def template(what: str) -> str:
    """The text of a template: one of `TEMPLATES`."""
    folder = files("gcspy_drivers.simulator.user_code").joinpath("templates")
    return folder.joinpath(f"{what}.txt").read_text(encoding="utf-8")
