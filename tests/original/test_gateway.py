"""A visualiser of GCspy 1.0 watches a session of ours: what it reads, what it may do, and that it harms nobody."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_original import wire
from gcspy_original.wire import encode
from gcspy_protocol import messages as m
from gcspy_protocol.errors import CommandError
from gcspy_protocol.model import Control

from gcspy.hosts.original_gateway import OriginalGateway, original_gateway
from gcspy_server.api import (
    Presentation,
    Server,
    ServerSpace,
    ServerStream,
    StringNames,
    UniformNames,
)
from tests.original.live import session
from tests.original.visualiser import CLIENT_BUFFER_BYTES, Visualiser
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS, wait_until


class Target:
    """A session of ours with one space, whose events a test makes."""

    def __init__(self) -> None:
        self.server = Server("Ours", events=["A", "B"], general_info="Some words.")
        self.space: ServerSpace = self.server.add_space("S", names=UniformNames(0, 16, 4))
        self.used = self.space.add_stream(
            "Used", dtype="u8", maximum=1 << 40, presentation=Presentation.PERCENT, suffix=" bytes"
        )
        self.count = self.space.add_stream("Count", dtype="i4", maximum=9)

    def gathers(self) -> bool:
        """Let an event happen; return whether anybody wants its values."""
        request = self.server.should_transmit(0)
        wanted = request is not None and request.wants(self.space)
        if wanted:
            self.space.reset()
        self.server.finish(0)
        return wanted

    def happen(self, value: int, event: int = 0) -> None:
        request = self.server.should_transmit(event)
        if request is not None:
            self.space.reset()
            self.used.data[:] = [0, 1, value, 1 << 40]
            self.count.data[:] = value
            self.count.set_unknown([3])
        self.server.finish(event)


@contextmanager
def served(folder: Path) -> Iterator[tuple[Target, OriginalGateway]]:
    target = Target()
    with target.server.serve(f"unix:{folder}/s.sock") as listening:
        gateway = OriginalGateway(listening.addresses[0], 0)
        try:
            yield target, gateway
        finally:
            gateway.close()


def test_a_visualiser_sees_scaled_values_and_unknown_ones_as_unused(tmp_path: Path) -> None:
    with served(tmp_path) as (target, gateway):
        viewer = Visualiser(gateway.port)
        assert target.server.wait_for_client(PATIENCE_SECS)
        target.happen(5)
        viewer.until(wire.Event)
        space = viewer.wire.spaces[0]
        assert [one.name for one in space.streams] == ["Used", "Count"]
        assert space.streams[0].suffix == " KiB"
        assert space.streams[0].maximum == 1 << 30
        assert viewer.values(0) == [0, 1, 1, 1 << 30]
        assert viewer.values(1)[:3] == [5, 5, 5]
        control = [one for one in viewer.messages if isinstance(one, wire.ControlValues)][-1]
        assert control.values.tolist() == [1, 1, 1, 4]
        assert space.unused_text == "unused or unknown"
        assert viewer.wire.general_info == "Some words."
        viewer.leave()


def test_its_requests_act_on_the_session_and_its_leave_lets_go(tmp_path: Path) -> None:
    with served(tmp_path) as (target, gateway):
        viewer = Visualiser(gateway.port)
        assert target.server.wait_for_client(PATIENCE_SECS)
        target.happen(1)
        viewer.until(wire.Event)
        viewer.send(wire.PauseRequest())
        wait_until(lambda: target.server.pausing)
        viewer.send(wire.Restart())
        wait_until(lambda: not target.server.pausing)
        off = wire.EventFilter(enabled=False)
        viewer.send(wire.EventFilters(filters=(off, wire.EventFilter())))
        viewer.send(wire.PauseRequest())  # behind the filters: they are in force when it is seen
        wait_until(lambda: target.server.pausing)
        viewer.send(wire.Restart())
        wait_until(lambda: not target.server.pausing)
        target.happen(2)
        target.happen(3, event=1)
        viewer.until(wire.Event, 2)
        events = [one.event for one in viewer.messages if isinstance(one, wire.Event)]
        assert events == [0, 1]
        assert viewer.values(1)[0] == 3
        stops = wire.EventFilter(pause=True)
        viewer.send(wire.EventFilters(filters=(stops, stops)))
        viewer.send(wire.PauseRequest())
        wait_until(lambda: target.server.pausing)
        viewer.send(wire.Restart())
        wait_until(lambda: not target.server.pausing)
        target.happen(4)
        wait_until(lambda: target.server.pausing)  # the next event is the last one
        viewer.send(wire.Restart())
        wait_until(lambda: not target.server.pausing)
        viewer.leave()
        wait_until(lambda: not target.server.wait_for_client(0))


def test_a_second_visualiser_is_refused_and_a_rude_one_does_no_harm(tmp_path: Path) -> None:
    with served(tmp_path) as (target, gateway):
        first = Visualiser(gateway.port)
        assert target.server.wait_for_client(PATIENCE_SECS)
        with socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_SECS) as second:
            assert second.recv(1) == b""
        target.happen(1)
        first.until(wire.Event)
        # With a reset, and data unread.
        first.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        first.socket.close()
        wait_until(lambda: not target.server.wait_for_client(0))
        for said in (b"GET / HTTP/1.0\r\n\r\n", encode(wire.ClientGreeting()) + b"\0\0\0\4abcd"):
            with socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_SECS) as rude:
                rude.sendall(said)
                while rude.recv(1 << 16):
                    pass
        last = Visualiser(gateway.port)
        assert target.server.wait_for_client(PATIENCE_SECS)
        target.happen(2)
        last.until(wire.Event)
        last.leave()


def test_our_driver_is_a_client_of_our_gateway(tmp_path: Path) -> None:
    """Both directions over real sockets, back to back: no event is lost or kept back, and a pause goes through both."""
    with served(tmp_path) as (target, gateway):
        # The gateway describes a session with its first event.
        held = Visualiser(gateway.port)
        assert target.server.wait_for_client(PATIENCE_SECS)
        target.happen(1)
        held.until(wire.Event)
        held.leave()
        wait_until(lambda: not target.server.wait_for_client(0))
        folder = tmp_path / "there"
        folder.mkdir()
        with session(f"gcspy666://127.0.0.1:{gateway.port}", folder) as (there, viewer):
            # Without a viewer its filters were off, and the pause comes behind those that are on.
            viewer.send(m.Pause())
            wait_until(lambda: target.server.pausing)
            viewer.send(m.Resume())
            wait_until(lambda: not there.pausing)
            for value in range(2, 7):
                target.happen(value)  # the first one is held until the word to resume has come
                viewer.until(partial(_shows, viewer, value))
            (space,) = viewer.state.spaces.values()
            used, _ = space.streams.values()
            assert np.asarray(used.values).tolist() == [0, 1, 1, 1 << 30]
            assert space.control.values.tolist() == [1, 1, 1, 4]
            assert viewer.state.welcome is not None
            assert viewer.state.welcome.server == "Ours"


def _shows(viewer: Viewer, value: int) -> bool:
    if not viewer.changes:
        return False
    (space,) = viewer.state.spaces.values()
    _, count = space.streams.values()
    return bool((count.values[:3] == value).all())


def test_who_wants_no_event_has_none_gathered(tmp_path: Path) -> None:
    with served(tmp_path) as (target, gateway):
        viewer = Visualiser(gateway.port)
        assert target.server.wait_for_client(PATIENCE_SECS)
        target.happen(1)
        viewer.until(wire.Event)
        off = wire.EventFilter(enabled=False)
        viewer.send(wire.EventFilters(filters=(off, off)))
        wait_until(lambda: not target.gathers(), rest_secs=0.02)
        assert not target.gathers()
        viewer.send(wire.EventFilters(filters=(wire.EventFilter(), off)))
        wait_until(target.gathers, rest_secs=0.02)
        target.happen(77)
        while viewer.values(1)[0] != 77:
            assert viewer.read()
        viewer.leave()


def test_a_step_goes_on_until_its_filters_pass_an_event(tmp_path: Path) -> None:
    """And it is told by the event alone, as the original does."""
    with served(tmp_path) as (target, gateway):
        viewer = Visualiser(gateway.port, pause_at_start=True)
        assert target.server.wait_for_client(PATIENCE_SECS)

        def run() -> None:
            for value in range(1, 6):
                target.happen(value, event=value % 2)

        with ThreadPoolExecutor(1) as program:
            ran = program.submit(run)
            viewer.until(wire.Paused)
            assert viewer.values(1)[0] == 1
            viewer.send(
                wire.EventFilters(filters=(wire.EventFilter(enabled=False), wire.EventFilter()))
            )
            for value in (3, 5):  # the events before them are hidden
                viewer.send(wire.PlayOne())
                before = viewer.count(wire.Event)
                viewer.until(wire.Event, before + 1)
                assert viewer.values(1)[0] == value
            assert viewer.count(wire.Paused) == 1
            viewer.send(wire.Restart())
            ran.result(PATIENCE_SECS)
        viewer.leave()


@contextmanager
def watched(server: Server, folder: Path) -> Iterator[Visualiser]:
    """A visualiser of a session of one's own."""
    with server.serve(f"unix:{folder}/w.sock") as listening:
        gateway = OriginalGateway(listening.addresses[0], 0)
        try:
            viewer = Visualiser(gateway.port)
            assert server.wait_for_client(PATIENCE_SECS)
            yield viewer
            viewer.leave()
        finally:
            gateway.close()


def happen(server: Server, *filled: tuple[ServerStream, Any], space: ServerSpace) -> None:
    """One event, with these values of a space's streams."""
    assert server.should_transmit(0) is not None
    space.reset()
    for stream, values in filled:
        stream.data[:] = values
    server.finish(0)


def test_a_large_space_is_binned_and_every_frame_fits(tmp_path: Path) -> None:
    tiles = 150_001  # of which three are one
    server = Server("Large", events=["A"])
    space = server.add_space("Heap", names=UniformNames(0x7F00_0000_0000, 4096, tiles))
    added = space.add_stream(
        "Used", dtype="u4", maximum=4096, presentation=Presentation.PERCENT, suffix=" bytes"
    )
    most = space.add_stream("Age", dtype="u1", maximum=255)
    further = [space.add_stream(f"s{n}", dtype="u8", maximum=1 << 50) for n in range(20)]
    with watched(server, tmp_path) as viewer:
        used = np.arange(tiles) % 4097
        happen(
            server,
            (added, used),
            (most, np.arange(tiles) % 7),
            *((one, 1 << 50) for one in further),
            space=space,
        )
        viewer.until(wire.Event)
        (found,) = viewer.wire.spaces.values()
        assert found.tiles == 50_001
        assert "3 neighbouring tiles are shown as one: the space has 150,001" in found.block_info
        assert viewer.values(0) == np.add.reduceat(used, range(0, tiles, 3)).tolist()
        assert found.streams[0].maximum == 3 * 4096
        assert set(viewer.values(1)) <= set(range(7))
        assert viewer.values(1)[0] == 2  # the greatest of 0, 1, 2
        assert found.names.startswith(b"[0x7f0000000000-0x7f0000003000)\0")
        assert found.names.endswith(b"[0x7f00249f0000-0x7f00249f1000)\0")
        assert viewer.largest <= CLIENT_BUFFER_BYTES


def test_a_space_full_of_long_texts_fits_a_frame(tmp_path: Path) -> None:
    server = Server("Texts", events=["A"])
    tiles = 20_000
    names = StringNames.by_text([f"{n} {'x' * 100}" for n in range(tiles)])
    space = server.add_space("Texts", names=names)
    streams = [
        space.add_stream(
            f"s{n}",
            dtype="u1",
            maximum=99,
            presentation=Presentation.ENUM,
            enum_names=tuple(f"{n} {k} {'y' * 200}" for k in range(100)),
        )
        for n in range(40)
    ]
    with watched(server, tmp_path) as viewer:
        events, texts = 0, b""
        while b"x" not in texts[-20:]:  # they come in pages
            happen(server, *((one, 99) for one in streams[: 2 if events else 40]), space=space)
            events += 1
            viewer.until(wire.Event, events)
            (found,) = viewer.wire.spaces.values()
            texts = found.names
        assert found.tiles == tiles
        assert texts.startswith(b"0 xxxx")
        assert len(found.streams) == 40
        assert found.streams[7].enum_names[3].startswith("7 3 y")
        assert viewer.values(0) == [99] * tiles
        assert 2 << 20 < viewer.largest <= CLIENT_BUFFER_BYTES


def test_categories_become_names(tmp_path: Path) -> None:
    server = Server("Names", events=["A"])
    types = server.add_space("Types", names=StringNames.by_text(["list", "dict", "None"]))
    types.add_stream("Objects", dtype="u4")
    space = server.add_space("Heap", names=UniformNames(0, 16, 4))
    largest = space.add_stream("Largest type", dtype="i4", names_from=types.id)
    with watched(server, tmp_path) as viewer:
        request = server.should_transmit(0)
        assert request is not None
        space.reset()
        largest.data[:] = [1, 0, 1, 2]
        largest.set_unknown([3])
        server.finish(0)
        viewer.until(wire.Event)
        (stream,) = viewer.wire.spaces[1].streams
        assert stream.presentation == Presentation.ENUM
        shown = [stream.enum_names[value] for value in viewer.values(0, space=1)]
        assert shown[:3] == ["dict", "list", "dict"]
        control = [
            one for one in viewer.messages if isinstance(one, wire.ControlValues) and one.space == 1
        ][-1]
        assert control.values[3] & Control.UNUSED
        assert viewer.wire.spaces[1].unused_text.endswith("unknown")


def test_spaces_that_come_late_are_named_and_those_that_go_are_empty(tmp_path: Path) -> None:
    server = Server("Late", events=["A"])
    first = server.add_space("First", names=UniformNames(0, 16, 2))
    count = first.add_stream("Count", dtype="i4", maximum=9)
    second = server.add_space("Second", names=UniformNames(0, 16, 2))
    other = second.add_stream("Count", dtype="i4", maximum=9)
    with watched(server, tmp_path) as viewer:
        assert server.should_transmit(0) is not None
        first.reset()
        second.reset()
        count.data[:] = 1
        other.data[:] = 2
        server.finish(0)
        viewer.until(wire.Event)
        assert [one.name for one in viewer.wire.spaces.values()] == ["First", "Second"]
        server.remove_space(second)
        late = server.add_space("Late one", names=UniformNames(0, 16, 3))
        late.add_stream("Count", dtype="i4", maximum=9)
        happen(server, (count, 3), space=first)
        viewer.until(wire.Event, 2)
        assert viewer.wire.spaces[1].tiles == 0
        assert viewer.info(1) == "removed"
        assert viewer.info(0).endswith("none after its greeting: Late one")
        assert viewer.values(0) == [3, 3]
        again = server.add_space("Second", names=UniformNames(0, 16, 5))
        back = again.add_stream("Count", dtype="i4", maximum=9)
        happen(server, (back, 4), space=again)
        viewer.until(wire.Event, 3)
        assert viewer.wire.spaces[1].tiles == 5
        assert viewer.values(0, space=1) == [4] * 5
        assert viewer.info(1) == ""


def test_more_spaces_than_its_numbers_are_named(tmp_path: Path) -> None:
    server = Server("Many", events=["A"])
    spaces = [server.add_space(f"space {n}", names=UniformNames(0, 16, 1)) for n in range(130)]
    streams = [one.add_stream("Count", dtype="i4", maximum=9) for one in spaces]
    with watched(server, tmp_path) as viewer:
        happen(server, (streams[0], 1), space=spaces[0])
        viewer.until(wire.Event)
        assert len(viewer.wire.spaces) == 128
        assert viewer.info(0).endswith("greeting: space 128, space 129")


def test_only_this_machine_reaches_it_and_leaving_needs_no_event(tmp_path: Path) -> None:
    with served(tmp_path) as (target, gateway):
        assert gateway._listening.getsockname() == ("127.0.0.1", gateway.port)
        viewer = Visualiser(gateway.port)
        assert target.server.wait_for_client(PATIENCE_SECS)
        target.happen(1)
        viewer.until(wire.Event)
        viewer.leave()  # nothing happens meanwhile: the original would wait for an event
        assert viewer.count(wire.Event) == 1


def test_the_end_of_the_session_says_goodbye(tmp_path: Path) -> None:
    target = Target()
    with target.server.serve(f"unix:{tmp_path}/s.sock") as listening:
        gateway = OriginalGateway(listening.addresses[0], 0)
        viewer = Visualiser(gateway.port)
        assert target.server.wait_for_client(PATIENCE_SECS)
        target.happen(1)
        viewer.until(wire.Event)
    viewer.until(wire.Shutdown)
    viewer.socket.close()
    gateway.close()


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(CommandError, match=f"cannot listen on 127.0.0.1:{port}"),
            original_gateway("unix:/nowhere", port, None),
        ):
            raise AssertionError
    with original_gateway("unix:/nowhere", None, None):
        pass
