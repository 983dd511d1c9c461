"""Synthetic AntTracks traces, written byte by byte: for tests and measurements, which need more kinds and sizes than real ones have.

The meaning of the bytes is in `gcspy_objects.anttracks.layout`, `.symbols` and `.lzw`; the code here repeats it from the writer's side.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from gcspy_objects.anttracks.layout import KEY_WORDS, MAGIC, EventId, FileType
from gcspy_objects.records import BufferMode

__all__ = [
    "KEY",
    "SymbolsWriter",
    "TraceWriter",
    "alloc",
    "long",
    "pack",
    "prefix",
    "word",
    "write_run",
]

KEY = bytes(range(4 * KEY_WORDS))
"""The key of runs that are made, unless another is given."""

CLASS_TYPE = "Ljava/lang/Class;"


def word(value: int) -> bytes:
    """A word."""
    return struct.pack("<I", value)


def long(value: int) -> bytes:
    """Two words."""
    return struct.pack("<Q", value)


def head(event: EventId, rest: int = 0) -> bytes:
    """The first word of an event."""
    return word(event << 26 | rest)


def site_bits(site: int, length: int = 0) -> int:
    """The bits of a first word that name a site, and the length of a short array."""
    return site if site & 0x800000 else site << 8 | min(length, 255)


def alloc(
    event: EventId,
    site: int,
    *,
    address: int | None = None,
    length: int = 0,
    type_id: int | None = None,
    size: int | None = None,
) -> bytes:
    """An allocation; what is given stands in it."""
    made = head(event, site_bits(site, length))
    if address is not None:
        made += long(address)
    if length >= 255 and not site & 0x800000:
        made += word(length)
    if type_id is not None:
        made += word(type_id)
    return made + (word(size) if size is not None else b"")


def prefix(file_type: int, key: bytes = KEY) -> bytes:
    """Return the first bytes of each file of a run."""
    return word(MAGIC) + word(KEY_WORDS) + key + word(file_type)


def pack(plain: bytes) -> bytes:
    """Compress a payload as the VM does."""
    entries = {bytes([one]): one for one in range(256)}
    held, bits, width = 0, 0, 8

    def put(code: int) -> None:
        nonlocal held, bits, width
        while code >= (1 << width) - 2:
            held, bits = held << width | ((1 << width) - 1), bits + width
            width += 1
        held, bits = held << width | code, bits + width

    match = b""
    for one in plain:
        longer = match + bytes([one])
        if longer in entries:
            match = longer
            continue
        put(entries[match])
        entries[longer] = len(entries)
        match = bytes([one])
    if match:
        put(entries[match])
    held, bits = held << width | ((1 << width) - 1), bits + width
    width += 1
    held, bits = held << width, bits + width
    padding = -bits % 8
    return (held << padding).to_bytes((bits + padding) // 8, "big")


@dataclass
class SymbolsWriter:
    """A symbols file.

    Attributes:
        flags: Its flags.
        records: Its records so far.
    """

    flags: int = 0
    records: bytearray = field(default_factory=bytearray)

    def cause(self, number: int, name: str) -> None:
        """Add a cause of collections."""
        self.records += bytes([17]) + word(number) + name.encode() + b"\0\1"

    def type(
        self,
        number: int,
        descriptor: str,
        size: int,
        fields: list[tuple[str, str, int]] | None = None,
    ) -> None:
        """Add a type: bytes of an instance, or of an array's header << 8 + of an element."""
        self.records += bytes([24]) + word(number) + descriptor.encode() + word(size)
        if fields is not None:
            self.records += bytes([56]) + self.fields(fields)

    def mirror(
        self, number: int, size: int, descriptor: str, fields: list[tuple[str, str, int]]
    ) -> None:
        """Add the record of a class's mirror, which follows one of java.lang.Class."""
        self.type(number, CLASS_TYPE, size)
        self.records += (
            bytes([55]) + descriptor.encode() + self.fields(fields) + bytes([57]) + self.fields([])
        )

    @staticmethod
    def fields(fields: list[tuple[str, str, int]]) -> bytes:
        """A list of fields: descriptor, name, access."""
        made = word(len(fields))
        for index, (descriptor, name, access) in enumerate(fields):
            made += (
                word(len(fields) - 1 - index)
                + descriptor.encode()[:255]
                + name.encode()[:255]
                + b" "
                + struct.pack("<H", access)
            )
        return made

    @staticmethod
    def site_id(number: int) -> bytes:
        """The id of a site, two bytes or three."""
        return (
            struct.pack("<HB", number >> 8, number & 0xFF)
            if number >= 0x8000
            else struct.pack("<H", number)
        )

    def vm_site(self, number: int, name: str) -> None:
        """Add one of the VM's own sites."""
        self.records += bytes([84]) + self.site_id(number) + name.encode() + b"\0" + word(0)

    def site(self, number: int, frames: list[tuple[str, int]], type_id: int) -> None:
        """Add a site: signature and byte code index of each frame."""
        made = bytes([42]) + self.site_id(number) + word(len(frames))
        for signature, bci in frames:
            made += signature.encode() + struct.pack("<i", bci)
        self.records += made + word(type_id)

    def data(self, key: bytes = KEY) -> bytes:
        """The file."""
        return (
            prefix(FileType.SYMBOLS, key) + word(self.flags) + word(8) + b"\0" + bytes(self.records)
        )


@dataclass
class TraceWriter:
    """A trace file.

    Attributes:
        index: Which file of a rotated trace.
        buffers: Its buffers so far.
        anchors: Whether a word follows each event.
    """

    index: int = 0
    buffers: bytearray = field(default_factory=bytearray)
    anchors: bool = False

    def buffer(
        self, owner: int, *events: bytes, mode: int = BufferMode.PLAIN, packed: bool = False
    ) -> None:
        """Add a buffer."""
        payload = b"".join(
            event + (b"\xa5\xa5\xa5\xa5" if self.anchors else b"") for event in events
        )
        payload = pack(payload) if packed else payload
        self.buffers += long(owner) + word(len(payload) | mode << 29 | packed << 31) + payload

    def data(self, key: bytes = KEY) -> bytes:
        """The file."""
        return prefix(FileType.TRACE, key) + word(self.index) + bytes(self.buffers)


def write_run(folder: Path, symbols: SymbolsWriter, *traces: TraceWriter, key: bytes = KEY) -> Path:
    """Write the files of a run to a folder, by the names that the VM gives them; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "symbols").write_bytes(symbols.data(key))
    for trace in traces:
        name = f"trace_{trace.index}" if len(traces) > 1 else "trace"
        (folder / name).write_bytes(trace.data(key))
    return folder
