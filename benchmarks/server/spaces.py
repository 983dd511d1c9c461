"""Encoding and reading of whole spaces: microseconds a stream of an event, by Python with numpy and with C, in pairs.

    python -m benchmarks.server.spaces [--events N] [--streams N]

One process, one thread, no socket. Both get the same values at each event, one after the other, and have to give the same
bytes. A third of the streams changes; a frame and a summary for each are made. Then two clients read the event, which has to
give as many messages. Times are the processor time of the thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import NamedTuple

import numpy as np
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.compiled.space_encoder import CompiledEncoder
from gcspy_protocol.compiled.stream_library import streams_library
from gcspy_protocol.connection import Connection, preamble
from gcspy_protocol.messages import EpochEnd, Event, Hello, SpaceDefined, Welcome
from gcspy_protocol.model import Control, EventFilter, EventKind, Mode, PauseActsOn, Role
from gcspy_protocol.streams.values import Stamp

from benchmarks.harness.figures import tell
from gcspy_server.api import Presentation, Server, ServerSpace, UniformNames
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.interpreter.transmission import SpaceSender, parts_of
from gcspy_session.interest import EVERYTHING

__all__ = ["main"]

CASES = ((200, 0.02), (2_000, 0.002), (2_000, 0.05), (65_536, 0.001), (1_000_000, 0.01))
"""Tiles, and the share of them that changes."""

KINDS = (
    ("u4", Presentation.PLAIN),
    ("u4", Presentation.PERCENT),
    ("u1", Presentation.ENUM),
    ("u2", Presentation.PLAIN),
)
NAMES = tuple("abcdefghijklmnopqrst")


class Cost(NamedTuple):
    """Microseconds a stream, medians of all events."""

    numpy: float
    compiled: float
    read_numpy: float
    read_compiled: float
    frames: float
    size: float


def make_space(tiles: int, streams: int) -> ServerSpace:
    """A space with streams of the usual kinds, a tenth of whose tiles is unused."""
    space = Server("x", events=["tick"]).add_space("s", names=UniformNames(0, 16, tiles))
    random = np.random.default_rng(1)
    for number in range(streams):
        dtype, presentation = KINDS[number % len(KINDS)]
        stream = space.add_stream(
            str(number),
            dtype=dtype,
            maximum=len(NAMES) - 1,
            presentation=presentation,
            enum_names=NAMES if presentation is Presentation.ENUM else (),
        )
        stream.data[:] = random.integers(0, len(NAMES), tiles)
    space.control[random.random(tiles) < 0.1] = Control.UNUSED
    return space


def make_reader(space: ServerSpace) -> Connection:
    """A client that was welcomed and knows the space."""
    connection = Connection(Role.CLIENT)
    connection.send(Hello(client="benchmark"))
    welcome = Welcome(
        server="x",
        session="y",
        client_id=1,
        controller=False,
        mode=Mode.PASSIVE,
        pause_acts_on=PauseActsOn.SAMPLING,
        events=(EventKind(id=0, name="tick"),),
    )
    connection.receive_data(preamble())
    for message in (welcome, SpaceDefined(space=space.schema), EpochEnd(epoch=1)):
        connection.receive_data(encode(message).data)
    for _ in connection.messages():
        pass
    return connection


def measure(tiles: int, share: float, streams: int, events: int) -> Cost:
    """Encode events with both, in turns.

    Raises:
        SystemExit: They give different bytes, or there is no library.
    """
    library = streams_library()
    if library is None:
        raise SystemExit("the library is not built: python hatch_build.py")
    space = make_space(tiles, streams)
    senders = {"numpy": SpaceSender(space), "compiled": SpaceSender(space)}
    senders["numpy"]._compiled = None
    senders["compiled"]._compiled = CompiledEncoder(library, space.id)
    readers = {"numpy": make_reader(space), "compiled": make_reader(space)}
    readers["numpy"]._event_reader = None
    reading: dict[str, list[float]] = {name: [] for name in senders}
    random = np.random.default_rng(2)
    took: dict[str, list[float]] = {name: [] for name in senders}
    sizes = []
    for sequence in range(1, events + 2):
        for stream in space.streams:
            values = stream.data
            if stream.schema.id % 3 == 0:
                places = random.integers(0, tiles, max(1, int(tiles * share)))
                values[places] = random.integers(0, len(NAMES), len(places))
        request = GatherRequest(0, sequence, sequence, EventFilter(event=0), EVERYTHING)
        stamp = Stamp(sequence=sequence, time_nanos=sequence, event=0, occurrence=sequence)
        found = []
        for name, sender in list(senders.items())[:: 1 if sequence % 2 else -1]:
            began = time.thread_time_ns()
            pieces, _ = sender.encode(request, stamp)
            took[name].append((time.thread_time_ns() - began) / 1e3 / streams)
            parts = parts_of(pieces)
            found.append([part.frame.data for part in parts])
        if found[0] != found[1]:
            raise SystemExit(f"event {sequence}: numpy and C give different bytes")
        event = Event(sequence=sequence, time_nanos=sequence, event=0, occurrence=sequence, epoch=1)
        sent = encode_event(event, [part.frame for part in parts])
        counts = []
        for name, reader in list(readers.items())[:: 1 if sequence % 2 else -1]:
            began = time.thread_time_ns()
            reader.receive_data(sent)
            counts.append(len(list(reader.messages())))
            reading[name].append((time.thread_time_ns() - began) / 1e3 / streams)
        if counts[0] != counts[1]:
            raise SystemExit(f"event {sequence}: read with and without C it has other messages")
        sizes.append(len(found[0]))
    return Cost(
        statistics.median(took["numpy"][1:]),
        statistics.median(took["compiled"][1:]),
        statistics.median(reading["numpy"][1:]),
        statistics.median(reading["compiled"][1:]),
        sizes[-1],
        sum(map(len, found[0])),
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", type=int, default=120)
    parser.add_argument("--streams", type=int, default=20)
    options = parser.parse_args(arguments)
    print(
        f"{'tiles':>10} {'changed':>8} {'numpy, us':>10} {'C, us':>8} {'ratio':>6}  frames  bytes"
    )
    for tiles, share in CASES:
        events = options.events if tiles < 1_000_000 else max(5, options.events // 6)
        cost = measure(tiles, share, options.streams, events)
        print(
            f"{tiles:>10,} {share:>8.1%} {cost.numpy:>10.1f} {cost.compiled:>8.1f} {cost.numpy / cost.compiled:>7.1f} {cost.read_numpy:>10.1f} {cost.read_compiled:>8.1f} {cost.read_numpy / cost.read_compiled:>7.1f}  {cost.frames:>6,.0f}  {cost.size:,.0f}"
        )
        if (tiles, share) == (2_000, 0.002):
            tell("2,000 tiles: encode a stream and its summary", cost.compiled, "us", "<= 8")
            tell("2,000 tiles: read a stream and its summary", cost.read_compiled, "us", "<= 8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
