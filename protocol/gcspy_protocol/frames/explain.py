"""Prints a captured byte stream for a human, one line per frame.

    python -m gcspy_protocol.frames.explain [FILE|-] [--from client|server] [--limit N]

Knows one direction of a connection, from its preamble or from any frame on. It does not stop at the
first error, because what follows often explains it. Control characters are printed as escapes, and
a token never.

Exit codes: 0 the stream is complete and correct, 1 it is not, 2 it could not be read.
"""

from __future__ import annotations

import argparse
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol import messages as m
from gcspy_protocol.codec import crc_of_crcs, decode, unpack
from gcspy_protocol.connection import MAGIC, VERSIONS, is_event_frame, may_send
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.frame import FLAG_ZSTD, HEADER, Header
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import CLIENT_LIMITS, Limits
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import CONTROL_STREAM, EventFilter, EventKind, Role

__all__ = ["Explainer", "explain", "main"]

_PREAMBLE_BYTES = 12
_TEXT_CHARS = 60
_SHOWN_ITEMS = 6


def explain(data: bytes | memoryview, *, sender: Role | None = None) -> Iterator[str]:
    """One line for each frame, and one for each error.

    Args:
        data: The bytes that one end sent.
        sender: Which end; None: determined by the first frame that only one end sends.
    """
    return Explainer(sender=sender).lines(data)


class Explainer:
    """Explains one stream; afterwards `errors` says whether it was correct.

    Args:
        sender: Which end sent it, or None.
        limits: Beyond which a frame is not read.

    Attributes:
        errors: Number of errors so far.
    """

    def __init__(self, *, sender: Role | None = None, limits: Limits = CLIENT_LIMITS) -> None:
        self.errors = 0
        self._sender = sender
        self._limits = limits
        self._client = ClientInterpreter(limits=limits)
        self._held: list[tuple[int, Message]] = []
        self._held_crcs = bytearray()

    def lines(self, data: bytes | memoryview) -> Iterator[str]:
        """One line for each frame, and one for each error."""
        view = memoryview(data)
        at = 0
        if bytes(view[: len(MAGIC)]) == MAGIC[: len(view)] and len(view):
            at = _PREAMBLE_BYTES
            yield from self._preamble(bytes(view[:at]))
        while at < len(view):
            left = len(view) - at
            if left < HEADER.size:
                yield self._wrong(
                    at, f"the stream ends in the middle of a header: {left} of {HEADER.size} bytes"
                )
                return
            header = Header._make(HEADER.unpack_from(view, at))
            if header.length > self._limits.payload_bytes:
                yield self._wrong(
                    at,
                    f"claims {header.length} bytes, over the limit of {self._limits.payload_bytes}: {header}",
                )
                return
            size = HEADER.size + header.length
            if left < size:
                yield self._wrong(
                    at,
                    f"the stream ends in the middle of {_kind(header.type)}: {left} of {size} bytes",
                )
                return
            yield from self._frame(at, header, bytes(view[at : at + size]))
            at += size
        if self._held_crcs:
            frames = len(self._held_crcs) // 4
            yield self._wrong(
                at,
                f"the stream ends in the middle of an event: {frames} frames without their EVENT",
            )

    def _wrong(self, at: int, what: str) -> str:
        self.errors += 1
        return f"{at:>10} error: {what}"

    def _preamble(self, data: bytes) -> Iterator[str]:
        if len(data) < _PREAMBLE_BYTES:
            yield self._wrong(
                0, f"the stream ends in its preamble: {len(data)} of {_PREAMBLE_BYTES} bytes"
            )
            return
        low, high = (int.from_bytes(data[i : i + 2], "little") for i in (8, 10))
        yield f"{0:>10} PREAMBLE versions {low} to {high}"
        if max(low, VERSIONS[0]) > min(high, VERSIONS[1]):
            yield self._wrong(0, f"read here as version {VERSIONS[1]}, which is none of them")

    def _frame(self, at: int, header: Header, frame: bytes) -> Iterator[str]:
        """A whole frame: its line, then its errors."""
        payload = frame[HEADER.size :]
        head = f"{at:>10} {_kind(header.type):<18} {len(payload)} B"
        crc = self._follow_crc(header, frame)
        try:
            self._check_place(header.type)
            raw = (
                unpack(header, payload, self._limits, at)
                if header.type in set(FrameType)
                else payload
            )
            message = decode(header, raw, self._limits)
        except RemoteProtocolError as error:
            yield head
            yield self._wrong(at, str(error))
            return
        if header.flags & FLAG_ZSTD:
            head += f" ({len(raw)} raw)"
        if header.sequence:
            head += f" #{header.sequence}"
        if header.time_nanos:
            head += f" t={header.time_nanos / 1e9:.6f} s"
        yield f"{head}  {self._about(message)}{crc}".rstrip()
        if crc.endswith("bad"):
            yield self._wrong(
                at, "damaged event: its frames are not those that its CRC was made of"
            )
            self._held.clear()
            return
        yield from self._apply(at, message)

    def _check_place(self, number: int) -> None:
        """Refuse a frame that this end does not send, or that may not occur within an event."""
        if number not in set(FrameType):
            return
        if self._held_crcs and not is_event_frame(number):
            raise RemoteProtocolError(f"{_kind(number)} in the middle of an event")
        ends = [role for role in Role if may_send(role, number)]
        if self._sender is None and len(ends) == 1:
            self._sender = ends[0]
        if self._sender is not None and self._sender not in ends:
            raise RemoteProtocolError(f"{_kind(number)} is not sent by a {self._sender.value}")

    def _follow_crc(self, header: Header, frame: bytes) -> str:
        """Add a frame to the CRC of its event; for EVENT check the CRC."""
        if is_event_frame(header.type):
            self._held_crcs += zlib.crc32(frame).to_bytes(4, "little")
        if header.type != FrameType.EVENT:
            return ""
        promised = int.from_bytes(frame[HEADER.size : HEADER.size + 4], "little")
        found = crc_of_crcs(bytes(self._held_crcs), frame[: HEADER.size] + frame[HEADER.size + 4 :])
        frames = len(self._held_crcs) // 4
        self._held_crcs.clear()
        return f", {frames} frames, CRC {'ok' if found == promised else 'bad'}"

    def _apply(self, at: int, message: Message) -> Iterator[str]:
        """Check it with the client interpreter, if the stream is complete from its beginning."""
        if self._sender is not Role.SERVER or (
            self._client.welcome is None and not isinstance(message, m.Welcome | m.SpaceDefined)
        ):
            return
        self._held.append((at, message))
        if isinstance(
            message, m.Tiles | m.StreamKey | m.StreamDelta | m.Summary | m.SpaceInfo | m.NewNames
        ):
            return
        held, self._held = self._held, []
        for place, one in held:
            try:
                self._client.apply(one)
            except RemoteProtocolError as error:
                yield self._wrong(place, str(error))

    # ------------------------------------------------------- the text of a message

    def _about(self, message: Message) -> str:
        match message:
            case m.StreamKey():
                return f"{self._stream(message)}: {len(message.values)} tiles{_range(message.values, message.known)}"
            case m.StreamDelta():
                changed = f"{len(message.indices)} of {message.count} tiles changed since #{message.base_sequence}"
                return f"{self._stream(message)}: {changed}{_range(message.values, message.known)}"
            case m.Summary():
                return f"{self._stream(message)}: {_short(message.values)}, covers {message.covered} tiles"
            case m.Tiles():
                return self._tiles(message)
            case m.Event():
                return self._event(message)
            case m.SpaceDefined():
                names = ", ".join(
                    f"{s.id} {_text(s.name)} {s.dtype}" for s in message.space.streams
                )
                return f"{message.space.id} {_text(message.space.name)} ({message.space.naming}): {names or 'no streams'}"
            case m.SpaceRemoved():
                return self._space(message.space)
            case m.SpaceInfo() | m.NewNames() | m.TileNames() | m.TileNamesRequest():
                return f"{self._space(message.space)}: {_rest(message, ('space', 'sequence', 'time_nanos'))}"
            case m.Hello():
                nonce = ", a nonce" if message.nonce else ""
                return f"{_rest(message, ('token', 'nonce'))}, {'with' if message.token else 'no'} token{nonce}"
            case m.Timeline():
                again = ", replaced" if message.fresh else ""
                return f"{len(message.rows)} events from number {message.first} on{again}"
            case m.Trigger() | m.Triggers() | m.Fired() | m.Settings() | m.Budget():
                return _about_chosen(message)
            case m.Query() | m.Answer():
                return f"{self._space(message.space)}: {_about_details(message)}"
            case m.Unknown():
                return "of a later version: skipped"
            case _:
                return (
                    _about_place(message)
                    if isinstance(message, m.Look | m.Looked)
                    else _rest(message, ("nonce", "proof"))  # random for a human reader
                )

    def _space(self, space_id: int) -> str:
        known = self._client.spaces.get(space_id)
        return f"space {space_id}" if known is None else f"{_text(known.space.name)} ({space_id})"

    def _stream(self, message: m.StreamKey | m.StreamDelta | m.Summary) -> str:
        space = self._client.spaces.get(message.space)
        if message.stream == CONTROL_STREAM:
            name = "control"
        elif space is not None and message.stream in space.streams:
            name = f"{_text(space.streams[message.stream].schema.name)} ({message.stream})"
        else:
            name = f"stream {message.stream}"
        return f"{self._space(message.space)} {name}"

    def _tiles(self, tiles: m.Tiles) -> str:
        kept = int(tiles.lengths.sum(dtype=np.int64))
        named = str(tiles.naming)
        if tiles.tile_bytes:
            named += f" from {tiles.base:#x}, {tiles.tile_bytes} bytes each"
        return (
            f"{self._space(tiles.space)}: {tiles.count} tiles, {kept} kept in {len(tiles.lengths)} runs, "
            f"{tiles.count - kept} new, {named}"
        )

    def _event(self, event: m.Event) -> str:
        parts = [
            f"{_text(self._client.event_name(event.event))} ({event.event})",
            f"occurrence {event.occurrence}",
        ]
        parts.append(f"epoch {event.epoch}")
        parts += [name for name in ("keyframe", "cached") if getattr(event, name)]
        parts.append(
            f"gathered {event.gather_nanos / 1e6:.3f} ms, held {event.held_nanos / 1e6:.3f} ms"
        )
        if event.waited_nanos:
            parts.append(f"waited {event.waited_nanos / 1e6:.3f} ms for lossless clients in all")
        if event.stopped_nanos:
            parts.append(f"the target was stopped for {event.stopped_nanos / 1e6:.3f} ms")
        if event.cause:
            parts.append(f"cause {_text(event.cause)}")
        if event.program_clock is not None:
            parts.append(f"{_text(event.program_clock[0])} {event.program_clock[1]}")
        return ", ".join(parts)


def _kind(number: int) -> str:
    try:
        return FrameType(number).name
    except ValueError:
        return f"unknown {number:#04x}"


def _text(text: str) -> str:
    """A text safe for a terminal: repr escapes unprintable characters."""
    return repr(text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…")


def _range(values: NDArray[Any], known: NDArray[np.bool_] | None) -> str:
    """Number of unknown values, and minimum and maximum of the others."""
    unknown = 0 if known is None else int(np.count_nonzero(~known))
    seen = values if known is None else values[known]
    text = f", {unknown} unknown" if unknown else ""
    return text + (f", {int(seen.min())} to {int(seen.max())}" if len(seen) else "")


def _rest(message: Message, without: Sequence[str]) -> str:
    """Fields and values, shortened."""
    shown = [
        (field.name, getattr(message, field.name))
        for field in fields(message)
        if field.name not in without
    ]
    return ", ".join(f"{name} {_short(value)}" for name, value in shown)


def _about_chosen(message: m.Trigger | m.Triggers | m.Fired | m.Settings | m.Budget) -> str:
    if isinstance(message, m.Settings | m.Budget):
        return _about_settings(message)
    return _about_triggers(message)


def _about_settings(message: m.Settings | m.Budget) -> str:
    if isinstance(message, m.Budget):
        return _about_budget(message)
    return _short(
        tuple(
            f"{_text(one.name)} ({one.id}) is {_text(one.name_of(one.value))}"
            for one in message.settings
        )
    )


def _about_budget(budget: m.Budget) -> str:
    parts = [f"as of #{budget.sequence}", *budget.parts]
    if budget.reason:
        parts.append(_text(budget.reason))
    return ", ".join(parts)


def _about_details(message: m.Query | m.Answer) -> str:
    if isinstance(message, m.Query):
        return _rest(message, ("space",))
    table = f", {len(message.table.rows)} rows" if message.table.columns else ""
    of = f" of #{message.sequence}" if message.sequence else ""
    return f"number {message.number}, {message.state.value}{of}{table}"


def _about_place(message: m.Look | m.Looked) -> str:
    """Return the description of a client's place."""
    at = message.at
    named = ("space", at.space), ("stream", at.stream), ("key", at.key), ("sequence", at.sequence)
    parts = [f"{name} {value}" for name, value in named if value is not None]
    parts += [
        f"{name} {_text(value)}"
        for name, value in (("view", at.view), ("panel", at.panel))
        if value
    ]
    if at.lesson is not None:
        open_try = f", try {at.lesson.attempt}" if at.lesson.attempt else ""
        revealed = ", revealed" if at.lesson.revealed else ""
        parts.append(f"lesson {_text(at.lesson.lesson)}, step {at.lesson.step}{open_try}{revealed}")
    where = ", ".join(parts) or "nothing in particular"
    return where if isinstance(message, m.Look) else f"client {message.client}: {where}"


def _about_triggers(message: m.Trigger | m.Triggers | m.Fired) -> str:
    match message:
        case m.Trigger():
            return _trigger(message)
        case m.Triggers():
            triggers = tuple(f"{_trigger(one.trigger)} is {one.state}" for one in message.triggers)
            return f"{_short(triggers)}, fired {message.fired} times in all"
        case m.Fired():
            operands = ", ".join(
                f"{_text(one.text)} is {_short(one.value)}" for one in message.operands
            )
            return f"{_trigger(message.trigger)} at #{message.sequence}: {operands}"


def _trigger(trigger: m.Trigger) -> str:
    """A trigger, in short."""
    what = f"{trigger.action} when {_text(trigger.expression)}" if trigger.expression else "removed"
    return f"{trigger.id} {what}"


def _short(value: object) -> str:
    """A field's value, in short."""
    match value:
        case Enum():
            return value.name.lower()
        case str():
            return _text(value)
        case tuple():
            more = [f"… {len(value)} in all"] if len(value) > _SHOWN_ITEMS else []
            return "[" + ", ".join([*(_short(item) for item in value[:_SHOWN_ITEMS]), *more]) + "]"
        case dict():
            return _short(tuple(f"{name}={text}" for name, text in value.items()))
        case EventKind():
            return _text(value.name)
        case m.Client():
            return f"{value.id} {_text(value.name)}"
        case EventFilter() | m.Subscription():
            return repr(value)
        case _:
            return str(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m gcspy_protocol.frames.explain",
        description="Show a captured GCspy byte stream, one line a frame.",
        epilog="Exit codes: 0 valid, 1 invalid, 2 unreadable.",
    )
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        help="file with the captured bytes of one direction; -: standard input",
    )
    parser.add_argument(
        "--from",
        dest="sender",
        choices=[role.value for role in Role],
        help="which end sent the bytes",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="show at most N lines")
    given = parser.parse_args(arguments)
    try:
        data = sys.stdin.buffer.read() if given.file == "-" else Path(given.file).read_bytes()
    except OSError as error:
        print(f"{parser.prog}: cannot read {given.file}: {error.strerror}", file=sys.stderr)
        return 2
    explainer = Explainer(sender=None if given.sender is None else Role(given.sender))
    lines = explainer.lines(data)
    try:
        for line in islice(lines, given.limit):
            print(line)
        left = sum(1 for _ in lines)
        if left:
            print(f"{left} more lines; {explainer.errors} errors in all")
        sys.stdout.flush()
    except BrokenPipeError:
        # `| head` has closed the pipe; Python would report that again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if explainer.errors else 0


if __name__ == "__main__":
    sys.exit(main())
