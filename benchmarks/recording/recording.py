"""Recordings: speed and size of 1,000,000 tiles with 1 % changed, beside gzip and MCAP of the same; and seeking.

The recorder's whole way is timed: wire bytes, connection, interpreter, file; and the writer alone. The original stored
whole streams under gzip; MCAP gets whole snapshots, as a recorder without deltas would write them. Those two are given
fewer events, for they are slow; rates and ratios are per event. Budgets: 2,500 snapshots/s, 71 : 1, seek in 10 ms.
Times are this process's processor time, with the system's on its behalf, so that other work on the machine does not show.

Then a real session: the demo's workload is recorded by `gcspy record`, and what came is written again by each of the three.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gcspy_protocol import ClientInterpreter, Connection
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode_event
from gcspy_protocol.frames.frame import Frame
from gcspy_protocol.model import EventKind, Mode, Naming, PauseActsOn, Role, Space, Stream
from gcspy_protocol.streams.tiles import pack_tiles
from gcspy_protocol.streams.values import Stamp, StreamEncoder
from gcspy_replay.file import (
    FileStore,
    Recording,
    RecordingWriter,
    WireTap,
    repack,
    schema_messages,
)
from gcspy_replay.file.records.fields import RECORD_HEAD_BYTES, record_bytes
from gcspy_replay.file.records.record import RecordKind
from mcap.writer import CompressionType, Writer
from numpy.typing import NDArray

import gcspy
from benchmarks.harness.figures import tell

__all__ = ["Traffic", "main", "record"]

_MAXIMUM = 32768
_NANOS = 1_000_000_000

_WELCOME = m.Welcome(
    server="bench",
    session="bench",
    client_id=1,
    controller=False,
    mode=Mode.EMBEDDED,
    pause_acts_on=PauseActsOn.PROGRAM,
    events=(EventKind(id=0, name="event"),),
)
_SPACE = Space(
    id=1, name="heap", streams=(Stream(id=0, name="Used", dtype="i4", maximum=_MAXIMUM),)
)


def _values(count: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Blocks as heaps have them: 45 % free, 25 % full, the rest anything."""
    values = rng.integers(0, _MAXIMUM, count, dtype=np.int32)
    kind = rng.random(count)
    values[kind < 0.45] = 0
    values[kind > 0.75] = _MAXIMUM
    return values


class Traffic:
    """A server's output: wire bytes, event by event.

    Args:
        tiles: Of the one space.
        changed: Share of them that changes at each event, anywhere.
        hz: Events a second, by the clock in the events.
    """

    def __init__(self, tiles: int, changed: float, hz: float) -> None:
        self._rng = np.random.default_rng(7)
        self._tiles, self._changed, self._hz = tiles, changed, hz
        self.values = _values(tiles, self._rng)
        self._encoder = StreamEncoder(1, 0, dtype="i4", default=0, count=tiles)
        self._sequence = 0
        self._server = Connection(Role.SERVER)

    def greeting(self) -> bytes:
        """Preamble, welcome and schema."""
        messages: list[m.Message] = [_WELCOME, m.SpaceDefined(space=_SPACE), m.EpochEnd(epoch=1)]
        return self._server.preamble() + b"".join(
            self._server.send(message) for message in messages
        )

    def event(self) -> bytes:
        """The next event; `values` are then its tiles."""
        self._sequence += 1
        stamp = Stamp(
            sequence=self._sequence,
            time_nanos=int(self._sequence * _NANOS / self._hz),
            event=0,
            occurrence=self._sequence,
        )
        frames: list[Frame] = []
        if self._sequence == 1:
            none = np.empty(0, dtype="<u4")
            frames.append(
                pack_tiles(
                    m.Tiles(
                        space=1, count=self._tiles, old_starts=none, new_starts=none, lengths=none,
                        naming=Naming.UNIFORM, base=1 << 40, tile_bytes=_MAXIMUM,
                    )
                )
            )  # fmt: skip
        else:
            where = self._rng.integers(0, self._tiles, int(self._tiles * self._changed))
            self.values[where] = _values(len(where), self._rng)
        frames.append(self._encoder.encode(self.values, None, stamp))
        event = m.Event(
            sequence=stamp.sequence,
            time_nanos=stamp.time_nanos,
            event=0,
            occurrence=stamp.occurrence,
            epoch=1,
        )
        return encode_event(event, frames)


def record(path: Path, greeting: bytes, events: Iterator[bytes]) -> dict[str, float]:
    """Record wire bytes as a recorder would.

    Returns:
        ``seconds`` for all of it, ``writing`` for the writer alone, ``events``, ``bytes`` of the file.
    """
    connection, session = Connection(Role.CLIENT), ClientInterpreter()
    connection.send(m.Hello(client="bench"))
    tap = WireTap()
    writer = RecordingWriter(FileStore(path, replace=True), session, tap=tap)
    seconds = writing = 0.0
    count = 0

    def take(data: bytes) -> None:
        nonlocal writing
        connection.receive_data(data)
        tap.receive_data(data)
        for message in connection.messages():
            session.apply(message)
            before = time.process_time()
            writer.add(message)
            writing += time.process_time() - before

    take(greeting)
    for data in events:
        began = time.process_time()
        take(data)
        seconds += time.process_time() - began
        count += 1
    began = time.process_time()
    writer.close()
    closing = time.process_time() - began
    return {
        "seconds": seconds + closing,
        "writing": writing + closing,
        "events": count,
        "bytes": path.stat().st_size,
    }


def _seek(path: Path, seeks: int) -> NDArray[np.float64]:
    """Milliseconds of random seeks, each with nothing known before."""
    rng = np.random.default_rng(11)
    with Recording.open(path) as recording:
        numbers = rng.integers(1, recording.last + 1, seeks)
        took = np.empty(seeks)
        for i, number in enumerate(numbers.tolist()):
            began = time.process_time()
            recording.seek(number)
            took[i] = time.process_time() - began
    return took * 1e3


def _whole_snapshots(tiles: int, changed: float, count: int) -> list[NDArray[Any]]:
    traffic = Traffic(tiles, changed, 60)
    snapshots: list[NDArray[Any]] = []
    for _ in range(count):
        traffic.event()
        snapshots.append(traffic.values.copy())
    return snapshots


def _gzip(path: Path, snapshots: list[NDArray[Any]]) -> dict[str, float]:
    began = time.process_time()
    with gzip.open(path, "wb", compresslevel=6) as file:
        for values in snapshots:
            file.write(values.tobytes())
    return {
        "seconds": time.process_time() - began,
        "events": len(snapshots),
        "bytes": path.stat().st_size,
    }


def _mcap(path: Path, snapshots: list[NDArray[Any]]) -> dict[str, float]:
    began = time.process_time()
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.ZSTD)
        writer.start()
        channel = writer.register_channel("/heap/Used", "raw", 0)
        for i, values in enumerate(snapshots):
            writer.add_message(channel, i, values.tobytes(), i, i)
        writer.finish()
    return {
        "seconds": time.process_time() - began,
        "events": len(snapshots),
        "bytes": path.stat().st_size,
    }


def _packed(path: Path, target: Path) -> tuple[dict[str, float], Path]:
    """Pack a recording like `gcspy pack`; return the figures and the packed file."""
    began = time.process_time()
    with Recording.open(path) as recording:
        count = repack(recording, FileStore(target, replace=True), level=9)
    return {
        "seconds": time.process_time() - began,
        "events": count,
        "bytes": target.stat().st_size,
    }, target


class _Real:
    """A real session: the demo's workload, recorded by the command as a user would.

    Args:
        path: Where the recording goes.
        secs: How long it is watched.
        hz: Events of the clock a second.
    """

    def __init__(self, path: Path, *, secs: float, hz: float) -> None:
        workload = Path(gcspy.__file__).parent / "demo" / "workload.py"
        with subprocess.Popen(
            [sys.executable, workload, "--seconds", f"{secs + 60:g}"], stdout=subprocess.DEVNULL
        ) as target:
            try:
                options = ["-o", str(path), "--seconds", f"{secs:g}", "--clock", f"{hz:g}"]
                command = [sys.executable, "-m", "gcspy", "record", str(target.pid), *options]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            finally:
                target.terminate()
        self.greeting = b""
        self.wire: list[bytes] = []
        self.streams: list[list[NDArray[Any]]] = []
        """Of each event the whole values of all streams that it gathered."""
        with Recording.open(path) as recording:
            cursor = recording.cursor()
            server = Connection(Role.SERVER)
            messages = schema_messages(cursor.before(recording.first))
            self.greeting = server.preamble() + b"".join(
                server.send(message) for message in messages
            )
            while (step := cursor.step()) is not None:
                self.wire.append(step.notice_data + step.data)
                event = step.change.event
                spaces = cursor.session.spaces.values()
                every = [
                    stream
                    for space in spaces
                    for stream in (*space.streams.values(), space.control)
                ]
                self.streams.append(
                    [stream.values.copy() for stream in every if stream.is_fresh(event)]
                )
            self.tiles = sum(space.count for space in cursor.session.spaces.values())

    @property
    def raw_bytes(self) -> float:
        """Bytes of the whole streams of an event, the mean."""
        return sum(values.nbytes for event in self.streams for values in event) / len(self.streams)


_SECTIONS = ("numbers", "numbers", "gaps", "values", "sums", "sums", "texts")


def _shares(path: Path) -> str:
    """Return the bytes of an event before zstd, by purpose: gzip and MCAP are given values only."""
    found = dict.fromkeys(("events", "states", *_SECTIONS), 0)
    with Recording.open(path) as recording:
        for at in recording.chunks:
            records = at.part.records(at.place)
            place = 0
            while (record := records.record(place)) is not None:
                place += 1
                kind, sizes = record_bytes(record.data[:RECORD_HEAD_BYTES])
                found["states" if kind == RecordKind.KEY else "events"] += len(record.data)
                if kind == RecordKind.EVENT:
                    for name, size in zip(_SECTIONS, sizes, strict=True):
                        found[name] += size
        events = len(recording)
    return ", ".join(f"{name} {size / events:,.0f}" for name, size in found.items())


def _real(folder: Path, secs: float, hz: float) -> None:
    """Record a real session, and write it again by each way."""
    path = folder / "real.gcspy"
    real = _Real(path, secs=secs, hz=hz)
    count, raw = len(real.wire), real.raw_bytes
    print(
        f"a real session: the demo's workload for {secs:g} s at {hz:g} Hz, {count:,} events, {real.tiles:,} tiles, {raw:,.0f} bytes of whole streams an event"
    )
    done = record(path, real.greeting, iter(real.wire))
    print(_line("recorder: wire bytes to file", done, raw))
    print(f"    before zstd, in bytes an event: {_shares(path)}")
    joined = [np.concatenate([values.view(np.uint8) for values in event]) for event in real.streams]
    print(_line("gzip -6 of whole streams", _gzip(folder / "real.gz", joined), raw))
    print(_line("MCAP zstd of whole ones", _mcap(folder / "real.mcap", joined), raw))
    small, sent = _packed(path, folder / "real.packed.gcspy")
    print(_line("the file packed, to keep or send", small, raw))
    print(_told("seek in that", _seek(sent, 100)))
    tell("a real session: whole streams : file", raw * count / done["bytes"], "", ">= 60")
    tell("a real session: whole streams : packed", raw * count / small["bytes"], "", ">= 100")
    seeks = _seek(path, 300)
    print(_told("seek in it", seeks))
    tell("a real session: seek, median", float(np.median(seeks)), "ms", "<= 3")
    tell("a real session: seek, p99", float(np.percentile(seeks, 99)), "ms", "<= 8")


def _line(what: str, done: dict[str, float], raw_bytes: float) -> str:
    rate = done["events"] / done["seconds"]
    per_event = done["bytes"] / done["events"]
    return f"  {what:<34} {rate:>8,.0f} snapshots/s  {per_event:>11,.0f} bytes an event  {raw_bytes / per_event:>6.1f} : 1"


def _told(what: str, took: NDArray[Any]) -> str:
    return f"  {what:<34} median {np.median(took):6.2f} ms, p99 {np.percentile(took, 99):6.2f}, worst {took.max():6.2f}"


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=1_000_000)
    parser.add_argument("--changed", type=float, default=0.01)
    parser.add_argument("--events", type=int, default=600)
    parser.add_argument("--hz", type=float, default=60)
    parser.add_argument("--long-events", type=int, default=10_000)
    parser.add_argument("--long-tiles", type=int, default=100_000)
    parser.add_argument("--others", type=int, default=20, help="events that gzip and MCAP get")
    parser.add_argument("--seeks", type=int, default=300)
    parser.add_argument(
        "--real-seconds", type=float, default=20.0, help="of the real session; 0: none"
    )
    parser.add_argument("--real-hz", type=float, default=20.0)
    options = parser.parse_args()
    raw = 4.0 * options.tiles
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder:
        path = Path(folder) / "bench.gcspy"
        print(
            f"{options.tiles:,} tiles of 4 bytes, {options.changed:.0%} changed anywhere, {options.hz:g} events/s, {options.events} events"
        )
        traffic = Traffic(options.tiles, options.changed, options.hz)
        done = record(path, traffic.greeting(), (traffic.event() for _ in range(options.events)))
        print(_line("recorder: wire bytes to file", done, raw))
        print(_line("writer alone", {**done, "seconds": done["writing"]}, raw))
        seeks = _seek(path, options.seeks)
        snapshots = _whole_snapshots(options.tiles, options.changed, options.others)
        print(
            _line(
                f"gzip -6 of whole streams ({options.others})",
                _gzip(Path(folder) / "a.gz", snapshots),
                raw,
            )
        )
        print(
            _line(
                f"MCAP zstd of whole ones ({options.others})",
                _mcap(Path(folder) / "a.mcap", snapshots),
                raw,
            )
        )
        del snapshots
        print(_told("seek in it", seeks))
        case = f"{options.tiles:,} tiles, {options.changed:.0%} changed"
        tell(f"{case}: recorded", done["events"] / done["seconds"], "snapshots/s", ">= 2500")
        tell(f"{case}: whole streams : file", raw * done["events"] / done["bytes"], "", ">= 71")
        tell(f"{case}: seek, median", float(np.median(seeks)), "ms", "<= 10")
        tell(f"{case}: seek, worst of {options.seeks}", float(seeks.max()), "ms", "<= 10")

        traffic = Traffic(options.long_tiles, options.changed, options.hz)
        done = record(
            path, traffic.greeting(), (traffic.event() for _ in range(options.long_events))
        )
        print(
            f"{options.long_events:,} events of {options.long_tiles:,} tiles, {done['bytes'] / 1e6:,.1f} MB"
        )
        print(_line("recorder: wire bytes to file", done, 4.0 * options.long_tiles))
        began = time.process_time()
        with Recording.open(path) as recording:
            opened = time.process_time() - began
            rows = len(recording.events)
            print(
                f"  open {opened * 1e3:.1f} ms, table of {rows:,} events {(time.process_time() - began) * 1e3:.1f} ms"
            )
        seeks = _seek(path, options.seeks)
        print(_told(f"seek, {options.seeks} at random", seeks))
        case = f"{options.long_events:,} events of {options.long_tiles:,} tiles"
        tell(f"{case}: seek, median", float(np.median(seeks)), "ms", "<= 10")
        tell(f"{case}: seek, worst of {options.seeks}", float(seeks.max()), "ms", "<= 10")
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 100)
        began = time.process_time()
        with Recording.open(path) as recording:
            print(
                f"  open without its index (a scan): {(time.process_time() - began) * 1e3:.1f} ms, {len(recording):,} events"
            )
        if options.real_seconds:
            _real(Path(folder), options.real_seconds, options.real_hz)


if __name__ == "__main__":
    main()
