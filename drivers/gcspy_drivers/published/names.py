"""Names by which a program with gcspy.h is recognised, apart from everything that takes long to import."""

from __future__ import annotations

from typing import Final

__all__ = ["MAPPED_AS", "RUNTIME"]

MAPPED_AS: Final = "/memfd:gcspy.h"
"""Beginning of the path of a control page in the maps of its process."""

RUNTIME: Final = "gcspy.h"
"""What lists of processes show."""
