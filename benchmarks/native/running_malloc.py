"""Unknown and wrong values of a native heap that is read while it changes: passive mode at levels 2 and 3.

    python -m benchmarks running_malloc [--megabytes N] [--threads N]... [--pause MICROS]... [--rounds N]

Every second chunk of the target stays for ever, so of these it is known what a reading must say: a tile has at least
their bytes in use, and each is a chunk of its size, in use. Whatever a reading claims to know and that contradicts this is wrong.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from gcspy_drivers.native_heap.chunk_walk import SpanWalk
from gcspy_drivers.native_heap.listed_map import spread
from gcspy_drivers.native_heap.malloc_reader import BINS_LEVEL, CHUNKS, MallocReader, MallocReading
from gcspy_drivers.native_heap.walk_state import ChunkKind
from gcspy_drivers.remote import Process

from benchmarks.harness.figures import tell

__all__ = ["main"]

_SOURCE = Path(__file__).parents[1] / "targets/churn.c"
_HEADER_BYTES = 16

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


@dataclass
class Tally:
    """Sums over the readings of one level.

    Attributes:
        readings: How many there were.
        refused: Those without arenas: the ring of arenas changed meanwhile.
        used_hidden: Those in which bytes in use are unknown as a whole, since a cache or a fast bin changed.
        system: Bytes of arenas.
        unknown: Bytes of tiles that are unknown.
        tiles: Tiles that are known.
        wrong_tiles: Those with fewer bytes in use than chunks that stay have there.
        named: Chunks that stay and that are said to be known.
        wrong_named: Those that are said to begin elsewhere, to be free, or of another size.
    """

    readings: int = 0
    refused: int = 0
    used_hidden: int = 0
    system: int = 0
    unknown: int = 0
    tiles: int = 0
    wrong_tiles: int = 0
    named: int = 0
    wrong_named: int = 0

    def add(self, reading: MallocReading, stays: tuple[I64, I64]) -> None:
        """Add a reading, given the first and end addresses of the chunks that stay."""
        self.readings += 1
        self.refused += not reading.arenas
        self.used_hidden += bool(reading.arenas) and not reading.used_is_known
        self.system += sum(arena.system_bytes for arena in reading.arenas)
        walks = reading.walks if reading.level >= CHUNKS else reading.maps()
        for walk in (walk for each in walks for walk in each):
            self.unknown += walk.unknown_bytes
            known, wrong = _wrong_tiles(walk, stays)
            self.tiles += known
            self.wrong_tiles += wrong


def _wrong_tiles(walk: SpanWalk, stays: tuple[I64, I64]) -> tuple[int, int]:
    cells = walk.bytes.shape[1]
    known = np.ones(cells, dtype=np.bool_)
    for low, high in walk.unknown.astype(np.int64).tolist():
        first, last = low - walk.first_cell, high - walk.first_cell
        known[first // walk.cell_bytes : -(-last // walk.cell_bytes)] = False
    inside = (stays[0] >= walk.span.begin) & (stays[1] <= walk.span.end)
    begin, end = (column[inside] - walk.first_cell for column in stays)
    least = spread(begin, end, walk.cell_bytes, cells)
    wrong = known & (walk.bytes[ChunkKind.USED].astype(np.int64) < least)
    return int(known.sum()), int(wrong.sum())


def _name(reader: MallocReader, pairs: U64, tally: Tally) -> None:
    named = reader.name_chunks(pairs[:, 0])
    known = named.kinds >= 0
    right = named.chunks == pairs[:, 0] - np.uint64(_HEADER_BYTES)
    right &= named.sizes == pairs[:, 1] + np.uint64(8)
    right &= named.kinds == ChunkKind.USED
    tally.named += int(known.sum())
    tally.wrong_named += int((known & ~right).sum())


def _measure(program: Path, folder: Path, threads: int, pause: int, size: int, rounds: int) -> None:
    file = folder / "stays"
    command = [str(program), str(threads), str(size), str(pause), str(file)]
    target = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert target.stdout is not None
        if target.stdout.readline() != b"ready\n":
            sys.exit("the target ended")
        pairs = np.fromfile(file, dtype=np.uint64).reshape(-1, 2)
        begin = pairs[:, 0].astype(np.int64) - _HEADER_BYTES
        stays = (begin, begin + pairs[:, 1].astype(np.int64) + 8)
        speed = f"pause of {pause} us" if pause else "no pause"
        with Process(target.pid) as process:
            reader = MallocReader(process)
            for level in (BINS_LEVEL, CHUNKS):
                tally = Tally()
                for _ in range(rounds):
                    tally.add(reader.read(level, bins=level < CHUNKS), stays)
                    if level == CHUNKS:
                        _name(reader, pairs, tally)
                _say(f"{threads} threads, {speed}, level {level}", tally)
            reader.close()
    finally:
        target.kill()
        target.communicate()


def _say(name: str, tally: Tally) -> None:
    share = tally.unknown / max(tally.system, 1)
    print(
        f"{name}: {tally.readings} readings of {tally.system / max(tally.readings - tally.refused, 1) / 1e6:.1f} MB, {tally.refused} without arenas, "
        f"in use hidden in {tally.used_hidden}; unknown bytes {share:.2%}; "
        f"known tiles {tally.tiles:,}, wrong {tally.wrong_tiles:,}; named chunks {tally.named:,}, wrong {tally.wrong_named:,}"
    )
    tell(f"{name}: unknown", 100 * share, "%")
    tell(f"{name}: wrong tiles", tally.wrong_tiles, "tiles", "0")
    tell(f"{name}: chunks named wrongly", tally.wrong_named, "chunks", "0")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks running_malloc")
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--pause", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as name:
        folder = Path(name)
        program = folder / "churn"
        try:
            subprocess.run(
                ["gcc", "-O2", "-o", str(program), str(_SOURCE), "-lpthread"], check=True
            )
        except (OSError, subprocess.CalledProcessError):
            sys.exit("it needs a C compiler: apt-get install gcc libc6-dev")
        for threads in options.threads or (1, 8):
            for pause in options.pause or (0, 1000):
                size = options.megabytes << 20
                _measure(program, folder, threads, pause, size, options.rounds)


if __name__ == "__main__":
    main()
