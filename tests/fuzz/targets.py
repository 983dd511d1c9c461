"""The decoders: each takes bytes that a stranger may send, and raises nothing but errors of ours."""

from __future__ import annotations

import io
import struct
import tempfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from gcspy_drivers.original.stored_session import StoredSession
from gcspy_drivers.remote.elf.file import ElfFile
from gcspy_drivers.remote.maps import parse_maps, parse_smaps
from gcspy_objects.anttracks import lzw
from gcspy_objects.anttracks.flaws import find_flaws
from gcspy_objects.anttracks.symbols import read_symbols
from gcspy_objects.archive import FileSpan, members
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.hotspot_log import read_log
from gcspy_objects.hprof.heap_dump import parse as parse_dump
from gcspy_objects.hprof.machine_code import as_written
from gcspy_objects.hprof.names import DumpNamer
from gcspy_objects.trace import open_trace
from gcspy_original import wire as original
from gcspy_original.wire import Connection as OriginalConnection
from gcspy_original.wire import Side, SpaceDefinition, StreamDefinition
from gcspy_original.wire import encode as encode_original
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.connection import Connection, ConnectionState, is_event_frame, preamble
from gcspy_protocol.errors import CorruptChunk, RemoteProtocolError
from gcspy_protocol.expression import parse
from gcspy_protocol.frames.explain import explain
from gcspy_protocol.frames.frame import HEADER, Frame
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Message
from gcspy_protocol.model import Role
from gcspy_replay.file import (
    WIRE_VERSION,
    MemorySource,
    MemoryStore,
    Recording,
    cut,
    repair,
    verify,
)
from gcspy_replay.file.layout import FileFrame
from gcspy_replay.file.parts.chunk_records import NOT_RECORDS
from gcspy_replay.file.parts.packed_source import PackedSource
from gcspy_replay.file.records.blocks import ColumnUnpacker, RecordUnpacker
from gcspy_replay.file.records.fields import FieldReader
from gcspy_replay.file.records.record import NoticeReader, apply_key, messages_of_event
from gcspy_replay.file.records.summaries import SummaryTrail
from gcspy_replay.file.sidecar import encode_sidecar, read_sidecar
from PySide6.QtCore import QSettings

from benchmarks.targets.anttracks_writer import pack as pack_lzw
from gcspy_client.model.palette import Theme
from gcspy_client.model.palettes import PaletteChoice
from gcspy_client.model.shell.recent import recent_of
from gcspy_client.settings import UserSettings
from gcspy_client.view.shell.preferences import scale_of
from tests.fuzz import gcspy_h, stubs
from tests.fuzz.conditions import TRIGGER_SEEDS, triggers
from tests.fuzz.malloc_heap import malloc_heap, malloc_heap_seeds
from tests.fuzz.packing import CHANGES, change, made
from tests.house.rooms import ROOT
from tests.objects.hprof.made import small as small_dump
from tests.protocol import exchange
from tests.protocol.sameness import all_same

__all__ = ["CORPUS", "DECODERS", "Decoder"]

CORPUS = Path(__file__).parent / "corpus"

_LIMITS = Limits(
    payload_bytes=1 << 16, raw_bytes=1 << 18, event_bytes=1 << 20, map_bytes=1 << 14,
    values_bytes=1 << 22, tiles=1 << 14,
)  # fmt: skip
"""Small, so that what an input may claim stays cheap; the rules are the same."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """Something that reads bytes.

    Attributes:
        run: Reads an input; raises errors of ours only.
        seeds: Inputs to begin with.
    """

    run: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]


# ------------------------------------------------------------------------- the wire


def _vectors(*, from_client: bool) -> list[bytes]:
    vectors = ROOT / "protocol/vectors"
    names = (
        "hello",
        "set_",
        "subscribe",
        "seek",
        "trigger-",
        "query",
        "look-",
        "attend",
        "step",
        "tile_names_request",
    )
    return [
        path.read_bytes()
        for path in sorted(vectors.glob("*.bin"))
        if path.stem.startswith(names) == from_client and path.stat().st_size < 2000
    ]  # fmt: skip


def _event_vectors() -> list[bytes]:
    """Frames of events, single and a few together."""
    names = ("stream_", "summary", "tiles-", "space_info", "new_names")
    single = [
        path.read_bytes()
        for path in sorted((ROOT / "protocol/vectors").glob("*.bin"))
        if path.stem.startswith(names) and path.stat().st_size < 2000
    ]
    return [*single, b"".join(single[:6]), b"".join(single[6:12])]


def _wire_client(data: bytes) -> None:
    connection, session = Connection(Role.CLIENT, limits=_LIMITS), ClientInterpreter(limits=_LIMITS)
    connection.receive_data(preamble() + _welcome() + data)
    for message in connection.messages():
        session.apply(message)
        if not isinstance(message, m.Event | m.Unknown):
            encode(message)
    for space in session.spaces.values():
        for stream in space.streams.values():
            assert len(stream.values) == space.count
    connection.receive_eof()


def _wire_events(data: bytes) -> None:
    """Read an input as the frames of an event, with the right checksum: with the library in C and without, it has to be the same."""
    frames, at = [], 0
    while len(data) - at >= HEADER.size:
        size = HEADER.size + int.from_bytes(data[at : at + 4], "little")
        if size > len(data) - at or not is_event_frame(data[at + 4]):
            break
        frames.append(Frame(data[at : at + size], zlib.crc32(data[at : at + size])))
        at += size
    event = m.Event(sequence=1, time_nanos=2, event=0, occurrence=3, epoch=0)
    sent = preamble() + _welcome() + encode_event(event, frames) + data[at:]
    outcomes = []
    for plain in (False, True):
        connection = Connection(Role.CLIENT, limits=_LIMITS)
        if plain:
            connection._event_reader = None
        found: list[Message] = []
        wrong = ""
        try:
            connection.receive_data(sent)
            found += connection.messages()
            connection.receive_eof()
        except RemoteProtocolError as error:
            wrong = f"{error} at {error.offset}"
        outcomes.append((found, wrong, connection.read_so_far))
    (mine, wrong, read), (theirs, expected, plain_read) = outcomes
    assert (wrong, read) == (expected, plain_read)
    assert all_same(mine, theirs)


@cache
def _welcome() -> bytes:
    from tests.replay.recorded import WELCOME

    return encode(WELCOME).data


def _wire_server(data: bytes) -> None:
    connection = Connection(Role.SERVER)
    connection.receive_data(preamble() + encode(m.Hello(client="fuzz")).data + data)
    for message in connection.messages():
        if not isinstance(message, m.Unknown):
            encode(message)
    connection.receive_eof()


def _handshake(data: bytes) -> None:
    """The first byte says which end we are."""
    role = Role.CLIENT if data[:1] < b"\x80" else Role.SERVER
    connection = Connection(role, limits=_LIMITS)
    connection.receive_data(data[1:])
    for _ in connection.messages():
        pass
    connection.receive_eof()


def _proofs(data: bytes) -> None:
    """The first byte says which end we are; that end knows the token, and goes as far as the other lets it."""
    if data[:1] < b"\x80":
        end = exchange.an_end(Role.CLIENT)
        hello = m.Hello(client="minimal", codecs=())
        end.send(exchange.KNOWN.greeting(hello, nonce=exchange.CLIENT_NONCE))
    else:
        end = exchange.an_end(Role.SERVER)
    end.receive_data(data[1:])
    for message in end.messages():
        if isinstance(message, m.Hello) and end.their_state is ConnectionState.PROVING:
            end.prove(nonce=exchange.SERVER_NONCE)
        elif isinstance(message, m.Proof) and end.our_state is ConnectionState.PROVING:
            end.prove()
        elif isinstance(message, m.Welcome):
            assert end.our_state is ConnectionState.OPEN
    end.receive_eof()


def _proof_seeds() -> list[bytes]:
    made = exchange.exchange()
    return [b"\0" + made.answer + made.welcome, b"\xff" + made.greeting + made.proof]


def _explain(data: bytes) -> None:
    for _ in explain(data):
        pass


# -------------------------------------------------------------------------- recordings


def _recording(data: bytes) -> None:
    with ExitStack() as each:
        recording = each.enter_context(Recording([MemorySource(data)], limits=_LIMITS))
        # A table of at most 512 events need not be plausible: those of a packed chunk are one block.
        assert (
            len(recording.events)
            <= len(recording)
            <= max(512 * len(recording.chunks), len(data) // 32)
        )
        for _ in recording.steps():
            pass


def _verify(data: bytes) -> None:
    verify(MemorySource(data), limits=_LIMITS)
    repair(MemorySource(data), MemoryStore(), limits=_LIMITS)


def _pack(data: bytes) -> None:
    source = PackedSource(MemorySource(data))
    assert source.size() <= 128 * len(data) + (1 << 20)
    with closing(source):
        before = source.unpacked_bytes
        recording = Recording([source], limits=_LIMITS)
        assert recording.parts[0].window.work_bytes - before <= 16 * (32 * len(data) + (2 << 20))


def _made_pack(data: bytes) -> None:
    _pack(made(data))


def _made_pack_seeds() -> list[bytes]:
    """Each change alone, at two places of a recording in three pieces."""
    body = _recordings()[1]
    cuts = change("cut", len(body) // 3) + change("cut", 2 * len(body) // 3)
    return [
        bytes([3]) + cuts + change(what, number) + body for what in CHANGES for number in (1, 700)
    ]


def _packed_seeds() -> list[bytes]:
    from gcspy_replay.file import pack

    found = []
    for data in _recordings():
        out = io.BytesIO()
        pack(MemorySource(data), out)
        found.append(out.getvalue())
    return found


def _recordings() -> list[bytes]:
    from tests.replay.recorded import Small, small

    store, packed = MemoryStore(), MemoryStore()
    Small(store).events(3)
    cut(Recording([MemorySource(small(4))]), packed, packed=3)
    old = small(4, version=WIRE_VERSION)
    return [small(1), small(4), bytes(store.data), bytes(packed.data), old]


def _record(data: bytes) -> None:
    """A record, with a client that has its schema, a state of nine tiles, and no CRC to pass."""
    session = ClientInterpreter(limits=_LIMITS)
    given = FieldReader(_record_seed(0))
    apply_key(given, session, NoticeReader(_LIMITS), _LIMITS)
    messages_of_event(FieldReader(_record_seed(1)), session, _LIMITS)
    trail = SummaryTrail(NoticeReader(_LIMITS), _LIMITS)
    for i in range(2):
        trail.take(_record_seed(i))
    for read in (
        lambda: messages_of_event(FieldReader(memoryview(data)), session, _LIMITS),
        lambda: trail.take(memoryview(data)),
        lambda: apply_key(
            FieldReader(memoryview(data)),
            ClientInterpreter(limits=_LIMITS),
            NoticeReader(_LIMITS),
            _LIMITS,
        ),
    ):
        # What is no record raises these, of which the cursor makes an error with its place.
        with suppress(*NOT_RECORDS, struct.error, RemoteProtocolError):
            read()


@cache
def _record_seed(place: int) -> memoryview:
    recording = Recording([MemorySource(_recordings()[1])])
    at = recording.chunks[0]
    record = at.part.records(at.place).record(place)
    assert record is not None
    return record.data


def _block(data: bytes) -> None:
    for unpacker in (RecordUnpacker(), ColumnUnpacker()):
        with suppress(CorruptChunk):
            records = unpacker.records(data, 0, 1 << 20)
            assert sum(map(len, records)) <= 1 << 20


def _block_seeds() -> list[bytes]:
    """The payloads of the first block of a recording, and of the block of a packed one."""
    found = []
    for data, kind in (
        (_recordings()[1], FileFrame.RECORDS),
        (_recordings()[3], FileFrame.COLUMNS),
    ):
        at = 12
        while data[at + 4] != kind:
            at += HEADER.size + int.from_bytes(data[at : at + 4], "little")
        length = int.from_bytes(data[at : at + 4], "little")
        found.append(data[at + HEADER.size : at + HEADER.size + length])
    return found


def _sidecar(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        found = read_sidecar(Path(file.name))
        if found is not None:
            file.seek(0)
            file.truncate()
            file.write(encode_sidecar(found))
            file.flush()
            assert read_sidecar(Path(file.name)) == found


# ------------------------------------------------------------------------ object traces


@cache
def _symbols_data() -> bytes:
    from tests.objects.anttracks.made import symbols

    return symbols(2).data()


def _events(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "symbols").write_bytes(_symbols_data())
        (Path(folder) / "trace").write_bytes(data)
        with open_trace(folder) as trace:
            for batch in trace.batches():
                assert len(batch) <= 64 * len(data) + (1 << 18)


def _symbols(data: bytes) -> None:
    read_symbols(data, "symbols")
    find_flaws(data, "symbols")


def _lzw(data: bytes) -> None:
    found = lzw.unpack_plainly(data, 1 << 16)
    if isinstance(found, bytes) and len(found) < 4000:
        assert lzw.unpack_plainly(pack_lzw(found), 1 << 16) == found


def _archive(data: bytes) -> None:
    with tempfile.TemporaryFile() as file, ExitStack() as opened:
        file.write(data)
        file.flush()
        for span in members(FileSpan(file, 0, len(data), "archive"), opened):
            assert len(span.read(0, 100)) <= 100


def _archives() -> list[bytes]:
    import gzip
    import lzma
    import tarfile

    found = []
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as archive:
            for name, text in (("a", b"abc"), ("b" * 120, b"x")):
                info = tarfile.TarInfo(name)
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text))
        found.append(out.getvalue()[:5120])
    return [*found, gzip.compress(found[0], mtime=0), lzma.compress(found[0])]


# ----------------------------------------------------------------------------- others


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _expression(data: bytes) -> None:
    first = parse(_text(data))
    assert str(parse(str(first))) == str(first)


def _elf(data: bytes) -> None:
    with ElfFile(io.BytesIO(data), "fuzz") as file:
        for name in ("main", "", "a" * 300):
            file.exported(name)
            file.static(name)
        file.bytes_at(0, 16)


def _elves() -> list[bytes]:
    """The smallest library that a Python on Linux surely brings is too large; its beginning shows the way."""
    head = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 400, 400, 4096)
    dynamic = struct.pack("<IIQQQQQQ", 2, 6, 176, 176, 176, 80, 80, 8)
    tags = struct.pack("<10q", 5, 256, 6, 264, 10, 8, 11, 24, 0x6FFFFEF5, 320)
    return [head, (head + load + dynamic + tags + b"\0main\0\0\0" + bytes(136))[:400]]


def _maps(data: bytes) -> None:
    maps = parse_maps(data)
    assert len(maps) == len(maps.path) <= len(data)
    parse_smaps(data)


_NAMES = ("look.scale", "look.theme", "look.palettes", "recent.servers", "layout.window", "a")


def _settings(data: bytes) -> None:
    """A file of settings, or, behind a zero byte, a value a line: each name is read as every kind of value, then stored again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.ini"
        if data[:1] == b"\0":
            kept = QSettings(str(path), QSettings.Format.IniFormat)
            for name, line in zip(_NAMES, data[1:].split(b"\n"), strict=False):
                kept.setValue(name, _text(line))
            kept.sync()
        else:
            path.write_bytes(data)
        settings = UserSettings(path)
        assert 100 <= scale_of(settings) <= 200
        for name in _NAMES:
            assert settings.flag(name, True) in (True, False)
            assert 3 <= settings.number(name, 5, low=3, high=9) <= 9
            assert settings.choice(name, Theme) in (None, *Theme)
            assert len(settings.data(name)) <= len(data)
            assert all(isinstance(key, str) for key in settings.mapping(name))
            PaletteChoice.from_dict(settings.mapping(name))
            recent_of(settings.texts(name), servers=True)
            recent_of(settings.texts(name), servers=False)
            settings.store(name, settings.text(name, "none")[:1000])
        settings.write()
        assert [UserSettings(path).text(name) for name in _NAMES] == [
            settings.text(name) for name in _NAMES
        ]


def _settings_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.ini"
        settings = UserSettings(path)
        settings.store("look.scale", 125)
        settings.store("look.theme", "dark")
        settings.store("look.palettes", {"ramp": "viridis", "a": [1, None, {"b": "ü"}]})
        settings.store("recent.servers", ["127.0.0.1:9000", "unix:/a b", "[::1]:1"])
        settings.store_data("layout.window", b"abc")
        settings.store("a", 'x=y; z\n"quoted"')
        settings.write()
        qt = b"[General]\na=@Variant(\\0\\0\\0\\x11\\0\\0\\0\\x80)\nlook.theme=@ByteArray(x)\nlook.scale=@Size(1 2)\nb=@Rect(1 2 3 4)\n"
        lines = b"\n".join(
            [
                b"\x00125",
                b'"dark"',
                b'{"ramp": "viridis"}',
                b'["[::1]:1", "unix:/a"]',
                b'"AAAA"',
                b"1e9",
            ]
        )
        return [lines, path.read_bytes(), qt, b'a=1, 2\n[look]\nscale="{"\n%x=\\x41\n']


def _vm_log(data: bytes) -> None:
    read_log(_text(data).splitlines())


def _heap_dump(data: bytes) -> None:
    dump = parse_dump(np.frombuffer(bytearray(data), dtype=np.uint8), "fuzz", as_written())
    tree = dominators(dump.graph)
    namer = DumpNamer(dump, tree.reached)
    for number in tree.order[:20].tolist():
        namer.way_to(number)
        namer.holder_type(number)
    assert len(dump.namespaces) == dump.objects
    assert (dump.own >= 0).all()
    dump.of_type("Order")


_LOG = b"""{Heap before GC invocations=1 (full 0):
 PSYoungGen      total 1536K, used 1024K [0x00000000ffe00000, 0x0000000100000000, 0x0000000100000000)
  eden space 1024K, 100% used [0x00000000ffe00000,0x00000000fff00000,0x00000000fff00000)
 num     #instances         #bytes  class name
   1:          1234          56789  [I
Total          1234          56789
"""


def _original(data: bytes) -> None:
    """The wire of the original, as a client of a server or as a reader of a trace; the first byte says how it is cut."""
    connection = OriginalConnection(Side.SERVER)
    session: StoredSession | None = None
    step = 1 + data[0] * 16 if data else 1
    for start in range(1, len(data), step):
        connection.receive_data(data[start : start + step])
        for message in connection.messages():
            if session is None and connection.described:
                session = StoredSession(connection)
                session.server.deliver_to(lambda _data: None)
            if session is not None:
                session.take(message)
    connection.receive_eof()


def _original_client(data: bytes) -> None:
    """What a client of the original sends."""
    connection = OriginalConnection(Side.CLIENT, events=2)
    connection.receive_data(data)
    list(connection.messages())


def _original_seeds() -> list[bytes]:
    """A session with small spaces, of every kind of stream and of name."""
    kinds = [
        StreamDefinition(id=0, name="used", maximum=9, presentation=3),
        StreamDefinition(id=1, name="part", dtype="i2", presentation=4, max_stream=0),
        StreamDefinition(id=2, name="state", dtype="i1", presentation=5, enum_names=("a", "b")),
    ]
    space = SpaceDefinition(
        id=0, name="s", tiles=2, streams=tuple(kinds), names=b"[0x10-0x20)\0[0x20-0x30)\0"
    )
    texts = SpaceDefinition(id=0, name="s", tiles=1, streams=tuple(kinds), names=b"x\0")
    begin = b"".join(
        encode_original(one)
        for one in (
            original.ServerGreeting(name="t"),
            original.Bootstrap(spaces=1, general_info="", events=("A", "B")),
            original.SpaceAdded(space=space),
        )
    )
    values = [
        original.StreamValues(space=0, stream=n, values=np.array([1, 0], dtype=one.dtype))
        for n, one in enumerate(kinds)
    ]
    event = original.commands(
        [
            *values,
            original.Summary(space=0, stream=0, values=(1, 2)),
            original.ControlValues(space=0, values=np.array([1, 4], dtype="u1")),
            original.SpaceInfo(space=0, text="i"),
            original.EventCounts(counts=(1, 0)),
            original.Event(event=0, elapsed_millis=2, compensation_millis=1),
        ]
    )
    changed = original.commands(
        [original.SpaceChanged(space=texts), original.Event(event=1), original.Paused()]
    )
    return [b"\xff" + begin + event + changed, b"\1" + begin + changed]


def _original_client_seeds() -> list[bytes]:
    filters = original.EventFilters(filters=(original.EventFilter(), original.EventFilter()))
    said: tuple[original.Message, ...] = (
        original.ClientGreeting(),
        filters,
        original.PauseRequest(),
        original.ShutdownRequest(),
    )
    return [b"".join(map(encode_original, said))]


DECODERS: dict[str, Decoder] = {
    "original": Decoder(_original, _original_seeds),
    "original-client": Decoder(_original_client, _original_client_seeds),
    "wire-events": Decoder(_wire_events, _event_vectors),
    "wire-client": Decoder(_wire_client, lambda: _vectors(from_client=False)),
    "wire-server": Decoder(_wire_server, lambda: _vectors(from_client=True)),
    "handshake": Decoder(
        _handshake,
        lambda: [b"\0" + preamble() + _welcome(), b"\xff" + preamble() + encode(m.Hello(client="a", token="t")).data],
    ),
    "proofs": Decoder(_proofs, _proof_seeds),
    "explain": Decoder(_explain, lambda: [preamble() + one for one in _vectors(from_client=False)[:40]]),
    "recording": Decoder(_recording, _recordings),
    "verify": Decoder(_verify, _recordings),
    "record": Decoder(_record, lambda: [bytes(_record_seed(place)) for place in range(4)]),
    "block": Decoder(_block, _block_seeds),
    "pack": Decoder(_pack, _packed_seeds),
    "pack-made": Decoder(_made_pack, _made_pack_seeds),
    "sidecar": Decoder(_sidecar, lambda: [b'{"version":1,"bookmarks":[{"event":1,"title":"a","colour":"#ff0000"}],"notes":"n","layout":{"a":[1,2.5,null]}}']),
    "anttracks-events": Decoder(_events, lambda: [_made_trace()]),
    "anttracks-symbols": Decoder(_symbols, lambda: [_symbols_data()]),
    "anttracks-lzw": Decoder(_lzw, lambda: [pack_lzw(b"abababab" * 9), pack_lzw(bytes(700))]),
    "archive": Decoder(_archive, _archives),
    "heap-dump": Decoder(_heap_dump, lambda: [small_dump(4), small_dump(8)]),
    "vm-log": Decoder(_vm_log, lambda: [_LOG]),
    "expression": Decoder(
        _expression, lambda: [b"a", b"Used > 3 and not x.y[1] == 'k'", b"sum(\"Heap\".\"Used\") * 2 - 1 >= 3e2", b"(((-1)))"]
    ),
    "elf": Decoder(_elf, _elves),
    "maps": Decoder(
        _maps,
        lambda: [
            b"55d0-55e0 r-xp 00001000 08:01 1234 /usr/bin/a b (deleted)\nRss: 4 kB\n7ff0-7ff8 rw-p 0 00:00 0 [heap]\n",
            b"1000-2000 rw-p 00000000 00:00 0 \nSize: 4 kB\nRss: 4 kB\nPrivate_Dirty: 4 kB\nAnonymous: 4 kB\nSwap: 0 kB\nAnonHugePages: 0 kB\n",
        ],
    ),
    "malloc-heap": Decoder(malloc_heap, malloc_heap_seeds),
    "stub-line": Decoder(stubs.stub_line, lambda: [*stubs.STUB_SEEDS]),
    "agent-line": Decoder(stubs.agent_line, lambda: [*stubs.AGENT_SEEDS]),
    "attach-answer": Decoder(stubs.attach_answer, lambda: [*stubs.ANSWER_SEEDS]),
    "vm-counters": Decoder(stubs.counters, lambda: [*stubs.COUNTER_SEEDS]),
    "gcspy-h": Decoder(gcspy_h.segment, gcspy_h.seeds),
    "triggers": Decoder(triggers, lambda: [*TRIGGER_SEEDS]),
    "settings": Decoder(_settings, _settings_seeds),
}  # fmt: skip
"""By name, which is also that of the folder of its inputs."""


def _made_trace() -> bytes:
    from tests.objects.anttracks.made import trace

    return trace().data()
