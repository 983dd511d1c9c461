"""History graphs in the window: the panel, its menus as actions, and what can be taken back of it.

Knows the panel and its menus; does not know how graphs are made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt

from gcspy_client.model.palette import Theme
from gcspy_client.view.actions import Action, Gesture
from gcspy_client.view.desk import Desk
from gcspy_client.view.history.menus import HistoryMenus
from gcspy_client.view.history.panel import HistoryPanel
from gcspy_client.view.history.undo import HistoryUndo
from gcspy_client.view.part import Part
from gcspy_client.view.time.timeline import TimelineStrip

__all__ = ["HistoryPart"]

_VIEW, _MENU = "&View", "&View/&History graphs"


class HistoryPart(Part):
    """History graphs of a window.

    Args:
        desk: The window's desk.
        strip: The timeline, which shows the same stretch of time.

    Attributes:
        panel: The graphs.
        menus: The buttons above them.
    """

    def __init__(self, desk: Desk, strip: TimelineStrip) -> None:
        super().__init__(desk)
        self.panel = HistoryPanel(
            desk.session, desk.shift, lambda: desk.bookmarks.recording, desk.theme
        )
        self.menus = HistoryMenus(self.panel, desk.session)
        self._undo = HistoryUndo(self.panel, desk.undo)
        desk.docks.add(
            "history",
            "History graph",
            self.panel,
            Qt.DockWidgetArea.BottomDockWidgetArea,
            keys=("H",),
            about="history graph: the active space over all events",
        )
        desk.updater.applied.connect(self.panel.follow)
        self.panel.event_asked.connect(desk.navigator.go_to)
        self.panel.tile_asked.connect(desk.selection.select_key)
        self.panel.share_time(strip)

    def refresh(self) -> None:
        """Show the graphs of the displayed space."""
        self.panel.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self.panel.set_theme(theme)

    def stop(self) -> None:
        """The window closes: no thread is left."""
        self.panel.stop()

    def gestures(self) -> tuple[Gesture, ...]:
        """Mouse and keys over graphs."""
        return (
            Gesture(_VIEW, "Click on the history graph", "go to the event and select the tile"),
            Gesture(
                _VIEW,
                "Drag on the history graph",
                "plot the values of these tiles; repeat for more series",
            ),
            Gesture(_VIEW, "Wheel, + − on the history graph", "zoom in time; with Ctrl in tiles"),
            Gesture(_VIEW, "Shift + wheel, arrows, middle drag on it", "scroll"),
            Gesture(_VIEW, "Double click, 0 on the history graph", "everything"),
        )

    def actions(self) -> tuple[Action, ...]:
        """The actions of history graphs."""
        panel, menus = self.panel, self.menus

        def opened() -> bool:
            return panel.isVisible()

        table: tuple[tuple[str, str, Callable[[], object], Callable[[], bool]], ...] = (
            ("add", "&Add a graph of the current stream", menus.add_shown, opened),
            ("expression", "Add a graph of an &expression…", menus.ask_expression, opened),
            (
                "remove",
                "&Remove the last graph",
                menus.remove_last,
                lambda: opened() and len(panel.tracks) > 1,
            ),
            ("pooling", "&Maximum, mean or minimum per pixel", menus.next_pooling, opened),
            ("every", "&Lines between tiles…", menus.ask_every, opened),
            ("kind", "Lines at another &kind of event", menus.next_kind, opened),
            ("closer", "Zoom in on &time", partial(panel.time.zoom, 0.5), opened),
            ("farther", "Zoom &out of time", partial(panel.time.zoom, 2.0), opened),
            ("larger", "Larger tiles in history graphs", partial(panel.zoom_tiles, 0.5), opened),
            ("smaller", "Smaller tiles in history graphs", partial(panel.zoom_tiles, 2.0), opened),
            ("whole", "All events and tiles", panel.fit, opened),
            (
                "no-tiles",
                "&Clear plotted tiles",
                panel.forget_brushes,
                lambda: menus.export.has_series,
            ),
            ("picture", "Export as &picture…", menus.export.ask_picture, opened),
            ("series", "Export &series…", menus.export.ask_series, lambda: menus.export.has_series),
        )
        return tuple(
            Action(
                name=f"history.{name}",
                menu=_MENU,
                text=text,
                about=f"history graphs: {text.replace('&', '').removesuffix('…').lower()}",
                run=run,
                enabled=enabled,
            )
            for name, text, run, enabled in table
        )
