"""The lanes of the timeline, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.playback import TIMELINE
from numpy.typing import NDArray
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.timeline import EventTimeline
from gcspy_client.view.theme import tokens
from gcspy_client.view.time.lanes import Lanes, draw_lanes, kind_colour

EVENTS = 1_000_000
WIDTH = 500


def timeline_of(kinds: NDArray[np.integer], missed_at: int | None = None) -> EventTimeline:
    rows = np.zeros(len(kinds), dtype=TIMELINE)
    rows["time_nanos"] = 10**12 + np.arange(len(kinds)) * 1000
    rows["event"] = kinds
    if missed_at is not None:
        rows["missed"][missed_at] = 3
    made = EventTimeline()
    made.extend(np.arange(1, len(kinds) + 1), rows)
    return made


def drawn(
    timeline: EventTimeline, theme: Theme, scale: float = 1.0, off: frozenset[int] = frozenset()
) -> QImage:
    colours = (kind_colour(0, 2, theme), kind_colour(1, 2, theme))
    lanes = Lanes(overview=timeline.overview(WIDTH), hidden={}, colours=colours, off=off)
    return draw_lanes(lanes, theme, 20, scale)


@pytest.mark.parametrize("theme", list(Theme))
@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_one_event_among_a_million_is_seen(qtbot: QtBot, theme: Theme, scale: float) -> None:
    kinds = np.zeros(EVENTS, dtype=np.uint16)
    kinds[654_321] = 1
    image = drawn(timeline_of(kinds), theme, scale)
    assert image.width() == WIDTH * scale
    low = round(15 * scale)
    lit = [x for x in range(image.width()) if image.pixelColor(x, low) == kind_colour(1, 2, theme)]
    assert lit
    assert 654_321 * WIDTH // EVENTS in {int(x / scale) for x in lit}
    assert len(lit) <= 3 * scale


def test_a_lane_that_a_filter_hides_is_paler(qtbot: QtBot) -> None:
    kinds = np.arange(1000, dtype=np.uint16) % 2
    there, hidden = (
        drawn(timeline_of(kinds), Theme.DARK, off=off) for off in (frozenset[int](), frozenset({1}))
    )
    assert there.pixelColor(100, 5) == hidden.pixelColor(100, 5)
    assert there.pixelColor(100, 15).lightness() > hidden.pixelColor(100, 15).lightness()


def test_where_events_were_missed_the_ground_is_hatched(qtbot: QtBot) -> None:
    rows = np.zeros(10, dtype=np.uint16)
    image = drawn(timeline_of(rows, missed_at=5), Theme.DARK)
    warning = tokens(Theme.DARK).warning
    hatched = {
        x for x in range(WIDTH) for y in range(20) if image.pixelColor(x, y).name() == warning
    }
    assert hatched
    assert min(hatched) > 4 * WIDTH // 10
    assert max(hatched) <= 5 * WIDTH // 10 + 1


@pytest.mark.parametrize("theme", list(Theme))
def test_kinds_are_told_apart_from_each_other_and_from_the_ground(
    qtbot: QtBot, theme: Theme
) -> None:
    colours = {kind_colour(kind, 6, theme).name() for kind in range(6)}
    assert len(colours | {tokens(theme).canvas}) == 7
