"""A GCspy driver for the database that a process has open: its pages, and which table has them."""

import sqlite3

from gcspy_drivers.kit import SampledDriver, add_bytes, add_category, add_enumeration, add_percent
from gcspy_drivers.remote.files import find_open_file

from gcspy_server.api import GatherRequest, Recognition, UniformNames

MAGIC = b"SQLite format 3\0"
KINDS = ("free", "internal", "leaf", "overflow")
PAGES = "SELECT name, pageno, payload, pagetype, page_count FROM dbstat, pragma_page_count"


class SqliteDriver(SampledDriver):
    """Reads SQLite's own table of its pages, dbstat, from a connection of ours."""

    name = "sqlite"

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        """Say which database a process has open."""
        path = find_open_file(pid, MAGIC)
        return Recognition(runtime="SQLite", detail=str(path), supported=True) if path else None

    def start(self) -> None:
        """Add the spaces."""
        path = find_open_file(self.process.pid, MAGIC)
        self.database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.tables = self.add_space("Tables", tile_title="Table ")
        add_bytes(self.tables, "Payload", "Bytes of rows and keys", order=0)
        (self.page_bytes,) = self.database.execute("PRAGMA page_size").fetchone()
        names = UniformNames(0, self.page_bytes, 0)
        self.pages = self.add_space("Pages", names=names, tile_title="Page ", main=True)
        add_percent(self.pages, "Payload", "Bytes of rows", order=0, most=self.page_bytes)
        add_enumeration(self.pages, "Kind", KINDS, order=1)
        add_category(self.pages, "Table", self.tables, order=2)

    def gather(self, request: GatherRequest) -> None:  # noqa: ARG002  # it is all or nothing here
        """Fill the spaces from one snapshot of the database."""
        rows = self.database.execute(PAGES).fetchall()
        count = rows[0][-1]
        pages = [(0, 0, 0)] * count
        tables = {"free pages": 0}
        for name, page, payload, kind, _ in rows:
            tables[name] = tables.get(name, 0) + payload
            pages[page - 1] = (payload, KINDS.index(kind), list(tables).index(name))
        self.tables.fill({"Payload": list(tables.values())}, names=list(tables))
        columns = zip(("Payload", "Kind", "Table"), zip(*pages, strict=True), strict=True)
        self.pages.fill(dict(columns), names=UniformNames(0, self.page_bytes, count))
