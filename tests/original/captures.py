"""What programs of the original sent: see captures/README.md."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "captures"
NAMES = ("gui", "store", "terminal")
EVENTS = {"gui": 9, "store": 7, "terminal": 8}


@cache
def of_server(name: str) -> bytes:
    return lzma.decompress((FOLDER / f"{name}.s2c.xz").read_bytes())


@cache
def of_client(name: str) -> bytes:
    return lzma.decompress((FOLDER / f"{name}.c2s.xz").read_bytes())
