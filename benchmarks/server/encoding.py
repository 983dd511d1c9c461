"""Encoding and decoding of one stream: bytes and milliseconds for a share of changed tiles, KEYs and resizes.

    python -m benchmarks.server.encoding [--tiles N]... [--repeat N] [--sweep]

One process, one thread, no socket: what the codec alone costs. Times are processor time, so that other work
on the machine does not show. A change rewrites tiles at random places, so that no cache helps more than it does
in life. Values look like blocks of a heap: 45 % free, 25 % full, the rest anything between. `--sweep` compares a DELTA with a KEY for
each width of values, which is where `values.key_is_cheaper` comes from.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gcspy_protocol.codec import decode
from gcspy_protocol.frames.frame import HEADER, Frame, Header, inflate
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Message, SpaceDefined, Tiles
from gcspy_protocol.model import Naming, Space, Stream
from gcspy_protocol.streams.tiles import pack_tiles
from gcspy_protocol.streams.values import Stamp, StreamEncoder, pack_delta, pack_key
from numpy.typing import NDArray

from benchmarks.harness.figures import tell

__all__ = ["main"]

FULL = 32_767

SHARES = (0.001, 0.01, 0.1, 0.3, 1.0)

BUDGET = {(1_000_000, 0.01): "encode 0.8, decode 0.5"}


class Cost(NamedTuple):
    """Cost of one transmission of a stream."""

    kind: str
    size: int
    encode_secs: float
    decode_secs: float


def blocks(random: np.random.Generator, count: int, dtype: str = "i4") -> NDArray[Any]:
    """Values like those of the blocks of a heap; shape (count,), values above the type's range clipped."""
    kind = random.random(count)
    values = np.where(kind < 0.45, 0, np.where(kind < 0.7, FULL, random.integers(0, FULL, count)))
    return np.minimum(values, np.iinfo(dtype).max).astype("<" + dtype)


def read(frame: Frame) -> Message:
    """A frame as a client reads it."""
    header = Header._make(HEADER.unpack_from(frame.data))
    return decode(
        header, inflate(header, frame.data[HEADER.size :], CLIENT_LIMITS, 0), CLIENT_LIMITS
    )


def stamp(sequence: int) -> Stamp:
    """Any time and event."""
    return Stamp(sequence=sequence, time_nanos=sequence, event=0, occurrence=sequence)


def grown(
    count: int, old_starts: NDArray[Any], new_starts: NDArray[Any], lengths: NDArray[Any]
) -> Tiles:
    """A resize of the benchmark's space."""
    runs = [array.astype("<u4") for array in (old_starts, new_starts, lengths)]
    return Tiles(space=1, count=count, old_starts=runs[0], new_starts=runs[1], lengths=runs[2],
                 naming=Naming.UNIFORM, base=0x10000, tile_bytes=4096)  # fmt: skip


class Bench:
    """A stream with its encoder on one side and a client that follows it on the other.

    Args:
        count: Tiles.
    """

    def __init__(self, count: int) -> None:
        self._random = np.random.default_rng(1)
        self._sequence = 1
        self._encoder = StreamEncoder(1, 0, dtype="i4", default=0, count=count)
        self._client = ClientInterpreter()
        self._client.apply(
            SpaceDefined(space=Space(id=1, name="Heap", streams=(Stream(id=0, name="Used"),)))
        )
        nothing = np.empty(0, dtype=np.uint32)
        self._client.apply(grown(count, nothing, nothing, nothing))
        self.values = blocks(self._random, count)
        self._client.apply(read(self._encoder.encode(self.values, None, stamp(1))))

    def change(self, share: float) -> None:
        """Rewrite a share of the tiles; some get the value that they had."""
        count = len(self.values)
        places = (
            self._random.choice(count, int(count * share), replace=False)
            if share < 1
            else np.arange(count)
        )
        self.values[places] = blocks(self._random, len(places))

    def transmit(self, key: bool = False) -> Cost:
        """Encode the present state, decode it, and check that the client has it."""
        self._sequence += 1
        began = time.process_time()
        frame = self._encoder.encode(self.values, None, stamp(self._sequence))
        if key:
            began = time.process_time()
            frame = self._encoder.key()
        encoded = time.process_time()
        message = read(frame)
        self._client.apply(message)
        decoded = time.process_time()
        self._check()
        return Cost(type(message).__name__, len(frame.data), encoded - began, decoded - encoded)

    def _check(self) -> None:
        state = self._client.spaces[1].streams[0]
        assert state.known is None
        assert np.array_equal(state.values, self.values), "the client has other values"

    def resize(self, holes: int) -> Cost:
        """Free a tile at this many places and add as many at the end, with values for the new ones."""
        count = len(self.values)
        gone = np.sort(self._random.choice(count, holes, replace=False))
        edges = np.concatenate(([-1], gone, [count]))
        starts, lengths = edges[:-1] + 1, np.diff(edges) - 1
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        tiles = grown(count, starts, np.cumsum(lengths) - lengths, lengths)
        self.values = np.concatenate((np.delete(self.values, gone), blocks(self._random, holes)))
        began = time.process_time()
        self._encoder.remap(tiles.old_starts, tiles.new_starts, tiles.lengths, count)
        self._sequence += 1
        frames = [pack_tiles(tiles), self._encoder.encode(self.values, None, stamp(self._sequence))]
        encoded = time.process_time()
        for frame in frames:
            self._client.apply(read(frame))
        decoded = time.process_time()
        self._check()
        return Cost(
            "Tiles+Delta",
            sum(len(frame.data) for frame in frames),
            encoded - began,
            decoded - encoded,
        )


def median(costs: list[Cost]) -> Cost:
    """The middle of each number."""
    return Cost(
        costs[-1].kind,
        *(statistics.median(column) for column in list(zip(*costs, strict=True))[1:]),
    )


def show(count: int, what: str, costs: list[Cost], budget: str = "") -> None:
    """One line of the table."""
    kind, size, encode_secs, decode_secs = median(costs)
    print(
        f"{count:>10,} {what:>18} {kind:>12} {size:>11,.0f} {encode_secs * 1e3:>10.2f} {decode_secs * 1e3:>10.2f}  {budget}"
    )


def table(count: int, repeat: int) -> None:
    """All rows for one number of tiles."""
    bench = Bench(count)
    for share in SHARES:
        costs = []
        for _ in range(repeat):
            bench.change(share)
            costs.append(bench.transmit())
        show(count, f"{share:.1%} changed", costs, BUDGET.get((count, share), ""))
        if (count, share) in BUDGET:
            middle, case = median(costs), f"{count:,} tiles, {share:.0%} changed"
            tell(f"{case}: encode", middle.encode_secs * 1e3, "ms", "<= 0.8")
            tell(f"{case}: decode", middle.decode_secs * 1e3, "ms", "<= 0.5")
    show(count, "whole", [bench.transmit(key=True) for _ in range(repeat)])
    for holes in (10, count // 1000, count // 100):
        show(count, f"{holes:,} holes", [bench.resize(holes) for _ in range(repeat)])


def timed(make: Callable[[], Frame], repeat: int) -> tuple[int, float, float]:
    """Bytes, milliseconds to make and to read it back; medians."""
    encode_secs, decode_secs = [], []
    for _ in range(repeat):
        began = time.process_time()
        frame = make()
        encoded = time.process_time()
        read(frame)
        encode_secs.append(encoded - began)
        decode_secs.append(time.process_time() - encoded)
    return (
        len(frame.data),
        statistics.median(encode_secs) * 1e3,
        statistics.median(decode_secs) * 1e3,
    )


def sweep(count: int, repeat: int) -> None:
    """DELTA against KEY, by the width of values and the share that changed."""
    print(
        f"{count:,} tiles; bytes, ms to encode, ms to decode\n{'type':>5} {'changed':>8} {'DELTA':>28} {'KEY':>28}"
    )
    random = np.random.default_rng(1)
    for dtype in ("u1", "i2", "i4", "i8"):
        values = blocks(random, count, dtype)
        key = timed(partial(pack_key, 1, 0, stamp(2), values), repeat)
        for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85):
            places = np.sort(random.choice(count, int(count * share), replace=False))
            new = blocks(random, len(places), dtype)
            make = partial(
                pack_delta, 1, 0, stamp(2), base_sequence=1, count=count, indices=places, values=new
            )
            delta = timed(make, repeat)
            cells = " ".join(
                f"{size:>12,} {one:>7.2f} {two:>7.2f}" for size, one, two in (delta, key)
            )
            print(f"{dtype:>5} {share:>8.0%} {cells}")


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.server.encoding", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--tiles", type=int, action="append", help="so many tiles (may be given again)"
    )
    parser.add_argument("--repeat", type=int, default=15, help="times of which the median is told")
    parser.add_argument("--sweep", action="store_true", help="compare DELTA and KEY instead")
    given = parser.parse_args(arguments)
    counts = given.tiles or [1_000_000, 10_000_000]
    if given.sweep:
        sweep(counts[0], given.repeat)
        return 0
    print(
        f"{'tiles':>10} {'event':>18} {'frame':>12} {'bytes':>11} {'encode ms':>10} {'decode ms':>10}  budget, ms"
    )
    for count in counts:
        table(count, given.repeat if count <= 1_000_000 else max(given.repeat // 3, 3))
    return 0


if __name__ == "__main__":
    sys.exit(main())
