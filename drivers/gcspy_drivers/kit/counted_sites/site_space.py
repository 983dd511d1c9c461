"""The space "Allocation sites": a tile is an instruction of the program that allocates, by file and line in the order in which code was loaded.

Its counts come from counters in the program's code. Maps reports to streams; knows no line.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.kit.counted_sites.site_report import CountedSite, CountReport, ReportedSites
from gcspy_drivers.kit.streams import add_amount, add_bytes, add_count, add_enumeration, hide
from gcspy_server.api import (
    Cell,
    ColumnKind,
    DetailColumn,
    DetailTable,
    Server,
    StringNames,
)

__all__ = ["SITES", "SOURCE", "SiteSpace"]

SOURCE: Final = "source"
"""Question: the lines around a site; of the whole space the lines that ran most."""
SITES: Final = "sites"
"""Question: the sites of the same line; of the whole space those that ran most."""

_AROUND: Final = 12
_LONGEST_LINE: Final = 200
_NEVER, _ALWAYS, _MAY = 0, 1, 2
_NANOS: Final = 1_000_000_000


class SiteSpace:
    """The allocation sites of one process as a space.

    Args:
        server: Where the space is added.
        counts: The counts.
        driver: Name of the driver.
    """

    def __init__(self, server: Server, counts: ReportedSites, driver: str) -> None:
        self._counts = counts
        self._names: list[str] = []
        self._always = np.zeros(0, dtype=np.bool_)
        self._size = np.zeros(0, dtype=np.int64)
        self._before: CountReport | None = None
        self.space = server.add_space(
            "Allocation sites",
            names=StringNames([]),
            driver=driver,
            tile_title="Site ",
            description="Instructions of the program that allocate, by file and line, and how often each ran: exact counts",
            details=(SOURCE, SITES),
        )
        self._executions = add_count(
            self.space,
            "Allocations",
            "How often the site ran; a site that may allocate, such as a call, counts executions",
            order=0,
        )
        self._since = add_count(
            self.space, "Since last event", "How often it ran since the last event", order=2
        )
        self._rate = add_amount(
            self.space,
            "Per second",
            "How often it ran since the last event, per second",
            order=3,
            suffix=" /s",
        )
        self._bytes = add_bytes(
            self.space,
            "Bytes",
            "Bytes that its own instruction allocated so far, where each time takes as many; otherwise unknown",
            order=1,
        )
        self._kind = add_enumeration(
            self.space,
            "Allocates",
            ("never ran", "always", "may"),
            "Whether it allocates each time that it runs",
            order=4,
        )
        self._carriers = add_count(
            self.space,
            "Counters",
            "Number of counters that its count follows from; 1: a counter of its own",
            order=5,
        )

    def fill(self) -> bool:
        """Fill the space with the latest report; return whether there is one that was not shown yet."""
        report = self._counts.latest
        if report is None or (self._before is not None and report.number == self._before.number):
            return False
        sites = self._counts.sites[: len(report.counts)]
        self._name(sites)
        self.space.reset()
        before = self._before
        counts = report.counts
        since, since_known = counts.copy(), report.known.copy()
        if before is None:
            since_known[:] = False
        else:
            since[: len(before.counts)] -= before.counts
            since_known[: len(before.counts)] &= before.known
        since_known &= since >= 0
        since[~since_known] = 0
        secs = 0 if before is None else (report.time_nanos - before.time_nanos) / _NANOS
        self._executions.data[:] = counts
        self._since.data[:] = since
        self._rate.data[:] = np.rint(since / secs) if secs > 0 else 0
        sized = self._size >= 0
        self._bytes.data[:] = np.where(sized, counts * np.maximum(self._size, 0), 0)
        self._kind.data[:] = np.where(counts == 0, _NEVER, np.where(self._always, _ALWAYS, _MAY))
        self._carriers.data[:] = report.carriers
        hide((self._executions, self._kind), ~report.known)
        hide((self._since, self._rate), ~since_known)
        hide((self._bytes,), ~(report.known & sized))
        self._before = report
        self.space.info = _info(report)
        self.space.answer_with(SOURCE, _SourceTables(self._counts, sites, counts, since).table)
        self.space.answer_with(SITES, _SiteTables(self._names, sites, counts, since).table)
        return True

    def _name(self, sites: list[CountedSite]) -> None:
        """Give new sites tiles."""
        new = sites[len(self._names) :]
        if not new:
            return
        self._names += [
            f"{_short(self._counts.file_of(site))}:{_place(site)} {site.what} in {site.function}"
            for site in new
        ]
        self._always = np.append(self._always, np.array([site.always for site in new]))
        self._size = np.append(self._size, np.array([site.size for site in new], dtype=np.int64))
        self.space.resize(StringNames(list(self._names)))


def _place(site: CountedSite) -> str:
    """Return line and column; the column only if it is known."""
    return f"{site.line}:{site.column}" if site.column else str(site.line)


def _short(file: str) -> str:
    """Return the last folder and the name of a file."""
    return "/".join(file.split("/")[-2:])


def _info(report: CountReport) -> str:
    totals = report.totals
    executions = int(report.counts.sum())
    increments = int(totals.get("increments", 0))
    share = f" ({increments / executions:.0%} of one for each execution)" if executions else ""
    parts = [
        f"{executions:,} executions at {len(report.counts):,} sites, counted with {increments:,} increments{share}"
    ]
    found, done = int(totals.get("found", 0)), int(totals.get("done", 0))
    if done < found:
        parts.append(f"{done:,} of {found:,} functions have counters so far")
    for name, what in (
        (
            "uncounted",
            "functions run calls that began before they had counters: these are not counted",
        ),
        ("cold", "functions have no counters: they were not seen to run at first"),
        ("not_countable", "functions have no counters: their form is not known"),
    ):
        if totals.get(name):
            parts.append(f"{int(totals[name]):,} {what}")
    unknown = int(np.count_nonzero(~report.known))
    if unknown:
        parts.append(f"{unknown:,} counts are unknown: their counters contradict each other")
    parts.append(
        f"read in {report.took_nanos / 1e6:.1f} ms, in which the program waited"
        if report.took_nanos
        else "read while the program ran, one after the other"
    )
    return "; ".join(parts)


class _Tables:
    """Answers of one event; nothing in them changes."""

    def __init__(
        self, sites: list[CountedSite], counts: NDArray[np.int64], since: NDArray[np.int64]
    ) -> None:
        self._sites = sites
        self._count = counts
        self._since = since

    def _largest(self, most: int) -> list[int]:
        order = np.argsort(-self._count, kind="stable")[:most].tolist()
        return [row for row in order if self._count[row]]

    def _rest(self, shown: int) -> int:
        return max(0, int(np.count_nonzero(self._count)) - shown)


class _SiteTables(_Tables):
    def __init__(
        self,
        names: list[str],
        sites: list[CountedSite],
        counts: NDArray[np.int64],
        since: NDArray[np.int64],
    ) -> None:
        super().__init__(sites, counts, since)
        self._names = names

    def table(self, tile: int | None, most: int) -> DetailTable | None:
        """List the sites of a tile's line, or those that ran most."""
        if tile is None:
            rows = self._largest(most)
        elif tile < len(self._sites):
            here = self._sites[tile]
            rows = [
                row
                for row, site in enumerate(self._sites)
                if (site.file, site.line) == (here.file, here.line)
            ][:most]
        else:
            return None
        return DetailTable(
            columns=(
                DetailColumn(name="Site", kind=ColumnKind.TEXT),
                DetailColumn(name="Allocates", kind=ColumnKind.TEXT),
                DetailColumn(name="Allocations"),
                DetailColumn(name="Since last event"),
            ),
            rows=tuple(
                (
                    self._names[row],
                    "always" if self._sites[row].always else "may",
                    int(self._count[row]),
                    int(self._since[row]),
                )
                for row in rows
            ),
            rest=self._rest(len(rows)) if tile is None else 0,
            rest_cells=("", "", None, None) if tile is None and self._rest(len(rows)) else (),
        )


class _SourceTables(_Tables):
    def __init__(
        self,
        received: ReportedSites,
        sites: list[CountedSite],
        counts: NDArray[np.int64],
        since: NDArray[np.int64],
    ) -> None:
        super().__init__(sites, counts, since)
        self._received = received

    def table(self, tile: int | None, most: int) -> DetailTable | None:
        """List the lines around a tile's, or those that ran most."""
        if tile is None:
            return self._of_all(most)
        if tile >= len(self._sites):
            return None
        here = self._sites[tile]
        source = self._received.source_of(here)
        file = self._received.file_of(here)
        if source is None or not here.line:
            return DetailTable(columns=_LINE_COLUMNS, note=f"The source of {file} is not known.")
        lines = source.splitlines()
        first = max(1, here.line - _AROUND)
        width = len(str(here.line + _AROUND))
        by_line: dict[int, tuple[int, int]] = {}
        for row, site in enumerate(self._sites):
            if site.file == here.file and abs(site.line - here.line) <= _AROUND:
                count, since = by_line.get(site.line, (0, 0))
                by_line[site.line] = count + int(self._count[row]), since + int(self._since[row])
        shown: list[tuple[Cell, ...]] = [
            (
                f"{'▶' if number == here.line else ' '} {number:>{width}}  {lines[number - 1][:_LONGEST_LINE]}",
                *by_line.get(number, (0, 0)),
            )
            for number in range(first, min(len(lines), here.line + _AROUND) + 1)
        ]
        return DetailTable(columns=_LINE_COLUMNS, rows=tuple(shown[:most]), note=file)

    def _of_all(self, most: int) -> DetailTable:
        sums: dict[tuple[int, int], list[int]] = {}
        for row in np.flatnonzero(self._count).tolist():
            site = self._sites[row]
            found = sums.setdefault((site.file, site.line), [0, 0, row])
            found[0] += int(self._count[row])
            found[1] += int(self._since[row])
        ordered = sorted(sums.items(), key=lambda each: -each[1][0])
        rows: list[tuple[Cell, ...]] = []
        for (_, line), (count, since, row) in ordered[:most]:
            site = self._sites[row]
            source = (self._received.source_of(site) or "").splitlines()
            text = source[line - 1].strip() if 0 < line <= len(source) else ""
            place = f"{_short(self._received.file_of(site))}:{line}"
            rows.append((f"{place}  {text[:_LONGEST_LINE]}", count, since))
        rest = len(ordered) - len(rows)
        return DetailTable(
            columns=_LINE_COLUMNS,
            rows=tuple(rows),
            rest=rest,
            rest_cells=("", None, None) if rest else (),
        )


_LINE_COLUMNS: Final = (
    DetailColumn(
        name="Source", kind=ColumnKind.TEXT, about="Number and text of the line; ▶ marks the tile's"
    ),
    DetailColumn(name="Allocations", about="Executions of all sites of the line"),
    DetailColumn(name="Since last event", about="Those since the last event"),
)
