"""The files that the agent in Java writes: the list of sites, which grows, and the counters.

Both are untrusted: lines of another form are left out, and lengths are checked.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import numpy as np
from gcspy_protocol.errors import TargetError
from numpy.typing import NDArray

from gcspy_drivers.kit.counted_sites.site_report import CountedSite
from gcspy_drivers.remote.files import RegularFile, open_regular

__all__ = ["SiteFiles"]

_LARGEST_LIST: Final = 256 << 20
"""Bytes of the largest list of sites that is read."""
_LONGEST_NAME: Final = 4096
_LARGEST_COUNTERS: Final = 8 << 17
_SPENT: Final = re.compile(r"=\t(\d{1,18})")
_LINE: Final = re.compile(r"(\d{1,6})\t([^\t]+)\t(\d{1,6})\t([^\t]+)\t([^\t]+)")


class SiteFiles:
    """The sites and counters of one JVM.

    Args:
        folder: The folder of the agent.

    Attributes:
        sites: The sites so far.
        files: Names of source files.
        failed: Number of classes that could not be given counters.
        rewriting_secs: How long classes were rewritten, by the clock; all threads together.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = 0
        self._rest = b""
        self._counter_of: list[int] = []
        self._file_number: dict[str, int] = {}
        self.sites: list[CountedSite] = []
        self.files: list[str] = []
        self.failed = 0
        self.rewriting_secs = 0.0

    def read(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Read new sites, and all counters.

        Returns:
            (sites,) executions; (counters,) increments.

        Raises:
            TargetError: There is nothing, with the reason that the agent gives; or more than there can be.
        """
        why_not = "" if self.sites else self.refused()
        if why_not:
            raise TargetError(why_not)
        try:
            self._read_sites()
            raw = self._bytes("counters", 0, _LARGEST_COUNTERS)
        except OSError as error:
            raise TargetError("the JVM has not counted anything: it has no agent") from error
        counters = np.frombuffer(raw[: len(raw) // 8 * 8], dtype="<i8")
        numbers = np.array(self._counter_of, dtype=np.int64)
        there = numbers < len(counters)
        counts = counters[np.where(there, numbers, 0)] if len(counters) else 0 * numbers
        return np.where(there, counts, 0), counters[np.unique(numbers[there])]

    def refused(self) -> str:
        """Return why the agent does not count, in its words; empty: it said nothing."""
        try:
            raw = self._bytes("refused", 0, _LONGEST_NAME)[:_LONGEST_NAME]
        except OSError:
            return ""
        return "".join(each for each in raw.decode("utf-8", "replace") if each.isprintable())

    def _bytes(self, name: str, begin: int, most: int) -> bytes:
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with RegularFile(open_regular(name, folder), begin + most) as file:
                file.seek(begin)
                return file.read()
        finally:
            os.close(folder)

    def _read_sites(self) -> None:
        more = self._bytes("sites", self._read, _LARGEST_LIST + 1)
        self._read += len(more)
        if self._read > _LARGEST_LIST:
            raise TargetError("the list of sites is larger than 256 MiB: it is not read")
        lines = (self._rest + more).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._take(line.decode("utf-8", "replace"))

    def _take(self, line: str) -> None:
        if line.startswith("!\t"):
            self.failed += 1
            return
        spent = _SPENT.fullmatch(line)
        if spent is not None:
            self.rewriting_secs = int(spent[1]) / 1e9
            return
        found = _LINE.fullmatch(line)
        if found is None:
            return
        counter, file, number, function, what = found.groups()
        place = self._file_number.setdefault(file[:_LONGEST_NAME], len(self.files))
        if place == len(self.files):
            self.files.append(file[:_LONGEST_NAME])
        self._counter_of.append(int(counter))
        site = CountedSite(
            place, int(number), 0, function[:_LONGEST_NAME], what[:_LONGEST_NAME], True, -1
        )
        self.sites.append(site)
