"""Values that could not be read are unknown, and none of them is left to be taken for a value."""

from __future__ import annotations

import numpy as np
from gcspy_drivers.kit.streams import add_count, hide, hide_all, show_names

from gcspy_server.api import Server, UniformNames


def test_tiles_that_could_not_be_read_are_unknown_and_cleared() -> None:
    space = Server("made", events=("Tick",)).add_space("Heap", names=UniformNames(0, 16, 4))
    streams = [add_count(space, name, most=9, order=0) for name in ("One", "Two")]
    for stream in streams:
        stream.data[:] = [1, 2, 3, 4]
    hide(streams, np.zeros(4, dtype=np.bool_))
    assert [stream.known for stream in streams] == [None, None]
    hide(streams, np.array([False, True, False, True]))
    for stream in streams:
        assert stream.known is not None
        assert stream.known.tolist() == [True, False, True, False]
        assert stream.data.tolist() == [1, 0, 3, 0]
    hide_all([streams[0], None])
    assert streams[0].known is not None
    assert streams[1].known is not None
    assert not streams[0].known.any()
    assert streams[1].known.tolist() == [True, False, True, False]


def test_a_space_is_resized_for_other_names_only() -> None:
    names = UniformNames(0, 16, 4)
    space = Server("made", events=("Tick",)).add_space("Heap", names=names)
    stream = add_count(space, "One", most=9, order=0)
    before = stream.data
    show_names(space, names)
    assert stream.data is before
    show_names(space, UniformNames(0, 16, 5))
    assert len(stream.data) == 5
