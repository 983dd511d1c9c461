"""The views of spaces as users choose them: the view, the order of tiles, the zoom.

Every choice goes through one function, which puts a whole look in the place of another, so that it can be undone.

Knows the window's session and spaces; does not know how anything is drawn.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gcspy_protocol.interpreter import SpaceState
from PySide6.QtCore import Qt

from gcspy_client.model.palette import Theme
from gcspy_client.model.session import ordered_streams
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import TILES, OrderChoice, SpaceViewState
from gcspy_client.view.actions import Action, Gesture
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.summary import SummaryPanel
from gcspy_client.view.part import Part
from gcspy_client.view.plain.dialogs import ask_number
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainMenu
from gcspy_client.view.spaces.formulas import Formulas
from gcspy_client.view.spaces.magnifier import MagnifiedTiles, Magnifier
from gcspy_client.view.spaces.views import TITLES, known_renderers, title_of

__all__ = ["ViewController"]

_MENU = "&View"

MOST_MARKS = 500
"""Most marked tiles of a space: each is drawn as a frame."""


class ViewController(Part):
    """Carries out users' requests about the views of spaces.

    Args:
        desk: The services of the window.
        formulas: Asks for formulas.
    """

    def __init__(self, desk: Desk, formulas: Formulas) -> None:
        super().__init__(desk)
        self._formulas = formulas
        spaces = desk.spaces
        spaces.views_asked.connect(self._fill_views)
        spaces.options_asked.connect(self._fill_options)
        spaces.failed.connect(self._failed)
        spaces.marked.connect(self.mark)
        spaces.moved.connect(self._moved)
        self.magnifier = Magnifier(desk.session, desk.theme)
        self.magnifier.picked.connect(desk.selection.select)
        desk.docks.add(
            "magnification",
            "Magnification",
            self.magnifier,
            Qt.DockWidgetArea.BottomDockWidgetArea,
            keys=("M",),
            about="magnifier: the tiles around the mouse pointer, in two sizes",
        )
        self.summary = SummaryPanel(desk.theme)
        about = "summary: totals of each stream of the active space"
        side = Qt.DockWidgetArea.RightDockWidgetArea
        desk.docks.add(
            "summary", "Summary of the space", self.summary, side, keys=("U",), about=about
        )
        desk.docks["summary"].seen.connect(self._sum_up)
        desk.docks["magnification"].seen.connect(self._magnify)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.magnifier.set_theme(theme)
        self.summary.set_theme(theme)

    def refresh(self) -> None:
        """Update the summary and the magnification."""
        self._sum_up()
        self._magnify()

    def _sum_up(self) -> None:
        """Show the summaries of the active space."""
        self.summary.show_space(self._space(None), self._desk.session.interpreter.last_event)

    def _magnify(self) -> None:
        """Magnify the tile that is pointed at, else the selected one."""
        session, state = self._desk.session, self._space(None)
        panel = None if state is None else self._desk.spaces.panels.get(state.space.id)
        if state is None or panel is None or state is not panel.canvas.picture.space:
            self.magnifier.show_tiles(None)
            return
        tile = panel.shown.under_mouse
        if tile is None:
            tile = session.selected(state.space.id)
        if tile is None or not 0 <= tile < state.count:
            self.magnifier.show_tiles(None)
            return
        maximum = panel.canvas.picture.maximum if panel.view is None else panel.view.maximum
        self.magnifier.show_tiles(MagnifiedTiles(state, panel.source, tile, maximum))

    # ---------------------------------------------------------------------- one door each

    def set_look(self, space: int, look: SpaceViewState, text: str) -> None:
        """Change the view of a space.

        Args:
            space: Its id.
            look: The new state of the view.
            text: Description of the user's action.
        """
        before = self._desk.session.looks.of(space)
        if look != before:
            self._desk.undo.do(
                text, partial(self._use, space, look), partial(self._use, space, before)
            )

    def _use(self, space: int, look: SpaceViewState) -> None:
        self._desk.session.looks.by_space[space] = look
        if space in self._desk.spaces.panels:
            self._desk.spaces.show_look(space)
            self._desk.updater.refresh()
            self._desk.docks.fit()  # the legend is another, and may be higher

    def _failed(self, space: int, why: str) -> None:
        """Go back to tiles, and say why."""
        looks = self._desk.session.looks
        self._use(space, replace(looks.of(space), view=TILES, order=None))
        if space in self._desk.spaces.panels:
            self._desk.spaces.panels[space].note(f"{why}. Tiles are shown instead.")

    def zoom(self, space: int, step: int) -> None:
        """Zoom in on a space (1), out (-1), or show all of it (0)."""
        view = self._desk.spaces.panels[space].shown
        before = view.place()
        view.zoom(step)
        self._moved(space, before, alone=step == 0)

    def zoom_to_tiles(self) -> None:
        """Look as close at the active space as it takes to give each tile a pixel or more of its own."""
        state = self._space(None)
        if state is not None and state.space.id in self._desk.spaces.panels:
            view = self._desk.spaces.panels[state.space.id].shown
            before = view.place()
            view.zoom_to_tiles()
            self._moved(state.space.id, before, alone=True)

    def _moved(self, space: int, before: object, *, alone: bool = False) -> None:
        """Remember that another part is seen: step by step as one change, or a change alone."""
        after = self._desk.spaces.panels[space].shown.place()
        if after != before:
            place = partial(self._use_place, space)
            key = None if alone else ("zoom", space)
            self._desk.undo.done("zoom", partial(place, after), partial(place, before), key)
            # All other texts a moment later: a wheel turns faster than they can be updated.
            self._desk.spaces.panels[space].refresh(self._desk.session.interpreter.last_event)
            self._desk.updater.speak_soon()

    def mark(self, space: int, first: int, last: int, on: bool) -> None:
        """Mark tiles, or take their marks away; a single one that is marked already loses its mark."""
        looks, state = self._desk.session.looks, self._space(space)
        if state is None:
            return
        low, high = sorted((first, last))
        if high - low >= MOST_MARKS:
            self._desk.say(
                f"Not marked: {high - low + 1:,} tiles exceed the limit of {MOST_MARKS} marks."
            )
            return
        keys = {state.names.key(tile) for tile in range(low, min(high + 1, state.count))}
        before = looks.marks.get(space, frozenset())
        now = before - keys if not on or (low == high and keys <= before) else before | keys
        if len(now) > MOST_MARKS:
            self._desk.say(f"Not marked: the limit is {MOST_MARKS} marks.")
        elif now != before:
            marks = partial(self._use_marks, space)
            self._desk.undo.do("marks", partial(marks, now), partial(marks, before))

    def mark_selected(self) -> None:
        """Mark the selected tile of the active space, or take its mark away."""
        state = self._space(None)
        tile = None if state is None else self._desk.session.selected(state.space.id)
        if state is not None and tile is not None:
            self.mark(state.space.id, tile, tile, True)

    def clear_marks(self, space: int | None = None) -> None:
        """Take all marks of a space away, by default of the active one."""
        state = self._space(space)
        before = (
            frozenset[int]()
            if state is None
            else self._desk.session.looks.marks.get(state.space.id, frozenset())
        )
        if state is not None and before:
            marks = partial(self._use_marks, state.space.id)
            self._desk.undo.do("no marks", partial(marks, frozenset()), partial(marks, before))

    def has_marks(self) -> bool:
        """Whether any tile of the active space is marked."""
        state = self._space(None)
        return state is not None and bool(self._desk.session.looks.marks.get(state.space.id))

    def _use_marks(self, space: int, keys: frozenset[int]) -> None:
        self._desk.session.looks.marks[space] = keys
        if space in self._desk.spaces.panels:
            self._desk.spaces.show_marks(space)

    def _use_place(self, space: int, place: object) -> None:
        if space in self._desk.spaces.panels:
            self._desk.spaces.panels[space].use_place(place)

    # -------------------------------------------------------------------------- choices

    def look(self) -> SpaceViewState:
        """The view of the active space."""
        space = self._desk.session.active_space()
        return SpaceViewState() if space is None else self._desk.session.looks.of(space.space.id)

    def shows(self, view: str) -> bool:
        """Whether the active space has this view."""
        return self.look().view == view

    def choose_view(self, view: str, space: int | None = None) -> None:
        """Show a space, by default the active one, in another view."""
        state = self._space(space)
        if state is not None:
            look = self._desk.session.looks.of(state.space.id)
            self.set_look(
                state.space.id, replace(look, view=view), f"{state.space.name}: {title_of(view)}"
            )

    def choose_order(
        self, stream: int | None, *, descending: bool = False, space: int | None = None
    ) -> None:
        """Put the tiles of a space into the order of a stream; None: of their addresses."""
        state = self._space(space)
        if state is None:
            return
        look = self._desk.session.looks.of(state.space.id)
        before = look.order
        order = None
        if stream is not None:
            live = before is not None and before.live
            order = OrderChoice(
                stream, descending, live, 0 if before is None else before.serial + 1
            )
        self.set_look(
            state.space.id, replace(look, order=order), f"{state.space.name}: order of tiles"
        )

    def order_again(self) -> None:
        """Put the tiles of the active space into order by the values they have now."""
        order = self.look().order
        if order is not None:
            self.choose_order(order.stream, descending=order.descending)

    def turn_order(self) -> None:
        """Put the tiles of the active space into order by the stream that is shown: descending, ascending, by address."""
        state = self._space(None)
        source = None if state is None else self._desk.session.chosen_source(state.space.id)
        if source is None:
            return
        order, stream = self.look().order, source.schema.id
        if order is None or order.stream != stream:
            self.choose_order(stream, descending=True)
        elif order.descending:
            self.choose_order(stream)
        else:
            self.choose_order(None)

    def follow_order(self, space: int | None = None) -> None:
        """Let the order of a space's tiles follow events, or stay as it is."""
        state = self._space(space)
        if state is None:
            return
        look = self._desk.session.looks.of(state.space.id)
        if look.order is not None:
            order = replace(look.order, live=not look.order.live)
            self.set_look(
                state.space.id,
                replace(look, order=order),
                f"{state.space.name}: order follows events",
            )

    def follows_order(self) -> bool:
        """Whether the order of the active space's tiles follows events."""
        order = self.look().order
        return order is not None and order.live

    def ask_row_width(self, space: int | None = None) -> None:
        """Ask how many tiles stand in a row of the 2-D view."""
        state = self._space(space)
        if state is None or not state.count:
            return
        look = self._desk.session.looks.of(state.space.id)
        now = look.row_width or state.space.row_width or max(1, int(state.count**0.5))
        width = ask_number(
            self._desk.frame,
            "Rows (2-D)",
            f"Tiles in a row, 1 to {state.count:,}:",
            min(now, state.count),
            1,
            state.count,
        )
        if width is not None:
            self.set_row_width(width, space)

    def set_row_width(self, width: int | None, space: int | None = None) -> None:
        """Set the number of tiles per row of the 2-D view, and show it; None: the space's."""
        state = self._space(space)
        if state is not None:
            look = replace(
                self._desk.session.looks.of(state.space.id), view="rows", row_width=width
            )
            self.set_look(state.space.id, look, f"{state.space.name}: width of rows")

    def choose_second(self, stream: int, space: int | None = None) -> None:
        """Choose the second of two streams that share a colour, and show them."""
        state = self._space(space)
        if state is not None:
            look = replace(
                self._desk.session.looks.of(state.space.id), view="bivariate", second=stream
            )
            self.set_look(state.space.id, look, f"{state.space.name}: second stream")

    def toggle_part(self, stream: int, space: int | None = None) -> None:
        """Show a stream beside the chosen one, or do not, and show small multiples."""
        state = self._space(space)
        if state is None:
            return
        parts = self.parts(state)
        now = (
            tuple(part for part in parts if part != stream) if stream in parts else (*parts, stream)
        )
        look = replace(self._desk.session.looks.of(state.space.id), view="multiples", parts=now)
        self.set_look(state.space.id, look, f"{state.space.name}: streams side by side")

    def parts(self, state: SpaceState) -> tuple[int, ...]:
        """The streams beside the chosen one in small multiples of a space."""
        look, source = (
            self._desk.session.looks.of(state.space.id),
            self._desk.session.chosen_source(state.space.id),
        )
        if look.parts is not None:
            return look.parts
        chosen = None if source is None else source.schema.id
        return tuple(stream.id for stream in ordered_streams(state) if stream.id != chosen)[:3]

    def toggle_logarithmic(self, space: int | None = None) -> None:
        """Let the heights of a distribution grow with the logarithm, or with the number."""
        state = self._space(space)
        if state is not None:
            look = self._desk.session.looks.of(state.space.id)
            look = replace(look, logarithmic=not look.logarithmic)
            self.set_look(state.space.id, look, f"{state.space.name}: scale of heights")

    def _space(self, space: int | None) -> SpaceState | None:
        session = self._desk.session
        return session.active_space() if space is None else session.interpreter.spaces.get(space)

    def sources(self, state: SpaceState) -> list[TileSource]:
        """The streams of a space, the most important first, and those that the user made."""
        return self._desk.session.looks.sources(state)

    # ---------------------------------------------------------------------------- menus

    def open_menu(self, *, options: bool) -> None:
        """Open the menu of views of the active space, or of its view's options, for the keyboard."""
        state = self._space(None)
        if state is not None and state.space.id in self._desk.spaces.panels:
            toolbar = self._desk.spaces.panels[state.space.id].toolbar
            (toolbar.options if options else toolbar.views).showMenu()

    def _fill_views(self, space: int, menu: PlainMenu) -> None:
        menu.clear()
        now = self._desk.session.looks.of(space).view
        names = list(TITLES)
        others = [name for name in known_renderers() if name not in TITLES]
        for number, name in enumerate((*names, *others), 1):
            if others and name == others[0]:
                menu.addSeparator()
            action = menu.add(title_of(name))
            if name in names:
                action.setText(f"{title_of(name)}\t{number}")
            if name in known_renderers() and known_renderers()[name].builtin:
                set_tip(action, known_renderers()[name].load().about)
            action.setCheckable(True)
            action.setChecked(name == now)
            action.triggered.connect(partial(self._chosen, name, space))

    def _chosen(self, view: str, space: int, _checked: bool = False) -> None:
        self.choose_view(view, space)

    def _fill_options(self, space: int, menu: PlainMenu) -> None:
        menu.clear()
        state = self._space(space)
        if state is None:
            return
        look, sources = self._desk.session.looks.of(space), self.sources(state)
        self._fill_order(menu.add_menu("Order of tiles"), space, look, sources)
        rows = menu.add_menu("Tiles in a row (2-D)")
        rows.add("As the driver declares").triggered.connect(
            lambda: self.set_row_width(None, space)
        )
        rows.add("Choose…").triggered.connect(lambda: self.ask_row_width(space))
        second = menu.add_menu("Two streams: the second")
        beside = menu.add_menu("Side by side")
        chosen, parts = self._desk.session.chosen_source(space), self.parts(state)
        for source in sources:
            if chosen is not None and source.schema.id == chosen.schema.id:
                continue
            number = source.schema.id
            one = second.add(source.schema.name)
            one.setCheckable(True)
            one.setChecked(look.view == "bivariate" and look.second == number)
            one.triggered.connect(
                lambda _checked=False, number=number: self.choose_second(number, space)
            )
            part = beside.add(source.schema.name)
            part.setCheckable(True)
            part.setChecked(number in parts)
            part.triggered.connect(
                lambda _checked=False, number=number: self.toggle_part(number, space)
            )
        clear = menu.add("No marks")
        clear.setEnabled(bool(self._desk.session.looks.marks.get(space)))
        clear.triggered.connect(lambda: self.clear_marks(space))
        menu.add("Formulas…").triggered.connect(lambda: self._formulas.ask(space))
        log = menu.add("Distribution: logarithmic heights")
        log.setCheckable(True)
        log.setChecked(look.logarithmic)
        log.triggered.connect(lambda: self.toggle_logarithmic(space))

    def _fill_order(
        self, menu: PlainMenu, space: int, look: SpaceViewState, sources: list[TileSource]
    ) -> None:
        address = menu.add("By address")
        address.setCheckable(True)
        address.setChecked(look.order is None)
        address.triggered.connect(lambda: self.choose_order(None, space=space))
        menu.addSeparator()
        for source in sources:
            for descending, words in ((True, "largest first"), (False, "smallest first")):
                number = source.schema.id
                one = menu.add(f"{source.schema.name}, {words}")
                one.setCheckable(True)
                now = look.order
                one.setChecked(
                    now is not None and (now.stream, now.descending) == (number, descending)
                )
                one.triggered.connect(
                    lambda _checked=False, number=number, descending=descending: self.choose_order(
                        number, descending=descending, space=space
                    )
                )
        menu.addSeparator()
        live = menu.add("Follow events")
        live.setCheckable(True)
        live.setChecked(look.order is not None and look.order.live)
        live.setEnabled(look.order is not None)
        live.triggered.connect(lambda: self.follow_order(space))

    def gestures(self) -> tuple[Gesture, ...]:
        """Mouse gestures over tiles."""
        return (
            Gesture(
                _MENU,
                "Ctrl + wheel over tiles",
                "larger or smaller tiles; in other views: zoom",
            ),
            Gesture(
                _MENU,
                "Middle button, wheel, Shift + wheel",
                "scroll a view that is larger than its panel",
            ),
            Gesture(
                _MENU,
                "Ctrl + click, Ctrl + drag",
                "mark a tile or a range of tiles; with Shift remove marks",
            ),
        )

    def actions(self) -> tuple[Action, ...]:
        """Actions about views."""
        return (
            *(
                Action(
                    name=f"view.as-{name}",
                    menu=_MENU,
                    text=title,
                    about=f"the active space as: {title}",
                    run=partial(self.choose_view, name),
                    keys=(str(number),),
                    checked=partial(self.shows, name),
                    begins_group=number == 1,
                )
                for number, (name, title) in enumerate(TITLES.items(), 1)
            ),
            Action(
                name="view.menu",
                menu=_MENU,
                text="&View of the space…",
                about="choose the view of the active space, including those of other packages",
                run=partial(self.open_menu, options=False),
                keys=("V",),
            ),
            Action(
                name="view.options",
                menu=_MENU,
                text="More of the &space…",
                about="order, second stream, several streams and other options of the active space",
                run=partial(self.open_menu, options=True),
                keys=("Shift+V",),
            ),
            Action(
                name="view.order",
                menu=_MENU,
                text="&Order by the stream shown",
                about="order tiles by the stream shown: largest first, smallest first, then by address again",
                run=self.turn_order,
                keys=("O",),
                checked=lambda: self.look().order is not None,
                begins_group=True,
            ),
            Action(
                name="view.order-live",
                menu=_MENU,
                text="Order &follows events",
                run=self.follow_order,
                enabled=lambda: self.look().order is not None,
                checked=self.follows_order,
            ),
            Action(
                name="view.order-again",
                menu=_MENU,
                text="Order a&gain, by current values",
                run=self.order_again,
                enabled=lambda: self.look().order is not None,
            ),
            Action(
                name="view.mark",
                menu=_MENU,
                text="Mar&k the selected tile",
                about="mark the selected tile, or remove its mark",
                run=self.mark_selected,
                keys=("K",),
                begins_group=True,
            ),
            Action(
                name="view.no-marks",
                menu=_MENU,
                text="No marks",
                run=self.clear_marks,
                enabled=self.has_marks,
            ),
            Action(
                name="view.tile-a-pixel",
                menu=_MENU,
                text="One pixel per tile (1:1)",
                run=self.zoom_to_tiles,
                keys=("Ctrl+1",),
            ),
            Action(
                name="view.formulas",
                menu=_MENU,
                text="For&mulas…",
                about="formulas: streams computed from others, such as Used / Size",
                run=self._formulas.ask,
                keys=("F",),
            ),
            Action(
                name="view.row-width", menu=_MENU, text="Tiles in a ro&w…", run=self.ask_row_width
            ),
        )
