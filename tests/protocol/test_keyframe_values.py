"""Values between the tiles and the values of a keyframe: unknown to readers, and made only for them."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.interpreter import ClientInterpreter, StreamState
from gcspy_protocol.model import EventKind, Mode, Naming, PauseActsOn, Space, Stream
from gcspy_protocol.streams.remap import Remap
from hypothesis import given
from hypothesis import strategies as st

NONE = np.empty(0, dtype="<u4")


def tiles(count: int) -> m.Tiles:
    return m.Tiles(
        space=1,
        count=count,
        old_starts=NONE,
        new_starts=NONE,
        lengths=NONE,
        naming=Naming.UNIFORM,
        base=0,
        tile_bytes=16,
    )


def key(values: list[int], known: list[bool] | None = None) -> m.StreamKey:
    return m.StreamKey(
        space=1, stream=0, sequence=1, time_nanos=1, event=0, occurrence=1, values=np.array(values, dtype="<i4"),
        known=None if known is None else np.array(known),
    )  # fmt: skip


def client(default: int = -1) -> ClientInterpreter:
    made = ClientInterpreter()
    streams = (Stream(id=0, name="Used", dtype="i4", default=default, minimum=-1),)
    made.apply(
        m.Welcome(server="s", session="x", client_id=1, controller=True, mode=Mode.PASSIVE,
                  pause_acts_on=PauseActsOn.SAMPLING, events=(EventKind(id=0, name="e"),))
    )  # fmt: skip
    made.apply(m.SpaceDefined(space=Space(id=1, name="Heap", streams=streams)))
    return made


def used(of: ClientInterpreter) -> StreamState:
    return of.spaces[1].streams[0]


def test_after_the_tiles_of_a_keyframe_everything_is_unknown() -> None:
    made = client()
    for count in (3, 3, 5):
        made.apply(tiles(count))
        state = used(made)
        assert state.known is not None
        assert state.known.tolist() == [False] * count
        assert state.values.tolist() == [-1] * count
        assert not state.is_known(0)
        made.apply(key(list(range(count))))
        assert used(made).known is None
        assert state.values.tolist() == list(range(count))


def test_a_stream_that_a_keyframe_does_not_bring_is_not_what_it_was() -> None:
    made = client()
    made.apply(tiles(3))
    made.apply(key([1, 2, 3]))
    made.apply(tiles(3))
    assert used(made).values.tolist() == [-1] * 3
    assert not used(made).is_known(1)


@given(st.lists(st.booleans(), max_size=8), st.lists(st.integers(0, 5), max_size=8))
def test_looking_in_between_changes_nothing(looks: list[bool], counts: list[int]) -> None:
    looked, left_alone = client(), client()
    for look, count in zip(looks, counts, strict=False):
        for one in (looked, left_alone):
            one.apply(tiles(count))
        if look:
            assert len(used(looked).values) == count
            assert used(looked).known is None or count
        known = [i % 2 == 0 for i in range(count)]
        for one in (looked, left_alone):
            one.apply(key(list(range(count)), known))
        for state in (used(looked), used(left_alone)):
            assert state.values.tolist() == list(range(count))
            assert state.known is not None
            assert state.known.tolist() == known


def test_values_of_another_count_or_type_are_refused_before_anybody_looked() -> None:
    made = client()
    made.apply(tiles(3))
    with pytest.raises(RemoteProtocolError, match="values of 2 tiles, the space has 3"):
        made.apply(key([1, 2]))
    assert used(made).values.tolist() == [-1] * 3


def test_values_are_copied_from_the_message() -> None:
    made = client()
    made.apply(tiles(3))
    message = key([1, 2, 3])
    made.apply(message)
    message.values[:] = 9
    assert used(made).values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("default", [0, 7])
def test_new_tiles_have_the_default(default: int) -> None:
    remap = Remap(np.array([1], "<u4"), np.array([2], "<u4"), np.array([2], "<u4"), 5)
    assert remap.values(np.array([10, 11, 12]), default).tolist() == [
        default,
        default,
        11,
        12,
        default,
    ]
    none = Remap(NONE, NONE, NONE, 4)
    assert none.values(np.array([10, 11, 12]), default).tolist() == [default] * 4
    known = none.known(None)
    assert known is not None
    assert known.tolist() == [False] * 4
