"""The lock: which files the pins of ``constraints.txt`` stood for, with their SHA-256 hashes.

A line of ``constraints.lock`` is one that pip itself understands (``pip install --require-hashes``),
with the file's name as its comment. It knows neither where files come from nor how they are installed.

Three cases when a downloaded file is compared with the lock: same name and same hash (checked);
same name and another hash (an error: somebody changed a file that must never change); a name that
the lock lacks (an index may serve another build: counted, and reported).
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HEADER = """\
# The files that the pins of constraints.txt stood for, on {platform}: their SHA-256 hashes and names.
# Written by `make constraints`; don't edit. `make` checks what it downloads against it.
"""
LINE = re.compile(r"(?P<pin>\S+==\S+) --hash=sha256:(?P<hash>[0-9a-f]{64})  # (?P<file>\S+)")
_READ_BYTES = 1 << 20


class LockError(Exception):
    """A file is not the one that was locked, or the lock cannot be read."""


def this_platform() -> str:
    """Return what decides which file of a package is taken: ``Python 3.11, Linux, x86_64``."""
    version = ".".join(map(str, sys.version_info[:2]))
    return f"Python {version}, {platform.system()}, {platform.machine()}"


def sha256(path: Path) -> str:
    """Return the hash of a file as hexadecimal digits."""
    state = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            state.update(piece)
    return state.hexdigest()


def _pin(path: Path, pins: Iterable[str]) -> str:
    """Return the pin that a downloaded file belongs to: its name begins with name and version."""
    for pin in pins:
        name, _, version = pin.partition("==")
        pattern = re.sub(r"[-_.]+", "[-_.]+", name) + "-" + re.escape(version) + r"(-|\.tar\.gz$)"
        if re.match(pattern, path.name, re.IGNORECASE):
            return pin
    raise LockError(f"{path.name} belongs to no pin")


@dataclass(frozen=True)
class Lock:
    """Hashes by file name, and the platform that they are for."""

    platform: str
    hashes: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Lock:
        """Read a lock.

        Raises:
            LockError: It is not there, or a line of it is not one of a lock.
        """
        try:
            lines = path.read_text().splitlines()
        except OSError as error:
            raise LockError(f"{path.name} cannot be read: {error.strerror}") from None
        found = re.search(r", on (.*): their", lines[0]) if lines else None
        if found is None:
            raise LockError(
                f"{path.name}: line 1 does not name a platform; `make constraints` writes it"
            )
        hashes = {}
        for number, line in enumerate(lines, 1):
            if line.startswith("#"):
                continue
            match = LINE.fullmatch(line)
            if match is None:
                raise LockError(f"{path.name}: line {number} is not a pin, a hash and a file")
            hashes[match["file"]] = match["hash"]
        return cls(found[1], hashes)

    def check(self, folder: Path) -> tuple[int, list[str]]:
        """Compare the files of a folder with the lock.

        Returns:
            How many files have the hash of the lock, and the names that the lock lacks.

        Raises:
            LockError: A file has the name of a locked one and another hash.
        """
        same, other = 0, []
        for path in sorted(folder.iterdir()):
            expected = self.hashes.get(path.name)
            if expected is None:
                other.append(path.name)
                continue
            found = sha256(path)
            if found != expected:
                raise LockError(
                    f"{path.name} is not the file that was locked: SHA-256 {found}, expected {expected}; "
                    "do not install it: find out who serves it"
                )
            same += 1
        return same, other


def write(path: Path, folder: Path, pins: Iterable[str]) -> None:
    """Write the lock of all files in a folder.

    Raises:
        LockError: A file belongs to none of the pins.
    """
    pins = list(pins)
    rows = sorted(
        (
            f"{_pin(file, pins)} --hash=sha256:{sha256(file)}  # {file.name}"
            for file in folder.iterdir()
        ),
        key=str.lower,
    )
    path.write_text(HEADER.format(platform=this_platform()) + "\n".join(rows) + "\n")
