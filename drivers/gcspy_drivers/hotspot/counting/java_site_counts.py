"""`JavaSiteCounts`: counts of the allocation sites of a JVM that runs, read from the files of the agent."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from gcspy_drivers.hotspot.counting.counting_agent import CountingAgent
from gcspy_drivers.hotspot.counting.site_files import SiteFiles
from gcspy_drivers.kit.counted_sites.report_thread import ReportThread
from gcspy_drivers.kit.counted_sites.site_report import CountedSite, CountReport
from gcspy_drivers.remote.files import RegularFile, TargetRoot
from gcspy_drivers.remote.process import Process

__all__ = ["JavaSiteCounts"]


_FOLDERS: Final = ("", "/src", "/src/main/java", "/src/test/java")
"""Where sources are, below the folder in which the JVM was started."""
_LARGEST_SOURCE: Final = 4 << 20


class JavaSiteCounts(ReportThread):
    """Counts of one JVM.

    Args:
        process: The JVM; borrowed until `close`.

    Raises:
        Unsupported: The agent was not built; or it is another user's or container's JVM.
    """

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._agent = CountingAgent(process)
        self._files = SiteFiles(self._agent.folder)
        self._process = process
        self._sources: dict[str, str | None] = {}
        self.start()

    @property
    def sites(self) -> list[CountedSite]:
        """The sites of the latest report; the list only grows."""
        return self._files.sites

    def file_of(self, site: CountedSite) -> str:
        """Return the name of a site's file, below its package."""
        return self._files.files[site.file]

    def source_of(self, site: CountedSite) -> str | None:
        """Return the source of a site's file, from the usual folders below the JVM's own; None: it is not there."""
        name = self.file_of(site)
        if name not in self._sources:
            self._sources[name] = self._source(name)
        return self._sources[name]

    def _source(self, name: str) -> str | None:
        here = self._process.read_link("cwd")
        if here is None or not name.endswith(".java"):
            return None
        with TargetRoot(self._process) as root:
            for folder in _FOLDERS:
                try:
                    file = RegularFile(root.regular(f"{here}{folder}/{name}"), _LARGEST_SOURCE)
                except OSError:
                    continue
                with file:
                    return file.read().decode("utf-8", "replace")
        return None

    def close(self) -> None:
        """Have the classes given back."""
        super().close()
        self._agent.close()

    def _begin(self) -> None:
        self._agent.load()

    def _end(self) -> None:
        self._agent.stop()

    def _next_report(self) -> CountReport:
        before = self.latest
        now = time.monotonic_ns()
        counts, increments = self._files.read()
        known = np.ones(len(counts), dtype=np.bool_)
        totals = {
            "increments": float(increments.sum()),
            "counters": float(len(increments)),
            "not_countable": float(self._files.failed),
        }
        number = 1 if before is None else before.number + 1
        return CountReport(number, counts, known, np.ones_like(counts), now, 0, totals)
