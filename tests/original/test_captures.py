"""The captures are read with no byte left over, written again identically, and mean what their own texts say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from gcspy_original.wire import (
    Bootstrap,
    ClientGreeting,
    Connection,
    Event,
    EventCounts,
    Message,
    ServerGreeting,
    Shutdown,
    ShutdownRequest,
    Side,
    SpaceAdded,
    SpaceChanged,
    SpaceInfo,
    StreamValues,
    Summary,
    encode,
)
from gcspy_original.wire.tile_names import addresses_of

from tests.original.captures import EVENTS, NAMES, of_client, of_server


def _read(data: bytes, side: Side, step: int | None = None) -> list[Message]:
    connection = Connection(side, events=2)
    found: list[Message] = []
    for start in range(0, len(data), step or max(1, len(data))):
        connection.receive_data(data[start : start + (step or len(data))])
        found += connection.messages()
    connection.receive_eof()
    assert connection.offset == len(data)
    assert not connection.held_bytes
    return found


@pytest.mark.parametrize("name", NAMES)
def test_no_byte_is_left_over_and_all_are_written_again(name: str) -> None:
    server = _read(of_server(name), Side.SERVER)
    assert b"".join(map(encode, server)) == of_server(name)
    client = _read(of_client(name), Side.CLIENT)
    assert b"".join(map(encode, client)) == of_client(name)
    assert isinstance(client[0], ClientGreeting)
    assert client[1:] == ([] if name == "terminal" else [ShutdownRequest()])
    assert sum(isinstance(one, Event) for one in server) == EVENTS[name]
    assert isinstance(server[-1], Shutdown) == (name != "terminal")


@pytest.mark.parametrize("step", [1, 3, 1000, 65_536])
def test_any_cutting_gives_the_same_messages(step: int) -> None:
    data = of_server("store")[: 40_000 if step == 1 else None]
    if step == 1:  # byte by byte, up to a frame's end
        whole = Connection(Side.SERVER)
        whole.receive_data(data)
        found = list(whole.messages())
        data = data[: whole.offset]
    else:
        found = _read(data, Side.SERVER)
    again = _read(data, Side.SERVER, step)
    assert list(map(encode, again)) == list(map(encode, found))


def test_the_description_is_the_test_servers() -> None:
    greeting, bootstrap, image, main, *_ = _read(of_server("gui"), Side.SERVER)
    assert greeting == ServerGreeting(name="GCSPY@DUMMY")
    assert isinstance(bootstrap, Bootstrap)
    assert bootstrap.spaces == 2
    assert bootstrap.events == ("Start GC", "End GC")
    assert "Dummy Driver Test" in bootstrap.general_info
    assert isinstance(image, SpaceAdded)
    assert isinstance(main, SpaceAdded)
    assert (image.space.name, image.space.tiles, image.space.main) == ("Image Space", 192, False)
    assert (main.space.name, main.space.driver, main.space.main) == (
        "Main Space",
        "RosAlloc Driver",
        True,
    )
    assert main.space.unused_text == "NOT USED"
    assert main.space.block_info == "Block Size: 32K\n"
    assert [(one.name, one.dtype, one.presentation) for one in main.space.streams] == [
        ("Used Space", "i4", 3),
        ("Card Table", "i1", 5),
        ("Roots", "i2", 1),
        ("Marking", "i4", 1),
    ]
    assert main.space.streams[1].enum_names == ("DIRTY", "SUMMARISED", "CLEAN")
    assert main.space.streams[0].colour == (0, 0, 255)


@pytest.mark.parametrize("name", NAMES)
def test_values_agree_with_what_the_server_says_of_them(name: str) -> None:
    """Summaries, texts and tile names are computed by the original independently of the values."""
    spaces = {}
    values = {}
    checked = 0
    counts = None
    for message in _read(of_server(name), Side.SERVER):
        match message:
            case SpaceAdded() | SpaceChanged():
                spaces[message.space.id] = message.space
            case StreamValues():
                values[message.space, message.stream] = message.values
            case Summary():
                stream = spaces[message.space].stream(message.stream)
                found = values[message.space, message.stream]
                assert stream is not None
                if stream.presentation == 5:
                    told = np.bincount(found, minlength=3)
                    assert message.values[2] > 0
                    # The test server says fixed numbers for its two rare names.
                    assert len(told) == len(message.values)
                elif message.stream == 0 and message.space == 0:
                    extents = addresses_of(spaces[0].names)
                    assert extents is not None
                    assert message.values[1] == int(extents[1].sum())
                    assert message.values[0] <= message.values[1]
                    checked += 1
                elif stream.presentation == 1:
                    assert len(message.values) == 1
            case SpaceInfo():
                size = re.search(r"\(([\d,]+) bytes\)", message.text)
                extents = addresses_of(spaces[message.space].names)
                assert size is not None
                assert extents is not None
                assert int(size[1].replace(",", "")) == int(extents[1].sum())
                checked += 1
            case EventCounts():
                if counts is not None:
                    assert sum(message.counts) == sum(counts) + 1
                counts = message.counts
            case Event():
                assert 0 <= message.compensation_millis <= message.elapsed_millis
    assert checked >= 3 * EVENTS[name]
