from __future__ import annotations

import numpy as np
from gcspy_protocol.model import Control, Presentation, Stream
from gcspy_protocol.streams.values import Stamp
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.api import Server, UniformNames
from gcspy_server.interpreter.summaries import counted_tiles, exact_sum, summary_of
from gcspy_server.interpreter.transmission import SpaceSender


@given(st.sampled_from(["i1", "u2", "i4", "u4", "i8", "u8"]), st.data())
def test_sums_do_not_wrap(dtype: str, data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    values = data.draw(st.lists(st.integers(int(info.min), int(info.max)), max_size=10))
    limit = (1 << 63) - 1
    assert exact_sum(np.array(values, dtype=dtype)) == max(-limit, min(limit, sum(values)))


@given(
    dtype=st.sampled_from(["i4", "u4"]),
    count=st.integers(4096, 9001),
    largest=st.sampled_from(
        [0, 1, 255, 4096, (1 << 20) - 1, (1 << 23) - 1, (1 << 23), (1 << 31) - 1, (1 << 32) - 1]
    ),
    lowest=st.sampled_from([0, -1, -(1 << 31)]),
    seed=st.integers(0, 99),
)
def test_long_sums_are_exact_however_they_are_made(
    dtype: str, count: int, largest: int, lowest: int, seed: int
) -> None:
    info = np.iinfo(dtype)
    low, high = max(lowest, int(info.min)), min(largest, int(info.max))
    values = (
        np.random.default_rng(seed)
        .integers(low, high, count, dtype=np.int64, endpoint=True)
        .astype(dtype)
    )
    values[: count // 2] = high  # the worst case for carries
    assert exact_sum(values) == sum(values.tolist())


def test_tiles_that_are_not_used_or_not_known_do_not_count() -> None:
    control = np.array(
        [Control.USED, Control.UNUSED, Control.USED | Control.LINK, Control.BACKGROUND],
        dtype=np.uint8,
    )
    counted = counted_tiles(control, None)
    assert counted is not None
    assert counted.tolist() == [True, False, True, False]
    counted = counted_tiles(control, np.array([False, True, True, True]))
    assert counted is not None
    assert counted.tolist() == [False, False, True, False]


def test_when_every_tile_is_used_and_known_no_mask_is_made() -> None:
    assert counted_tiles(np.full(4, Control.USED | Control.SEPARATOR, dtype=np.uint8), None) is None
    assert counted_tiles(np.empty(0, dtype=np.uint8), None) is None


def test_each_presentation_has_its_summary() -> None:
    values = np.array([1, 2, 2, 9], dtype=np.int32)
    counted = np.array([True, True, True, False])
    plain = Stream(id=0, name="x")
    percent = Stream(id=0, name="x", maximum=50, presentation=Presentation.PERCENT)
    of_other = Stream(id=0, name="x", presentation=Presentation.PERCENT_VAR, max_stream=1)
    enum = Stream(
        id=0, name="x", presentation=Presentation.ENUM, enum_names=("a", "b", "c"), maximum=2
    )
    assert summary_of(plain, values, counted, None) == ((5,), 3)
    assert summary_of(plain, values, None, None) == ((14,), 4)
    assert summary_of(percent, values, counted, None) == ((5, 150), 3)
    assert summary_of(of_other, values, counted, np.array([10, 20, 30, 40])) == ((5, 60), 3)
    assert summary_of(enum, values, counted, None) == ((0, 1, 2), 3)


def test_of_a_share_of_what_is_unknown_there_is_no_summary() -> None:
    server = Server("s", events=["Clock"])
    space = server.add_space("Generations", names=UniformNames(0, 1, 4))
    examined = space.add_stream("Examined", maximum=1000)
    survivors = space.add_stream(
        "Survivors", presentation=Presentation.PERCENT_VAR, max_stream=examined
    )
    survivors.data[:], examined.data[:] = [1, 2, 3, 4], [0, 20, 30, 40]
    stamp = Stamp(sequence=1, time_nanos=1, event=0, occurrence=1)

    def summary() -> tuple[tuple[int, ...], int]:
        found = SpaceSender(space).summary(survivors.schema.id, stamp)
        return found.values, found.covered

    assert summary() == ((10, 90), 4)
    examined.set_unknown(np.array([True, False, False, False]))
    assert summary() == ((9, 90), 3)
    survivors.set_unknown(np.array([False, False, False, True]))
    assert summary() == ((5, 50), 2)
    space.control[1] = 0
    assert summary() == ((3, 30), 1)
    examined.set_unknown(np.ones(4, dtype=bool))
    assert summary()[1] == 0, "whatever the sum is, it covers nothing"
