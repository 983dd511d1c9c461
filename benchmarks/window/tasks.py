"""Tasks of users, done in a real window by keyboard alone and by mouse alone: actions and seconds of each.

A window watches real Python processes, whose heaps change on request only. Each task is checked
against what is computed without the window: from the target's own account, or from stored events.
The seconds are those of the machine: from the first action until the result was on the screen. A
person needs time to look and to think besides.

    python -m benchmarks tasks [--only TASK]...
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState
from gcspy_protocol.model import ControlState
from gcspy_replay.file import Cursor, Recording
from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton

from benchmarks.harness.figures import tell
from benchmarks.targets.growth_target import GrowthTarget, growth_target
from benchmarks.window.user_actions import UserActions
from gcspy.hosts.launcher import front_door
from gcspy_client.app import application
from gcspy_client.model.palette import Theme
from gcspy_client.model.session import tile_title
from gcspy_client.model.text import long_value
from gcspy_client.view.spaces.space_panel import SpacePanel
from gcspy_client.view.time.save_dialog import SaveDialog
from gcspy_client.view.window import MainWindow

__all__ = ["TASKS", "Scene", "Task", "Way", "main", "scene"]

ARENAS, CLASSES, POOLS = "Whole arenas", "Size classes", "pymalloc arenas"
_SIZE_CLASS = 480
_OBJECTS = 12_000
_EVENTS = 6
"""Events that are watched before and after a change."""


class Way(Enum):
    """How a task is done."""

    KEYS = "keyboard"
    MOUSE = "mouse"


class Scene:
    """A window, the processes that it can watch, and a user who works the window.

    Args:
        window: The window.
        first: The process that is watched at first.
        second: Another one.
        folder: Where files are saved.
    """

    def __init__(
        self, window: MainWindow, first: GrowthTarget, second: GrowthTarget, folder: Path
    ) -> None:
        self.window, self.first, self.second, self.folder = window, first, second, folder
        self.user = UserActions(window)

    def shows(self, pid: int) -> bool:
        """Whether a process is watched, and its tiles are on the screen."""
        welcome = self.window.session.live.welcome
        return (
            welcome is not None
            and f"process {pid}" in welcome.server
            and not self.window.opener.wanted
            and self.window.spaces.painted()
            and len(self.window.session.timeline) > 0
        )

    def watch(self) -> None:
        """Watch the first process."""
        self.window.opener.attach(self.first.pid)
        self.user.wait(lambda: self.shows(self.first.pid), "the first process is watched")
        self.pass_events()

    def pass_events(self, count: int = _EVENTS) -> None:
        """Let events come and be stored."""
        wanted = self.window.session.events_seen + count
        self.user.wait(lambda: self.window.session.events_seen >= wanted, "events came")
        self.user.wait(lambda: self.window.shift.settle(1), "they are stored")

    def space(self, name: str) -> SpaceState:
        """A space as it is displayed."""
        return space_of(self.window.session.interpreter, name)

    def panel(self, name: str) -> SpacePanel:
        """The panel of a space."""
        return self.window.spaces.panels[self.space(name).space.id]

    def state_at(self, number: int) -> ClientInterpreter:
        """The state right after an event, read from a file into which the session was saved just now."""
        path = self.folder / "truth.gcspy"
        self.window.shift.save(path, replace=True)
        with Recording.open(path) as recording:
            return Cursor(recording).seek(number)

    def button(self, name: str) -> QAbstractButton:
        """A button of the transport, by the name of its action."""
        found = self.window.time_panel.findChild(QAbstractButton, name)
        assert isinstance(found, QAbstractButton)
        return found

    def strip_point(self, number: int) -> QPoint:
        """A point over the memory at an event in the timeline."""
        strip = self.window.time_panel.strip
        plot = strip.plot()
        x = min(max(strip.x_of(number), plot.left() + 1), plot.right() - 1)
        return QPoint(round(x), round(plot.center().y()))


def space_of(state: ClientInterpreter, name: str) -> SpaceState:
    """A space by its name."""
    (found,) = [space for space in state.spaces.values() if space.space.name == name]
    return found


def values_of(space: SpaceState, stream: str) -> np.ma.MaskedArray:
    """Values of a stream, masked where they are unknown or the tile is not used."""
    (found,) = [one for one in space.streams.values() if one.schema.name == stream]
    hidden = (space.control.values & 0b111) != 1  # used, and neither background nor unused
    if found.known is not None:
        hidden |= ~found.known
    return np.ma.MaskedArray(found.values.astype(np.int64), hidden)


@contextmanager
def scene() -> Iterator[Scene]:
    """A window at its start page, and two processes, for the body of the `with`; files go to a folder of their own."""
    application()
    with (
        tempfile.TemporaryDirectory(prefix="gcspy-tasks-") as folder,
        contextlib.chdir(folder),
        growth_target("first") as first,
        growth_target("second") as second,
    ):
        window = MainWindow(Theme.DARK, front=front_door())
        window.resize(1280, 720)
        window.show()
        window.activateWindow()
        QTest.qWaitForWindowExposed(window)
        try:
            yield Scene(window, first, second, Path(folder))
        finally:
            window.close()
            window.deleteLater()
            QTest.qWait(1)


def _as_it_is(_scene: Scene) -> None:
    """Prepare nothing."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Something that a user wants to do.

    Attributes:
        name: In a few words.
        prepare: Makes the situation; None: the first process is watched, and that is all.
        by_keys: Does it with the keyboard alone.
        by_mouse: Does it with the mouse alone.
        check: Asserts that the window has done it, and that it is true.
    """

    name: str
    by_keys: Callable[[Scene], None]
    by_mouse: Callable[[Scene], None]
    check: Callable[[Scene], None]
    prepare: Callable[[Scene], None] = _as_it_is

    def run(self, scene: Scene, way: Way) -> tuple[int, float]:
        """Do it once, and check it.

        Returns:
            Actions, and seconds.

        Raises:
            AssertionError: The window did something else.
            NotReachable: It cannot be done in this way.
        """
        self.prepare(scene)
        scene.user.begin()
        began = time.monotonic()
        (self.by_keys if way is Way.KEYS else self.by_mouse)(scene)
        took = time.monotonic() - began
        user = scene.user
        actions, others = (user.keys, user.mouse) if way is Way.KEYS else (user.mouse, user.keys)
        assert not others, f"{self.name}: {way.value} alone does not do it"
        self.check(scene)
        return actions, took


# ------------------------------------------------------------------------ the fullest arena


def _make_arenas(scene: Scene) -> None:
    """Arenas of different fill: one half of what was allocated is thinned out."""
    scene.first.fill("dense", 512, 6_000)
    scene.first.fill("thin", 256, 12_000)
    scene.first.ask("thin", "thin", 5)
    scene.pass_events()


def _fullest_by_keys(scene: Scene) -> None:
    user = scene.user
    while scene.window.session.active_space() is not scene.space(ARENAS):
        user.press("N")
    user.press("X")


def _fullest_by_mouse(scene: Scene) -> None:
    _enlarge(scene, ARENAS)
    scene.user.choose("View", "Select the fullest tile")


def _check_fullest(scene: Scene) -> None:
    space = scene.space(ARENAS)
    tile = scene.window.session.selected(space.space.id)
    used = values_of(space, "Used")
    assert tile is not None
    assert len(used) > 2, "one arena is always the fullest"
    assert used[tile] == used.max()
    assert used.min() < used.max()
    scene.window.settle()
    assert tile_title(space, tile) in scene.window.details._selected_name.text()


# ---------------------------------------------------------------------- which size class grew


def _grow(scene: Scene) -> None:
    scene.pass_events()
    scene.first.fill("growth", _SIZE_CLASS, _OBJECTS)
    scene.pass_events()


def _compare_by_keys(scene: Scene) -> None:
    """The first event with the last one."""
    user, window = scene.user, scene.window
    user.press("Home")
    user.wait(lambda: window.session.number == window.session.timeline.first, "the first event")
    user.press("A", "End")
    user.wait(lambda: window.session.is_live and window.compare.settle(), "differences")


def _compare_by_mouse(scene: Scene) -> None:
    user, window, strip = scene.user, scene.window, scene.window.time_panel.strip
    timeline = window.session.timeline
    user.drag(strip, scene.strip_point(timeline.first), scene.strip_point(timeline.last))
    bar = window.ranges.bar
    user.wait(bar.isVisible, "the bar of the range")
    _press_on_bar(scene, "Difference")
    chosen = window.navigator.chosen
    assert chosen is not None
    user.wait(
        lambda: (
            window.session.number == chosen[1] and window.compare.on and window.compare.settle()
        ),
        "differences",
    )


def _grown_by_keys(scene: Scene) -> None:
    _compare_by_keys(scene)
    scene.user.press("N")


def _grown_by_mouse(scene: Scene) -> None:
    _compare_by_mouse(scene)
    _enlarge(scene, CLASSES)


def _enlarge(scene: Scene, name: str) -> None:
    """Double click on the line of a space."""
    panel = scene.panel(name)
    scene.user.double_click(panel, QPoint(60, panel.height() // 2))
    scene.user.wait(
        lambda: scene.window.session.active_space() is scene.space(name), f"{name} are large"
    )


def _press_on_bar(scene: Scene, words: str) -> None:
    """Press a button of the bar beside the range, or choose from its menu where there is no room for it."""
    bar, user = scene.window.ranges.bar, scene.user
    if bar.compact:
        user.choose_at(bar.more, words)
    else:
        (button,) = [one for one in bar._buttons.values() if one.text() == words]
        user.click(button)


def _check_compared(scene: Scene) -> None:
    """The painted differences are those of two stored events."""
    window = scene.window
    assert window.compare.moment is not None
    first, last = window.compare.moment.number, window.session.number
    assert first == window.session.timeline.first
    assert last > first
    comparison = window.compare.painter.comparison
    assert comparison is not None
    found = comparison.spaces[scene.space(CLASSES).space.id]
    before = values_of(space_of(scene.state_at(first), CLASSES), "Pools")
    after = values_of(scene.space(CLASSES), "Pools")
    assert found.summary.net == after.sum() - before.sum()


def _check_grown(scene: Scene) -> None:
    """The panel names the class of the objects that the target made first among the classes."""
    _check_compared(scene)
    window = scene.window
    table, rows = window.compare.panel.tile_table, window.compare.panel.tiles
    window.settle()
    names = [
        (str(rows.index(row, 0).data()), str(rows.index(row, 1).data()))
        for row in range(rows.rowCount())
        if table.viewport().rect().contains(table.visualRect(rows.index(row, 1)).center())
    ]
    assert names[0][0] == CLASSES
    assert f"{_SIZE_CLASS} bytes" in names[0][1]
    assert window.compare.moment is not None
    before = values_of(space_of(scene.state_at(window.compare.moment.number), CLASSES), "Pools")
    after = values_of(scene.space(CLASSES), "Pools")
    most = int(np.argmax(after.filled(0) - before.filled(0)))
    assert names[0][1] == tile_title(scene.space(CLASSES), most)


# ------------------------------------------------------------------ before a collection


def _collect(scene: Scene) -> None:
    scene.pass_events()
    scene.first.ask("collect")
    scene.pass_events()


def _before_by_keys(scene: Scene) -> None:
    scene.user.press("C")
    _wait_for_past(scene)


def _before_by_mouse(scene: Scene) -> None:
    scene.user.choose("Time", "Before the previous collection")
    _wait_for_past(scene)


def _wait_for_past(scene: Scene) -> None:
    scene.user.wait(
        lambda: not scene.window.session.is_live and not scene.window.navigator.past.seeking,
        "an earlier event",
    )


def _check_before(scene: Scene) -> None:
    session = scene.window.session
    assert session.live.welcome is not None
    (kind,) = [one.id for one in session.live.welcome.events if one.name == "Collections"]
    rows = session.timeline.rows
    collections = [
        int(number)
        for number, row in zip(session.timeline.numbers, rows, strict=True)
        if int(row["event"]) == kind
    ]
    assert collections
    assert session.number == collections[-1] - 1


# ------------------------------------------------------------------------- what is in a tile


def _tile_by_keys(scene: Scene) -> None:
    scene.user.press("Right", "Right", "Right")


def _tile_by_mouse(scene: Scene) -> None:
    canvas = scene.panel(POOLS).canvas
    scene.user.point(canvas, canvas.centre_of(2))


def _check_tile(scene: Scene) -> None:
    """The panel has the values of the third tile."""
    window, space = scene.window, scene.space(POOLS)
    window.settle()
    mouse = scene.panel(POOLS).canvas.under_mouse == 2
    assert mouse or window.session.selected(space.space.id) == 2
    model, column = window.details._streams, 1 if mouse else 2
    told = {
        str(model.index(row, 0).data()).removesuffix(" (stale)"): str(
            model.index(row, column).data()
        )
        for row in range(model.rowCount())
    }
    (blocks,) = [one for one in space.streams.values() if one.schema.name == "Blocks in use"]
    assert told["Blocks in use"] == long_value(
        blocks.schema, int(blocks.values[2]), known=blocks.is_known(2), top=None
    )


# ------------------------------------------------------------------- a trigger that fires


def _trigger_by_keys(scene: Scene) -> None:
    scene.user.press("Ctrl+Shift+T", "Return")
    _let_fire(scene)


def _trigger_by_mouse(scene: Scene) -> None:
    scene.user.choose("Session", "New trigger by form")
    scene.user.click(scene.window.triggers.panel.add)
    _let_fire(scene)


def _let_fire(scene: Scene) -> None:
    """Have the target do what the trigger waits for."""
    manager, user = scene.window.triggers.manager, scene.user
    user.wait(lambda: bool(manager.triggers), "the trigger is set")
    window = scene.window
    while not window.triggers.has_fired:
        scene.first.fill("trigger", 512, 2_000)
        _wait_for_events_or_firing(scene, window.session.events_seen + 2)
    (status,) = manager.triggers
    # The notice comes before the event at which it fired.
    user.wait(lambda: manager.number_of(status) > 0, "the event is in the timeline")
    user.wait(lambda: window.shift.settle(1), "it is stored")
    user.wait(lambda: window.session.live.state is ControlState.PAUSED, "it is paused")
    user.wait(window.triggers.notice.isVisible, "the notice is displayed")


def _wait_for_events_or_firing(scene: Scene, wanted: int) -> None:
    session, triggers = scene.window.session, scene.window.triggers
    scene.user.wait(
        lambda: triggers.has_fired or session.events_seen >= wanted,
        "events came, or the trigger fired",
    )


def _check_fired(scene: Scene) -> None:
    """It fired at the first stored event at which the sum was above the limit, and not before."""
    window = scene.window
    (status,) = window.triggers.manager.triggers
    written = status.trigger.expression
    assert written.startswith('sum("pymalloc arenas".Used) > ')
    unit = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    amount = written.rpartition("> ")[2]
    limit = int(amount[:-3]) * unit[amount[-3:]]
    number = window.triggers.manager.number_of(status)
    assert values_of(space_of(scene.state_at(number), POOLS), "Used").sum() > limit
    assert values_of(space_of(scene.state_at(number - 1), POOLS), "Used").sum() <= limit
    assert window.session.live.state is ControlState.PAUSED
    assert window.triggers.notice.isVisible()


# -------------------------------------------------------------------------------- a range


def _save_by_keys(scene: Scene) -> None:
    scene.user.press("Shift+Home", "Ctrl+S", "Return")
    _wait_for_file(scene)


def _save_by_mouse(scene: Scene) -> None:
    timeline = scene.window.session.timeline
    scene.user.drag(
        scene.window.time_panel.strip,
        scene.strip_point(timeline.first),
        scene.strip_point(timeline.last - 1),
    )
    scene.user.wait(scene.window.ranges.bar.isVisible, "the bar of the range")
    _press_on_bar(scene, "Save…")
    scene.user.click(_dialog(scene).start)
    _wait_for_file(scene)


def _dialog(scene: Scene) -> SaveDialog:
    (found,) = [one for one in scene.window.findChildren(SaveDialog) if one.isVisible()]
    return found


def _wait_for_file(scene: Scene) -> None:
    scene.user.wait(lambda: "saved to" in _dialog(scene).said.text(), "it is saved")


def _check_saved(scene: Scene) -> None:
    """The file has the events of the range, and the last one is as the window had stored it."""
    path = Path(_dialog(scene).path.text())
    chosen = scene.window.navigator.chosen
    assert chosen is not None
    with Recording.open(path) as recording:
        assert (recording.first, recording.last) == chosen
        then = space_of(Cursor(recording).seek(chosen[1]), POOLS)
    truth = space_of(scene.state_at(chosen[1]), POOLS)
    assert np.array_equal(values_of(then, "Used").filled(-1), values_of(truth, "Used").filled(-1))


# ------------------------------------------------------------------------------ backwards


def _backwards_by_keys(scene: Scene) -> None:
    scene.user.press("Shift+Space")
    _watch_backwards(scene)


def _backwards_by_mouse(scene: Scene) -> None:
    scene.user.click(scene.button("time.reverse"))
    _watch_backwards(scene)


def _watch_backwards(scene: Scene) -> None:
    """Wait until three events were shown, each earlier than the one before."""
    session = scene.window.session
    seen: list[int] = []

    def look() -> bool:
        if not session.is_live and (not seen or seen[-1] != session.number):
            seen.append(session.number)
        return len(seen) >= 3

    scene.user.wait(look, "events, backwards")
    assert seen == sorted(seen, reverse=True)


def _check_backwards(scene: Scene) -> None:
    session = scene.window.session
    assert session.number <= session.timeline.last - 2
    shown = values_of(scene.space(POOLS), "Used")
    truth = values_of(space_of(scene.state_at(session.number), POOLS), "Used")
    assert np.array_equal(shown.filled(-1), truth.filled(-1))


# ---------------------------------------------------------------------------- hide a space


def _hide_by_keys(scene: Scene) -> None:
    scene.user.press("N", "Shift+H")


def _hide_by_mouse(scene: Scene) -> None:
    _enlarge(scene, CLASSES)
    scene.user.choose("View", "Hide this space")


def _check_hidden(scene: Scene) -> None:
    spaces = scene.window.spaces
    assert spaces.hidden == (CLASSES,)
    assert [
        panel.canvas.picture.space.space.name
        for panel in spaces.panels.values()
        if not panel.isVisible()
    ] == [CLASSES]
    spaces.shows_hidden.click()
    assert all(panel.isVisible() for panel in spaces.panels.values())


# ----------------------------------------------------------------------------- attaching


def _attach_by_keys(scene: Scene) -> None:
    scene.user.press("Ctrl+Shift+O")
    _attach_second_by_keys(scene)


def _attach_second_by_keys(scene: Scene) -> None:
    processes = scene.window.opener.page.processes
    scene.user.wait(processes.isVisible, "the start page")
    scene.user.type(f"{scene.second.pid}")
    scene.user.wait(
        lambda: (
            [row.pid for row in processes.model.rows] == [scene.second.pid]
            and processes.attach.isEnabled()
        ),
        "the process is listed",
    )
    scene.user.press("Return")
    scene.user.wait(lambda: scene.shows(scene.second.pid), "the other process is watched")


def _attach_by_mouse(scene: Scene) -> None:
    scene.user.choose("Session", "Start page")
    _attach_second_by_mouse(scene)


def _attach_second_by_mouse(scene: Scene) -> None:
    processes, user = scene.window.opener.page.processes, scene.user
    user.wait(processes.isVisible, "the start page")

    def place() -> int:
        rows = processes.model.rows
        return next(
            (i for i, row in enumerate(rows) if row.pid == scene.second.pid and row.watchable), -1
        )

    user.wait(lambda: place() >= 0 and not processes.progress.isVisible(), "it is listed")
    table = processes.table

    def point() -> QPoint:
        return table.visualRect(processes.model.index(place(), 1)).center()

    while not table.viewport().rect().contains(point()):
        user.wheel(table.viewport(), -3 if point().y() > 0 else 3)
    chosen = processes.chosen()
    while chosen is None or chosen.pid != scene.second.pid:  # rows move when processes come and go
        user.click(table.viewport(), point())
        chosen = processes.chosen()
    user.wait(processes.attach.isEnabled, "it can be attached to")
    user.click(processes.attach)
    user.wait(lambda: scene.shows(scene.second.pid), "the other process is watched")


def _check_attached(scene: Scene) -> None:
    assert scene.shows(scene.second.pid)
    # What the other process fills is seen, and so it is its heap.
    before = values_of(scene.space(CLASSES), "Pools").sum()
    scene.second.fill("own", _SIZE_CLASS, _OBJECTS)

    def is_seen() -> bool:
        now = scene.space(CLASSES)
        pools = values_of(now, "Pools")  # some may be unknown at an event: they were torn
        return pools.sum() > before and f"{_SIZE_CLASS} bytes" in tile_title(
            now, int(np.argmax(pools))
        )

    scene.user.wait(is_seen, "what it fills is seen")


# ------------------------------------------------------------------------------- the walk


def _walk_by_keys(scene: Scene) -> None:
    user, window = scene.user, scene.window
    _attach_second_by_keys(scene)
    _fill_second(scene)
    user.press("X", "G")
    _wait_for_past(scene)
    user.press("A", "End")
    user.wait(lambda: window.session.is_live and window.compare.settle(), "differences")
    user.press("Ctrl+Shift+T", "Return")
    user.wait(lambda: bool(window.triggers.manager.triggers), "the trigger is set")
    user.press("Ctrl+S", "Return")
    _wait_for_file(scene)


def _walk_by_mouse(scene: Scene) -> None:
    user, window = scene.user, scene.window
    _attach_second_by_mouse(scene)
    _fill_second(scene)
    user.choose("View", "Select the fullest tile")
    user.choose("Time", "When the selected tile filled")
    _wait_for_past(scene)
    user.choose("Compare", "Set this event as A")
    user.click(window.session_part.event_bar.past)
    user.wait(lambda: window.session.is_live and window.compare.settle(), "differences")
    user.choose("Session", "New trigger by form")
    user.click(window.triggers.panel.add)
    user.wait(lambda: bool(window.triggers.manager.triggers), "the trigger is set")
    user.click(window.time_panel.transport.save)
    user.click(_dialog(scene).start)
    _wait_for_file(scene)


def _fill_second(scene: Scene) -> None:
    """While the user watches, the process fills its heap."""
    scene.pass_events()
    scene.second.fill("walk", 512, 20_000)
    scene.pass_events()


def _check_walk(scene: Scene) -> None:
    """The event that was gone to is the one at which the tile got its value; the file has the whole session."""
    window = scene.window
    space = scene.space(POOLS)
    tile = window.session.selected(space.space.id)
    assert tile is not None
    key = space.names.key(tile)
    moment = window.compare.moment
    assert moment is not None

    def share(number: int) -> float:
        then = space_of(scene.state_at(number), POOLS)
        place = then.names.index_of(key)
        if place is None:
            return -1.0
        used = values_of(then, "Used")
        return -1.0 if np.ma.is_masked(used[place]) else float(used[place])

    timeline = window.session.timeline
    filled = share(moment.number)
    assert filled == share(timeline.last)
    # An arena that the process had filled before it was watched is among the fullest at times.
    assert moment.number == timeline.first or share(moment.number - 1) < filled
    (_status,) = window.triggers.manager.triggers
    with Recording.open(Path(_dialog(scene).path.text())) as recording:
        assert recording.first == 1
        assert recording.last >= moment.number


def _to_start_page(scene: Scene) -> None:
    window = scene.window
    window.link.close()
    window.opener.child.stop()
    window.opener.open_page()
    scene.second.ask("collect")
    scene.user.wait(window.opener.page.isVisible, "the start page")


TASKS = (
    Task(
        name="find the fullest arena",
        prepare=_make_arenas,
        by_keys=_fullest_by_keys,
        by_mouse=_fullest_by_mouse,
        check=_check_fullest,
    ),
    Task(
        name="which size class grew",
        prepare=_grow,
        by_keys=_grown_by_keys,
        by_mouse=_grown_by_mouse,
        check=_check_grown,
    ),
    Task(
        name="the moment before a collection",
        prepare=_collect,
        by_keys=_before_by_keys,
        by_mouse=_before_by_mouse,
        check=_check_before,
    ),
    Task(
        name="compare two moments",
        prepare=_grow,
        by_keys=_compare_by_keys,
        by_mouse=_compare_by_mouse,
        check=_check_compared,
    ),
    Task(
        name="what is in a tile",
        by_keys=_tile_by_keys,
        by_mouse=_tile_by_mouse,
        check=_check_tile,
    ),
    Task(
        name="set a trigger that fires",
        by_keys=_trigger_by_keys,
        by_mouse=_trigger_by_mouse,
        check=_check_fired,
    ),
    Task(
        name="save a range",
        prepare=_collect,
        by_keys=_save_by_keys,
        by_mouse=_save_by_mouse,
        check=_check_saved,
    ),
    Task(
        name="play backwards",
        prepare=_collect,
        by_keys=_backwards_by_keys,
        by_mouse=_backwards_by_mouse,
        check=_check_backwards,
    ),
    Task(
        name="hide a space",
        by_keys=_hide_by_keys,
        by_mouse=_hide_by_mouse,
        check=_check_hidden,
    ),
    Task(
        name="attach to another process",
        by_keys=_attach_by_keys,
        by_mouse=_attach_by_mouse,
        check=_check_attached,
    ),
)
"""The ten tasks; a scene watches its first process when one begins."""

WALK = Task(
    name="attach, fullest place, when it filled, compare, trigger, save",
    prepare=_to_start_page,
    by_keys=_walk_by_keys,
    by_mouse=_walk_by_mouse,
    check=_check_walk,
)
"""One walk through all of it; it begins at the start page."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--only", action="append", metavar="WORDS", help="tasks with these words in their name"
    )
    options = parser.parse_args()
    width = max(len(task.name) for task in (*TASKS, WALK))
    print(f"{'task':{width}}  keyboard  seconds   mouse  seconds")
    for task in (*TASKS, WALK):
        if options.only and not any(words in task.name for words in options.only):
            continue
        found = {}
        for way in Way:
            with scene() as one:
                if task is not WALK:
                    one.watch()
                found[way] = task.run(one, way)
        (keys, key_secs), (clicks, click_secs) = found[Way.KEYS], found[Way.MOUSE]
        print(
            f"{task.name:{width}}  {keys:8}  {key_secs:7.1f}  {clicks:6}  {click_secs:7.1f}",
            flush=True,
        )
        for way, (actions, _) in found.items():
            tell(f"{task.name}, {way.value}", actions, "actions", "")


if __name__ == "__main__":
    main()
