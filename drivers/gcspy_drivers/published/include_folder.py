"""The folder of `gcspy.h`, for compilers: beside this module in a wheel, `drivers/native/include/` in a source tree.

Knows files; does not open them.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["include_folder"]


def include_folder() -> Path:
    """The folder for a compiler's option ``-I``."""
    here = Path(__file__).resolve().parent
    installed = here / "include"
    return installed if installed.is_dir() else here.parents[1] / "native" / "include"
