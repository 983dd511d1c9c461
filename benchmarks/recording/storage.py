"""A recording in a storage: requests, bytes and time to open it, to jump, and for the table of its events; from a fast, a slow and a failing server.

    python -m benchmarks storage [--delay SECONDS] [--chunks N]... [--old]

The server is a small one of S3's protocol on the loopback interface: it answers at once, after a delay (default 30 ms, as a storage
in a network), or fails: each tenth request gets "503 Slow Down". Recordings have a chunk of some 146 kB for each N (default 67 and 450: 9.9 and
67 MB), of values that compress badly; the second one is larger than what is fetched at once. Budget: at most 5 requests to open, 2 for
a jump, 3 for the table. With --old the recordings are as they were before the index had the tables.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gcspy_replay.file import ChunkRule, FileStore, Recording, layout

from benchmarks.harness.figures import tell
from tests.replay.recorded import Small
from tests.s3_server import S3Server, s3_server

__all__ = ["main"]

_TILES, _EVENTS_EACH = 12_000, 8
_EACH = 10
"""Each so many requests fails, of a failing server."""


class _Noise(Small):
    """A session whose values compress badly."""

    @staticmethod
    def values(number: int, tiles: int = 9) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """The values at an event."""
        return np.random.default_rng(number).integers(0, 256, tiles, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class _Cost:
    """Cost of a step.

    Attributes:
        requests: To the server, with those that it failed.
        sent: Bytes that it sent.
        secs: By the clock.
    """

    requests: int
    sent: int
    secs: float

    def __str__(self) -> str:
        return f"{self.requests:4} requests {self.sent / 1e6:6.2f} MB {self.secs:6.2f} s"


class _Meter:
    """Cost of what is done since it was asked last."""

    def __init__(self, server: S3Server) -> None:
        self._server = server
        self.take()

    def take(self) -> _Cost:
        """Return the cost, and begin again."""
        server, now = self._server, time.monotonic()
        before = getattr(self, "_before", (0, 0, now))
        self._before = len(server.requests), server.sent_bytes, now
        return _Cost(self._before[0] - before[0], self._before[1] - before[1], now - before[2])


def _measured(server: S3Server, address: str, local: Recording) -> dict[str, _Cost]:
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    meter = _Meter(server)
    with Recording.open(address) as found:
        costs = {"open": meter.take()}
        for number in (local.last * 3 // 4, local.last // 5, local.last // 2):
            state = found.seek(number).spaces[1].streams[0].values
            cost = meter.take()
            if "jump" not in costs or cost.requests > costs["jump"].requests:
                costs["jump"] = cost
            if not np.array_equal(state, local.seek(number).spaces[1].streams[0].values):
                raise SystemExit(f"event {number} is another one than in the file")
        meter.take()
        if not np.array_equal(found.events, local.events):
            raise SystemExit("the table is another one than that of the file")
        costs["table"] = meter.take()
    return costs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--delay", type=float, default=0.03, help="of the slow server, seconds")
    parser.add_argument("--chunks", type=int, action="append", metavar="N")
    parser.add_argument("--old", action="store_true", help="without the tables in the index")
    options = parser.parse_args()
    if options.old:
        layout._MOST_END_BYTES = 0
    with s3_server() as server, tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder:
        os.environ |= {
            "AWS_ENDPOINT_URL": server.address,
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        for chunks in options.chunks or [67, 450]:
            path = Path(folder) / f"{chunks}.gcspy"
            rule = ChunkRule(weight=99, most_events=_EVENTS_EACH)
            written = _Noise(FileStore(path), rule=rule, tiles=_TILES)
            written.events(chunks * _EVENTS_EACH - 2).writer.close()
            server.objects["b/recording.gcspy"] = path.read_bytes()
            print(f"{path.stat().st_size / 1e6:.1f} MB, {chunks} chunks")
            with Recording.open(path) as local:
                for name, delay, each in (
                    ("fast", 0.0, 0),
                    (f"{options.delay * 1000:.0f} ms", options.delay, 0),
                    ("failing", 0.0, _EACH),
                ):
                    server.delay_secs, server.fails_each = delay, each
                    costs = _measured(server, "s3://b/recording.gcspy", local)
                    for step, cost in costs.items():
                        print(f"    {name:8} {step:6} {cost}")
                        if not each and not delay:
                            budget = {"open": "5", "jump": "2", "table": "3"}[step]
                            tell(f"{chunks} chunks, {step}", cost.requests, "requests", budget)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
