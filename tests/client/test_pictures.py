"""The camera shows a viewer's state, wherever in a recording it began."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import CommandError
from gcspy_replay.file import MemorySource, Recording
from numpy.typing import NDArray
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.pictures import Camera, filling_cell
from gcspy_client.view.window import MainWindow
from tests.matrix import matrix
from tests.replay.crowded import crowded
from tests.replay.recorded import small

SAMPLES = Path(__file__).parents[2] / "replay" / "samples"
SIZE = (640, 400)


def pictures(
    recording: Recording, first: int, last: int, **request: str
) -> dict[int, NDArray[np.uint32]]:
    """Return pictures of some events, taken in order by one camera."""
    camera = Camera(
        size=SIZE, theme=Theme.DARK, space=request.get("space"), stream=request.get("stream")
    )
    taken = {}
    for step, session in recording.steps(first, last):
        camera.follow(session, step.change)
        taken[step.number] = camera.pixels()
    camera.close()
    return taken


def test_a_picture_is_the_same_wherever_the_camera_began(qtbot: QtBot) -> None:
    """A camera that follows changes shows what one does that sees this event only."""
    with Recording.open(SAMPLES / "demo-cpython-3.11.gcspy") as recording:
        space = "pymalloc arenas"
        followed = pictures(recording, 1, 20, space=space)
        assert len({picture.tobytes() for picture in followed.values()}) > 10
        for number in (1, 2, 12, 13, 20):
            assert np.array_equal(
                pictures(recording, number, number, space=space)[number], followed[number]
            )


def test_the_whole_window_has_no_banner_and_no_buttons(qtbot: QtBot) -> None:
    camera = Camera(size=SIZE)
    with Recording.open(SAMPLES / "semispace.gcspy") as recording:
        for step, session in recording.steps(1, 3):
            camera.follow(session, step.change)
    image = camera.take()
    window = camera.widget
    assert isinstance(window, MainWindow)
    space = window.session.active_space()
    assert space is not None
    assert len(window.session.history.series(space.space.id, 0)) == 3, (
        "the graph reports events without a picture too"
    )
    assert (image.width(), image.height()) == SIZE
    assert len(np.unique(camera.pixels())) > 50
    part_of_session = window.session_part
    for part in (part_of_session.banner, part_of_session.footer, part_of_session.page):
        assert not part.isVisible(), part
    camera.close()


@pytest.mark.parametrize("spaces", matrix([129, 200], usual=[129]))
def test_very_many_spaces_are_seen(qtbot: QtBot, spaces: int) -> None:
    """One large, the others a line each. Qt adds up in 32 bits how high the parts of a splitter may be: of 129 panels none was seen."""
    with Recording([MemorySource(crowded(spaces))]) as recording:
        camera = Camera(size=SIZE)
        for step, session in recording.steps(1, 1):
            camera.follow(session, step.change)
        camera.take()
        window = camera.widget
        assert isinstance(window, MainWindow)
        panels = list(window.spaces.panels.values())
        assert len(panels) == spaces
        assert panels[0].height() >= window.spaces.height() / 2
        assert all(panel.height() >= 24 for panel in panels)
        ends = [panel.geometry().bottom() for panel in panels[1:]]
        assert ends == sorted(set(ends)), "one below the other"
        strip = panels[1].canvas
        assert strip.painted
        assert strip.height() == 16
        last = panels[-1]
        window.spaces.reveal(last)
        assert not last.visibleRegion().isEmpty()
        assert panels[0].shown.painted
        camera.close()


def test_another_stream_is_another_picture_and_a_wrong_one_is_named(qtbot: QtBot) -> None:
    recording = Recording([MemorySource(small(3))])
    used = pictures(recording, 3, 3, space="heap")[3]
    kind = pictures(recording, 3, 3, space="heap", stream="Kind")[3]
    assert not np.array_equal(used, kind)
    with pytest.raises(CommandError, match="no stream 'Nothing'; it has: Used, Kind"):
        pictures(recording, 3, 3, space="heap", stream="Nothing")


def test_a_space_that_is_not_there_yet_is_said_to_be_absent(qtbot: QtBot) -> None:
    recording = Recording([MemorySource(small(3))])
    assert len(np.unique(pictures(recording, 1, 1, space="later")[1])) > 5  # words


@pytest.mark.parametrize("count", [1, 7, 40, 1000, 10**6])
def test_cells_fill_the_picture_and_stay_while_they_suit(count: int) -> None:
    side = filling_cell(count, 600, 300, None)
    assert side == 1 or (600 // side) * (300 // side) >= count
    assert side == 72 or (600 // (side + 1)) * (300 // (side + 1)) < count
    assert filling_cell(count, 600, 300, side) == side
    if side > 9:
        assert filling_cell(count, 600, 300, side - 1) == side - 1
