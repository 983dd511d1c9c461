"""The page in real browsers: what it decodes, paints and says is what the window does, and everything works by keyboard."""

from __future__ import annotations

import base64
import json
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_protocol.frames.transcoding import without_zstd
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Presentation, Stream
from gcspy_replay.file import MemorySource, MemoryStore, Recording
from gcspy_replay.playback.difference import Sender
from gcspy_replay.playback.playback import RecordingPlayback
from gcspy_replay.samples import lesson_recording, samples
from hypothesis import Phase, given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.claims import events_of_steps
from gcspy_client.model.codes import TileCodes, tiles_of
from gcspy_client.model.palette import Theme, palette_for
from gcspy_client.model.text import long_value
from gcspy_client.page import page_of_recording
from tests.client.page.browser import Browser
from tests.examples import examples
from tests.matrix import matrix
from tests.replay.recorded import RULES, Recorder


def lesson_page(name: str, folder: Path) -> str:
    """The address of a page of a lesson."""
    lesson, path = find_lesson(name), lesson_recording(name)
    assert path is not None
    with Recording.open(path) as recording:
        made = page_of_recording(
            recording, title="a", lesson=lesson, reached=events_of_steps(lesson, recording)
        )
    (folder / f"{name}.html").write_bytes(made.data)
    return (folder / f"{name}.html").as_uri()


def recording_page(recording: Recording, folder: Path) -> str:
    """The address of a page of a recording."""
    (folder / "page.html").write_bytes(page_of_recording(recording, title="a").data)
    return (folder / "page.html").as_uri()


def test_a_lesson_is_done_by_keyboard_and_nothing_is_asked_of_anybody(
    browser: Browser, tmp_path: Path
) -> None:
    browser.requests.clear()
    address = lesson_page("tiles", tmp_path)
    browser.open(address)
    browser.press("n")
    browser.wait("gcspy.lesson.at === 1 && !gcspy.lesson.running")
    question = find_lesson("tiles").steps[1].question
    assert question is not None
    order = browser.evaluate(
        "[...document.querySelectorAll('.choice')].map((one) => Number(one.dataset.choice))"
    )
    assert tuple(order) == find_lesson("tiles").order(1)
    assert question.ask in browser.evaluate("document.getElementById('said').textContent")
    browser.press("End")
    assert browser.evaluate("gcspy.at") == 1  # what comes next is hidden
    wrong = next(one for one in order if one != question.answer)
    browser.press(str(1 + order.index(wrong)))
    assert browser.evaluate("gcspy.lesson.told.textContent") == (
        f"Not correct. {question.feedback_on(wrong)} Try once more."
    )
    assert browser.evaluate("gcspy.lesson.told.getAttribute('aria-live')") == "polite"
    browser.press(str(1 + order.index(question.answer)))
    assert browser.evaluate("gcspy.lesson.told.textContent") == f"Correct. {question.because}"
    assert browser.evaluate("gcspy.lesson.score.textContent") == (
        "0 of 1 right at the first try, 1 at the second"
    )
    browser.press("ArrowRight", alt=True)
    browser.wait("gcspy.lesson.at === 2 && !gcspy.lesson.running")
    assert {one for one in browser.requests if not one.startswith("data:")} <= {address}
    assert browser.errors == []


def test_tiles_streams_and_events_are_reached_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with Recording.open(samples()[0].path) as recording:
        browser.open(recording_page(recording, tmp_path))
        state = recording.seek(1)
        space = next(one for one in state.spaces.values() if one.space.main)
        stream = sorted(space.space.streams, key=lambda one: (one.order, one.id))[0]
        tops = space.streams[stream.max_stream or 0].values
        said = long_value(stream, int(space.streams[stream.id].values[1]), top=int(tops[1]))
    browser.press("Home")
    # Tiles that are not drawn yet cannot be moved among, and a busy machine draws late.
    browser.wait("gcspy.at === 0 && gcspy.map.layout && !gcspy.drawn")
    browser.evaluate("document.getElementById('tiles').focus()")
    browser.press("ArrowRight")
    browser.wait("gcspy.map.selected === 0")
    browser.press("ArrowRight")
    browser.wait("gcspy.map.selected === 1")
    assert f"{stream.name}: {said}" in browser.evaluate(
        "document.getElementById('said').textContent"
    )
    browser.evaluate("document.getElementById('timeline').focus()")
    browser.press("ArrowRight")
    browser.wait("gcspy.at === 1")
    browser.wait("document.getElementById('timeline').getAttribute('aria-valuenow') === '2'")
    browser.press("s")
    browser.wait("document.querySelectorAll('.stream')[1].getAttribute('aria-checked') === 'true'")
    browser.press("]")
    browser.wait("gcspy.activeSpace.name !== 'pymalloc arenas'")
    browser.press("?")
    browser.wait("document.getElementById('keys').open")
    browser.press("Escape")
    browser.wait("!document.getElementById('keys').open")
    assert browser.errors == []


def palettes() -> list[Stream]:
    """Streams that are painted in different palettes."""
    rng = random.Random(5)
    colours = [
        None,
        (200, 30, 40),
        (30, 90, 200),
        (0, 0, 0),
        *((rng.randrange(256), rng.randrange(256), rng.randrange(256)) for _ in range(4)),
    ]
    plain = [
        Stream(
            id=1,
            name="a",
            dtype="u1",
            minimum=0,
            maximum=9,
            colour=colour,
            threshold=quiet,
        )
        for colour in colours
        for quiet in (False, True)
    ]
    enums = [
        Stream(
            id=1,
            name="a",
            dtype="u1",
            minimum=0,
            maximum=9,
            presentation=Presentation.ENUM,
            enum_names=tuple(map(str, range(count))),
        )
        for count in (1, 3, 20)
    ]
    return [*plain, *enums]


def schema(stream: Stream) -> dict[str, Any]:
    """A stream as the page has it."""
    return {
        "namesFrom": None,
        "presentation": int(stream.presentation),
        "names": list(stream.enum_names),
        "colour": stream.colour,
        "threshold": stream.is_exceeded_normally,
    }


def test_colours_are_those_of_the_window(program: Browser) -> None:
    for theme in Theme:
        for stream in palettes():
            here = palette_for(stream, theme)
            made = f"Palettes.of({json.dumps(schema(stream))}, '{theme.value}').colours"
            there = np.array(program.evaluate(made))
            ours = np.stack([here.lut >> 16 & 255, here.lut >> 8 & 255, here.lut & 255], axis=1)
            assert np.abs(there - ours.astype(np.int64)).max() <= 1, (theme, stream)


def packed_events(recording: Recording) -> list[bytes]:
    """The events of a recording as a page has them."""
    playback, sender = RecordingPlayback(recording, running=False), Sender()
    found = []
    for number in recording.events["number"].tolist():
        transition = sender.passage(playback.go(number, 0))
        found.append(without_zstd(transition.schema + transition.event_bytes()))
    return found


_STATE = """(() => {
  const session = new Session();
  session.feed(Uint8Array.from(atob('%s'), (one) => one.charCodeAt(0)));
  return [...session.spaces.values()].map((space) => ({
    name: space.name, count: space.count, control: crc32(space.control.values),
    keys: space.count ? [String(space.key(0)), String(space.key(space.count - 1))] : [],
    texts: [...space.texts].sort((a, b) => a[0] - b[0]),
    streams: [...space.streams.values()].sort((a, b) => a.schema.id - b.schema.id).map((values) => {
      const known = values.known ? [...values.known] : Array(space.count).fill(1);
      const shown = new ShownStream(session, space, values, []);
      return { known, values: [...values.values].map((one, n) => known[n] ? String(one) : ''), codes: crc32(shown.codes()),
        summary: values.summary && [values.summary.covered, ...values.summary.values.map(String)] };
    }),
  }));
})()"""


def expected(session: ClientInterpreter) -> list[dict[str, Any]]:
    """The state of a session, as `_STATE` has it."""
    found = []
    for state in session.spaces.values():
        streams = []
        for _, stream in sorted(state.streams.items()):
            known = [stream.is_known(tile) for tile in range(state.count)]
            told = stream.told
            streams.append(
                {
                    "known": [int(one) for one in known],
                    "values": [
                        str(int(value)) if known[tile] else ""
                        for tile, value in enumerate(stream.values)
                    ],
                    "summary": None if told is None else [told.covered, *map(str, told.values)],
                }
            )
        found.append(
            {
                "name": state.space.name,
                "count": state.count,
                "control": zlib.crc32(state.control.values.tobytes()),
                "streams": streams,
            }
        )
    return found


@given(data=st.data(), rule=RULES, steps=st.integers(1, 12))
@examples(1, phases=(Phase.generate,))  # each step of shrinking takes a browser
def test_any_session_is_decoded_as_the_window_decodes_it(
    program: Browser, data: DataObject, rule: Any, steps: int
) -> None:
    store = MemoryStore()
    Recorder(data.draw, store, rule).run(steps)
    with Recording([MemorySource(bytes(store.data))]) as recording:
        if not len(recording.events):
            return
        wire = b"".join(packed_events(recording))
        last = recording.seek(recording.last)
        there = program.evaluate(_STATE % base64.b64encode(wire).decode())
        here = expected(last)
        for one in there:
            for stream in one["streams"]:
                stream.pop("codes")
        assert [
            {key: one[key] for key in ("name", "count", "control", "streams")} for one in there
        ] == here


def test_paint_codes_and_texts_are_those_of_the_window(program: Browser) -> None:
    paths = [one.path for one in samples()]
    names = 0
    for path in paths:
        with Recording.open(path) as recording:
            wire = b"".join(packed_events(recording))
            last = recording.seek(recording.last)
            there = program.evaluate(_STATE % base64.b64encode(wire).decode())
            for state, one in zip(last.spaces.values(), there, strict=True):
                for (number, stream), told in zip(
                    sorted(state.streams.items()), one["streams"], strict=True
                ):
                    if stream.schema.names_from is not None:
                        continue
                    codes = TileCodes(stream.schema)
                    codes.refresh(tiles_of(state, number))
                    assert told["codes"] == zlib.crc32(codes.codes.tobytes()), (
                        state.space.name,
                        stream.schema.name,
                    )
                    names += 1
    assert names > 15


@pytest.mark.parametrize("damage", matrix(["short", "checksum", "length"], usual=["checksum"]))
def test_damaged_events_are_refused_with_a_reason(program: Browser, damage: str) -> None:
    with Recording.open(samples()[1].path) as recording:
        wire = bytearray(b"".join(packed_events(recording)[:2]))
    if damage == "short":
        del wire[-9:]
    elif damage == "checksum":
        wire[-60] ^= 1
    else:
        wire[0:4] = b"\xff\xff\xff\x7f"
    state = _STATE % base64.b64encode(bytes(wire)).decode()
    said = program.evaluate(
        f"(() => {{ try {{ return {state} && 'read'; }} catch (error) {{ return [error instanceof WireError, error.message]; }} }})()"
    )
    assert said[0] is True
    assert said[1]


def test_unknown_is_shown_as_unknown(program: Browser) -> None:
    found = program.evaluate(
        """(() => {
          const space = gcspy.activeSpace, values = [...space.streams.values()][0].copy();
          values.known = new Uint8Array(space.count); values.values.fill(0);
          const stream = new ShownStream(gcspy.session, space, values);
          return [[...new Set(stream.codes())].sort(), longValue(stream, 0)];
        })()"""
    )
    assert 3 not in found[0]
    assert 4 in found[0]
    assert found[1] == "unknown"
