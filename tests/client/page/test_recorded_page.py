"""The page of a recording: what is in the file, what is left out, and that no text of a stranger can become more than text."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gcspy_protocol.errors import CommandError
from gcspy_replay.file import MemorySource, Recording
from gcspy_replay.samples import lesson_recording, samples

from gcspy.cli import main
from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.claims import events_of_steps
from gcspy_client.page import PageSelection, page_of_recording
from gcspy_client.page.document import make_document, script
from gcspy_client.page.prose import html_of_markdown, words_of_markdown
from tests.replay.recorded import WELCOME, small

HOSTILE = "</script><script>alert(1)</script><!--<script>\u2028& \"' \u202e"


def facts_of(page: bytes) -> dict[str, Any]:
    found = re.search(
        rb'<script type="application/json" id="facts">(.*?)</script>', page, re.DOTALL
    )
    assert found is not None
    facts: dict[str, Any] = json.loads(found[1])
    return facts


BLANK = len(make_document({"title": ""}))


def sample() -> Recording:
    return Recording.open(samples()[0].path)


def test_a_page_asks_nobody_for_anything() -> None:
    with sample() as recording:
        page = page_of_recording(recording, title="a").data.decode()
    assert re.findall(r"(?:https?|wss?)://", page) == []
    assert re.findall(r"""(?:src|href)=["'](?!data:,)""", page) == []
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "connect-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


def test_a_page_has_all_events_of_a_small_recording() -> None:
    with sample() as recording:
        made = page_of_recording(recording, title="a")
        rows, names = recording.events, [kind.name for kind in recording.welcome.events]
    facts = facts_of(made.data)
    assert (made.events, made.left_out) == (len(rows), 0)
    assert facts["events"]["number"] == rows["number"].tolist()
    assert facts["events"]["occurrence"] == rows["occurrence"].tolist()
    assert [kind["name"] for kind in facts["kinds"]] == names
    assert facts["events"]["missed"] == facts["events"]["left"] == []
    assert sum(facts["events"]["time"]) == int(rows["time_nanos"][-1]) - int(rows["time_nanos"][0])


def test_a_large_recording_is_thinned_by_kind_and_the_page_says_so() -> None:
    most = BLANK + 35_000
    with sample() as recording:
        whole = page_of_recording(recording, title="a")
        made = page_of_recording(recording, title="a", most_bytes=most)
        kinds = {int(one["event"]): int(one["occurrence"]) for one in recording.events}
    facts = facts_of(made.data)
    assert len(made.data) <= most < len(whole.data)
    assert made.events + made.left_out == whole.events
    assert sum(facts["events"]["left"]) == made.left_out
    assert set(facts["events"]["kind"]) == set(kinds)
    assert f"{made.events} of {whole.events} events are in this page" in facts["subtitle"]
    assert facts["events"]["number"][0] == 1
    assert facts["events"]["number"][-1] == whole.events


def test_missed_events_stay_counted_when_the_page_is_thinned() -> None:
    from gcspy_client.page.recorded_page import _columns, _thinned

    with sample() as recording:
        rows = recording.events.copy()
    rows["missed"][3], rows["missed"][20] = 5, 2
    kept = _thinned(rows, 4, [1, len(rows)])
    assert len(kept) < len(rows) // 2
    assert sum(_columns(rows, kept)["missed"]) == 7


def test_an_event_that_is_too_large_is_refused_with_a_remedy() -> None:
    with sample() as recording, pytest.raises(CommandError, match="--space or --stream"):
        page_of_recording(recording, title="a", most_bytes=BLANK + 2_000)


def test_a_space_and_a_stream_can_be_chosen() -> None:
    with sample() as recording:
        whole = page_of_recording(recording, title="a")
        one = page_of_recording(
            recording, title="a", selection=PageSelection(space="pymalloc arenas", stream="Used")
        )
        with pytest.raises(CommandError, match="no space or stream"):
            page_of_recording(recording, title="a", selection=PageSelection(space="nowhere"))
    assert len(one.data) < len(whole.data)


def test_the_steps_of_a_lesson_are_at_their_events() -> None:
    lesson, path = find_lesson("tiles"), lesson_recording("tiles")
    assert path is not None
    with Recording.open(path) as recording:
        reached = events_of_steps(lesson, recording)
        made = page_of_recording(
            recording, title="a", lesson=lesson, reached=reached, most_bytes=BLANK + 11_500
        )
    facts = facts_of(made.data)
    assert made.left_out > 0
    assert [
        facts["events"]["number"][step["event"]] for step in facts["lesson"]["steps"]
    ] == reached
    asked = facts["lesson"]["steps"][1]["question"]
    assert sorted(asked["order"]) == list(range(len(asked["choices"])))
    assert tuple(asked["order"]) == lesson.order(1)


def test_no_text_ends_the_element_that_it_is_in() -> None:
    page = make_document({"title": HOSTILE, "server": HOSTILE}).decode()
    assert page.count("</script>") == 3
    assert page.count("<script") == 3
    assert facts_of(page.encode())["server"] == HOSTILE


def test_a_strangers_names_stay_text() -> None:
    with Recording([MemorySource(small(2))]) as recording:
        recording.welcome = replace(WELCOME, server=HOSTILE, target={"lesson": HOSTILE})
        page = page_of_recording(recording, title=HOSTILE).data.decode()
    assert page.count("<script") == 3


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("*a* **b**", "<p><em>a</em> <strong>b</strong></p>\n"),
        ("<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>\n"),
        ("[a](https://b.example)", "<p>a (https://b.example)</p>\n"),
        ("![a](https://b.example/c.png)", "<p>[picture: a]</p>\n"),
        ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>\n"),
        ("see [keys](page:keys)", "<p>see keys</p>\n"),
    ],
)
def test_markdown_loads_and_opens_nothing(text: str, html: str) -> None:
    assert html_of_markdown(text) == html


def test_the_program_of_the_page_never_makes_html_of_a_text() -> None:
    uses = [
        line
        for line in script().splitlines()
        if re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", line
        )
    ]
    assert [line.strip()[:36] for line in uses] == ["this.text.innerHTML = step.html; // "]


def test_commands_write_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording, lesson = tmp_path / "a.html", tmp_path / "b.html"
    assert main(["export", str(samples()[1].path), "-o", str(recording), "--theme", "light"]) == 0
    assert main(["lesson", "--html", "tiles", "-o", str(lesson)]) == 0
    assert "events" in capsys.readouterr().out
    assert facts_of(recording.read_bytes())["theme"] == "light"
    assert facts_of(lesson.read_bytes())["lesson"]["name"] == "tiles"
    assert main(["lesson", "--html", "tiles", "-o", str(lesson)]) != 0
    assert "exists already" in capsys.readouterr().err
    assert main(["lesson", "--html", "tiles"]) == 2
    assert main(["export", str(samples()[1].path), "-o", str(tmp_path / "c.html"), "--tiles"]) == 2


def test_events_of_a_page_are_the_wire() -> None:
    with sample() as recording:
        page = page_of_recording(recording, title="a").data
    found = re.search(rb'id="events">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    packed = base64.b64decode(found[1])
    offset = 0
    for _, length in facts_of(page)["chunks"]:
        assert zlib.decompress(packed[offset : offset + length])
        offset += length
    assert offset == len(packed)


def test_emphasis_of_questions_is_left_out() -> None:
    assert words_of_markdown("the *remembered set*, `x < 1`\n[a](https://b.example)") == (
        "the remembered set, x < 1 a (https://b.example)"
    )
