from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.limits import CLIENT_LIMITS
from numpy.typing import ArrayLike

from gcspy_server.api import Control, ExtentNames, Presentation, Server, StringNames, UniformNames


def server() -> Server:
    return Server("spaces", events=["tick"])


def test_reset_puts_gathered_streams_back_and_leaves_accumulating_ones() -> None:
    space = server().add_space("s", names=UniformNames(0, 8, 3))
    fresh = space.add_stream("fresh", default=7)
    total = space.add_stream("total", accumulates=True)
    fresh.data[:] = 1
    fresh.set_unknown([1])
    total.data[:] = 1
    space.control[:] = Control.UNUSED
    space.reset()
    assert fresh.data.tolist() == [7, 7, 7]
    assert fresh.known is None
    assert total.data.tolist() == [1, 1, 1]
    assert space.control.tolist() == [Control.USED] * 3


def test_reset_of_named_streams_leaves_the_others() -> None:
    space = server().add_space("s", names=UniformNames(0, 8, 2))
    one, other = space.add_stream("one"), space.add_stream("other")
    one.data[:] = 5
    other.data[:] = 5
    space.reset(one)
    assert one.data.tolist() == [0, 0]
    assert other.data.tolist() == [5, 5]


def test_unknown_tiles_add_up_from_masks_and_numbers() -> None:
    stream = server().add_space("s", names=UniformNames(0, 8, 4)).add_stream("x")
    stream.set_unknown(np.array([True, False, False, False]))
    stream.set_unknown([3])
    assert stream.known is not None
    assert stream.known.tolist() == [False, True, True, False]


def test_resize_keeps_values_and_unknowns_with_their_keys() -> None:
    space = server().add_space("s", names=ExtentNames([100, 200, 300], [10, 10, 10]))
    stream = space.add_stream("x", default=-1)
    stream.data[:] = [1, 2, 3]
    stream.set_unknown([2])
    space.control[:] = [1, 4, 9]
    space.resize(ExtentNames([300, 100, 400], [10, 10, 10]))
    assert stream.data.tolist() == [3, 1, -1]
    assert stream.known is not None
    assert stream.known.tolist() == [False, True, True]
    assert space.control.tolist() == [9, 1, 1]


def test_objects_are_counted_where_they_begin_and_spread_where_they_lie() -> None:
    space = server().add_space("s", names=UniformNames(0x100, 0x10, 4))
    count, used, weight = (space.add_stream(name) for name in ("count", "used", "weight"))
    addresses, sizes = [0x100, 0x104, 0x138, 0x90], [4, 0x20, 0x40, 8]
    space.count_at(count, addresses)
    space.spread(used, addresses, sizes)
    space.count_at(weight, addresses, weights=[1, 2, 3, 4])
    assert count.data.tolist() == [2, 0, 0, 1]
    assert used.data.tolist() == [4 + 12, 16, 4, 8]
    assert weight.data.tolist() == [3, 0, 0, 3]


def test_weights_beyond_floating_point_are_exact() -> None:
    space = server().add_space("s", names=UniformNames(0, 16, 1))
    stream = space.add_stream("bytes", dtype="i8")
    space.count_at(stream, [0, 1], weights=[(1 << 53) + 1, 2])
    assert stream.data.tolist() == [(1 << 53) + 3]


def test_counts_stay_at_the_largest_value_instead_of_wrapping() -> None:
    space = server().add_space("s", names=UniformNames(0, 16, 1))
    stream = space.add_stream("few", dtype="u1", maximum=255)
    space.count_at(stream, np.zeros(300, dtype=np.uint64))
    assert stream.data.tolist() == [255]


def test_summaries_have_as_many_numbers_as_their_presentation() -> None:
    space = server().add_space("s", names=UniformNames(0, 16, 1))
    percent = space.add_stream("used", presentation=Presentation.PERCENT)
    with pytest.raises(LocalProtocolError, match="a summary of 1 numbers"):
        percent.set_summary(1)


@pytest.mark.parametrize("discarded", [False, True])
def test_what_was_read_again_is_gathered_with_its_values_unknown_tiles_and_summary(
    discarded: bool,
) -> None:
    one = server()
    space = one.add_space("s", names=UniformNames(0, 16, 3))
    stream, plain = space.add_stream("a", maximum=99), space.add_stream("b", maximum=99)
    one.add_observer(lambda event: None)
    assert one.should_transmit(0)
    space.fill({"a": [1, 2, 3], "b": [4, 5, 6]})
    stream.set_unknown([1])
    stream.set_summary(44, covered=2)
    if discarded:
        one.discard()
    one.finish(0)
    for _ in range(2):
        assert one.should_transmit(0)
        gathered = [stream.gathered]
        space.repeat()
        gathered.append(stream.gathered)
        assert gathered == [False, True]
        assert stream._summary == ((44,), 2)
        assert plain._summary is None
        assert stream.known is not None
        assert stream.known.tolist() == [True, False, True]
        assert plain.known is None
        assert plain.data.tolist() == [4, 5, 6]
        one.finish(0)
        sent = one._core._senders[space.id].encoders[0]
        assert sent.values[[0, 2]].tolist() == [1, 3]
    assert one.should_transmit(0)
    stream.set([7, 8, 9])
    one.finish(0)
    assert one.should_transmit(0)
    space.repeat()
    assert stream._summary is None
    one.finish(0)


def test_a_stream_after_the_first_event_is_refused() -> None:
    one = server()
    space = one.add_space("s", names=UniformNames(0, 16, 1))
    one.add_observer(lambda event: None)
    assert one.should_transmit(0)
    one.finish(0)
    with pytest.raises(LocalProtocolError, match="add all streams first"):
        space.add_stream("late")


def test_tiles_named_by_texts_are_filled_by_number() -> None:
    space = server().add_space("classes", names=StringNames(["16", "32"]))
    with pytest.raises(LocalProtocolError, match="by tile number"):
        space.tiles_of([1])


def test_a_space_of_another_server_cannot_be_removed() -> None:
    space = server().add_space("s", names=UniformNames(0, 16, 1))
    with pytest.raises(LocalProtocolError, match="not belong to this server"):
        server().remove_space(space)


def test_kinds_of_event_have_their_place_as_number() -> None:
    with pytest.raises(LocalProtocolError, match="0 kinds"):
        Server("x", events=[])


def test_a_space_has_as_many_streams_as_a_client_takes() -> None:
    space = server().add_space("s", names=UniformNames(0, 8, 1))
    for number in range(CLIENT_LIMITS.streams):
        space.add_stream(f"stream {number}")
    with pytest.raises(LocalProtocolError, match="more than 512 streams"):
        space.add_stream("one too many")


@pytest.mark.parametrize("given", [[1, -7, 3], [1, 300, 3], 300, [1.0, 255.6, 3.0]])
def test_values_outside_of_the_declared_range_are_refused_by_name(given: ArrayLike) -> None:
    space = server().add_space("s", names=UniformNames(0, 8, 3))
    space.add_stream("x", dtype="u1", minimum=0, maximum=255)
    with pytest.raises(LocalProtocolError, match=r"'s'.*'x'"):
        space.fill({"x": given})
