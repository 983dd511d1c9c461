"""Measured tables inside a page of the documentation: they stand between two marks, and a benchmark replaces them.

Knows files and the machine; does not know what was measured.
"""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness.environment import Unavailable

__all__ = ["BEGIN", "END", "machine_line", "put_section"]

BEGIN = "<!-- measured: begin; written by the command below, not by hand -->"
END = "<!-- measured: end -->"

_COLUMNS = 100
"""Width of prose in the documents."""


def machine_line(arguments: Sequence[str], name: str, about: str = "") -> str:
    """Return what was run, when, on what, and at which load, as a command and a paragraph, which ends with `about`."""
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    # Where a program is on this machine tells a reader nothing.
    words = [Path(one).name if os.path.isabs(one) else one for one in arguments]
    measured = (
        f"{datetime.now(UTC):%Y-%m-%d, %H:%M} UTC, {os.cpu_count()} cores ({processor}), "
        f"Linux {platform.release()}, load at the end {os.getloadavg()[0]:.1f}, this measurement's own included."
    )
    command = " ".join(["python -m benchmarks", name, *words])
    return f"```\n{command}\n```\n\n{textwrap.fill(f'{measured} {about}', _COLUMNS)}"


def put_section(page: Path, text: str, name: str = "") -> None:
    """Replace what stands between the two marks of a page.

    Args:
        page: The file.
        text: What to put there.
        name: Of the section, in a page with several: it stands in both marks, behind "measured".

    Raises:
        Unavailable: The page has no such marks.
    """
    marks = [
        mark.replace("measured", f"measured {name}", 1) if name else mark for mark in (BEGIN, END)
    ]
    before, begin, rest = page.read_text().partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise Unavailable(f"{page} has no lines {marks[0]} and {marks[1]}")
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}")
