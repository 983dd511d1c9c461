"""Heap dumps that are made: a writer of the format, and a slow reader of it that shares nothing with ours."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field

SIZES = {4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}


class Writer:
    """Writes a dump.

    Args:
        width: Bytes of an identifier.
    """

    def __init__(self, width: int = 8) -> None:
        self.width = width
        self.letter = {4: "I", 8: "Q"}[width]
        self.records = bytearray()
        self.subs = bytearray()
        self.names: dict[str, int] = {}
        self.serials: dict[int, int] = {}

    def id(self, *numbers: int) -> bytes:
        return struct.pack(f">{len(numbers)}{self.letter}", *numbers)

    def record(self, tag: int, body: bytes) -> None:
        self.records += struct.pack(">BII", tag, 0, len(body)) + body

    def name(self, text: str) -> int:
        if text not in self.names:
            self.names[text] = 0x100 + len(self.names)
            self.record(1, self.id(self.names[text]) + text.encode())
        return self.names[text]

    def a_class(
        self,
        address: int,
        name: str,
        above: int = 0,
        *,
        fields: tuple[tuple[str, int], ...] = (),
        statics: tuple[tuple[str, int, bytes], ...] = (),
        loader: int = 0,
        constants: int = 0,
    ) -> None:
        serial = self.serials[address] = len(self.serials) + 1
        self.record(
            2,
            struct.pack(">I", serial)
            + self.id(address)
            + struct.pack(">I", 0)
            + self.id(self.name(name)),
        )
        sub = bytes([0x20]) + self.id(address) + struct.pack(">I", 0)
        sub += self.id(above, loader, 0, 0, 0, 0) + struct.pack(">IH", 0, constants)
        sub += b"".join(struct.pack(">HBI", each, 10, 7) for each in range(constants))
        sub += struct.pack(">H", len(statics))
        for static, kind, value in statics:
            sub += self.id(self.name(static)) + bytes([kind]) + value
        sub += struct.pack(">H", len(fields))
        for each, kind in fields:
            sub += self.id(self.name(each)) + bytes([kind])
        self.subs += sub

    def instance(self, address: int, of: int, values: bytes) -> None:
        self.subs += bytes([0x21]) + self.id(address) + bytes(4) + self.id(of)
        self.subs += struct.pack(">I", len(values)) + values

    def objects(self, address: int, of: int, *items: int) -> None:
        self.subs += bytes([0x22]) + self.id(address) + struct.pack(">II", 0, len(items))
        self.subs += self.id(of, *items)

    def values(self, address: int, kind: int, data: bytes) -> None:
        count = len(data) // SIZES[kind]
        self.subs += bytes([0x23]) + self.id(address) + struct.pack(">IIB", 0, count, kind) + data

    def root(self, kind: int, address: int, *more: int) -> None:
        self.subs += bytes([kind]) + self.id(address) + struct.pack(f">{len(more)}I", *more)

    def segment(self) -> None:
        self.record(0x1C, bytes(self.subs))
        self.subs.clear()

    def bytes(self) -> bytes:
        self.segment()
        self.record(0x2C, b"")
        return b"JAVA PROFILE 1.0.2\0" + struct.pack(">IQ", self.width, 1) + bytes(self.records)


def small(width: int = 8) -> bytes:
    """Return a dump of a list of orders, a thread with a local, a weak and a soft reference, and garbage."""
    made = Writer(width)
    null = made.id(0)
    made.a_class(0x1000, "java/lang/Object")
    made.a_class(0x1100, "java/lang/Class", 0x1000)
    made.a_class(0x1200, "java/lang/Thread", 0x1000, fields=(("name", 2),))
    made.a_class(
        0x1300, "java/lang/String", 0x1000, fields=(("hash", 10), ("coder", 8), ("value", 2))
    )
    made.a_class(0x1400, "java/util/ArrayList", 0x1000, fields=(("size", 10), ("elementData", 2)))
    made.a_class(0x1500, "[Ljava/lang/Object;", 0x1000)
    made.a_class(0x1600, "java/lang/ref/Reference", 0x1000, fields=(("referent", 2), ("next", 2)))
    made.a_class(0x1700, "java/lang/ref/WeakReference", 0x1600)
    made.a_class(0x1800, "java/lang/ref/SoftReference", 0x1600, fields=(("clock", 11),))
    made.segment()
    made.a_class(
        0x2000,
        "shop/Order",
        0x1000,
        fields=(("number", 10), ("lines", 2)),
        statics=(("ALL", 2, made.id(0x3000)), ("COUNT", 10, bytes(4)), ("WEAK", 2, made.id(0x3900)), ("SOFT", 2, made.id(0x3A00))),
        constants=2,
        loader=0x2800,
    )  # fmt: skip
    made.a_class(0x2700, "java/lang/ClassLoader", 0x1000)
    made.instance(0x2800, 0x2700, b"")
    made.instance(0x3000, 0x1400, struct.pack(">I", 3) + made.id(0x3100))
    made.objects(0x3100, 0x1500, 0x4000, 0x4020, 0, 0x4040)
    for each in range(5):  # the last two: local, weak
        made.instance(
            0x4000 + 0x20 * each, 0x2000, struct.pack(">I", each) + made.id(0x5000 + 0x20 * each)
        )
        made.values(0x5000 + 0x20 * each, 10, struct.pack(">I", each))
    made.instance(0x3900, 0x1700, made.id(0x4080) + null)
    made.instance(0x3A00, 0x1800, bytes(8) + made.id(0x4100) + null)
    made.instance(0x4100, 0x2000, struct.pack(">I", 9) + null)
    made.instance(0x6000, 0x1200, made.id(0x6100))
    made.instance(0x6100, 0x1300, struct.pack(">IB", 0, 0) + made.id(0x6208))
    made.values(0x6208, 8, b"worker")
    made.record(
        4,
        made.id(0x70, made.name("run"), made.name("()V"), 0)
        + struct.pack(">Ii", made.serials[0x2000], 7),
    )
    made.record(5, struct.pack(">III", 5, 1, 1) + made.id(0x70))
    made.root(8, 0x6000, 1, 5)
    made.root(3, 0x4060, 1, 0)
    for each in range(0x1000, 0x1900, 0x100):
        made.root(5, each)
    made.root(1, 0x2800, *([0] * (width // 4)))
    made.root(5, 0x2000)
    return made.bytes()


@dataclass
class Slow:
    """Result of the slow reader.

    Attributes:
        references: Of each object by address: the addresses it refers to, ascending, nothing left out.
        class_of: Name of each object's class as the dump writes it.
        fields: Of each class the fields it declares: name and type.
        above: Superclass of each.
        roots: Kind and address.
    """

    references: dict[int, list[int]] = field(default_factory=dict)
    class_of: dict[int, str] = field(default_factory=dict)
    fields: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    above: dict[int, int] = field(default_factory=dict)
    roots: list[tuple[int, int]] = field(default_factory=list)


class _SlowReader:
    """Reads a dump, a field at a time."""

    def __init__(self, data: bytes) -> None:
        self.file = io.BytesIO(data)
        while self.file.read(1) != b"\0":
            pass
        self.width = struct.unpack(">I", self.file.read(4))[0]
        self.file.read(8)
        self.letter = {4: "I", 8: "Q"}[self.width]
        self.sizes = {**SIZES, 2: self.width}
        self.names: dict[int, str] = {}
        self.class_names: dict[int, str] = {}
        self.found = Slow()
        self.raw: list[tuple[int, int, bytes]] = []

    def take(self, form: str) -> tuple[int, ...]:
        form = ">" + form.replace("P", self.letter)
        return struct.unpack(form, self.file.read(struct.calcsize(form)))

    def read(self) -> Slow:
        while head := self.file.read(9):
            tag, _, length = struct.unpack(">BII", head)
            end = self.file.tell() + length
            if tag == 1:
                (name,) = self.take("P")
                self.names[name] = self.file.read(length - self.width).decode("latin-1")
            elif tag == 2:
                _, address, _, name = self.take("IPIP")
                self.class_names[address] = self.names[name]
            elif tag in (0x0C, 0x1C):
                while self.file.tell() < end:
                    self.sub()
            else:
                self.file.seek(end)
        for address, of, values in self.raw:
            self.found.references[address] = self.of_instance(of, values)
            self.found.class_of[address] = self.class_names[of]
        for held in self.found.references.values():
            held[:] = sorted(each for each in held if each)
        return self.found

    def of_instance(self, of: int, values: bytes) -> list[int]:
        held, at = [], 0
        while of:
            for _, kind in self.found.fields[of]:
                if kind == 2:
                    held.append(int.from_bytes(values[at : at + self.width], "big"))
                at += self.sizes[kind]
            of = self.found.above[of]
        return held

    def sub(self) -> None:
        found, take = self.found, self.take
        (sub,) = take("B")
        roots = {0xFF: "P", 5: "P", 7: "P", 1: "PP", 2: "PII", 3: "PII", 8: "PII", 4: "PI", 6: "PI"}
        if sub in roots:
            found.roots.append((sub, take(roots[sub])[0]))
        elif sub == 0x20:
            self.a_class()
        elif sub == 0x21:
            address, _, of, size = take("PIPI")
            self.raw.append((address, of, self.file.read(size)))
        elif sub == 0x22:
            address, _, count, of = take("PIIP")
            found.references[address] = list(take(f"{count}P"))
            found.class_of[address] = self.class_names[of]
        else:
            assert sub == 0x23, sub
            address, _, count, kind = take("PIIB")
            self.file.read(count * self.sizes[kind])
            found.references[address] = []
            found.class_of[address] = "[" + "ZCFDBSIJ"[kind - 4]

    def a_class(self) -> None:
        found, take = self.found, self.take
        address, _, above, loader, signers, domain, _, _, _, constants = take("PIPPPPPPIH")
        for _ in range(constants):
            self.file.read(self.sizes[take("HB")[1]])
        held = [above, loader, signers, domain]
        for _ in range(take("H")[0]):
            _, kind = take("PB")
            if kind == 2:
                held += take("P")
            else:
                self.file.read(self.sizes[kind])
        fields = [take("PB") for _ in range(take("H")[0])]
        found.fields[address] = [(self.names[name], kind) for name, kind in fields]
        found.above[address] = above
        found.references[address] = held
        found.class_of[address] = "java/lang/Class"


def read_slowly(data: bytes) -> Slow:
    """Read a dump with none of our code."""
    return _SlowReader(data).read()
