"""The table of streams and tiles, in a window on a real server."""

from __future__ import annotations

from gcspy_client.view.widgets.tables import Cell, RowTable
from tests.client.watching import Wait, Watched

WIDE = "a type with a very long name, of which there are most"


def test_names_of_streams_keep_their_room_when_tiles_get_columns(
    watched: Watched, wait: Wait
) -> None:
    """The whole space may be described in many words until then, and in few afterwards."""
    details = watched.window.details_part._details
    table = details.tile.findChild(RowTable)
    assert table is not None
    header = table.horizontalHeader()
    rows = [(Cell("Used"), Cell("–"), Cell("–"), Cell(WIDE))]

    def wide() -> bool:
        details._streams.set_rows(rows)  # the window shows its own from time to time
        return header.sectionSize(3) > table.fontMetrics().horizontalAdvance(WIDE)

    wait(wide)
    details._show_columns(shown=True)
    assert header.sectionSize(3) == 100
    assert header.sectionSize(0) > table.fontMetrics().horizontalAdvance("Used")
