"""Our residue in a JVM."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path


def residue(pid: int) -> dict[str, list[str]]:
    """A JVM's threads, descriptors and mapped files, and our residue, once it has closed the connection of the last request."""
    while True:
        descriptors = []
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):  # closed meanwhile
                descriptors.append(os.readlink(f"/proc/{pid}/fd/{fd}").partition(":")[0])
        if descriptors.count("socket") == 1:  # the one that listens
            break
    threads = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
            threads.append(Path(f"/proc/{pid}/task/{thread}/comm").read_text())
    maps = [line.split(maxsplit=5) for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return {
        "threads": sorted(threads),
        "descriptors": sorted(descriptors),
        "files": sorted(
            fields[5] for fields in maps if len(fields) > 5 and not fields[5].endswith("]")
        ),
        "left": [
            name
            for name in os.listdir("/tmp")
            if re.fullmatch(rf"gcspy-[0-9a-f]{{16}}|.attach_pid{pid}", name)
        ],
    }
