"""A copy that is kept in step by patches is the space itself, whatever happens."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.renderers.mirror import merged, patch_of
from tests.client.model.changing import Changing

keys = st.lists(st.integers(0, 40), min_size=1, max_size=25, unique=True)


@given(keys, st.data())
def test_a_copy_that_is_patched_is_the_space(first: list[int], data: st.DataObject) -> None:
    changing = Changing()
    changing.event({key: data.draw(st.integers(0, 249)) for key in first})
    twin = changing.space.copy()
    for _ in range(data.draw(st.integers(1, 6))):
        now = changing.keys
        wanted = data.draw(st.one_of(st.just(now), keys))
        values = {key: data.draw(st.integers(0, 249)) for key in wanted}
        change = changing.event(
            values, gathered=data.draw(st.booleans()), delta=data.draw(st.booleans())
        )
        twin = patch_of(changing.space, change).apply(twin)
        assert twin is not changing.space
        assert twin.count == changing.space.count
        for number, stream in (*changing.space.streams.items(), (255, changing.space.control)):
            other = twin.control if number == 255 else twin.streams[number]
            assert np.array_equal(other.values, stream.values)
            assert other.values is not stream.values
            assert (other.known is None) == (stream.known is None)
            if stream.known is not None:
                assert other.known is not None
                assert np.array_equal(other.known, stream.known)
            assert (other.sequence, other.occurrence) == (stream.sequence, stream.occurrence)
        assert [twin.names.key(i) for i in range(twin.count)] == changing.keys


def test_several_events_are_one_with_the_changes_of_all() -> None:
    changing = Changing()
    changing.event({1: 1, 2: 2, 3: 3})
    one = changing.event({1: 9, 2: 2, 3: 3}, delta=True)
    two = changing.event({1: 9, 2: 2, 3: 8}, delta=True)
    both = merged([one, two], 1)
    assert both.event == two.event
    found = both.changed[1, 0]
    assert found is not None
    assert found.tolist() == [0, 2]
    whole = changing.event({1: 9, 2: 2, 3: 8})
    assert merged([one, whole], 1).changed[1, 0] is None
    assert merged([one], 1) is one
