"""Curves: each stream of one unit, at the height of its values, and nothing where they are not known."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession

from gcspy_client.model.renderers.curves import curve_rows
from gcspy_server.api import Event, ServerSpace


def test_a_curve_goes_through_its_points_and_ends_where_a_value_is_unknown() -> None:
    rows = curve_rows(np.array([0.0, 1.0, np.nan, 0.5, 0.5]), np.array([0, 10, 20, 30, 40]), 101)
    assert rows[[0, 5, 10]].tolist() == [100, 50, 0]
    assert np.isnan(rows[11:30]).all()
    assert (rows[30:] == 50).all()


@pytest.mark.parametrize("pauses", [False, True])
def test_two_collectors_are_two_streams_of_one_space_with_their_costs(pauses: bool) -> None:
    session = SimulatorSession(
        SimulationOptions(
            collector="marksweep", beside="incremental", program="gcold", heap_bytes=64 << 10, pace_millis=0, steps=60
        )
    )  # fmt: skip

    def space(name: str) -> ServerSpace:
        return next(one for one in session.server.spaces if one.name == name)

    seen: list[bool] = []

    def look(_: Event) -> None:
        both = space("Both: pauses" if pauses else "Both: utilisation")
        for prefix, stream in zip(("", "incremental: "), both.streams, strict=True):
            alone = space(f"{prefix}{'Pauses' if pauses else 'Utilisation'}").streams[0]
            if pauses:
                seen.append(stream._values.max() >= alone._values.max())
            else:
                seen.append(np.array_equal(stream._values, alone._values))

    session.server.add_observer(look)
    session.run(threading.Event())
    assert len(seen) > 10
    assert all(seen)
