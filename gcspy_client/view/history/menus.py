"""The menus of history graphs: the set of graphs, their options, and export to files.

Knows the panel and its session; does not know how any of it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gcspy_protocol.errors import ExpressionError

from gcspy_client.model.derived_source import DerivedSource
from gcspy_client.model.history.pooling import Pooling
from gcspy_client.model.history.tracks import TrackSpec, choices
from gcspy_client.model.history.view import AUTOMATIC
from gcspy_client.model.session import ClientSession
from gcspy_client.view.history.canvas import Brush
from gcspy_client.view.history.export import HistoryExport
from gcspy_client.view.history.panel import MOST_TRACKS, HistoryPanel
from gcspy_client.view.history.track import HistoryTrack
from gcspy_client.view.plain.dialogs import ask_number, ask_text
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainMenu, PlainPushButton

__all__ = ["HistoryMenus"]

_TILE_PIXELS = (1, 2, 3, 4, 6, 8, 10)
"""The original's choices."""

_EVERY = (10, 20, 50, 80, 100, 256, 1000, 10_000)


class HistoryMenus:
    """The buttons above history graphs.

    Args:
        panel: The graphs.
        session: The session to graph.
    """

    def __init__(self, panel: HistoryPanel, session: ClientSession) -> None:
        self._panel, self._session = panel, session
        self.export = HistoryExport(lambda: panel.tracks, self._title, self._event_name, panel)
        self.export.ended.connect(panel.refuse)
        panel.stopped.connect(self.export.stop)
        self.add = self._button(
            "Add graph", "add another stream or space below, on the same event axis", self._fill_add
        )
        self.look = self._button("Look", "pooling, tile size, lines", self._fill_look)
        self.save = self._button(
            "Export", "export the graphs as a picture, or series as a table", self._fill_export
        )
        panel.renaming.connect(self.ask_name)

    def _button(self, text: str, tip: str, fill: Callable[[PlainMenu], None]) -> PlainPushButton:
        button = PlainPushButton(text)
        menu = PlainMenu(button)
        menu.aboutToShow.connect(partial(self._opening, menu, fill))
        button.setMenu(menu)
        set_tip(button, tip)
        self._panel.add_button(button)
        return button

    @staticmethod
    def _opening(menu: PlainMenu, fill: Callable[[PlainMenu], None]) -> None:
        menu.clear()
        fill(menu)

    def _title(self) -> str:
        welcome = self._session.live.welcome
        return "" if welcome is None else welcome.server

    def _event_name(self, kind: int) -> str:
        return self._session.live.event_name(kind)

    # -------------------------------------------------------------------------- which

    def _fill_add(self, menu: PlainMenu) -> None:
        enough = len(self._panel.tracks) >= MOST_TRACKS
        for space, specs in choices(self._session):
            submenu = menu.add_menu(space)
            for spec in specs:
                made = submenu.add(spec.stream)
                made.triggered.connect(partial(self._add, spec))
                made.setEnabled(not enough)
        menu.addSeparator()
        made = menu.add("Expression…")
        made.triggered.connect(self.ask_expression)
        made.setEnabled(not enough and self._session.active_space() is not None)

    def _add(self, spec: TrackSpec, _checked: bool = False) -> None:
        self._panel.add_track(spec)

    def add_shown(self) -> None:
        """Add a graph of what the first one shows now, that stays when another space or stream is chosen."""
        space = self._session.active_space()
        source = None if space is None else self._session.chosen_source(space.space.id)
        if space is not None and source is not None:
            formula = source.formula if isinstance(source, DerivedSource) else ""
            self._panel.add_track(TrackSpec(space.space.name, source.schema.name, formula))

    def ask_expression(self) -> None:
        """Ask for a formula, and graph it."""
        space = self._session.active_space()
        if space is None:
            return
        streams = ", ".join(state.schema.name for state in space.streams.values())
        formula = ask_text(
            self._panel,
            "Graph an expression",
            f"Expression over the tiles of {space.space.name}; its streams are {streams}:",
        )
        if formula is not None and formula.strip():
            self.add_expression(formula.strip())

    def add_expression(self, formula: str) -> HistoryTrack | None:
        """Graph a number made of the streams of the active space."""
        space = self._session.active_space()
        if space is None:
            return None
        try:
            DerivedSource(formula, formula, space)
        except ExpressionError as error:
            self._panel.refuse(f"{formula!r} cannot be graphed: {error}")
            return None
        return self._panel.add_track(TrackSpec(space.space.name, formula, formula))

    def remove_last(self) -> None:
        """Close the graph at the bottom."""
        self._panel.remove_track(self._panel.tracks[-1])

    # ---------------------------------------------------------------------------- how

    def _fill_look(self, menu: PlainMenu) -> None:
        panel, canvas = self._panel, self._panel.canvas
        pooling = menu.add_menu("Several tiles per pixel")
        for pool in Pooling:
            _choice(
                pooling,
                f"the {pool.value}",
                panel.first.spec.pooling is pool,
                partial(panel.set_pooling, pool),
            )
        sizes = menu.add_menu("Tile height")
        fits = canvas.tile_pixels is None
        _choice(sizes, "all fit", fits, partial(panel.set_tile_pixels, None))
        for pixels in _TILE_PIXELS:
            chosen = canvas.tile_pixels == pixels
            words = f"{pixels} pixel" if pixels == 1 else f"{pixels} pixels"
            _choice(sizes, words, chosen, partial(panel.set_tile_pixels, float(pixels)))
        every = menu.add_menu("Lines between tiles")
        _choice(
            every, "as fits", canvas.every == AUTOMATIC, partial(panel.set_lines, every=AUTOMATIC)
        )
        _choice(every, "none", canvas.every == 0, partial(panel.set_lines, every=0))
        for tiles in _EVERY:
            _choice(
                every,
                f"every {tiles:,}",
                canvas.every == tiles,
                partial(panel.set_lines, every=tiles),
            )
        _choice(every, "every…", canvas.every > 0 and canvas.every not in _EVERY, self.ask_every)
        at = menu.add_menu("Lines at events")
        _choice(at, "none", canvas.at_kind is None, partial(panel.set_lines, at_kind=None))
        welcome = self._session.live.welcome
        for kind in () if welcome is None else welcome.events:
            _choice(
                at,
                kind.name,
                canvas.at_kind == kind.id,
                partial(panel.set_lines, at_kind=kind.id),
            )
        _choice(
            menu,
            "Mark pixels that hide changes",
            canvas.marks,
            partial(panel.set_marks, not canvas.marks),
        )
        menu.addSeparator()
        menu.add("All events and tiles").triggered.connect(panel.fit)

    def ask_every(self) -> None:
        """Ask after how many tiles a line is drawn."""
        now = self._panel.canvas.every
        tiles = ask_number(
            self._panel,
            "Lines between tiles",
            "Tiles between two lines:",
            now if now > 0 else 80,
            1,
            1 << 30,
        )
        if tiles is not None:
            self._panel.set_lines(every=tiles)

    def next_pooling(self) -> None:
        """The next of greatest, mean and least."""
        kinds = list(Pooling)
        self._panel.set_pooling(
            kinds[(kinds.index(self._panel.first.spec.pooling) + 1) % len(kinds)]
        )

    def next_kind(self) -> None:
        """Lines at the next kind of event, and after the last at none."""
        welcome = self._session.live.welcome
        kinds = [None, *(kind.id for kind in (() if welcome is None else welcome.events))]
        now = self._panel.canvas.at_kind
        self._panel.set_lines(
            at_kind=kinds[(kinds.index(now) + 1) % len(kinds)] if now in kinds else None
        )

    def ask_name(self, track: HistoryTrack, brush: Brush) -> None:
        """Ask what chosen tiles are called."""
        name = ask_text(self._panel, "Selected tiles", "Name of these tiles:", brush.name)
        if name is not None:
            track.rename_brush(brush, name)

    # --------------------------------------------------------------------------- files

    def _fill_export(self, menu: PlainMenu) -> None:
        menu.add("Picture, PNG or SVG…").triggered.connect(self.export.ask_picture)
        series = menu.add("Series of the selected tiles, CSV…")
        series.triggered.connect(self.export.ask_series)
        series.setEnabled(self.export.has_series)


def _choice(menu: PlainMenu, text: str, chosen: bool, done: Callable[[], object]) -> None:
    action = menu.add(text)
    action.setCheckable(True)
    action.setChecked(chosen)
    action.triggered.connect(lambda _checked=False: done())
