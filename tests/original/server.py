"""A small server of GCspy 1.0 for tests, written from the description of its wire: python server.py MANNER.

It uses nothing of the project. Like the original it serves one client at a time, in the program's
own thread, and **ends its process** when a client closes within a frame, closes with a reset, or
sends a period below 1 or another number of filters than there are events. It prints its port, and
then a line for each thing that happens; the program goes on working without clients.

    serve        two spaces, an event each 20 ms until standard input ends
    capture F    sends the bytes of a file, then waits for the client to leave
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import time

MAGIC = b"GCspy666\0" + struct.pack(">i", 1)
EVENTS = 2


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def fail(why: str) -> None:
    """Do what the original does: take the program down."""
    say(f"died {why}")
    os._exit(255)


def frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def command(body: bytes) -> bytes:
    return frame(struct.pack(">i", 666666) + body + b"\0" + struct.pack(">i", -666))


def stream(
    number: int, kind: int, name: bytes, maximum: int, presentation: int, names: list[bytes]
) -> bytes:
    head = struct.pack(">bb", number, kind) + name + b"\0" + struct.pack(">iiii", 0, maximum, 0, 0)
    head += (
        name
        + b": \0"
        + b"\0"
        + struct.pack(">bbb", presentation, 1, 0)
        + bytes((10 * number, 20, 30))
    )
    return head + bytes([len(names)]) + b"".join(one + b"\0" for one in names)


def space(number: int, tiles: int) -> bytes:
    streams = [stream(0, 2, b"Used", 4096, 3, []), stream(1, 0, b"State", 2, 5, [b"A", b"B", b"C"])]
    head = struct.pack(">h", number) + b"Space %d\0test\0Block \0Block Size: 4K\n\0" % number
    head += (
        struct.pack(">i", tiles)
        + b"NOT USED\0"
        + bytes([number == 0])
        + struct.pack(">h", len(streams))
    )
    names = b"".join(b"[0x%x-0x%x)\0" % (4096 * i, 4096 * (i + 1)) for i in range(tiles))
    return head + b"".join(streams) + names


class Program:
    """The program, and its server."""

    def __init__(self, listening: socket.socket) -> None:
        self.listening = listening
        self.client: socket.socket | None = None
        self.filters = [(True, 0, False, 1)] * EVENTS
        self.counts = [0] * EVENTS
        self.tiles = 3
        self.pause = self.paused = self.shutdown = False
        self.steps = 0

    def read(self, count: int) -> bytes:
        assert self.client is not None
        data = b""
        while len(data) < count:
            try:
                more = self.client.recv(count - len(data))
            except OSError as error:
                fail(f"recv: {error}")
            if not more:
                fail("the client closed")
            data += more
        return data

    def send(self, data: bytes) -> None:
        assert self.client is not None
        try:
            self.client.sendall(data)
        except OSError as error:
            fail(f"send: {error}")

    def accept(self) -> None:
        if self.client is not None or not select.select([self.listening], [], [], 0)[0]:
            return
        self.client, _ = self.listening.accept()
        greeting = self.read(struct.unpack(">I", self.read(4))[0])
        assert greeting[:-1] == MAGIC
        self.pause = greeting[-1] != 0
        self.filters = [(True, 0, False, 1)] * EVENTS
        self.send(frame(MAGIC + b"Test\0"))
        self.send(
            frame(
                struct.pack(">h", 2)
                + b"A program\n\0"
                + struct.pack(">h", EVENTS)
                + b"Start\0End\0"
            )
        )
        self.send(frame(space(0, self.tiles)))
        self.send(frame(space(1, 2)))
        say("client")

    def commands(self) -> None:
        """Take what the client sent."""
        while self.client is not None and select.select([self.client], [], [], 0)[0]:
            payload = self.read(struct.unpack(">I", self.read(4))[0])
            assert payload[:4] == struct.pack(">i", 666666)
            at = 4
            while payload[at]:
                at = self.take(payload, at)

    def take(self, payload: bytes, at: int) -> int:
        number = payload[at]
        at += 1
        if number == 1:
            self.pause = True
        elif number == 3:
            self.paused = self.pause = False
            say("restart")
        elif number == 4:
            self.paused, self.steps = False, 1
            say("step")
        elif number == 5:
            self.shutdown, self.paused = True, False
            say("shutdown request")
        elif number == 10:
            (count,) = struct.unpack_from(">h", payload, at)
            if count != EVENTS:
                fail(f"{count} filters")
            found = [struct.unpack_from(">?i?i", payload, at + 2 + 10 * i) for i in range(count)]
            if any(one[3] < 1 for one in found):
                fail("a period of 0")
            self.filters = found
            say(
                f"filters {[one[0] for one in found]} {[one[1] for one in found]} {[one[2] for one in found]}"
            )
            at += 2 + 10 * count
        return at

    def event(self, kind: int) -> None:
        """One event: gathered and sent if the filter passes it, and then perhaps held."""
        self.counts[kind] += 1
        enabled, delay, pause, period = self.filters[kind]
        if self.client is None or not enabled or self.counts[kind] % period:
            return
        if self.counts[kind] % 10 == 0:  # a resize now and then
            self.tiles = 3 + self.counts[kind] // 10 % 4
            self.send(command(b"\x0e" + space(0, self.tiles)))
        for number, tiles in ((0, self.tiles), (1, 2)):
            used = [(self.counts[kind] + i) % 4097 for i in range(tiles)]
            self.send(
                command(
                    struct.pack(">bbbi", 7, number, 0, tiles) + struct.pack(f">{tiles}i", *used)
                )
            )
            self.send(command(struct.pack(">bbbiii", 12, number, 0, 2, sum(used), 4096 * tiles)))
            self.send(
                command(
                    struct.pack(">bbbi", 7, number, 1, tiles) + bytes([i % 3 for i in range(tiles)])
                )
            )
            self.send(
                command(struct.pack(">bbi", 9, number, tiles) + bytes([1] * (tiles - 1) + [4]))
            )
            self.send(command(struct.pack(">bb", 13, number) + b"count %d\n\0" % self.counts[kind]))
        self.send(
            command(struct.pack(">bi", 11, EVENTS) + struct.pack(f">{EVENTS}i", *self.counts))
        )
        self.send(command(struct.pack(">bbii", 8, kind, 20, 1)))
        time.sleep(delay / 1000)
        self.hold(pause)

    def hold(self, pause: bool) -> None:
        if self.steps:
            self.steps, self.paused = 0, True
            say("paused after a step")
        elif pause or self.pause:
            self.pause, self.paused = False, True
            self.send(command(b"\2"))
            say("paused")
        while True:
            self.commands()
            if self.shutdown:
                self.send(command(b"\6"))
                self.client_leaves()
                return
            if not self.paused:
                return
            time.sleep(0.005)

    def client_leaves(self) -> None:
        """Wait until the client closes after SHUTDOWN; a word more of it would be a mistake."""
        assert self.client is not None
        self.client.settimeout(20)
        try:
            rest = self.client.recv(1)
        except OSError as error:
            fail(f"after SHUTDOWN: {error}")
        if rest:
            fail("a word after SHUTDOWN")
        self.client.close()
        self.client, self.shutdown, self.paused, self.pause, self.steps = (
            None,
            False,
            False,
            False,
            0,
        )
        say("left")


def serve(listening: socket.socket) -> None:
    program = Program(listening)
    turn = 0
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        turn += 1
        program.accept()
        if program.client is not None:
            program.commands()
        program.event(turn % 2)
        if turn % 25 == 0:
            say(f"works {turn}")
    os._exit(0)


def capture(listening: socket.socket, path: str) -> None:
    """Send a captured server's bytes, with pauses; then wait for the client."""
    client, _ = listening.accept()
    with open(path, "rb") as file:
        data = file.read()
    described = 0
    for _ in range(4):  # greeting, description, two spaces
        described += 4 + struct.unpack_from(">I", data, described)[0]
    client.settimeout(60)
    client.sendall(data[:described])
    said = b""

    def hear(what: bytes) -> None:
        nonlocal said
        while what not in said:
            more = client.recv(4096)
            if not more:
                fail("the client closed")
            said += more

    hear(b"\x0a\x00\x02\x01")  # its filter passes the first kind of event: somebody is there
    for start in range(described, len(data), 40_000):
        client.sendall(data[start : min(start + 40_000, len(data))])
        time.sleep(0.02)
    hear(b"\x05\0\xff\xff\xfd\x66")
    client.sendall(command(b"\6"))
    while client.recv(4096):
        pass
    say("left")


def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    say(str(listening.getsockname()[1]))
    if sys.argv[1] == "serve":
        serve(listening)
    else:
        capture(listening, sys.argv[2])


if __name__ == "__main__":
    main()
