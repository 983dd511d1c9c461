"""The line above the tiles that says how memory grows: by how much in the last minutes, and mostly what; hidden while nothing grows.

Knows the resident set and the types of each event; `growth_sentence` makes the text.
"""

from __future__ import annotations

from collections import deque

from gcspy_protocol.interpreter import ClientInterpreter, EventChange

from gcspy_client.model.growth_sentence import (
    GrownPart,
    Growth,
    growth_of_types,
    growth_sentence,
)
from gcspy_client.model.memory_history import resident_set
from gcspy_client.model.panels.growth import (
    GrowthLog,
    bytes_measure,
    growing_space,
    growth,
    measures_of,
    total_growth,
)
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["GrowthLine"]

_LEAST_NANOS, _MOST_NANOS = 20 * 10**9, 300 * 10**9
"""Growth over less time is noise; older growth is no longer news."""

_MOST_SAMPLES = 600
_MOST_TYPES = 20
_RENEW_NANOS = 10**9


class GrowthLine(Part):
    """The line.

    Args:
        desk: The window's desk.
        log: The counts of each type at past events.

    Attributes:
        label: Its widget.
    """

    def __init__(self, desk: Desk, log: GrowthLog) -> None:
        super().__init__(desk)
        self._log = log
        self._samples: deque[tuple[int, int]] = deque(maxlen=_MOST_SAMPLES)
        self._identity = ""
        self._told_nanos = 0
        self.label = ElidedLabel()
        self.label.hide()
        desk.updater.applied.connect(self._sample)

    def _sample(self, _change: EventChange) -> None:
        live = self._desk.session.live
        identity = "" if live.welcome is None else live.welcome.session
        if identity != self._identity:
            self._identity, self._told_nanos = identity, 0
            self._samples.clear()
        resident, event = resident_set(live), live.last_event
        if resident is None or event is None or self._desk.session.is_playback:
            return
        now = event.time_nanos
        if self._samples and now - self._samples[-1][0] < _RENEW_NANOS:
            return
        self._samples.append((now, resident))
        while now - self._samples[0][0] > _MOST_NANOS:
            self._samples.popleft()
        self._tell(live)

    def _tell(self, live: ClientInterpreter) -> None:
        (begin, before), (end, now) = self._samples[0], self._samples[-1]
        sentence = ""
        if end - begin >= _LEAST_NANOS:
            secs, grew = (end - begin) / 1e9, now - before
            types = self._types(live, begin)
            growth = (
                Growth(secs=secs, resident=now, grew=grew)
                if types is None
                else growth_of_types(
                    secs=secs, resident=now, grew=grew, types=types[0], total=types[1]
                )
            )
            sentence = growth_sentence(growth)
        self.label.setText(sentence)
        self.label.setVisible(bool(sentence))

    def _types(self, live: ClientInterpreter, begin: int) -> tuple[list[GrownPart], int] | None:
        """Return the growth, in bytes, of the types that grew most and of all types, since a time; None: it is not known."""
        space = growing_space(live)
        samples = [one for one in self._log.samples if one.time_nanos >= begin]
        if space is None or len(samples) < 2 or samples[-1].space != space.space.id:
            return None
        at = bytes_measure(one.name for one in measures_of(space))
        if at is None:
            return None
        first, last = samples[0], samples[-1]
        rows = growth(first, last, space, samples, most=_MOST_TYPES, measure=at)
        grown = [GrownPart(row.name, row.changes[at].grew or 0) for row in rows]
        return grown, total_growth(first, last, samples)[at]
